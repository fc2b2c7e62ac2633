"""Commands that are printed over several lines."""

from __future__ import annotations

import shlex

import pytest

from groupstorm.cli import invocation
from groupstorm.cli.invocation import command_lines

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
    monkeypatch.setattr(invocation, "invoked_as", lambda: "groupstorm")
    lines = command_lines("Its story:", width, *WORDS)
    text = "\n".join(lines)
    assert shlex.split(text.replace("\\\n", " ").removeprefix("Its story:")) == ["groupstorm", *WORDS]
    assert all(len(line) <= max(width, 48) for line in lines)
    assert not any(line.rstrip(" \\").endswith(("--partition", "--from", "--to")) for line in lines)
    assert (len(lines) == 1) == (width == 200)
