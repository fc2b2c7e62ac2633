"""`groupstorm script`: variables, conditions, time, names, and input that is none."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from groupstorm.coordinator.script.clients import scenario_uuid
from groupstorm.coordinator.script.run import run_lines, run_scenario
from groupstorm.coordinator.script.scenario import read_scenario
from groupstorm.problems import InputError
from tests.processes import run_process

_ROOT = Path(__file__).parents[2]


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


def state(*steps: dict[str, Any], **more: Any) -> Any:
    """The last state of group g."""
    return run(*steps, **more)["events"][-1]["groups"].get("g")


def join(label: str, **fields: Any) -> dict[str, Any]:
    return {"op": "join", "as": label, "version": 3} | fields


def sync(label: str, **fields: Any) -> dict[str, Any]:
    return {"op": "sync", "as": label, "assignments": "auto"} | fields


def advance(duration_ms: int) -> dict[str, Any]:
    return {"op": "advance", "ms": duration_ms}


def test_uuids_are_md5_of_id_and_number() -> None:
    assert str(scenario_uuid("t1", 1)) == "28d24198-5b43-4209-a64f-4b2f66620b76"
    assert str(scenario_uuid("t1", 2)) == "aca16a0a-ddb7-45b1-a074-1cb01cc4ada1"


def test_ids_are_named_in_the_order_of_being_seen_and_drawn() -> None:
    result = run(join("a"), join("b", client_id="other"), name="t1")
    assert result["ids"] == {
        "m1": "client-28d24198-5b43-4209-a64f-4b2f66620b76",
        "m2": "other-aca16a0a-ddb7-45b1-a074-1cb01cc4ada1",
    }


def test_names_sort_by_number_before_literals() -> None:
    steps = [join(f"c{number}", version=4) for number in range(11)]
    assert state(*steps)["pending"] == [f"m{number}" for number in range(1, 12)]


@pytest.mark.parametrize(
    ("member", "error"),
    [
        ("$", "NONE"),
        ("$a", "NONE"),
        ("$m1", "NONE"),
        ("$m7", "UNKNOWN_MEMBER_ID"),
        ("x", "UNKNOWN_MEMBER_ID"),
    ],
)
def test_member_variables(member: str, error: str) -> None:
    asking = {"op": "heartbeat", "as": "a", "member": member}
    assert answers(join("a"), sync("a"), asking)[-1]["error"] == error


def test_a_client_without_an_id_has_an_empty_one() -> None:
    assert answers({"op": "leave", "as": "a", "member": "$b"})[-1]["members"] == [
        ["", None, "UNKNOWN_MEMBER_ID"]
    ]


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


def test_numbers_of_others_may_be_reckoned_with() -> None:
    steps = [join("a"), sync("a"), {"op": "heartbeat", "as": "b", "member": "$a", "generation": "$a+0"}]
    assert answers(*steps)[-1]["error"] == "NONE"


@pytest.mark.parametrize(
    ("when", "taken"),
    [
        ("join:NONE", True),
        ("NONE", True),
        (["sync:NONE", "join:NONE"], True),
        ("sync:NONE", False),
        ("PENDING", False),
        ([], False),
        (None, True),
    ],
)
def test_when(when: Any, taken: bool) -> None:
    events = answers(join("a"), {"op": "heartbeat", "as": "a", "when": when})
    assert ([event["kind"] for event in events] == ["join", "heartbeat"]) is taken


def test_parked_joins_are_pending_at_once() -> None:
    steps = [join("a", when="NONE"), join("a"), {"op": "heartbeat", "as": "a", "when": "join:PENDING"}]
    kinds = [event["kind"] for event in answers(*steps, config={"group.initial.rebalance.delay.ms": 3000})]
    assert kinds == ["heartbeat", "pending"]


def test_an_id_is_dropped_when_it_is_unknown_and_after_leaving() -> None:
    gone = {"op": "heartbeat", "as": "a", "group": "elsewhere"}
    assert answers(join("a"), gone, {"op": "leave", "as": "a"})[-1]["members"][0][0] == ""
    assert (
        answers(join("a"), {"op": "leave", "as": "a"}, {"op": "leave", "as": "a"})[-1]["members"][0][0] == ""
    )
    batch = {"op": "leave", "as": "a", "members": [["$", None]]}
    assert answers(join("a"), batch, {"op": "leave", "as": "a"})[-1]["members"][0][0] == "m1"
    other = {"op": "heartbeat", "as": "a", "member": "somebody"}
    assert answers(join("a"), other, {"op": "leave", "as": "a"})[-1]["members"][0][0] == "m1"


def test_auto_gives_generation_and_name() -> None:
    steps = [join("b"), join("a"), join("b", member="$"), sync("a"), sync("b")]
    events = [event for event in answers(*steps) if event["kind"] == "sync"]
    assert {event["as"]: base64.b64decode(event["assignment"]) for event in events} == {
        "a": b"2:m2",
        "b": b"2:m1",
    }


def test_auto_consumer_deals_partitions_in_turn() -> None:
    steps = [join("a"), join("b"), join("a", member="$"), sync("b"), sync("a", assignments="auto-consumer")]
    events = [
        event for event in answers(*steps, config={"topics": {"u": 1, "t": 2}}) if event["kind"] == "sync"
    ]
    dealt = {event["as"]: base64.b64decode(event["assignment"]) for event in events}
    assert dealt["a"] == b"\0\1\0\0\0\2\0\1t\0\0\0\1\0\0\0\0\0\1u\0\0\0\1\0\0\0\0\xff\xff\xff\xff"
    assert dealt["b"] == b"\0\1\0\0\0\1\0\1t\0\0\0\1\0\0\0\1\xff\xff\xff\xff"


def test_a_follower_and_one_told_to_skip_send_no_plan() -> None:
    """m1 restarts and is told to skip; its plan would have changed nothing, but is not sent either."""
    steps = [
        join("a", instance="i", version=9),
        sync("a", instance="i"),
        join("a", instance="i", version=9),
        sync("a", instance="i"),
    ]
    last = answers(*steps)[-1]
    assert base64.b64decode(last["assignment"]) == b"1:m1"


def test_subscriptions_say_what_is_owned_by_the_last_assignment() -> None:
    subscription = {"topics": ["t"], "owned": "$", "version": 2, "generation": "$"}
    steps = [
        join("a"),
        sync("a", assignments="auto-consumer"),
        join("a", member="$", protocols=[["range", subscription]]),
    ]
    (_, _, metadata), *_ = answers(*steps, config={"topics": {"t": 2}})[-1]["members"]
    assert base64.b64decode(metadata) == (
        b"\0\2\0\0\0\1\0\1t\xff\xff\xff\xff\0\0\0\1\0\1t\0\0\0\2\0\0\0\0\0\0\0\1\0\0\0\1"
    )


def test_answers_of_one_moment_are_shown_by_step_before_the_state() -> None:
    steps = [join("a"), join("b"), {"op": "leave", "as": "b", "member": "$m2"}, join("a", member="$")]
    events = run(*steps)["events"]
    moment = [(event["kind"], event["step"]) for event in events if event["t"] == 0][2:]
    assert moment == [
        ("state", 1),
        ("join", 1),
        ("leave", 2),
        ("state", 2),
        ("join", 3),
        ("state", 3),
    ]


def test_states_inside_an_advance_are_shown_at_their_millisecond_if_they_changed() -> None:
    result = run(join("a", session=6_000), advance(10_000))
    times = [(event["t"], event["step"]) for event in result["events"] if event["kind"] == "state"]
    assert times == [(0, 0), (6_000, 1), (10_000, 1)]


def test_what_was_never_answered_comes_last() -> None:
    result = run(join("a"), config={"group.initial.rebalance.delay.ms": 3_000})
    assert result["events"][-1] == {"t": 0, "step": 0, "kind": "pending", "of": "join"}


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


def test_append_error_counts_for_its_step_alone() -> None:
    steps = [join("a", append_error="NOT_LEADER_OR_FOLLOWER"), join("a")]
    first, second = answers(*steps)
    assert (first["error"], second["error"]) == ("NOT_COORDINATOR", "NONE")


def test_deleted_topics_lose_their_offsets() -> None:
    commit = {"op": "commit", "as": "x", "generation": -1, "offsets": {"t": {"0": 5}, "u": {"0": 6}}}
    removal = {"op": "topics", "remove": ["t", "none"]}
    fetch = {"op": "fetch_offsets", "topics": {"t": [0], "u": [0]}}
    assert answers(commit, removal, fetch, config={"topics": {"t": 1, "u": 1}})[-1]["partitions"] == [
        ["t", 0, -1, "NONE"],
        ["u", 0, 6, "NONE"],
    ]


def test_all_offsets_are_fetched_with_null() -> None:
    commit = {"op": "commit", "as": "x", "generation": -1, "offsets": {"t": {"1": 5}}}
    assert answers(commit, {"op": "fetch_offsets", "topics": None})[-1]["partitions"] == [["t", 1, 5, "NONE"]]


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


def _command(*arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    return run_process(
        [sys.executable, "-m", "groupstorm", "script", *arguments],
        input=given,
        capture_output=True,
        text=True,
        cwd=_ROOT,
        env=os.environ | {"PYTHONPATH": str(_ROOT)},
        check=False,
        deadline_s=60,
    )


def test_the_command_reads_standard_input_or_a_file(tmp_path: Path) -> None:
    lines = '{"id": "ü", "steps": [{"op": "advance", "ms": 5}]}\n\n{"id": "b", "steps": []}\n'
    from_input = _command("--changes", given=lines)
    file = tmp_path / "scenarios.jsonl"
    file.write_text(lines, encoding="utf-8")
    from_file = _command(str(file), "--changes")
    assert (from_input.returncode, from_input.stderr) == (0, "")
    assert from_input.stdout == from_file.stdout
    assert [json.loads(line)["id"] for line in from_file.stdout.splitlines()] == ["ü", "b"]


def test_the_command_ends_with_2_and_one_line() -> None:
    result = _command(given='{"id": "a", "steps": []}\nnonsense\n{"id": "b", "steps": []}\n')
    assert result.returncode == 2
    assert len(result.stdout.splitlines()) == 1
    (line,) = result.stderr.splitlines()
    assert "standard input:2" in line
    missing = _command("/no/such/file")
    assert missing.returncode == 2
    assert "/no/such/file" in missing.stderr
