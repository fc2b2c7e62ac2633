"""A streams group (KIP-1071): the recorded logs of a broker and two instances of a word count, Kafka 4.4.0.

`python -m tests.imports.record --streams` records them anew: counter-b joins, is killed, comes back to its
host, and is stopped; then counter-a is stopped.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from groupstorm.problems import InputError
from groupstorm.whatif.agreement import repeat
from tests.explain.explaining import Trace, names, recorded_of
from tests.explain.test_first_answers import printed

#: The streams group's session and heartbeats, as the recording sets them.
SESSION_US, HEARTBEAT_US = 6_000_000, 1_000_000
ALL: Final = ("server", "counter-a", "counter-b")


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    return Trace("streams", tmp_path_factory.mktemp("streams"), *ALL)


def actions() -> list[Mapping[str, Any]]:
    return [*recorded_of("streams")["actions"]]


def test_every_line_is_understood_and_belongs_to_the_one_group(trace: Trace) -> None:
    """Restore consumers have no group, and no prefix of two parts is read as one group's name."""
    assert [log.not_understood for log in trace.done.logs] == [0, 0, 0]
    assert {row["group"] for row in trace.rows} == {"count"}


def test_tasks_run_where_the_harness_waited_for_them(trace: Trace) -> None:
    """Before each of its actions but the first it waited until both had all that it expected."""
    runs: dict[str, set[str]] = {}
    seen = []
    rows = iter(sorted((*trace.of("task_running"), *trace.of("task_suspended")), key=lambda row: row["seq"]))
    row = next(rows)
    for action in actions()[1:]:
        while row["time_us"] < trace.us_of(action):
            tasks = runs.setdefault(row["process"], set())
            (tasks.add if row["event"] == "task_running" else tasks.discard)(row["task"])
            row = next(rows)
        seen.append((action["do"], action["member"], len(runs["counter-a"]), len(runs.get("counter-b", ()))))
    assert seen == [
        ("start", "counter-b", 4, 0),
        ("kill", "counter-b", 2, 2),
        ("start", "counter-b", 4, 0),
        ("stop", "counter-b", 2, 2),
        ("stop", "counter-a", 4, 0),
    ]


def test_a_killed_instance_died_a_session_before_it_was_fenced(trace: Trace) -> None:
    [killed] = [trace.us_of(one) for one in actions() if one["do"] == "kill"]
    lost = [row for row in trace.of("task_suspended") if row["cause"] == "crash"]
    assert {(row["task"], row["process"]) for row in lost} == {("0_1", "counter-b"), ("1_1", "counter-b")}
    assert all(row["earliest_us"] <= killed <= row["latest_us"] for row in lost)
    assert all(row["latest_us"] - row["earliest_us"] <= HEARTBEAT_US + 200_000 for row in lost)
    gone = [(row["process"], row["cause"]) for row in trace.of("instance_gone")]
    assert gone == [("counter-b", "crashed"), ("counter-b", "closed"), ("counter-a", "closed")]


def test_members_that_go_count_the_epoch_up_without_a_line(trace: Trace) -> None:
    bumped = [(row["generation"], row["provenance"]) for row in trace.of("group_epoch_bumped")]
    assert bumped == [
        (2, "observed"),
        (3, "observed"),
        (4, "observed"),
        (5, "inferred"),
        (6, "observed"),
        (7, "inferred"),
        (8, "inferred"),
    ]
    by_expiry = [one for one in trace.explained.history.rebalances if one.cause == "session-expired"]
    assert [one.culprit for one in by_expiry] == ["counter-b-StreamThread-1-consumer"]


def test_state_that_a_task_begins_with(trace: Trace) -> None:
    """counter-b has nothing of 1_1 the first time; whoever runs it later finds the checkpoint of its host."""
    began = [(row["process"], row["task"], row["cause"]) for row in trace.of("task_restoring")]
    assert sorted(began[:2]) == [("counter-a", "1_0", "nothing"), ("counter-a", "1_1", "nothing")]
    assert began[2:] == [
        ("counter-b", "1_1", "nothing"),
        ("counter-a", "1_1", "checkpoint"),
        ("counter-b", "1_1", "checkpoint"),
        ("counter-a", "1_1", "checkpoint"),
    ]


def down_us(trace: Trace) -> int:
    """By hand: from each stop of a task to its next run, until nobody is there any more."""
    [gone_us] = [row["time_us"] for row in trace.of("members_gone")]
    since: dict[str, int] = {}
    total = 0
    for row in trace.rows:
        if row["event"] == "task_suspended":
            since[row["task"]] = row["time_us"]
        elif row["event"] == "task_running" and row["task"] in since:
            total += row["time_us"] - since.pop(row["task"])
    return total + sum(gone_us - us for us in since.values())


def test_figures_and_patterns(trace: Trace, capsys: pytest.CaptureFixture[str]) -> None:
    """The longest downtime: the kill, the session, the next heartbeat and the restoration."""
    figures = trace.explained.history.figures
    assert figures is not None
    assert figures.tasks_from_scratch == 1
    assert figures.task_downtime_max_seconds is not None
    assert SESSION_US / 1e6 - 1 < figures.task_downtime_max_seconds < SESSION_US / 1e6 + 1
    assert figures.task_downtime_seconds == pytest.approx(down_us(trace) / 1e6)
    assert names(trace.explained)[:2] == ["moved-cold", "session-expired"]
    lasted = f"{figures.task_downtime_seconds:.1f} s in all, {figures.task_downtime_max_seconds:.1f} s at"
    assert f"Tasks were down for {lasted} the longest." in printed(trace.explained, capsys)


def test_a_cold_move_costs_what_the_move_took_and_not_what_the_kill_took(trace: Trace) -> None:
    """The move of 1_1 to counter-b is counted, and the later kill of counter-b is not."""
    moved = next(row["time_us"] for row in trace.of("task_restoring") if row["process"] == "counter-b")
    given_up = [row["time_us"] for row in trace.of("task_suspended") if row["task"] == "1_1"]
    runs = [row["time_us"] for row in trace.of("task_running") if row["task"] == "1_1"]
    down = min(us for us in runs if us > moved) - max(us for us in given_up if us <= moved)
    assert trace.explained.history.from_scratch_down_us == down
    assert 0 < down < down_us(trace) / 5


def test_without_the_log_of_an_instance_tasks_are_not_down(tmp_path: Path) -> None:
    """Another thread may run them."""
    alone = Trace("streams", tmp_path, "server", "counter-a")
    assert not [*alone.of("tasks_created")]
    assert alone.explained.history.figures is not None
    assert alone.explained.history.figures.task_downtime_seconds is None


def test_what_if_names_the_command_that_answers(tmp_path: Path) -> None:
    for logs in (ALL, ("server", "counter-b"), ("counter-a",)):
        out = Trace("streams", tmp_path, *logs).out
        with pytest.raises(InputError, match=r"Kafka Streams.*: groupstorm compare stateful-warmup --set"):
            repeat(out, None, {})


def test_a_thread_that_was_killed_is_not_said_to_have_closed(trace: Trace) -> None:
    """Threads of a streams group leave when they close, as this log shows of both instances."""
    (finding,) = [one for one in trace.explained.findings if one.pattern.name == "session-expired"]
    assert "1 member died, hung or lost the connection." in finding.match.sentence
    assert "find out why the process died or stood still" in finding.pattern.advice
    assert "internal.leave.group.on.close" not in finding.pattern.advice
