"""Command lines: those that are printed over several lines, and options that are settings."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from groupstorm.cli import printing
from groupstorm.cli.printing import command_lines
from tests.command import groupstorm

WORDS = [
    "trace",
    "runs/rolling-deploy-compare-0/cooperative",
    "--partition",
    "topic-0-7",
    "--from",
    "1",
    "--to",
    "9",
]


@pytest.mark.parametrize("width", [20, 40, 60, 80, 200])
def test_a_shell_reads_the_lines_as_one_command(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(printing, "invoked_as", lambda: "groupstorm")
    lines = command_lines("Its story:", width, *WORDS)
    text = "\n".join(lines)
    assert shlex.split(text.replace("\\\n", " ").removeprefix("Its story:")) == ["groupstorm", *WORDS]
    assert all(len(line) <= max(width, 48) for line in lines)
    assert not any(line.rstrip(" \\").endswith(("--partition", "--from", "--to")) for line in lines)
    assert (len(lines) == 1) == (width == 200)


@pytest.mark.parametrize(
    ("option", "told"),
    [
        (["--members", "20"], "--members: a setting is given as --set members=VALUE."),
        (["--session-timeout-ms=9s"], "a setting is given as --set session.timeout.ms=9s."),
        (
            ["--set", "members=20", "partitions=8"],
            "partitions=8: each setting has a --set of its own: --set partitions=8.",
        ),
        (["--seedz", "20"], "No such option: --seedz"),
    ],
)
def test_a_setting_given_as_an_option_is_told_how_it_is_given(
    option: list[str], told: str, tmp_path: Path
) -> None:
    result = groupstorm("compare", "rolling-deploy", *option, cwd=tmp_path)
    assert result.returncode == 2
    assert told in " ".join(re.sub("[│╭╮╰╯─]", " ", result.stderr).split())
