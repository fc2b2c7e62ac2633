"""Every cell of the tables of a trace that can be checked by eye, and the order of the slowest handovers.

Both engines: what they are compared with is written down here and computed by neither.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from groupstorm.pipeline.results import TABLES, EngineResult, Request
from groupstorm.trace.events import scenario as world_events
from groupstorm.trace.schema import Source
from tests.figures.tracing import Trace
from tests.pipeline.both_engines import locally, on_spark
from tests.pipeline.traces import write_trace

#: A second of the trace, in the microseconds of the tables.
S = 1_000_000


def two_members() -> Trace:
    """Two members share two partitions; b closes, comes back, crashes, and expires."""
    trace = Trace.begun("t-0", "t-1", record_rate=10, process_rate=100)
    trace.start(0, "a")
    trace.start(0, "b")
    trace.round(1, 1, {"a": ("t-0",), "b": ("t-1",)}, cause="new-member")
    trace.rates(4, "a", {"t-0": (40, 5)})
    trace.revoke(10, "b", 1, "t-1", at=90, callback_s=0.5, cause="close")
    trace.revoke(11, "a", 1, "t-0", at=75, callback_s=0.25)
    trace.round(14, 2, {"a": ("t-0", "t-1")}, cause="left", at=75)
    trace.start(20, "b")
    trace.revoke(21, "a", 2, "t-0", "t-1", at=200)
    trace.round(21.5, 3, {"a": (), "b": ("t-1",)}, cause="new-member", at=200)
    trace.take(22, "a", 3, "t-0", at=200)
    trace.crash(30, "b", 3, "t-1", at=300)
    trace.rejoin(74, "a")
    trace.revoke(75, "a", 3, "t-0", at=750)
    trace.logs(75, {"t-0": (750, 1)})
    trace.state_to(76, "PreparingRebalance", 3, "session-expired")
    trace.state_to(76, "CompletingRebalance", 4)
    trace.sync(77, "a", 4, "t-0")
    trace.state_to(77, "Stable", 4)
    trace.take(78, "a", 4, "t-0", at=750)
    created, deleted = world_events.PartitionsCreated, world_events.PartitionsDeleted
    trace.add(79, Source.WORLD, deleted("g", ("t",), ("t-1",)))  # nobody owned it any more
    trace.add(80, Source.WORLD, created("g", ("u",), ("u-0", "u-1")))
    trace.logs(80, {"u-0": (0, 1)})  # forgotten with the partition
    trace.take(81, "a", 4, "u-0", at=0)
    trace.add(83, Source.WORLD, deleted("g", ("u",), ("u-0", "u-1")))
    trace.revoke(84, "a", 4, "u-0", at=20)
    trace.add(85, Source.WORLD, created("g", ("u",), ("u-0",)))
    trace.take(86, "a", 4, "u-0", at=0)
    trace.end(90)
    return trace


def row(table: str, **cells: Any) -> tuple[Any, ...]:
    """A row of the table: columns that are not named are null."""
    assert set(cells) <= set(TABLES[table])
    return tuple(cells.get(column) for column in TABLES[table])


def tables_and_result(
    engine: str, request: Request, fixtures: pytest.FixtureRequest
) -> tuple[Mapping[str, Sequence[tuple[Any, ...]]], EngineResult]:
    if engine == "local":
        result, tables = locally(request)
    else:
        result, tables = on_spark(fixtures.getfixturevalue("spark"), request)
    return {name: [cells[2:] for cells in rows] for name, rows in tables.items()}, result


def without_seqs(table: str, rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Rows without the numbers of the trace's rows, in some order."""
    cleared = [column for column in TABLES[table] if column.endswith("seq")]
    named = [dict(zip(TABLES[table], cells, strict=True)) for cells in rows]
    return sorted((row(table, **(cells | dict.fromkeys(cleared))) for cells in named), key=repr)


