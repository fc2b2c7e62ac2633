"""The running sums of one group, and the figures' totals at the end of its trace."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from groupstorm.figures.causes import Origins
from groupstorm.figures.existence import Existence
from groupstorm.figures.gaps import GapListener, OwnershipListener
from groupstorm.figures.moves import Moves
from groupstorm.figures.ownership import Ownership
from groupstorm.figures.progress import Progress
from groupstorm.figures.rounds import Rounds
from groupstorm.figures.settling import Settling
from groupstorm.figures.tasks import TaskFigures
from groupstorm.figures.totals import Totals
from groupstorm.figures.unknown import ABSENCES, DEATHS, MEMBERS, OWNERSHIP, REBALANCES, STABILITY, Unknown


class GroupSums:
    """The parts that add up, each for some figures. All calls come in the order of time."""

    def __init__(
        self, gap_listener: GapListener | None = None, listener: OwnershipListener | None = None
    ) -> None:
        self.rounds = Rounds()
        self.settling = Settling()
        self.ownership = Ownership(gap_listener, listener)
        self.existence = Existence(self.ownership)
        self.moves = Moves()
        self.origins = Origins()
        self.progress = Progress()
        self.tasks = TaskFigures()
        self.unknown = Unknown()
        #: False: the rows of the coordinator alone say who owns what.
        self.has_member_rows = True
        self.requests: list[tuple[str, str | None, int]] = []
        self.invariants: dict[str, str] = {}
        self.poll_timeouts = 0
        self.changes = 0
        self.rounds_after_changes = 0
        #: The first change after the group had settled once: the lag has to recover from it.
        self.first_change_us: int | None = None

    def group_changed(self, now_us: int) -> None:
        """The group has to settle again."""
        if self.settling.has_settled and self.first_change_us is None:
            self.first_change_us = now_us
            if self.ownership.lag is not None:
                self.ownership.lag.mark(now_us)

    def instant_over(self) -> None:
        """All rows of one instant have been taken: the group may be at a settled point."""
        point = self.settling.instant_over(self.ownership.owns)
        if point is None:
            return
        self.changes += point.changes
        self.rounds_after_changes += point.rounds
        ownership = self.ownership
        self.moves.settled(point.live, ownership.touched, ownership.model)
        ownership.touched.clear()

    def begin_window(self, from_us: int) -> None:
        """What happened before ``from_us`` counts no more; what lasts until then counts from then on."""
        self.instant_over()
        self.requests.clear()
        self.invariants.clear()
        self.changes = self.rounds_after_changes = self.poll_timeouts = 0
        self.first_change_us = None
        self.rounds.begin_window()
        self.origins.begin_window()
        self.progress.begin_window()
        self.settling.begin_window()
        self.moves.begin_window()
        self.ownership.begin_window(from_us)
        self.existence.begin_window(from_us)
        self.tasks.begin_window(from_us)
        self.unknown.begin_window()

    def totals(self, first_us: int | None, end_us: int) -> Totals:
        """The totals of a trace from ``first_us`` (None: it has no rows) to ``end_us``; to be called once."""
        unknown = self.unknown
        is_least = not self.has_member_rows or DEATHS in unknown.sentences
        totals = replace(self._totals(first_us, end_us), unowned_is_least=is_least)
        if REBALANCES in unknown.sentences:
            totals = replace(totals, latencies=0, latency_sum_us=0)
        if MEMBERS in unknown.sentences or REBALANCES in unknown.sentences:
            totals = replace(totals, changes=0, rounds=0)
        missing: dict[str, Any] = {**unknown.nothing()}
        return replace(
            totals,
            **missing,
            unknown_owners=unknown.sentences.get(OWNERSHIP),
            unknown_absences=unknown.sentences.get(ABSENCES),
            unknown_moves=STABILITY in unknown.sentences,
            generations_are_least=REBALANCES in unknown.sentences,
            without_members_us=self.existence.without_members_us(end_us),
        )

    def _totals(self, first_us: int | None, end_us: int) -> Totals:
        self.instant_over()
        self.rounds.finish()
        ownership, rounds, moves = self.ownership, self.rounds, self.moves
        growth = None
        if ownership.lag is not None and self.has_member_rows:
            growth = ownership.lag.growth(end_us)
        ownership.finish(end_us)
        gaps = ownership.unowned()
        complete, by_members = gaps is not None, self.has_member_rows
        peak = recovery = without_progress = ages = None
        if ownership.lag is not None and by_members:
            self.progress.finish(*ownership.lag.processed_and_waiting(end_us))
            without_progress = self.progress.without_max
            peak, recovery = ownership.lag.finish(end_us)
            ages = ownership.lag.ages()
        records = ownership.records if by_members else None
        origins = self.origins if by_members else None
        last_us = ownership.last_change_us
        return Totals(
            generations=rounds.generations,
            changes=self.changes,
            rounds=self.rounds_after_changes,
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
            max_poll_interval_exceeded=self.poll_timeouts if by_members else None,
            generations_without_progress_max=without_progress,
            records_processed=records.processed if records else None,
            records_duplicated=records.duplicated if records else None,
            records_skipped=records.skipped if records else None,
            records_skipped_at_start=records.skipped_at_start if records else None,
            skipped_most=records.skipped_most if records else None,
            requests=tuple(self.requests),
            invariants=self.invariants,
            tasks=self.tasks.totals(end_us, self.first_change_us),
        )
