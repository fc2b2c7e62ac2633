"""Figures of Kafka Streams tasks, counted by hand."""

from __future__ import annotations

import pytest

from groupstorm.figures import Figures, FiguresAccumulator
from groupstorm.figures.answer import answer
from groupstorm.trace.events import coordinator as coordinator_events
from groupstorm.trace.events import scenario as world_events
from groupstorm.trace.events import streams as events
from groupstorm.trace.rows import TracedEvent
from groupstorm.trace.schema import Source
from groupstorm.verdicts.comparison import compare_answer, one_run_each
from tests.figures.synthetic_tasks import GROUP, streams_trace

SECOND = 1_000_000
MEMBER, WORLD, COORDINATOR = Source.MEMBER, Source.WORLD, Source.COORDINATOR


def runs(task: str, thread: str = "t1", process: str = "i1") -> events.TaskRunning:
    return events.TaskRunning(GROUP, thread, process, task, 0)


def stops(task: str, thread: str = "t1", process: str = "i1") -> events.TaskSuspended:
    return events.TaskSuspended(GROUP, thread, process, task, "revoked")


def came(process: str) -> events.InstanceStarted:
    return events.InstanceStarted(GROUP, process, None, 1, 11)


def figures(
    *told: tuple[float, TracedEvent], tasks: tuple[str, ...] = ("0_0", "0_1", "1_0"), from_s: float = 0
) -> Figures:
    """``told``: seconds and events; the trace ends at 100 s, the figures count from ``from_s`` on."""
    accumulator = FiguresAccumulator(int(from_s * SECOND))
    accumulator.add(0, WORLD, world_events.TasksCreated(GROUP, tasks))
    for seconds, event in told:
        accumulator.add(int(seconds * SECOND), MEMBER, event)
    accumulator.add(100 * SECOND, WORLD, world_events.ScenarioEnded(GROUP))
    return accumulator.figures()


ALL_RUN = ((1, runs("0_0")), (2, runs("0_1", "t2", "i2")), (3, runs("1_0")))


def test_downtime_counts_from_the_first_instant_at_which_all_tasks_run() -> None:
    found = figures(
        *ALL_RUN[:2],
        (2.5, stops("0_0")),
        (2.7, runs("0_0")),
        ALL_RUN[2],
        (10, stops("0_0")),
        (14, runs("0_0", "t2", "i2")),
        (20, stops("0_1", "t2", "i2")),
        (20, runs("0_1")),
        (98, stops("1_0")),
    )
    assert found.task_downtime_seconds == 6
    assert found.task_downtime_max_seconds == 4
    assert found.task_downtime_p50_seconds == 2


def test_a_task_that_two_threads_run_is_up_until_both_have_stopped() -> None:
    found = figures(
        *ALL_RUN,
        (10, runs("0_0", "t2", "i2")),
        (12, stops("0_0")),
        (15, stops("0_0", "t2", "i2")),
        (16, runs("0_0")),
    )
    assert found.task_downtime_seconds == 1


def test_without_an_instant_at_which_all_run_there_is_no_downtime() -> None:
    twice = ((2, runs("0_0", "t2", "i2")), (4, stops("0_0")))
    assert figures(*ALL_RUN[:2], *twice).task_downtime_seconds is None, "two threads run one task"
    found = figures(*ALL_RUN[:2])
    assert found.task_downtime_seconds is None
    assert found.restored_bytes is None
    assert found.probing_rebalances == 0
    assert "at no time did every task run" in answer(found)


def test_restored_bytes_are_of_active_tasks_and_of_standbys() -> None:
    who = (GROUP, "t1", "i1", "0_0")
    before = (0.5, events.TaskRestored(*who, 1_000_000, 1))
    found = figures(
        before,
        *ALL_RUN,
        (4, events.TaskRestoring(*who, 5, 50, "nothing")),
        (5, events.TaskRestored(*who, 50, 1)),
        (6, events.TaskRestoring(*who, 0, 0, "nothing")),
        (7, events.TaskRestoring(*who, 9, 90, "checkpoint")),
        (8, events.TaskClosed(*who, 30, "active")),
        (9, events.StandbyCaughtUp(*who, 400, 1)),
        (10, events.TaskClosed(*who, 7, "standby")),
    )
    assert (found.restored_bytes, found.standby_restored_bytes, found.tasks_from_scratch) == (80, 407, 1)


