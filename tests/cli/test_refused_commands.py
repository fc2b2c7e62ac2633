"""`groupstorm list`, advice that there is none, and one line for bad input of any command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command import groupstorm, refused


def test_list_names_presets_settings_and_steps(tmp_path: Path) -> None:
    presets = json.loads(groupstorm("list", "--json", cwd=tmp_path).stdout)
    assert {"name", "question", "variants"} == set(presets[0])
    assert "rolling-deploy" in {preset["name"] for preset in presets}
    assert "session.timeout.ms" in groupstorm("list", "--settings", cwd=tmp_path).stdout
    assert "rolling-restart" in groupstorm("list", "--steps", cwd=tmp_path).stdout


def test_advice_that_there_is_none_is_said_once(tmp_path: Path) -> None:
    few = ["--seeds", "1", "--runs", "2", "--set", "members=2", "--set", "partitions=4"]
    answer = groupstorm("advise", "cold-start", *few, "--goal", "generations<0", cwd=tmp_path)
    assert answer.returncode == 1
    assert "No change of one or two settings meets generations<0" in " ".join(answer.stdout.split())
    assert answer.stderr.endswith("\ngroupstorm: cold-start: nothing that was tried meets the goal\n")
    assert "generations<0" not in answer.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["run", "nowhere"], "neither a preset"),
        (["run", "."], ".: is a folder: expected a preset or a scenario file (.yaml, .toml)"),
        (
            ["compare", "/dev/zero"],
            "/dev/zero: its name ends neither in .yaml nor in .toml: expected a preset",
        ),
        (["trace", "/dev/zero"], "/dev/zero: is a device, a socket or a pipe: expected a trace"),
        (["rollout", "/dev/zero"], "/dev/zero: is a device: expected a file"),
        (["script", "/dev/zero"], "/dev/zero: a line of more than 16,777,216 characters"),
        (["run", "cold-start", "--variant", "x"], "'x' is not one of delay-3s"),
        (["run", "cold-start", "--set", "members"], "expected NAME=VALUE"),
        (["run", "cold-start", "--set", "members=["], "--set members"),
        (["run", "cold-start", "--set", "sesion.timeout.ms=1"], "did you mean session.timeout.ms"),
        (["run", "cold-start", "--set", "partition.assignment.strategy=best"], "'best'"),
        (["run", "cold-start", "--format", "csv"], "csv"),
        (["replay", "."], "no scenario.yaml"),
        (["trace", "nowhere"], "nowhere"),
        (["compare", "cold-start", "--variant", "x"], "'x' is not one of delay-3s"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(tmp_path: Path, arguments: list[str], told: str) -> None:
    assert told in refused(groupstorm(*arguments, cwd=tmp_path))


def test_a_client_without_the_consumer_protocol_is_refused_by_name(tmp_path: Path) -> None:
    settings = ("--set", "group.protocol=consumer", "--set", "client_profile=aiokafka")
    said = refused(groupstorm("run", "cold-start", *settings, cwd=tmp_path))
    assert "group.protocol" in said
    assert "aiokafka" in said


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--on", "nowhere"], "--on 'nowhere': expected emulator, jvm, container[=IMAGE] or HOST:PORT"),
        (["--on", "127.0.0.1:9"], "say --allow-writes"),
        (
            ["--on", "127.0.0.1:9", "--allow-writes"],
            "--on 127.0.0.1:9: connection refused: nothing listens there",
        ),
        (["--on", "emulator", "--exact"], "--exact: means something only in virtual time"),
        (["--on", "emulator", "--seeds", "2"], "--on: one run at a time, not --seeds"),
        (["--allow-writes"], "--allow-writes: means something only with --on HOST:PORT"),
    ],
)
def test_broker_that_cannot_be_used_is_refused(options: list[str], says: str, tmp_path: Path) -> None:
    assert says in refused(groupstorm("run", "cold-start", *options, cwd=tmp_path))
    assert list(tmp_path.glob("runs/*/*")) == []
