"""The sums of one group in whole microseconds and records, and the figures that follow from them.

Divisions and rounding happen here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from groupstorm.figures.answer import answer
from groupstorm.figures.table import Figures
from groupstorm.history.group_sums import GroupSums
from groupstorm.history.percentiles import percentile
from groupstorm.history.record_model import NANO
from groupstorm.history.shares import NO_SHARES, ShareTotals
from groupstorm.history.tasks import NO_TASKS, TaskTotals
from groupstorm.history.unknown import ABSENCES, DEATHS, MEMBERS, NEEDED_BY, OWNERSHIP, REBALANCES, STABILITY

#: Microseconds in a second.
MICRO = 1_000_000
GIGABYTE = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over one group's trace; None if there is nothing to sum over.

    ``unowned_*`` and ``nobody_us`` count from when partitions have to have owners; ``lag_peak_nano`` is in
    billionths of a record, ``imbalance_rate_max`` in records per 1,000 seconds; ``ages_us`` has the largest
    age of each partition's oldest unprocessed record; ``requests`` are (api, error or None, count).
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
    unowned_p99_us: int | None
    unowned_worst_partition: str | None
    deploy_unowned_us: int | None
    crash_unowned_us: int | None
    deploys: int | None
    crashes: int | None
    nobody_us: int | None
    paused_us: int | None
    dual_us: int | None
    moves: int | None
    moves_lower_bound: int | None
    revoked_and_returned: int | None
    imbalance_max: int | None
    imbalance_rate_max: int | None
    idle_members_max: int | None
    lag_peak_nano: int | None
    lag_recovery_us: int | None
    #: In records per 1,000 seconds, at the end; negative if the lag shrinks.
    lag_growth: int | None
    ages_us: Mapping[str, int] | None
    max_poll_interval_exceeded: int | None
    generations_without_progress_max: int | None
    records_processed: int | None
    records_duplicated: int | None
    records_skipped: int | None
    records_skipped_at_start: int | None
    skipped_most: str | None
    requests: tuple[tuple[str, str | None, int], ...]
    invariants: Mapping[str, str]
    tasks: TaskTotals = NO_TASKS
    shares: ShareTotals = NO_SHARES
    #: Of an imported trace that does not say who owned what, or how long owners were away: the sentence that
    #: says what to add. And whether times without an owner are lower bounds, whether it does not say when the
    #: group was Stable, whether generations are missing, and how long the group had no members.
    unknown_owners: str | None = None
    unknown_absences: str | None = None
    unowned_is_least: bool = False
    unknown_moves: bool = False
    generations_are_least: bool = False
    without_members_us: int = 0

    def figures(self) -> Figures:
        """Divide, round, and make the answer."""
        wasted = None
        if self.moves is not None and self.moves_lower_bound is not None:
            wasted = self.moves - self.moves_lower_bound
        counted = bool(self.requests)
        tasks, shares = self.tasks, self.shares
        ages = None if self.ages_us is None else sorted(self.ages_us.values())
        oldest = None if ages is None else max(ages, default=0)
        figures = Figures(
            generations=self.generations,
            generations_without_progress_max=self.generations_without_progress_max,
            rounds_per_change=_thousandths(self.rounds, self.changes),
            rebalance_latency_avg_ms=_thousandths(self.latency_sum_us, self.latencies * 1000),
            rebalance_latency_max_ms=_milliseconds(self.latency_max_us),
            settled_after_ms=_milliseconds(self.settled_after_us),
            unowned_partition_seconds=_seconds(self.unowned_us),
            unowned_max_seconds=_seconds(self.unowned_max_us),
            unowned_p50_seconds=_seconds(self.unowned_p50_us),
            unowned_p95_seconds=_seconds(self.unowned_p95_us),
            unowned_p99_seconds=_seconds(self.unowned_p99_us),
            unowned_worst_partition=self.unowned_worst_partition,
            deploys=self.deploys,
            deploy_unowned_partition_seconds=_seconds(self.deploy_unowned_us),
            cost_per_deploy_partition_seconds=_mean_seconds(self.deploy_unowned_us, self.deploys),
            crashes=self.crashes,
            crash_unowned_partition_seconds=_seconds(self.crash_unowned_us),
            cost_per_crash_partition_seconds=_mean_seconds(self.crash_unowned_us, self.crashes),
            nobody_consuming_seconds=_seconds(self.nobody_us),
            paused_partition_seconds=_seconds(self.paused_us),
            dual_owner_seconds=_seconds(self.dual_us),
            moves=self.moves,
            moves_lower_bound=self.moves_lower_bound,
            moves_wasted=wasted,
            revoked_and_returned=self.revoked_and_returned,
            imbalance_max=self.imbalance_max,
            imbalance_records_max=_thousandths(self.imbalance_rate_max, 1000),
            idle_members_max=self.idle_members_max,
            lag_peak=None if self.lag_peak_nano is None else -(-self.lag_peak_nano // NANO),
            lag_recovery_seconds=_seconds(self.lag_recovery_us),
            lag_growth_per_second=_thousandths(
                None if self.lag_growth is None else max(0, self.lag_growth), 1000
            ),
            staleness_max_seconds=_seconds(oldest),
            staleness_p95_seconds=_seconds(None if ages is None else percentile(ages, 95)),
            staleness_worst_partition=_first_of(self.ages_us, oldest),
            max_poll_interval_exceeded=self.max_poll_interval_exceeded,
            records_processed=self.records_processed,
            records_duplicated=self.records_duplicated,
            records_skipped=self.records_skipped,
            records_skipped_at_start=self.records_skipped_at_start,
            skipped_worst_partition=self.skipped_most,
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
        sentence = answer(
            figures,
            self.unknown_owners,
            self.unknown_absences,
            self.unowned_is_least,
            self.unknown_moves,
            self.generations_are_least,
            self.without_members_us / MICRO,
        )
        return replace(figures, answer=sentence)


#: The totals that need partitions with one owner each.
_OF_OWNERS = (
    *NEEDED_BY[OWNERSHIP],
    "imbalance_rate_max",
    "max_poll_interval_exceeded",
    "generations_without_progress_max",
    "deploys",
    "crashes",
    "records_skipped",
    "records_skipped_at_start",
)


def totals_of(sums: GroupSums, first_us: int | None, end_us: int) -> Totals:
    """The totals of a trace from ``first_us`` (None: it has no rows) to ``end_us``; to be called once."""
    unknown = sums.unknown
    is_least = not sums.has_member_rows or DEATHS in unknown.sentences
    totals = replace(_totals(sums, first_us, end_us), unowned_is_least=is_least)
    if REBALANCES in unknown.sentences:
        totals = replace(totals, latencies=0, latency_sum_us=0)
    if MEMBERS in unknown.sentences or REBALANCES in unknown.sentences:
        totals = replace(totals, changes=0, rounds=0)
    shares = sums.shares.totals(end_us)
    missing: dict[str, Any] = {**unknown.nothing()}
    if shares.is_group:
        redelivered = sum(number for count, number in (shares.delivery_counts or {}).items() if count != "1")
        missing |= dict.fromkeys(_OF_OWNERS)
        missing |= {"records_processed": shares.accepted, "records_duplicated": redelivered}
        missing |= {"changes": 0, "rounds": 0}  # members come and go without a rebalance
        if totals.lag_growth is not None and shares.lately_us:
            missing["lag_growth"] = _growth(totals.lag_growth, shares)
    return replace(
        totals,
        **missing,
        shares=shares,
        unknown_owners=unknown.sentences.get(OWNERSHIP),
        unknown_absences=unknown.sentences.get(ABSENCES),
        unknown_moves=STABILITY in unknown.sentences,
        generations_are_least=REBALANCES in unknown.sentences,
        without_members_us=sums.existence.without_members_us(end_us),
    )


def _totals(sums: GroupSums, first_us: int | None, end_us: int) -> Totals:
    sums.instant_over()
    sums.rounds.finish()
    ownership, rounds, moves = sums.ownership, sums.rounds, sums.moves
    growth = None
    if ownership.lag is not None and sums.has_member_rows:
        growth = ownership.lag.growth(end_us)
    ownership.finish(end_us)
    gaps = ownership.unowned()
    complete, by_members = gaps is not None, sums.has_member_rows
    peak = recovery = without_progress = ages = None
    if ownership.lag is not None and by_members:
        sums.progress.finish(*ownership.lag.processed_and_waiting(end_us))
        without_progress = sums.progress.without_max
        peak, recovery = ownership.lag.finish(end_us)
        ages = ownership.lag.ages()
    records = ownership.records if by_members else None
    origins = sums.origins if by_members else None
    last_us = ownership.last_change_us
    return Totals(
        generations=rounds.generations,
        changes=sums.changes,
        rounds=sums.rounds_after_changes,
        latencies=rounds.latencies,
        latency_sum_us=rounds.latency_sum_us,
        latency_max_us=rounds.latency_max_us,
        settled_after_us=None if last_us is None or first_us is None else last_us - first_us,
        unowned_us=gaps.total if gaps else None,
        unowned_max_us=gaps.longest if gaps else None,
        unowned_p50_us=gaps.p50 if gaps else None,
        unowned_p95_us=gaps.p95 if gaps else None,
        unowned_p99_us=gaps.p99 if gaps else None,
        unowned_worst_partition=(gaps.longest_of or None) if gaps else None,
        deploy_unowned_us=gaps.deploy if gaps and origins else None,
        crash_unowned_us=gaps.crash if gaps and origins else None,
        deploys=origins.deploys if origins else None,
        crashes=origins.crashes if origins else None,
        nobody_us=ownership.nobody_us if complete else None,
        paused_us=ownership.paused_us if complete and by_members else None,
        dual_us=ownership.dual_us if by_members else None,
        moves=moves.moves,
        moves_lower_bound=moves.lower_bound if by_members else None,
        revoked_and_returned=ownership.revoked_and_returned,
        imbalance_max=moves.imbalance_max if by_members else None,
        imbalance_rate_max=moves.imbalance_rate_max if records else None,
        idle_members_max=moves.idle_members_max,
        lag_peak_nano=peak,
        lag_recovery_us=recovery,
        lag_growth=growth,
        ages_us=ages,
        max_poll_interval_exceeded=sums.poll_timeouts if by_members else None,
        generations_without_progress_max=without_progress,
        records_processed=records.processed if records else None,
        records_duplicated=records.duplicated if records else None,
        records_skipped=records.skipped if records else None,
        records_skipped_at_start=records.skipped_at_start if records else None,
        skipped_most=records.skipped_most if records else None,
        requests=tuple(sums.requests),
        invariants=sums.invariants,
        tasks=sums.tasks.totals(end_us, sums.first_change_us),
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