def test_imbalance_is_between_instances_that_are_there_at_the_end() -> None:
    here = [(0, came("i1")), (0, came("i2")), (0, came("i3"))]
    found = figures(*here, *ALL_RUN, (50, events.InstanceGone(GROUP, "i3", "closed")))
    assert (found.task_imbalance, found.subtopology_imbalance) == (1, 1)
    found = figures(*here, *ALL_RUN)
    assert found.task_imbalance == 2
    assert figures(*ALL_RUN).task_imbalance is None, "nobody said who is there"


@pytest.mark.parametrize(
    ("outcomes", "first_s", "expected"),
    [
        (("stable",), 15, 5.0),
        (("stable",), 10, 0.0),
        (("probing", "stable"), 15, 20.0),
        (("stable", "probing"), 15, None),
        ((), 15, None),
    ],
)
def test_converged_when_the_last_assignment_is_stable(
    outcomes: tuple[str, ...], first_s: int, expected: float
) -> None:
    """From the first change after the group had settled once, at 10 s; assignments 15 s after each other."""
    accumulator = FiguresAccumulator()
    accumulator.add(0, WORLD, world_events.TasksCreated(GROUP, ("0_0",)))
    accumulator.add(1, MEMBER, came("i1"))
    for state in ("PreparingRebalance", "CompletingRebalance", "Stable"):
        changed = coordinator_events.GroupStateChanged(GROUP, "", state, 1, "", None, "stream", None, 0)
        accumulator.add(2, COORDINATOR, changed)
    added = coordinator_events.MemberAdded(GROUP, "m", "m-1", None, 1, "new-member")
    accumulator.add(10 * SECOND, COORDINATOR, added)
    for number, outcome in enumerate(outcomes):
        placed = events.TasksPlaced(GROUP, "t", 1, 0, outcome)
        accumulator.add((15 * number + first_s) * SECOND, MEMBER, placed)
    assert accumulator.figures().converged_after_seconds == expected


def test_only_probing_follow_ups_are_probing_rebalances() -> None:
    causes = ("probing", "watching", "tasks-change-owner", "version-probing")
    found = figures(*[(5, events.FollowUpDue(GROUP, "t", cause)) for cause in causes])
    assert found.probing_rebalances == 2


def test_a_window_counts_what_happens_in_it_and_cuts_downtime_that_lasts() -> None:
    who = (GROUP, "t1", "i1", "0_0")
    told = (
        *ALL_RUN,
        (5, stops("0_1", "t2", "i2")),
        (8, runs("0_1", "t2", "i2")),
        (9, stops("1_0")),
        (10, stops("0_0")),
        (11, events.TaskRestored(*who, 50, 1)),
        (11, events.StandbyCaughtUp(*who, 400, 1)),
        (11, events.TaskRestoring(*who, 5, 50, "nothing")),
        (11, events.FollowUpDue(GROUP, "t", "probing")),
        (11, world_events.TrafficCounted(GROUP, "input", 9, 500, 20_000)),
        (20, runs("0_0")),
        (30, runs("1_0")),
        (40, events.TaskRestored(*who, 7, 1)),
        (41, events.TasksPlaced(GROUP, "t", 1, 0, "stable")),
        (50, stops("0_0")),
        (51, runs("0_0")),
    )
    whole, window = figures(*told), figures(*told, from_s=15)
    assert whole.task_downtime_seconds == 3 + 21 + 10 + 1
    assert (whole.restored_bytes, whole.standby_restored_bytes, whole.tasks_from_scratch) == (57, 400, 1)
    assert (whole.probing_rebalances, whole.cross_rack_bytes) == (1, 500)
    assert window.task_downtime_seconds == 5 + 15 + 1
    assert (window.task_downtime_max_seconds, window.task_downtime_p50_seconds) == (15, 5)
    assert (window.restored_bytes, window.standby_restored_bytes, window.tasks_from_scratch) == (7, 0, 0)
    assert (window.probing_rebalances, window.cross_rack_bytes) == (0, None)


