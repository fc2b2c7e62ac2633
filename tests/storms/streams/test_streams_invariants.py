"""The invariants of Kafka Streams applications are checked."""

from __future__ import annotations

from uuid import UUID

from groupstorm.assignors.streams.leader import Rebalance, StreamsAssignment
from groupstorm.assignors.userdata.streams import AssignmentInfo, AssignorError, TaskId
from groupstorm.figures.table import ALL_RUN, LIVELOCK, SETTLES, finding
from groupstorm.storms.checks.invariants import InvariantChecks
from groupstorm.storms.streams.application import (
    APART,
    FOLLOW_UPS,
    ONE_ACTIVE,
    StreamsInvariantChecks,
    outcome,
)
from tests.clients.streams.streams_host import TOPOLOGY

ONE, TWO = UUID(int=1), UUID(int=2)
REMOVED = "t0"


def checks() -> tuple[StreamsInvariantChecks, InvariantChecks]:
    base = InvariantChecks()
    return StreamsInvariantChecks(base, TOPOLOGY, REMOVED.__ne__), base


def test_a_standby_beside_its_running_task_is_found_at_the_end() -> None:
    ours, base = checks()
    ours.held_at_end([0, 1], [2, 3])
    assert base.verdicts[APART] == "held"
    ours.held_at_end([0, 1], [1])
    assert base.verdicts[APART] == "0_1 is active and standby on one instance"


def placed(stable: bool = True, **infos: AssignmentInfo) -> Rebalance:
    assignments = {name: StreamsAssignment((), info) for name, info in infos.items()}
    return Rebalance(assignments, stable, processes={"a1": ONE, "a2": ONE, "b": TWO})


def test_a_task_that_runs_twice_is_found() -> None:
    ours, base = checks()
    ours.task_runs(0, "t1")
    ours.task_stops(0, "t1")
    ours.task_runs(0, "t2")
    assert base.verdicts[ONE_ACTIVE] == "held"
    ours.task_runs(0, REMOVED)
    assert base.verdicts[ONE_ACTIVE] == "held", "a thread that the group has removed may not know it yet"
    ours.task_runs(0, "t1")
    assert base.verdicts[ONE_ACTIVE] == "0_0 runs on t1 and on t2"


def test_a_standby_beside_its_active_task_is_found() -> None:
    ours, base = checks()
    task = TaskId("", 0, 3)
    apart = AssignmentInfo(11, 11, standby={task: ()})
    ours.assigned(placed(a1=AssignmentInfo(11, 11, active=[task]), b=apart))
    assert base.verdicts[APART] == "held"
    ours.assigned(placed(a1=AssignmentInfo(11, 11, active=[task]), a2=apart))
    assert base.verdicts[APART] == "0_3 is active and standby on one instance"


def test_a_requested_rebalance_that_never_comes_is_found() -> None:
    ours, base = checks()
    ours.asked("t1")
    ours.assigned(placed())
    ours.asked("t3")
    ours.gone("t3")
    ours.finish(alive=False)
    assert base.verdicts[FOLLOW_UPS] == "held"
    ours.asked("t2")
    ours.finish(alive=False)
    assert base.verdicts[FOLLOW_UPS] == "no rebalance came that was asked for by t2"


def test_tasks_that_do_not_run_at_the_end_are_found() -> None:
    ours, base = checks()
    for task in range(5):
        ours.task_runs(task, "t1")
    ours.finish(alive=False)
    assert base.verdicts[ALL_RUN] == "held", "nobody is left to run them"
    ours.finish(alive=True)
    assert base.verdicts[ALL_RUN] == "1 tasks do not run at the end, 0_5 among them"
    assert finding({**base.verdicts, SETTLES: f"{LIVELOCK}: ..."}), "they wait for a group that cannot settle"


def test_an_assignment_has_the_outcome_of_its_errors_and_times() -> None:
    def of(**fields: object) -> Rebalance:
        info = AssignmentInfo(11, 11)._replace(**fields)  # type: ignore[arg-type]  # fields by name
        return placed(stable=False, a1=info, b=AssignmentInfo(11, 11))

    assert outcome(placed(b=AssignmentInfo(11, 11))) == "stable"
    assert outcome(of(next_rebalance_ms=5)) == "probing"
    assert outcome(of(next_rebalance_ms=0)) == "follow-up"
    assert outcome(of(error_code=AssignorError.IMBALANCED_ASSIGNMENT)) == "imbalanced"
    assert outcome(of(error_code=AssignorError.ASSIGNMENT_ERROR)) == "ASSIGNMENT_ERROR"
    assert outcome(of()) == "version-probing"
