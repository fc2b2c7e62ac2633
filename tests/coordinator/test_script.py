"""`groupstorm script`: variables, conditions, time, names, and input that is none."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from groupstorm.coordinator.script.clients import scenario_uuid
from groupstorm.coordinator.script.run import run_lines, run_scenario
from groupstorm.coordinator.script.scenario import read_scenario
from groupstorm.problems import InputError
from tests.command import groupstorm, refused


def run(*steps: dict[str, Any], config: dict[str, Any] | None = None, name: str | int = "t") -> Any:
    scenario = {
        "id": name,
        "config": {"group.initial.rebalance.delay.ms": 0} | (config or {}),
        "steps": steps,
    }
    return run_scenario(read_scenario(json.dumps(scenario), "test"), changes=False)


def answers(*steps: dict[str, Any], **more: Any) -> list[Any]:
    """All events but the states."""
    return [event for event in run(*steps, **more)["events"] if event["kind"] != "state"]


def join(label: str, **fields: Any) -> dict[str, Any]:
    return {"op": "join", "as": label, "version": 3} | fields


def sync(label: str, **fields: Any) -> dict[str, Any]:
    return {"op": "sync", "as": label, "assignments": "auto"} | fields


def advance(duration_ms: int) -> dict[str, Any]:
    return {"op": "advance", "ms": duration_ms}


def test_uuids_are_md5_of_id_and_number() -> None:
    assert str(scenario_uuid("t1", 1)) == "28d24198-5b43-4209-a64f-4b2f66620b76"
    assert str(scenario_uuid("t1", 2)) == "aca16a0a-ddb7-45b1-a074-1cb01cc4ada1"


@pytest.mark.parametrize(
    ("generation", "error"),
    [
        ("$", "NONE"),
        ("$a", "NONE"),
        ("$+1", "ILLEGAL_GENERATION"),
        ("$a-1", "ILLEGAL_GENERATION"),
        (1, "NONE"),
    ],
)
def test_generation_variables(generation: Any, error: str) -> None:
    asking = {"op": "heartbeat", "as": "a", "generation": generation}
    assert answers(join("a"), sync("a"), asking)[-1]["error"] == error


def test_a_changed_expression_is_resolved_though_its_own_records_are_lost() -> None:
    """The resolution is background work with records of its own: the other member's topics are found."""
    beat: dict[str, Any] = {"op": "chb", "epoch": 0, "rebalance": 10_000, "owned": {}}
    steps: list[dict[str, Any]] = [
        {**beat, "as": "a", "member": "a", "regex": "foo.*"},
        {**beat, "as": "b", "member": "b", "regex": "ba.*"},
        {"op": "advance", "ms": 10_001},
        {"op": "chb", "as": "a", "regex": "fo.*", "append_error": "RECORD_LIST_TOO_LARGE"},
    ]
    events = run(*steps, config={"topics": {"bar": 1}})["events"]
    (refused,) = (one for one in events if one["kind"] == "chb" and one["step"] == 3)
    assert refused["error"] == "UNKNOWN_SERVER_ERROR"
    group = events[-1]["groups"]["g"]
    assert (group["state"], group["epoch"], group["assignment_epoch"]) == ("Assigning", 2, 1)


