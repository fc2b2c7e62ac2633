"""What is counted and measured, in whole microseconds and records, and how figures are made of it.

The one-pass accumulator and the Spark pipeline both end in `Totals`; divisions and rounding happen
here and nowhere else, so that equal totals are equal figures.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from groupstorm.storms.figures.answer import answer
from groupstorm.storms.figures.table import Figures
from groupstorm.storms.figures.tasks import NO_TASKS, TaskTotals

#: The model of records counts in millionths of a record: a rate per second times microseconds.
MICRO = 1_000_000
GIGABYTE = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over one group's trace; None where there is nothing to sum over.

    ``unowned_*`` and ``nobody_us`` count from the first complete assignment; ``lag_peak_micro`` is in
    millionths of a record; ``requests`` are (api, error or None, count).
    """

    generations: int
    changes: int
    rounds: int
    latencies: int
    latency_sum_us: int
    latency_max_us: int | None
    settled_after_us: int | None
    unowned_us: int | None
    unowned_max_us: int | None
    unowned_p50_us: int | None
    unowned_p95_us: int | None
    nobody_us: int | None
    paused_us: int | None
    dual_us: int | None
    moves: int | None
    moves_lower_bound: int | None
    revoked_and_returned: int
    imbalance_max: int | None
    idle_members_max: int | None
    lag_peak_micro: int | None
    lag_recovery_us: int | None
    records_processed: int | None
    records_duplicated: int | None
    records_skipped: int | None
    requests: tuple[tuple[str, str | None, int], ...]
    invariants: Mapping[str, str]
    tasks: TaskTotals = NO_TASKS

    def figures(self) -> Figures:
        """Divide, round, and say it in a sentence."""
        wasted = None
        if self.moves is not None and self.moves_lower_bound is not None:
            wasted = self.moves - self.moves_lower_bound
        counted = bool(self.requests)
        tasks = self.tasks
        figures = Figures(
            generations=self.generations,
            rounds_per_change=_thousandths(self.rounds, self.changes),
            rebalance_latency_avg_ms=_thousandths(self.latency_sum_us, self.latencies * 1000),
            rebalance_latency_max_ms=_milliseconds(self.latency_max_us),
            settled_after_ms=_milliseconds(self.settled_after_us),
            unowned_partition_seconds=_seconds(self.unowned_us),
            unowned_max_seconds=_seconds(self.unowned_max_us),
            unowned_p50_seconds=_seconds(self.unowned_p50_us),
            unowned_p95_seconds=_seconds(self.unowned_p95_us),
            nobody_consuming_seconds=_seconds(self.nobody_us),
            paused_partition_seconds=_seconds(self.paused_us),
            dual_owner_seconds=_seconds(self.dual_us),
            moves=self.moves,
            moves_lower_bound=self.moves_lower_bound,
            moves_wasted=wasted,
            revoked_and_returned=self.revoked_and_returned,
            imbalance_max=self.imbalance_max,
            idle_members_max=self.idle_members_max,
            lag_peak=None if self.lag_peak_micro is None else -(-self.lag_peak_micro // MICRO),
            lag_recovery_seconds=_seconds(self.lag_recovery_us),
            records_processed=self.records_processed,
            records_duplicated=self.records_duplicated,
            records_skipped=self.records_skipped,
            commits_rejected=_summed(
                (error, count) for api, error, count in self.requests if api == "OffsetCommit" and error
            )
            if counted
            else None,
            requests=_summed((api, count) for api, _, count in self.requests) if counted else None,
            errors=_summed((error, count) for _, error, count in self.requests if error) if counted else None,
            cross_rack_bytes=tasks.cross_rack_bytes,
            cross_rack_usd=_dollars(tasks.cross_rack_price),
            task_downtime_seconds=_seconds(tasks.task_down_us),
            task_downtime_max_seconds=_seconds(tasks.task_down_max_us),
            task_downtime_p50_seconds=_seconds(tasks.task_down_p50_us),
            probing_rebalances=tasks.probing_rebalances,
            converged_after_seconds=_seconds(tasks.converged_us),
            restored_bytes=tasks.restored_bytes,
            standby_restored_bytes=tasks.standby_restored_bytes,
            tasks_from_scratch=tasks.tasks_from_scratch,
            task_imbalance=tasks.task_imbalance,
            subtopology_imbalance=tasks.subtopology_imbalance,
            invariants=dict(sorted(self.invariants.items())) or None,
        )
        return replace(figures, answer=answer(figures))


def _thousandths(dividend: int, divisor: int) -> float | None:
    """A quotient with three decimals, half up, or None of nothing."""
    if divisor == 0:
        return None
    return (2000 * dividend + divisor) // (2 * divisor) / 1000


def _milliseconds(us: int | None) -> float | None:
    return None if us is None else us / 1000


def _seconds(us: int | None) -> float | None:
    return None if us is None else us / MICRO


def _dollars(price: int | None) -> float | None:
    """Of millionths of a dollar a gigabyte times bytes: dollars, six decimals, half up."""
    return None if price is None else (2 * price + GIGABYTE) // (2 * GIGABYTE) / MICRO


def _summed(counts: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Counts by name, in the order of the names."""
    sums: dict[str, int] = {}
    for name, count in counts:
        sums[name] = sums.get(name, 0) + count
    return dict(sorted(sums.items()))