INTERVALS: list[dict[str, Any]] = [
    {"partition": "t-0", "member": "a", "generation": 1, "from_us": 1 * S, "from_position": 0,
     "to_us": 11 * S, "to_position": 75, "ended_by": "partitions_revoked", "cause": "rebalance"},
    {"partition": "t-0", "member": "a", "generation": 2, "from_us": 14 * S, "from_position": 75,
     "to_us": 21 * S, "to_position": 200, "ended_by": "partitions_revoked", "cause": "rebalance"},
    {"partition": "t-0", "member": "a", "generation": 3, "from_us": 22 * S, "from_position": 200,
     "to_us": 75 * S, "to_position": 750, "ended_by": "partitions_revoked", "cause": "rebalance"},
    # the log has got one record a second since 75 s
    {"partition": "t-0", "member": "a", "generation": 4, "from_us": 78 * S, "from_position": 750,
     "to_us": 90 * S, "to_position": 765},
    {"partition": "u-0", "member": "a", "generation": 4, "from_us": 81 * S, "from_position": 0,
     "to_us": 83 * S, "ended_by": "partitions_deleted"},
    {"partition": "u-0", "member": "a", "generation": 4, "from_us": 86 * S, "from_position": 0,
     "to_us": 90 * S, "to_position": 400},
    {"partition": "t-1", "member": "b", "generation": 1, "from_us": 1 * S, "from_position": 0,
     "to_us": 10 * S, "to_position": 90, "ended_by": "partitions_revoked", "cause": "close"},
    {"partition": "t-1", "member": "a", "generation": 2, "from_us": 14 * S, "from_position": 75,
     "to_us": 21 * S, "to_position": 200, "ended_by": "partitions_revoked", "cause": "rebalance"},
    {"partition": "t-1", "member": "b", "generation": 3, "from_us": 21_500_000, "from_position": 200,
     "to_us": 30 * S, "to_position": 300, "ended_by": "member_crashed"},
]  # fmt: skip

HANDOVERS: list[dict[str, Any]] = [
    # both members start at 0 s
    {"partition": "t-0", "from_us": 0, "to_us": S, "gap_us": S, "paused_us": 0, "new_owner": "a",
     "new_generation": 1, "ended_by": "member_started", "prepared_us": S, "rebalance_cause": "new-member"},
    {"partition": "t-1", "from_us": 0, "to_us": S, "gap_us": S, "paused_us": 0, "new_owner": "b",
     "new_generation": 1, "ended_by": "member_started", "prepared_us": S, "rebalance_cause": "new-member"},
    {"partition": "t-1", "from_us": 10 * S, "to_us": 14 * S, "gap_us": 4 * S, "paused_us": S // 2,
     "old_owner": "b", "new_owner": "a", "old_generation": 1, "new_generation": 2, "generations": 1,
     "ended_by": "partitions_revoked", "cause": "close", "prepared_us": 14 * S, "rebalance_cause": "left"},
    {"partition": "t-0", "from_us": 11 * S, "to_us": 14 * S, "gap_us": 3 * S, "paused_us": 3 * S,
     "old_owner": "a", "new_owner": "a", "old_generation": 1, "new_generation": 2, "generations": 1,
     "ended_by": "partitions_revoked", "cause": "rebalance", "prepared_us": 14 * S,
     "rebalance_cause": "left"},
    {"partition": "t-0", "from_us": 21 * S, "to_us": 22 * S, "gap_us": S, "paused_us": S,
     "old_owner": "a", "new_owner": "a", "old_generation": 2, "new_generation": 3, "generations": 1,
     "ended_by": "partitions_revoked", "cause": "rebalance", "prepared_us": 21_500_000,
     "rebalance_cause": "new-member"},
    {"partition": "t-1", "from_us": 21 * S, "to_us": 21_500_000, "gap_us": S // 2, "paused_us": 0,
     "old_owner": "a", "new_owner": "b", "old_generation": 2, "new_generation": 3, "generations": 1,
     "ended_by": "partitions_revoked", "cause": "rebalance", "prepared_us": 21_500_000,
     "rebalance_cause": "new-member"},
    {"partition": "t-1", "from_us": 30 * S, "to_us": 79 * S, "gap_us": 49 * S, "paused_us": 0,
     "old_owner": "b", "old_generation": 3, "ended_by": "member_crashed", "prepared_us": 76 * S,
     "rebalance_cause": "session-expired"},
    {"partition": "u-0", "from_us": 80 * S, "to_us": 81 * S, "gap_us": 1 * S, "paused_us": 0,
     "new_owner": "a", "new_generation": 4, "ended_by": "partitions_created"},
    {"partition": "u-1", "from_us": 80 * S, "to_us": 83 * S, "gap_us": 3 * S, "paused_us": 0,
     "ended_by": "partitions_created"},
    {"partition": "u-0", "from_us": 85 * S, "to_us": 86 * S, "gap_us": 1 * S, "paused_us": 0,
     "new_owner": "a", "new_generation": 4, "ended_by": "partitions_created"},
    {"partition": "t-0", "from_us": 75 * S, "to_us": 78 * S, "gap_us": 3 * S, "paused_us": 3 * S,
     "old_owner": "a", "new_owner": "a", "old_generation": 3, "new_generation": 4, "generations": 1,
     "ended_by": "partitions_revoked", "cause": "rebalance", "prepared_us": 76 * S,
     "rebalance_cause": "session-expired"},
]  # fmt: skip

