"""The one-pass figures equal what a look at every microsecond gives."""

from __future__ import annotations

from itertools import chain
from math import ceil

import pytest

from groupstorm.clients import events as member_events
from groupstorm.coordinator import events
from groupstorm.storms import events as world_events
from groupstorm.storms.figures import FiguresAccumulator
from groupstorm.storms.figures.totals import Totals
from tests.figures.brute_force import BruteForce
from tests.figures.synthetic import TracedRow, trace

SEEDS = range(30)


def short_trace(seed: int) -> list[TracedRow]:
    rates = ((300_000, 900_000), (1_000_000, 700_000), (333_333, 1_000_000))[seed % 3]
    return trace(seed, actions=14, step_us=8, members=3, partitions=3, rates=rates)


def totals(rows: list[TracedRow]) -> Totals:
    accumulator = FiguresAccumulator()
    for row in rows:
        accumulator.add(*row)
    return accumulator.totals()


@pytest.mark.parametrize("seed", SEEDS)
def test_ownership(seed: int) -> None:
    rows = short_trace(seed)
    slow, quick = BruteForce(rows), totals(rows)
    assert quick.dual_us == slow.dual_us()
    if slow.complete_row is None:
        assert quick.unowned_us is quick.nobody_us is quick.paused_us is None
        return
    gaps = sorted(until_us - from_us for _, from_us, until_us, _, _ in slow.gaps())
    assert (quick.unowned_us, quick.unowned_max_us) == (sum(gaps), max(gaps, default=0))
    if gaps:
        for percent, found in ((50, quick.unowned_p50_us), (95, quick.unowned_p95_us)):
            least = min(gap for gap in gaps if sum(g <= gap for g in gaps) * 100 >= percent * len(gaps))
            assert found == least
    assert quick.nobody_us == slow.nobody_us()
    assert quick.paused_us == slow.paused_us()


@pytest.mark.parametrize("seed", SEEDS)
def test_records(seed: int) -> None:
    rows = short_trace(seed)
    slow, quick = BruteForce(rows), totals(rows)
    ranges = slow.ranges()
    processed = sum(map(len, chain.from_iterable(ranges.values())))
    assert quick.records_processed == processed
    assert quick.records_duplicated == processed - sum(len(set(chain(*found))) for found in ranges.values())
    skipped = 0
    for found in filter(None, ranges.values()):
        furthest = max(r.stop for r in found)
        skipped += len(set(range(found[0].start, furthest)) - set(chain(*found)))
    assert quick.records_skipped == skipped


@pytest.mark.parametrize("seed", SEEDS)
def test_lag(seed: int) -> None:
    rows = short_trace(seed)
    slow, quick = BruteForce(rows), totals(rows)
    if slow.complete_row is None:
        assert quick.lag_peak_micro is None
    else:
        peak = max(lag for _, lag in slow.lags(slow.complete_row))
        assert quick.lag_peak_micro is not None
        assert ceil(peak) == -(-quick.lag_peak_micro // 1_000_000)
        assert peak * 1_000_000 == quick.lag_peak_micro


def changes(rows: list[TracedRow]) -> list[int]:
    """The rows that are changes: the cooperative second round of a member that has revoked is none."""
    found, revoked = [], set()
    for number, (_, _, event) in enumerate(rows):
        if isinstance(event, member_events.PartitionsRevoked) and event.cause == "assignment":
            revoked.add(event.member_id)
        elif isinstance(event, events.SyncAnswered) and event.error is None:
            revoked.discard(event.member_id)
        elif isinstance(
            event, events.MemberAdded | events.MemberRemoved | world_events.PartitionsCreated
        ) or (
            isinstance(event, events.GroupStateChanged)
            and event.cause in ("member-updated", "leader-rejoined")
            and event.member_id not in revoked
        ):
            found.append(number)
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_lag_recovery(seed: int) -> None:
    """Whether the group had settled before is asked of the shorter trace; the rest is brute force."""
    rows = short_trace(seed)
    quick = totals(rows).lag_recovery_us
    settled = (
        n for n in changes(rows) if totals([row for row in rows if row[0] < rows[n][0]]).moves is not None
    )
    change_row = next(settled, None)
    if change_row is None:
        assert quick is None
        return
    slow, change_us = BruteForce(rows), rows[change_row][0]
    before = slow.lag(slow.last_row_at(change_us - 1), change_us)
    values = slow.lags(change_row)
    late = [now_us for now_us, lag in values if lag > before]
    if values[-1][1] > before:
        assert quick is None
    elif not late:
        assert quick == 0
    else:
        low_from = next(now_us for now_us, lag in values if now_us >= late[-1] and lag <= before)
        assert quick == low_from - change_us
