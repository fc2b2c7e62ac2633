"""The sums of one group in whole microseconds and records, and the figures that follow from them.

Divisions and rounding happen here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from groupstorm.figures.answer import answer
from groupstorm.figures.table import Figures
from groupstorm.history.gaps import Gaps, percentile
from groupstorm.history.group_sums import GroupSums
from groupstorm.history.records import NANO
from groupstorm.history.shares import NO_SHARES, ShareTotals
from groupstorm.history.tasks import NO_TASKS, TaskTotals
from groupstorm.history.unknown import (
    ABSENCES,
    DEATHS,
    GENERATIONS,
    LOG,
    NEEDED_BY,
    OWNERSHIP,
    REBALANCES,
    STABILITY,
    TOPICS,
)
from groupstorm.wording import counted

#: Microseconds in a second.
MICRO = 1_000_000
GIGABYTE = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Totals:
    """The sums of a group whose trace has ended, and what follows from them at its end.

    ``gaps``, ``lag_*`` and ``ages_us``: None if the trace does not know them. ``lag_peak_nano`` is in
    billionths of a record, ``lag_growth`` in records per 1,000 seconds, negative if the lag shrinks;
    ``ages_us`` has the largest age of each partition's oldest unprocessed record. ``without_members``: when
    the group had no members, as far as an imported trace says so. ``unowned_at_end``: partitions
    that had no owner then. ``is_deserted``: steps had ended all processes.
    """

    sums: GroupSums
    gaps: Gaps | None = None
    settled_after_us: int | None = None
    lag_peak_nano: int | None = None
    lag_recovery_us: int | None = None
    lag_growth: int | None = None
    lag_at_end_nano: int | None = None
    ages_us: Mapping[str, int] | None = None
    invariants: Mapping[str, str] = field(default_factory=dict)
    tasks: TaskTotals = NO_TASKS
    shares: ShareTotals = NO_SHARES
    without_members: Sequence[tuple[int, int]] = ()
    unowned_at_end: int = 0
    is_deserted: bool = False

    @property
    def unknown_owners(self) -> str | None:
        """The sentence that says what to add to an imported trace that does not say who owned what."""
        return self.sums.unknown.sentences.get(OWNERSHIP)

    @property
    def unknown_absences(self) -> str | None:
        """The sentence that says what to add to one that does not say how long owners were away."""
        return self.sums.unknown.sentences.get(ABSENCES)

    @property
    def unowned_is_least(self) -> bool:
        """Whether times without an owner are lower bounds."""
        unknown = self.sums.unknown.sentences
        return not self.sums.has_member_rows or DEATHS in unknown or TOPICS in unknown

    @property
    def generations_are_least(self) -> bool:
        """Whether the trace may lack generations: logs that name none need not say who owned what either."""
        if LOG in self.sums.unknown.sentences and self.unknown_owners and not self.sums.rounds.generations:
            return True
        return not {GENERATIONS, REBALANCES}.isdisjoint(self.sums.unknown.sentences)

    def figures(self) -> Figures:
        """Divide, round, and make the answer."""
        unknown = self.sums.unknown
        figures = replace(self._divided(), **(unknown.nothing() | self._of_shares()))
        sentence = answer(
            figures,
            self.unknown_owners or self.unknown_absences,
            self.unowned_is_least,
            STABILITY in unknown.sentences or self.unknown_owners is not None,
            self.generations_are_least,
            sum(to_us - from_us for from_us, to_us in self.without_members) / MICRO,
            LOG in unknown.sentences,
            self._at_end(),
        )
        return replace(figures, answer=sentence)

    def _at_end(self) -> str:
        """Return what is not over when the trace ends. The verdicts on a run say most of it."""
        if self.is_deserted and self.lag_growth is not None:
            return "at the end no process was left"
        if self.invariants or self.shares.is_group:
            return ""
        unowned = 0 if self.unknown_owners else self.unowned_at_end
        parts = [f"{counted(unowned, 'partition')} had no owner"] if unowned else []
        parts += ["a rebalance was under way"] if self.sums.settling.is_in_round else []
        return f"at the end {' and '.join(parts)}" if parts else ""

    def _divided(self) -> Figures:
        """All figures, as if the trace held every fact and each partition had one owner."""
        sums, gaps, tasks, shares = self.sums, self.gaps, self.tasks, self.shares
        ownership, rounds, moves = sums.ownership, sums.rounds, sums.moves
        by_members, requests = sums.has_member_rows, sums.requests
        records = ownership.records if by_members else None
        deploys, crashes = (sums.origins.deploys, sums.origins.crashes) if by_members else (None, None)
        begun = gaps if by_members else None  # of a trace that says what began a time without an owner
        lower_bound = moves.lower_bound if by_members else None
        has_lag = ownership.lag is not None and by_members
        ages = None if self.ages_us is None else sorted(self.ages_us.values())
        oldest = None if ages is None else max(ages, default=0)
        return Figures(
            generations=rounds.generations,
            generations_without_progress_max=sums.progress.without_max if has_lag else None,
            rounds_per_change=_thousandths(sums.rounds_after_changes, sums.changes),
            rebalance_latency_avg_ms=_thousandths(rounds.latency_sum_us, rounds.latencies * 1000),
            rebalance_latency_max_ms=_milliseconds(rounds.latency_max_us),
            settled_after_ms=_milliseconds(self.settled_after_us),
            unowned_partition_seconds=_seconds(gaps and gaps.total),
            unowned_max_seconds=_seconds(gaps and gaps.longest),
            unowned_p50_seconds=_seconds(gaps and gaps.p50),
            unowned_p95_seconds=_seconds(gaps and gaps.p95),
            unowned_p99_seconds=_seconds(gaps and gaps.p99),
            unowned_worst_partition=(gaps and gaps.longest_of) or None,
            deploys=deploys,
            deploy_unowned_partition_seconds=_seconds(begun and begun.deploy),
            cost_per_deploy_partition_seconds=_mean_seconds(begun and begun.deploy, deploys),
            crashes=crashes,
            crash_unowned_partition_seconds=_seconds(begun and begun.crash),
            cost_per_crash_partition_seconds=_mean_seconds(begun and begun.crash, crashes),
            nobody_consuming_seconds=_seconds(ownership.nobody_us if gaps else None),
            paused_partition_seconds=_seconds(ownership.paused_us if begun else None),
            dual_owner_seconds=_seconds(ownership.dual_us if by_members else None),
            moves=moves.moves,
            moves_lower_bound=lower_bound,
            moves_wasted=None if moves.moves is None or lower_bound is None else moves.moves - lower_bound,
            revoked_and_returned=ownership.revoked_and_returned,
            imbalance_max=moves.imbalance_max if by_members else None,
            imbalance_records_max=_thousandths(moves.imbalance_rate_max if records else None, 1000),
            idle_members_max=moves.idle_members_max,
            lag_peak=None if self.lag_peak_nano is None else -(-self.lag_peak_nano // NANO),
            lag_recovery_seconds=_seconds(self.lag_recovery_us),
            lag_growth_per_second=_thousandths(
                None if self.lag_growth is None or self.is_deserted else max(0, self.lag_growth), 1000
            ),
            lag_at_end=None if self.lag_at_end_nano is None else self.lag_at_end_nano // NANO,
            staleness_max_seconds=_seconds(oldest),
            staleness_p95_seconds=_seconds(None if ages is None else percentile(ages, 95)),
            staleness_worst_partition=_first_of(self.ages_us, oldest),
            max_poll_interval_exceeded=sums.poll_timeouts if by_members else None,
            records_processed=records.processed if records else None,
            records_duplicated=records.duplicated if records else None,
            records_skipped=records.skipped if records else None,
            records_skipped_at_start=records.skipped_at_start if records else None,
            skipped_worst_partition=records.skipped_most if records else None,
            commits_rejected=_summed(
                (error, count) for api, error, count in requests if api == "OffsetCommit" and error
            )
            if requests
            else None,
            requests=_summed((api, count) for api, _, count in requests) if requests else None,
            errors=_summed((error, count) for _, error, count in requests if error) if requests else None,
            consumers_failed=dict(sorted(sums.failed.items())) if by_members else None,
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
            records_per_second=_per_second(shares.accepted, shares.working_us),
            busy_consumers_percent=_percent(shares.busy_us, shares.consumer_us),
            busy_consumers_mean=_thousandths(shares.busy_us, shares.span_us or 0),
            consumers_without_records=shares.without_records,
            first_record_seconds=_seconds(shares.first_record_us),
            delivery_counts=shares.delivery_counts,
            redeliveries_by_cause=shares.redeliveries_by_cause,
            lock_seconds_lost=_seconds(shares.lock_lost_us),
            in_flight_max=shares.in_flight_max,
            records_archived=shares.archived,
            records_dead_lettered=shares.dead_lettered,
            records_out_of_order=shares.out_of_order,
            invariants=dict(sorted(self.invariants.items())) or None,
        )

    def _of_shares(self) -> dict[str, Any]:
        """Figures of a share group in place of those that need partitions with one owner each."""
        shares = self.shares
        if not shares.is_group:
            return {}
        redelivered = sum(number for count, number in (shares.delivery_counts or {}).items() if count != "1")
        done = {"records_processed": shares.accepted, "records_duplicated": redelivered}
        return {**dict.fromkeys(_OF_OWNERS), **done}


#: The figures that need partitions with one owner each, and rebalances.
_OF_OWNERS = (
    *NEEDED_BY[OWNERSHIP],
    "rounds_per_change",
    "imbalance_records_max",
    "max_poll_interval_exceeded",
    "consumers_failed",
    "generations_without_progress_max",
    "deploys",
    "crashes",
    "records_skipped",
    "records_skipped_at_start",
)


def totals_of(sums: GroupSums, first_us: int | None, end_us: int) -> Totals:
    """The totals of a trace from ``first_us`` (None: it has no rows) to ``end_us``; to be called once."""
    sums.instant_over()
    sums.rounds.finish()
    ownership = sums.ownership
    lag = ownership.lag if sums.has_member_rows else None
    growth = None if lag is None else lag.growth(end_us)
    unowned_at_end = ownership.unowned_count or 0
    ownership.finish(end_us)
    gaps = ownership.unowned()
    peak = recovery = waiting = ages = None
    if lag is not None:
        processed, waiting = lag.processed_and_waiting(end_us)
        sums.progress.finish(processed, waiting)
        peak, recovery = lag.finish(end_us)
        ages = lag.ages()
    shares = sums.shares.totals(end_us)
    if growth is not None and shares.is_group and shares.lately_us:
        growth = _growth(growth, shares)
    last_us = ownership.last_change_us
    return Totals(
        sums,
        gaps,
        None if last_us is None or first_us is None else last_us - first_us,
        peak,
        recovery,
        growth,
        waiting,
        ages,
        sums.invariants,
        sums.tasks.totals(end_us, sums.first_change_us),
        shares,
        sums.existence.without_members(end_us),
        unowned_at_end,
        (sums.settling.is_deserted or sums.shares.is_deserted) and not (sums.failed or sums.origins.killed),
    )


def _first_of(values: Mapping[str, int] | None, value: int | None) -> str | None:
    """The first name, by name, that has this value; None if there is none above 0."""
    if not values or not value:
        return None
    return min(name for name, one in values.items() if one == value)


#: A share group keeps up if it has done this part of what arrived lately, in per cent.
_KEEPS_UP = 98


def _growth(arriving: int, shares: ShareTotals) -> int:
    """By how much the lag of a share group grows, in records per 1,000 seconds; what is in work varies."""
    done = shares.done_lately * 1000 * MICRO // shares.lately_us
    return 0 if 100 * done >= _KEEPS_UP * arriving else arriving - done


def _per_second(count: int | None, us: int | None) -> float | None:
    return _thousandths(None if count is None else count * MICRO, us or 0)


def _percent(part: int | None, whole: int | None) -> float | None:
    return _thousandths(None if part is None else 100 * part, whole or 0)


def _mean_seconds(us: int | None, count: int | None) -> float | None:
    """Seconds with six decimals, half up, or None of nothing."""
    if us is None or not count:
        return None
    return (2 * us + count) // (2 * count) / MICRO


def _thousandths(dividend: int | None, divisor: int) -> float | None:
    """A quotient with three decimals, half up, or None of nothing."""
    if dividend is None or divisor == 0:
        return None
    return (2000 * dividend + divisor) // (2 * divisor) / 1000


def _milliseconds(us: int | None) -> float | None:
    return None if us is None else us / 1000


def _seconds(us: int | None) -> float | None:
    return None if us is None else us / MICRO


def _dollars(price: int | None) -> float | None:
    """Convert millionths of a dollar a gigabyte times bytes to dollars: six decimals, half up."""
    return None if price is None else (2 * price + GIGABYTE) // (2 * GIGABYTE) / MICRO


def _summed(counts: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Counts by name, in the order of the names."""
    sums: dict[str, int] = {}
    for name, count in counts:
        sums[name] = sums.get(name, 0) + count
    return dict(sorted(sums.items()))
