"""`groupstorm script --records` as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.command import groupstorm, refused
from tests.share_records.scripts import Event, golden, of_kind, run, run_line


def _answers(folder: Path, *lines: str) -> list[dict[str, Any]]:
    (folder / "scripts.jsonl").write_text("\n".join(lines), encoding="utf-8")
    result = groupstorm("script", "--records", "scripts.jsonl", cwd=folder)
    assert result.returncode == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_scripts_of_records_are_answered_line_by_line(tmp_path: Path) -> None:
    cases = golden("rules")[:3]
    answers = _answers(tmp_path, *(line for line, _ in cases))
    assert answers == [json.loads(expected) for _, expected in cases]


def test_an_older_release_has_no_records_to_answer_for(tmp_path: Path) -> None:
    result = groupstorm("script", "--records", "--kafka", "4.3.1", "none", cwd=tmp_path)
    assert refused(result) == (
        "groupstorm: --records: scripts of records are answered as Kafka 4.4.0, not 4.3.1"
    )


def test_a_step_that_cannot_be_done_is_invalid_and_the_script_goes_on(tmp_path: Path) -> None:
    steps = [
        {"op": "produce", "p": "bar-0", "batches": [[1]]},
        {"op": "fly"},
        {"op": "fetch", "as": "a", "wait": 0, "mode": "fast"},
        {"op": "advance", "ms": -1},
        {"op": "persister", "write": "never"},
        {"op": "fetch", "as": "a", "wait": 0},
    ]
    line = json.dumps({"id": 1, "config": {"topics": {"foo": 1}}, "steps": steps})
    (answer,) = _answers(tmp_path, line)
    reasons = [event["why"] for event in answer["events"] if event["kind"] == "invalid"]
    assert [reason.split(":")[0] for reason in reasons] == [
        "no partition bar-0",
        "no op 'fly'",
        "mode",
        "ms",
        "write",
    ]
    assert any(event["kind"] == "fetch" for event in answer["events"])


@pytest.mark.parametrize(
    ("step", "why"),
    [
        ({"op": "ack", "acks": {"foo": "accept"}}, "'foo' is no partition"),
        ({"op": "ack", "acks": {"foo-0": [3]}}, "acks: [3] names no records"),
        ({"op": "ack", "acks": {"foo-0": {"held": 0, "cycle": 3}}}, "cycle: 3 is no list"),
        ({"op": "ack", "acks": {"foo-0": [[0, 1, "take"]]}}, "type: 'take' is not one of gap, accept, rel"),
        ({"op": "fetch", "epoch": "$x"}, "epoch: '$x' is no whole number"),
        ({"op": "fetch", "version": 3}, "version: 3 is not between 1 and 2"),
        ({"op": "persister", "read": ["ok"]}, "read: ['ok'] is none of ok, hold"),
        ({"op": "coord", "call": "write", "p": "foo-0", "batches": [[0, 1, [], 1]]},
         "batches: [0, 1, [], 1]"),
        ({"op": "leader", "p": "foo-0", "event": "gone"}, "event: 'gone'"),
        ({"op": "read_error", "p": "foo-0", "error": "NO_ERROR"}, "error: 'NO_ERROR'"),
    ],
)  # fmt: skip
def test_a_step_with_a_wrong_value_names_it(step: Event, why: str) -> None:
    (invalid,) = of_kind(run(step), "invalid")
    assert invalid["why"].startswith(why)


def test_a_broker_option_that_kafka_refuses_fails_the_script(tmp_path: Path) -> None:
    line = json.dumps({"id": 1, "config": {"group.share.delivery.count.limit": 99}, "steps": []})
    assert _answers(tmp_path, line) == [
        {"id": 1, "failed": "config: group.share.delivery.count.limit: 99 is not between 2 and 10"}
    ]


@pytest.mark.parametrize(
    "config", [{"groups": []}, {"groups": {"g": 3}}, {"persister_ms": "x"}, {"state_epoch": -1}]
)
def test_a_script_whose_config_cannot_be_read_fails(config: Event) -> None:
    answer = run_line(json.dumps({"id": 1, "config": config, "steps": []}))
    assert answer["failed"].startswith(f"config: {next(iter(config))}")
