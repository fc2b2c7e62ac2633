"""The invariants of Kafka Streams applications find what they are there for."""

from __future__ import annotations

from uuid import UUID

from groupstorm.assignors.streams.leader import Rebalance, StreamsAssignment
from groupstorm.assignors.userdata.streams import AssignorError, StreamsTask
from groupstorm.assignors.userdata.streams_assignment import AssignmentInfo
from groupstorm.storms.checkers import Checkers
from groupstorm.storms.streams.checkers import (
    ALL_RUN,
    APART,
    FOLLOW_UPS,
    ONE_ACTIVE,
    StreamsCheckers,
    outcome,
)
from tests.clients.streams.thread_tasks import TOPOLOGY

ONE, TWO = UUID(int=1), UUID(int=2)


def checkers() -> tuple[StreamsCheckers, Checkers]:
    base = Checkers()
    return StreamsCheckers(base, TOPOLOGY), base


def placed(stable: bool = True, **infos: AssignmentInfo) -> Rebalance:
    assignments = {name: StreamsAssignment((), info) for name, info in infos.items()}
    return Rebalance(assignments, stable, processes={"a1": ONE, "a2": ONE, "b": TWO})


def test_a_task_that_runs_twice() -> None:
    ours, base = checkers()
    ours.task_runs(0, "t1")
    ours.task_stops(0, "t1")
    ours.task_runs(0, "t2")
    assert base.verdicts[ONE_ACTIVE] == "held"
    ours.task_runs(0, "t1")
    assert base.verdicts[ONE_ACTIVE] == "0_0 runs on t1 and on t2"


def test_a_standby_beside_its_active_task() -> None:
    ours, base = checkers()
    task = StreamsTask(0, 3)
    apart = AssignmentInfo(11, 11, standby={task: ()})
    ours.placed(placed(a1=AssignmentInfo(11, 11, active=[task]), b=apart))
    assert base.verdicts[APART] == "held"
    ours.placed(placed(a1=AssignmentInfo(11, 11, active=[task]), a2=apart))
    assert base.verdicts[APART] == "0_3 is active and standby on one instance"


def test_a_rebalance_that_was_asked_for_and_never_came() -> None:
    ours, base = checkers()
    ours.asked("t1")
    ours.placed(placed())
    ours.asked("t3")
    ours.gone("t3")
    ours.finish(alive=False)
    assert base.verdicts[FOLLOW_UPS] == "held"
    ours.asked("t2")
    ours.finish(alive=False)
    assert base.verdicts[FOLLOW_UPS] == "no rebalance came that was asked for by t2"


def test_tasks_that_do_not_run_at_the_end() -> None:
    ours, base = checkers()
    for task in range(5):
        ours.task_runs(task, "t1")
    ours.finish(alive=False)
    assert base.verdicts[ALL_RUN] == "held", "nobody is left to run them"
    ours.finish(alive=True)
    assert base.verdicts[ALL_RUN] == "1 tasks do not run at the end, 0_5 among them"


def test_what_an_assignment_is() -> None:
    def of(**fields: object) -> Rebalance:
        info = AssignmentInfo(11, 11)._replace(**fields)  # type: ignore[arg-type]  # fields by name
        return placed(stable=False, a1=info, b=AssignmentInfo(11, 11))

    assert outcome(placed(b=AssignmentInfo(11, 11))) == "stable"
    assert outcome(of(next_rebalance_ms=5)) == "probing"
    assert outcome(of(next_rebalance_ms=0)) == "follow-up"
    assert outcome(of(error_code=AssignorError.IMBALANCED_ASSIGNMENT)) == "imbalanced"
    assert outcome(of(error_code=AssignorError.ASSIGNMENT_ERROR)) == "ASSIGNMENT_ERROR"
    assert outcome(of()) == "version-probing"