@pytest.mark.parametrize(
    "step",
    [
        {"op": "group_config", "set": {"consumer.session.timeout.ms": "soon"}},
        {"op": "group_config", "set": {"consumer.surprise": 1}},
        {"op": "chb", "version": 2},
        {"op": "chb", "owned": 7},
        {"op": "chb", "topics": "t"},
        {"op": "nonsense"},
        {},
        {"op": 7},
        {"op": "join", "member": None},
        {"op": "join", "session": "soon"},
        {"op": "join", "session": 2**31},
        {"op": "join", "version": 10},
        {"op": "join", "protocols": "range"},
        {"op": "join", "protocols": [["range"]]},
        {"op": "join", "protocols": [["range", "%"]]},
        {"op": "join", "protocols": [["range", {"owned": {"t": 1}}]]},
        {"op": "join", "protocols": [["range", {"topics": "t"}]]},
        {"op": "join", "protocols": [["range", {"topics": ["t"], "version": -1}]]},
        {"op": "join", "append_error": "TIRED"},
        {"op": "join", "append_error": "NONE"},
        {"op": "sync", "assignments": "some"},
        {"op": "sync", "assignments": {"m": 5}},
        {"op": "heartbeat", "generation": "ten"},
        {"op": "heartbeat", "generation": True},
        {"op": "leave", "members": [["a"]]},
        {"op": "leave", "members": "all"},
        {"op": "commit", "offsets": {"t": [5]}},
        {"op": "commit", "offsets": {"t": {"first": 5}}},
        {"op": "fetch_offsets", "topics": {"t": 0}},
        {"op": "advance"},
        {"op": "advance", "ms": -1},
        {"op": "topics", "set": {"t": 0}},
        {"op": "topics", "remove": "t"},
    ],
)
def test_steps_that_are_no_requests_are_invalid_and_the_scenario_goes_on(step: dict[str, Any]) -> None:
    events = run(step, join("a"))["events"]
    assert [event["kind"] for event in events] == ["invalid", "state", "join", "state"]
    assert events[0]["why"]
    assert set(events[0]) == {"t", "step", "kind", "why"}


@pytest.mark.parametrize(
    "config",
    [
        {"group.max.size": 0},
        {"group.max.size": "big"},
        {"group.consumer.session.timeout.ms": 1},
        {"topics": {"t": 0}},
        {"topics": {"t": 1_000_001}},  # ours: each partition takes memory
        {"topics": ["t"]},
        {"racks": "yes"},
        {"groups": {"g": {"consumer.session.timeout.ms": "0"}}},
        {"groups": ["g"]},
    ],
)
def test_a_configuration_that_kafka_refuses_fails_the_scenario(config: dict[str, Any]) -> None:
    assert set(run(join("a"), config=config)) == {"id", "failed"}


def test_names_that_kafka_does_not_know_have_no_effect() -> None:
    assert "events" in run(join("a"), config={"no.such.option": 5, "log.dirs": "/tmp", "racks": True})


@pytest.mark.parametrize("label", ["m1", "m007", 5])
def test_labels_may_not_look_like_names(label: Any) -> None:
    assert "as" in run(join(label))["failed"]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("{", "test:2: not JSON"),
        ("[]", r"test:2: \[\] is no scenario"),
        ('{"steps": []}', "test:2: id: null"),
        ('{"id": "x"}', "test:2: steps: null"),
        ('{"id": "x", "steps": [3]}', r"test:2: steps\[0\]: 3"),
        ('{"id": "x", "steps": [], "config": 3}', "test:2: config: 3"),
    ],
)
def test_a_line_that_is_no_scenario_ends_the_run_after_the_earlier_answers(line: str, says: str) -> None:
    given = ['{"id": "a", "steps": []}', line, '{"id": "b", "steps": []}']
    lines = run_lines(given, "test", partial(run_scenario, changes=False))
    assert json.loads(next(lines)) == {"id": "a", "events": [], "ids": {}}
    with pytest.raises(InputError, match=says) as problem:
        next(lines)
    assert "\n" not in str(problem.value)


def test_the_command_reads_standard_input_or_a_file(tmp_path: Path) -> None:
    lines = '{"id": "ü", "steps": [{"op": "advance", "ms": 5}]}\n\n{"id": "b", "steps": []}\n'
    from_input = groupstorm("script", "--changes", given=lines)
    file = tmp_path / "scenarios.jsonl"
    file.write_text(lines, encoding="utf-8")
    from_file = groupstorm("script", str(file), "--changes")
    assert (from_input.returncode, from_input.stderr) == (0, "")
    assert from_input.stdout == from_file.stdout
    assert [json.loads(line)["id"] for line in from_file.stdout.splitlines()] == ["ü", "b"]


def test_the_command_ends_with_2_and_one_line() -> None:
    result = groupstorm("script", given='{"id": "a", "steps": []}\nnonsense\n{"id": "b", "steps": []}\n')
    assert "standard input:2" in refused(result)
    assert len(result.stdout.splitlines()) == 1
    assert "/no/such/file" in refused(groupstorm("script", "/no/such/file"))
