"""The table of figures: names, order and units, as `figures.json` has them, and verdicts on a configuration.

A configuration keeps the group from coming to rest, by the invariants, or from keeping up with the records
that arrive, by the figures at the end of the run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from groupstorm.wording import counted


@dataclass(frozen=True, slots=True)
class Figures:
    """All figures of one run; None if a figure has no meaning in the run.

    Times are virtual milliseconds (three decimals) or seconds (six), as the name says; how each is
    computed stands in `docs/figures.md`.
    """

    generations: int
    generations_without_progress_max: int | None
    rounds_per_change: float | None
    rebalance_latency_avg_ms: float | None
    rebalance_latency_max_ms: float | None
    settled_after_ms: float | None
    unowned_partition_seconds: float | None
    unowned_max_seconds: float | None
    unowned_p50_seconds: float | None
    unowned_p95_seconds: float | None
    unowned_p99_seconds: float | None
    unowned_worst_partition: str | None
    deploys: int | None
    deploy_unowned_partition_seconds: float | None
    cost_per_deploy_partition_seconds: float | None
    crashes: int | None
    crash_unowned_partition_seconds: float | None
    cost_per_crash_partition_seconds: float | None
    nobody_consuming_seconds: float | None
    paused_partition_seconds: float | None
    dual_owner_seconds: float | None
    moves: int | None
    moves_lower_bound: int | None
    moves_wasted: int | None
    revoked_and_returned: int | None
    imbalance_max: int | None
    imbalance_records_max: float | None
    idle_members_max: int | None
    lag_peak: int | None
    lag_recovery_seconds: float | None
    lag_growth_per_second: float | None
    staleness_max_seconds: float | None
    staleness_p95_seconds: float | None
    staleness_worst_partition: str | None
    max_poll_interval_exceeded: int | None
    records_processed: int | None
    records_duplicated: int | None
    records_skipped: int | None
    records_skipped_at_start: int | None
    skipped_worst_partition: str | None
    commits_rejected: Mapping[str, int] | None
    requests: Mapping[str, int] | None
    errors: Mapping[str, int] | None
    cross_rack_bytes: int | None
    cross_rack_usd: float | None
    task_downtime_seconds: float | None
    task_downtime_max_seconds: float | None
    task_downtime_p50_seconds: float | None
    probing_rebalances: int | None
    converged_after_seconds: float | None
    restored_bytes: int | None
    standby_restored_bytes: int | None
    tasks_from_scratch: int | None
    task_imbalance: int | None
    subtopology_imbalance: int | None
    records_per_second: float | None
    busy_consumers_percent: float | None
    busy_consumers_mean: float | None
    consumers_without_records: int | None
    first_record_seconds: float | None
    delivery_counts: Mapping[str, int] | None
    redeliveries_by_cause: Mapping[str, int] | None
    lock_seconds_lost: float | None
    in_flight_max: int | None
    records_archived: int | None
    records_dead_lettered: int | None
    records_out_of_order: int | None
    invariants: Mapping[str, str] | None
    consumers_failed: Mapping[str, int] | None = None
    lag_at_end: int | None = None
    answer: str = ""

    @property
    def records_lost(self) -> int | None:
        """Records of a share group that nobody gets any more, and that no dead letter queue has."""
        archived = self.records_archived
        return None if archived is None else archived - (self.records_dead_lettered or 0)

    def to_json(self) -> dict[str, Any]:
        """The figures as one JSON object, in the table's order."""
        return asdict(self)


#: The verdict on an invariant while it holds; anything else is the violation in a sentence.
HELD: Final = "held"

PARKED: Final = "parked_requests_answered"
OWNED_AT_END: Final = "every_partition_owned_at_end"
ALL_RUN: Final = "every_task_runs_at_end"
SETTLES: Final = "group_settles"

#: Begin the verdict on `SETTLES` if the configuration is to blame.
LIVELOCK: Final = "livelock"
NEVER_AT_REST: Final = "never at rest"
SETTLED_LATE: Final = "settled late"
FINDINGS: Final = (LIVELOCK, NEVER_AT_REST, SETTLED_LATE)

#: Broken because of a group that has not settled: requests wait for a round, partitions for an owner.
CONSEQUENCES: Final = frozenset({SETTLES, PARKED, OWNED_AT_END, ALL_RUN})


def finding(verdicts: Mapping[str, str]) -> str | None:
    """The sentence on a configuration that cannot settle, without which the run's invariants held.

    None if they all held, or if one broke that no configuration breaks.
    """
    broken = {name for name, verdict in verdicts.items() if verdict != HELD}
    sentence = verdicts.get(SETTLES, HELD)
    return sentence if sentence.startswith(FINDINGS) and broken <= CONSEQUENCES else None


def verdict_on(found: str) -> str:
    """A finding in words, without its reason."""
    return "settles late" if found.startswith(SETTLED_LATE) else "cannot settle"


#: From how many records a second on the lag counts as growing; in a share group, whose records may take
#: seconds each, also from this part of the records that are done.
NOTICED: Final = 1
NOTICED_SHARE: Final = 0.1

#: Below this a growth has a tenth: 2 beside 1.5 records a second that arrive would be wrong.
LEAST_WHOLE: Final = 10

#: While no record has waited for so long, the lag only goes up and down between polls.
LEAST_STALENESS_S: Final = 5


def lag_growth(figures: Figures) -> float | None:
    """Records a second by which the lag still grows at the end; None if the group keeps up."""
    growth, oldest_s = figures.lag_growth_per_second, figures.staleness_max_seconds
    noticed = min(NOTICED, (figures.records_per_second or NOTICED / NOTICED_SHARE) * NOTICED_SHARE)
    if growth is None or growth < noticed or (oldest_s is not None and oldest_s < LEAST_STALENESS_S):
        return None
    return growth


def records_left(figures: Figures) -> int:
    """The records that consumers had still to catch up with at the end, if 1,000 and a tenth of the peak."""
    left, is_shared = figures.lag_at_end or 0, figures.delivery_counts is not None
    is_back = figures.lag_recovery_seconds is not None or figures.lag_growth_per_second != 0
    return 0 if is_back or is_shared or left < max(1_000, (figures.lag_peak or 0) // 10) else left


def grows_in_most(runs: Sequence[Figures]) -> bool:
    """Whether most of these seeds end with a lag that grows: one may end while a slow record is in hand."""
    return 2 * sum(lag_growth(figures) is not None for figures in runs) > len(runs)


def overload_sentence(growth: float) -> str:
    is_small = growth < LEAST_WHOLE and round(growth, 1) != round(growth)
    shown = f"{growth:.1f} records" if is_small else counted(round(growth), "record")
    return f"at the end the lag still grew by {shown} a second: less is processed than arrives"
