"""The trace of real clients is made from observations: small runs worked out by hand."""

from __future__ import annotations

from typing import Any

from groupstorm.figures import Figures, FiguresAccumulator
from groupstorm.storms.live.real_clients.assembly import Assembly
from groupstorm.storms.live.real_clients.observations import (
    Assigned,
    Closed,
    Committed,
    Crashed,
    Joined,
    Observation,
    Paused,
    Progressed,
    Released,
    Resumed,
    Row,
    Started,
    Synced,
    Written,
)
from groupstorm.trace.events.member import ProcessingRatesChanged
from groupstorm.trace.events.scenario import ScenarioEnded, ScenarioStarted
from groupstorm.trace.rows import TracedEvent
from groupstorm.trace.schema import Source

SECOND = 1_000_000


def assembled(*seen: Observation) -> list[tuple[int, TracedEvent]]:
    """The rows, with times in milliseconds."""
    return [(time_us // 1000, event) for time_us, _, event in Assembly("g", ("t",), seen).rows()]


def names(rows: list[tuple[int, TracedEvent]]) -> list[tuple[int, str]]:
    return [(time_ms, type(event).__name__) for time_ms, event in rows]


def of_kind(rows: list[tuple[int, TracedEvent]], kind: str) -> list[dict[str, Any]]:
    return [event._asdict() for _, event in rows if type(event).__name__ == kind]  # type: ignore[attr-defined]


def joined(at_s: float, generation: int = 1, protocol: str = "range") -> tuple[Observation, ...]:
    time_us = int(at_s * SECOND)
    return (Joined(time_us, "a", "a-1", generation, protocol), Synced(time_us + 1000, "a"))


def released(at_s: float, positions: dict[str, int], **other: Any) -> Released:
    about: dict[str, Any] = {"first": {}, "duration_us": 0, "lost": False, "closing": False, **other}
    return Released(int(at_s * SECOND), "a", tuple(positions), positions, **about)


def test_positions_rise_from_sample_to_sample() -> None:
    """100 records in the first second, 300 in the next two: 100 and 150 a second, in records per 1,000 s."""
    rows = assembled(
        Started(0, "a", None),
        *joined(1),
        Assigned(2 * SECOND, "a", ("t-0",), 0),
        Progressed(3 * SECOND, "a", {"t-0": 100}, {"t-0": 0}),
        released(5, {"t-0": 400}),
    )
    changes = of_kind(rows, "ProcessingRatesChanged")
    assert [(one["positions"], one["rates"]) for one in changes] == [((0,), (100_000,)), ((100,), (150_000,))]
    (revoked,) = of_kind(rows, "PartitionsRevoked")
    assert (revoked["positions"], revoked["cause"], revoked["generation"]) == ((400,), "rebalance", 1)


def test_a_member_begins_at_its_first_record() -> None:
    """Reports say late where a member began; else it did at the committed offset or at the log's end."""
    rows = assembled(
        Written(0, {"t-0": 0, "t-1": 0, "t-2": 0}),
        *joined(1),
        Committed(1_500_000, {"t-1": 70}),
        Assigned(2 * SECOND, "a", ("t-0", "t-1", "t-2"), 0),
        Progressed(3 * SECOND, "a", {"t-0": 60}, {"t-0": 40}),
        Written(4 * SECOND, {"t-0": 200, "t-1": 200, "t-2": 200}),
    )
    (assigned,) = of_kind(rows, "PartitionsAssigned")
    assert assigned["positions"] == (40, 70, 100)


def test_reports_of_several_processes_come_in_any_order() -> None:
    seen = [
        Started(0, "a", None),
        *joined(1),
        Assigned(2 * SECOND, "a", ("t-0",), 0),
        Closed(SECOND * 3, "a", True),
    ]
    assert assembled(*reversed(seen)) == assembled(*seen)


def test_an_assignment_without_callback_gets_its_row() -> None:
    """librdkafka does not call back if an assignment adds nothing; rows have one for each generation."""
    rows = assembled(
        *joined(1),
        Assigned(2 * SECOND, "a", ("t-0", "t-1"), 0),
        *joined(3, generation=2, protocol="cooperative-sticky"),
        released(3.5, {"t-1": 10}),
        *joined(4, generation=3, protocol="cooperative-sticky"),
    )
    assigned = [(one["generation"], one["partitions"]) for one in of_kind(rows, "PartitionsAssigned")]
    assert assigned == [(1, ("t-0", "t-1")), (2, ()), (3, ())]
    assert names(rows)[2:6] == [
        (3500, "PartitionsRevoked"),
        (3500, "RejoinRequested"),
        (3500, "PartitionsAssigned"),
        (4001, "PartitionsAssigned"),
    ]
    (revoked,) = of_kind(rows, "PartitionsRevoked")
    assert revoked["cause"] == "assignment"


def test_a_crash_ends_what_the_member_owned() -> None:
    rows = assembled(
        *joined(1),
        Assigned(2 * SECOND, "a", ("t-0",), 0),
        Committed(2_500_000, {"t-0": 30}),
        Progressed(3 * SECOND, "a", {"t-0": 50}, {"t-0": 0}),
        Crashed(4 * SECOND, "a"),
    )
    (crashed,) = of_kind(rows, "MemberCrashed")
    assert (crashed["partitions"], crashed["positions"], crashed["committed"]) == (("t-0",), (50,), (30,))


def test_a_library_that_closes_without_a_callback_gives_up_what_it_owned() -> None:
    rows = assembled(*joined(1), Assigned(2 * SECOND, "a", ("t-0",), 0), Closed(4 * SECOND, "a", False))
    assert names(rows)[-2:] == [(4000, "PartitionsRevoked"), (4000, "MemberClosed")]
    (closed,) = of_kind(rows, "MemberClosed")
    assert closed["cause"] == "silent"


def test_a_paused_process_stands_still() -> None:
    """Nothing is processed from 3 s to 5 s: the position at the pause is that at its end."""
    rows = assembled(
        *joined(1),
        Assigned(2 * SECOND, "a", ("t-0",), 0),
        Progressed(3 * SECOND, "a", {"t-0": 50}, {"t-0": 0}),
        Paused(3 * SECOND, "a", 2 * SECOND, "pause"),
        Resumed(5 * SECOND, "a"),
        Progressed(6 * SECOND, "a", {"t-0": 150}, {}),
    )
    paused, resumed = of_kind(rows, "MemberPaused"), of_kind(rows, "MemberResumed")
    assert [one["positions"] for one in (*paused, *resumed)] == [(50,), (50,)]
    changes = [(ms, event) for ms, event in rows if isinstance(event, ProcessingRatesChanged)]
    assert [(ms, event.rates) for ms, event in changes] == [
        (2000, (50_000,)),
        (3000, (0,)),
        (5000, (100_000,)),
    ]


def figures(*seen: Observation) -> Figures:
    accumulator = FiguresAccumulator()
    for time_us, source, event in Assembly("g", ("t",), seen).rows():
        accumulator.add(time_us, source, event)
    return accumulator.figures()


def test_the_figures_count_what_a_crash_makes_members_process_again() -> None:
    """a commits 30, has processed 50 and is killed; b begins at 30: 20 records twice, 2 s without owner."""
    found = figures(
        Row(0, Source.WORLD, ScenarioStarted("g", "{}", ("t-0",), 10, 1000)),
        Written(0, {"t-0": 0}),
        Started(0, "a", None),
        Started(0, "b", None),
        Joined(SECOND, "a", "a-1", 1, "range"),
        Assigned(SECOND, "a", ("t-0",), 0),
        Progressed(5 * SECOND, "a", {"t-0": 50}, {"t-0": 0}),
        Committed(3 * SECOND, {"t-0": 30}),
        Crashed(5 * SECOND, "a"),
        Joined(7 * SECOND, "b", "b-1", 2, "range"),
        Assigned(7 * SECOND, "b", ("t-0",), 0),
        Progressed(8 * SECOND, "b", {"t-0": 80}, {"t-0": 30}),
        Written(10 * SECOND, {"t-0": 100}),
        Row(10 * SECOND, Source.WORLD, ScenarioEnded("g")),
    )
    assert found.records_duplicated == 20
    assert found.unowned_max_seconds == 2
    assert found.dual_owner_seconds == 0
