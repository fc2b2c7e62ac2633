"""The invariants of a share group break where rows say what no leader does, and name the record."""

from __future__ import annotations

import random
from typing import Any

import pytest

from groupstorm.storms.checks.verdicts import HELD
from groupstorm.storms.share.checks import COUNTED, DONE_ONCE, ONE_HOLDER, ShareChecks
from groupstorm.trace.events import share as events
from groupstorm.trace.schema import Source

LIMIT = 3


def acquired(member: str, first: int, count: int, deliveries: int = 1) -> events.ShareRecordsAcquired:
    return events.ShareRecordsAcquired("g", member, ("t-0",), (first,), (count,), (deliveries,), (count,))


def accepted(member: str, first: int, count: int) -> events.ShareRecordsAccepted:
    return events.ShareRecordsAccepted("g", member, ("t-0",), (first,), (count,))


def returned(member: str, first: int, count: int) -> events.ShareRecordsReturned:
    return events.ShareRecordsReturned("g", member, ("t-0",), (first,), (count,), 0, "released")


def verdicts(*rows: Any) -> dict[str, str]:
    """The invariants that these rows break; all records before offset 0 are done."""
    checks = ShareChecks(LIMIT)
    loaded = events.SharePartitionsLoaded("g", ("t-0",), (0,))
    checks.add_all([(0, Source.WORLD, loaded), *[(1_000_000, Source.WORLD, row) for row in rows]])
    return {name: sentence for name, sentence in checks.verdicts.items() if sentence != HELD}


def test_ranges_may_be_cut_and_joined() -> None:
    assert not verdicts(
        acquired("a", 0, 10),
        accepted("a", 2, 3),
        returned("a", 0, 2),
        returned("a", 5, 5),
        acquired("b", 5, 2, 2),
        acquired("c", 0, 2, 2),
        accepted("b", 5, 2),
        acquired("b", 7, 3, 2),
        acquired("a", 10, 1),
    )


@pytest.mark.parametrize(
    ("rows", "invariant", "sentence"),
    [
        ([acquired("a", 0, 10), acquired("b", 9, 5)], ONE_HOLDER, "b got t-0@9, which a had"),
        ([acquired("a", 0, 10), accepted("a", 3, 2), acquired("b", 0, 5, 2)], DONE_ONCE,
         "b got t-0@3, which was done"),
        ([acquired("a", 0, 10), accepted("a", 3, 2), accepted("b", 4, 3)], DONE_ONCE,
         "t-0@4 was done before b was"),
        ([acquired("a", 0, 4), returned("b", 1, 2)], ONE_HOLDER, "b gave t-0@1 back, which a had"),
        ([acquired("a", 0, 4), returned("a", 0, 4), acquired("a", 2, 1, 3)], COUNTED,
         "t-0@2: delivery 3 follows 1"),
        ([acquired("a", 0, 1, 2)], COUNTED, "t-0@0: delivery 2 follows 0"),
    ],
)  # fmt: skip
def test_the_record_is_named(rows: list[Any], invariant: str, sentence: str) -> None:
    assert verdicts(*rows)[invariant] == f"after 1.000 s {sentence}"


def test_no_delivery_comes_behind_the_limit() -> None:
    rows: list[Any] = []
    for deliveries in range(1, LIMIT + 1):
        rows += [acquired("a", 0, 1, deliveries), returned("a", 0, 1)]
    assert not verdicts(*rows)
    broken = verdicts(*rows, acquired("a", 0, 1, LIMIT + 1))
    assert broken == {COUNTED: f"after 1.000 s t-0@0: delivery {LIMIT + 1} follows {LIMIT}"}


@pytest.mark.parametrize("seed", range(40))
def test_ranges_are_judged_as_their_records_are(seed: int) -> None:
    """Rows of ranges break the invariants that the same rows break record by record."""
    drawn = random.Random(seed)
    rows: list[Any] = []
    for _ in range(12):
        member, first, count = drawn.choice("ab"), drawn.randrange(8), drawn.randrange(1, 5)
        kind = drawn.randrange(3)
        if kind == 0:
            rows.append(acquired(member, first, count, drawn.choice((1, 1, 2))))
        else:
            rows.append((accepted if kind == 1 else returned)(member, first, count))
    for end in range(len(rows)):
        single = [
            row._replace(**{
                field: (getattr(row, field)[0] if field != "positions" else offset,)
                for field in ("positions", "deliveries")
                if field in row._fields
            }, counts=(1,))
            for row in rows[:end]
            for offset in range(row.positions[0], row.positions[0] + row.counts[0])
        ]  # fmt: skip
        assert verdicts(*rows[:end]).keys() == verdicts(*single).keys()