ROUNDS: list[dict[str, Any]] = [
    {"round": number, "prepared_us": at_us, "completing_us": at_us, "stable_us": at_us, "answered_us": at_us,
     "latency_us": 0, "cause": cause, "generation": number, "protocol": "range", "members": 1}
    for number, at_us, cause in (
        (1, 1 * S, "new-member"), (2, 14 * S, "left"), (3, 21_500_000, "new-member"),
    )
] + [
    {"round": 4, "prepared_us": 76 * S, "completing_us": 76 * S, "stable_us": 77 * S, "answered_us": 77 * S,
     "latency_us": S, "cause": "session-expired", "generation": 4, "protocol": "range", "members": 1},
]  # fmt: skip

#: (time, event, generation, partitions, duration, cause) of a's rows; each lasts until the next one.
EVENTS_OF_A = [
    (0, "member_started", None, None, None, None),
    (0, "member_added", 0, None, None, "new-member"),
    (1 * S, "sync_answered", 1, 1, None, None),
    (1 * S, "partitions_assigned", 1, 1, 0, None),
    (11 * S, "partitions_revoked", 1, 1, S // 4, "rebalance"),
    (14 * S, "sync_answered", 2, 2, None, None),
    (14 * S, "partitions_assigned", 2, 2, 0, None),
    (21 * S, "partitions_revoked", 2, 2, 0, "rebalance"),
    (21_500_000, "sync_answered", 3, 0, None, None),
    (21_500_000, "partitions_assigned", 3, 0, 0, None),
    (22 * S, "partitions_assigned", 3, 1, 0, None),
    (74 * S, "rejoin_requested", 0, None, None, "group-rebalancing"),
    (75 * S, "partitions_revoked", 3, 1, 0, "rebalance"),
    (77 * S, "sync_answered", 4, 1, None, None),
    (78 * S, "partitions_assigned", 4, 1, 0, None),
    (81 * S, "partitions_assigned", 4, 1, 0, None),
    (84 * S, "partitions_revoked", 4, 1, 0, "rebalance"),
    (86 * S, "partitions_assigned", 4, 1, 0, None),
]


def test_every_cell(engine: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    write_trace(two_members().rows, tmp_path / "run")
    tables, result = tables_and_result(engine, Request({"run": tmp_path / "run"}, slowest=7), request)
    for table, expected in (("intervals", INTERVALS), ("handovers", HANDOVERS), ("rounds", ROUNDS)):
        by_eye = sorted((row(table, **cells) for cells in expected), key=repr)
        assert without_seqs(table, tables[table]) == by_eye, table
    until = [*(at_us for at_us, *_ in EVENTS_OF_A[1:]), None]
    names = ("time_us", "event", "generation", "partitions", "duration_us", "cause")
    members = [
        row("members", member="a", until_us=until_us, **dict(zip(names, cells, strict=True)))
        for cells, until_us in zip(EVENTS_OF_A, until, strict=True)
    ]
    of_a = [one for one in tables["members"] if one[0] == "a"]
    assert without_seqs("members", of_a) == sorted(members, key=repr)
    if engine == "local":  # the files have them in the order in which they ended
        assert [one[1] for one in of_a] == sorted(one[1] for one in of_a)
    # the longest first; of gaps of one length the earlier one; gaps of one round and kind in one row
    assert [tuple(one) for one in result.handovers] == [
        ("run", "g", "t-1", 1, 30 * S, 49 * S, "b", None, None, "member_crashed", None, None,
         "session-expired"),
        ("run", "g", "t-1", 1, 10 * S, 4 * S, "b", "a", 1, "partitions_revoked", "close", 14 * S, "left"),
        ("run", "g", "t-0", 1, 11 * S, 3 * S, "a", "a", 1, "partitions_revoked", "rebalance", 14 * S, "left"),
        ("run", "g", "t-0", 1, 75 * S, 3 * S, "a", "a", 1, "partitions_revoked", "rebalance", 76 * S,
         "session-expired"),
        # no round began while they waited: those that began at one instant are together
        ("run", "g", "u-1", 2, 80 * S, 3 * S, None, None, None, "partitions_created", None, None, None),
        ("run", "g", "t-1", 2, 0, 1 * S, None, "b", None, "member_started", None, 1 * S, "new-member"),
        ("run", "g", "t-0", 2, 21 * S, 1 * S, "a", "a", 1, "partitions_revoked", "rebalance", 21_500_000,
         "new-member"),
    ]  # fmt: skip
    assert [tuple(one) for one in result.rounds] == [
        ("run", "g", "new-member", 2, 2, 1, 0, 0),
        ("run", "g", "left", 1, 1, 1, 0, 0),
        ("run", "g", "session-expired", 1, 1, 1, S, S),
    ]