def test_a_task_that_goes_on_at_the_same_instant_was_not_down() -> None:
    found = figures(
        *ALL_RUN, (10, stops("0_0")), (20, runs("0_0")), (30, stops("0_0")), (30, runs("0_0", "t2", "i2"))
    )
    assert found.task_downtime_p50_seconds == 10


def test_rows_about_tasks_that_nobody_created_are_left_out() -> None:
    found = figures(
        *ALL_RUN, (10, runs("9_9")), (11, stops("9_9")), (12, stops("0_0", "t9")), (13, runs("0_0"))
    )
    assert found.task_downtime_seconds == found.task_downtime_max_seconds == 0


def test_imbalance_counts_tasks_of_the_last_thread_that_took_them() -> None:
    here = [(0, came("i1")), (0, came("i2"))]
    moved = figures(*here, *ALL_RUN, (20, runs("1_0", "t2", "i2")), tasks=("0_0", "0_1", "1_0"))
    assert (moved.task_imbalance, moved.subtopology_imbalance) == (1, 1)
    apart = figures(
        *here, (1, runs("0_0")), (1, runs("0_1")), (1, runs("1_0", "t2", "i2")), (1, runs("1_1", "t2", "i2")),
        tasks=("0_0", "0_1", "1_0", "1_1"),
    )  # fmt: skip
    assert (apart.task_imbalance, apart.subtopology_imbalance) == (0, 2)
    three = figures(
        *here, (1, runs("0_0")), (1, runs("1_0")), (1, runs("2_0", "t2", "i2")), tasks=("0_0", "1_0", "2_0")
    )
    assert (three.task_imbalance, three.subtopology_imbalance) == (1, 1)


def test_traffic_is_summed_and_priced() -> None:
    found = figures(
        (99, world_events.TrafficCounted(GROUP, "input", 9, 3_000_000_000, 20_000)),
        (99, world_events.TrafficCounted(GROUP, "standby", 9, 1_000_025, 20_000)),
    )
    assert found.cross_rack_bytes == 3_001_000_025
    assert found.cross_rack_usd == 0.06002


def test_a_group_without_tasks_has_none_of_these_figures() -> None:
    found = figures(tasks=())
    names = ("task_downtime_seconds", "probing_rebalances", "converged_after_seconds", "cross_rack_bytes")
    assert [getattr(found, name) for name in names] == [None] * 4
    assert "task" not in answer(found)


def test_answers_speak_of_tasks_first() -> None:
    variants = {
        "a": figures(*ALL_RUN, (10, stops("0_0")), (12, runs("0_0"))),
        "b": figures(*ALL_RUN, (10, stops("0_0")), (18, runs("0_0"))),
    }
    sentence = compare_answer(one_run_each(variants))
    assert "Under a tasks were down for 2.0 s in all, under b for 8.0 s (4.0 times as long)." in sentence
    assert "No new assignment was needed under a and b." in sentence


def test_random_applications_have_all_kinds_of_figures() -> None:
    """The figures that the pipeline is held against are not all null or nought."""
    found = []
    for seed in range(40):
        accumulator = FiguresAccumulator()
        for row in streams_trace(seed):
            accumulator.add(*row)
        found.append(accumulator.figures())
    for name in (
        "task_downtime_seconds", "probing_rebalances", "converged_after_seconds", "restored_bytes",
        "standby_restored_bytes", "tasks_from_scratch", "task_imbalance", "subtopology_imbalance",
        "cross_rack_bytes", "cross_rack_usd",
    ):  # fmt: skip
        assert sum(bool(getattr(each, name)) for each in found) >= 5, name
        assert any(getattr(each, name) is None for each in found), name
