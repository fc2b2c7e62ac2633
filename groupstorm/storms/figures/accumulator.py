"""One pass over a trace: every row goes to the rules that read it; at the end there are figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final

from groupstorm.clients import events as member_events
from groupstorm.clients.streams import events as streams_events
from groupstorm.coordinator import events
from groupstorm.coordinator.states import GroupState
from groupstorm.storms import events as world_events
from groupstorm.storms.figures.coordinator_view import CoordinatorView
from groupstorm.storms.figures.moves import Moves
from groupstorm.storms.figures.ownership import Ownership
from groupstorm.storms.figures.records import RecordModel
from groupstorm.storms.figures.rounds import Rounds
from groupstorm.storms.figures.rows import read_row
from groupstorm.storms.figures.settling import ASSIGNMENT, SettledPoint, Settling
from groupstorm.storms.figures.table import Figures
from groupstorm.storms.figures.tasks import TaskFigures
from groupstorm.storms.figures.totals import Totals
from groupstorm.trace.rows import Told, TracedEvent
from groupstorm.trace.schema import Source

#: A consumer that closes gives its partitions up for good: `partitions_revoked` with this cause.
CLOSE = "close"

#: Looked up on the class, a member costs as much as a call before Python 3.12.
_MEMBER: Final = Source.MEMBER

Handler = Callable[[int, Any], None]


class FiguresAccumulator:
    """Takes the rows of one group, in the trace's order, and computes its figures.

    It needs memory for partitions, members and single gaps, not for rows. It is a `TraceSink`: a storm
    hands it every event as it happens; `add_row` takes a row as it was read from a file.

    ``on_settled`` is told every settled point with its time.
    """

    def __init__(self, on_settled: Callable[[int, SettledPoint], None] | None = None) -> None:
        self._on_settled = on_settled
        self._first_us: int | None = None
        self._now_us = 0
        self._member_rows = False
        self._requests: list[tuple[str, str | None, int]] = []
        self._invariants: dict[str, str] = {}
        self._rounds = Rounds()
        self._settling = Settling()
        self._ownership = Ownership()
        self._moves = Moves()
        self._changes = 0
        self._rounds_after_changes = 0
        #: The first change after the group had settled once: the lag has to recover from it.
        self.first_change_us: int | None = None
        #: How the coordinator's rows are read as ownership; None: members tell it themselves.
        self._view: CoordinatorView | None = None
        self._tasks = TaskFigures()
        self._handlers = {
            **self._told_by_coordinator(),
            **self._told_by_members(),
            **self._told_by_world(),
            **self._tasks.handlers,
        }

    def add(self, time_us: int, source: Source, event: TracedEvent) -> None:
        """Take one event that happened ``time_us`` microseconds after the trace began."""
        self.add_all([(time_us, source, event)])

    def add_all(self, told: Iterable[Told]) -> None:
        """Take several, in their order."""
        if self._first_us is None:
            told = list(told)
            self._first_us = told[0][0] if told else None
        settling = self._settling
        now_us = self._now_us
        for time_us, source, event in told:
            if time_us != now_us:
                if not (settling.rejoining or settling.settled or settling.awaited):
                    self._instant_over()
                now_us = self._now_us = time_us
            if source is _MEMBER:
                self._member_rows = True
            handler = self._handlers.get(type(event))
            if handler is not None:
                handler(time_us, event)

    def add_row(self, row: Mapping[str, Any]) -> None:
        """Take one row of a trace, nulls left out or not.

        Raises InputError that names the row's ``seq`` for a row that is none of the schema's.
        """
        time_us, source, event = read_row(row, self._now_us)
        self.add(time_us, source, event)

    def close(self) -> None:
        """Nothing more comes; the figures can be asked for."""

    def figures(self, end_us: int | None = None) -> Figures:
        """The figures of the rows so far, once: the accumulator takes no more rows after it.

        ``end_us``: where the trace ends, if later than this group's last row.
        """
        return self.totals(end_us).figures()

    def totals(self, end_us: int | None = None) -> Totals:
        """What `figures` divides and rounds."""
        end_us = self._now_us if end_us is None else end_us
        self._instant_over()
        self._rounds.finish()
        ownership, rounds, moves = self._ownership, self._rounds, self._moves
        ownership.finish(end_us)
        gaps = ownership.unowned()
        complete, told = gaps is not None, self._view is None
        peak = recovery = None
        if ownership.lag is not None and told:
            peak, recovery = ownership.lag.finish(end_us)
        records = ownership.records if told else None
        first_us, last_us = self._first_us, ownership.last_change_us
        return Totals(
            generations=rounds.generations,
            changes=self._changes,
            rounds=self._rounds_after_changes,
            latencies=rounds.latencies,
            latency_sum_us=rounds.latency_sum_us,
            latency_max_us=rounds.latency_max_us,
            settled_after_us=None if last_us is None or first_us is None else last_us - first_us,
            unowned_us=gaps[0] if gaps else None,
            unowned_max_us=gaps[1] if gaps else None,
            unowned_p50_us=gaps[2] if gaps else None,
            unowned_p95_us=gaps[3] if gaps else None,
            nobody_us=ownership.nobody_us if complete else None,
            paused_us=ownership.paused_us if complete and told else None,
            dual_us=ownership.dual_us if told else None,
            moves=moves.moves,
            moves_lower_bound=moves.lower_bound if told else None,
            revoked_and_returned=ownership.revoked_and_returned,
            imbalance_max=moves.imbalance_max if told else None,
            idle_members_max=moves.idle_members_max,
            lag_peak_micro=peak,
            lag_recovery_us=recovery,
            records_processed=records.processed if records else None,
            records_duplicated=records.duplicated if records else None,
            records_skipped=records.skipped if records else None,
            requests=tuple(self._requests),
            invariants=self._invariants,
            tasks=self._tasks.totals(end_us, self.first_change_us),
        )

    # -- time ------------------------------------------------------------------------------------

    def _instant_over(self) -> None:
        point = self._settling.instant_over()
        if point is None:
            return
        self._changes += point.changes
        self._rounds_after_changes += point.rounds
        if self._on_settled is not None:
            self._on_settled(self._now_us, point)
        ownership = self._ownership
        self._moves.settled(point.live, ownership.touched, len(ownership.partitions))
        ownership.touched.clear()

    # -- rows ------------------------------------------------------------------------------------

    def _told_by_coordinator(self) -> dict[type, Handler]:
        return {
            events.GroupStateChanged: self._state_changed,
            events.MemberAdded: self._member_added,
            events.MemberReplaced: self._member_replaced,
            events.MemberRemoved: self._member_removed,
            events.JoinAnswered: self._join_answered,
            events.SyncAnswered: self._sync_answered,
        }

    def _told_by_members(self) -> dict[type, Handler]:
        return {
            member_events.MemberStarted: self._member_started,
            member_events.RejoinRequested: self._rejoin_requested,
            member_events.PartitionsAssigned: self._assigned,
            member_events.PartitionsRevoked: self._revoked,
            member_events.PartitionsLost: self._lost,
            member_events.MemberCrashed: self._crashed,
            member_events.MemberPaused: self._paused,
            member_events.MemberResumed: self._resumed,
            streams_events.PartitionsPaused: self._paused,
            streams_events.PartitionsResumed: self._resumed,
            member_events.MemberClosed: self._gone,
            member_events.MemberFailed: self._gone,
        }

    def _told_by_world(self) -> dict[type, Handler]:
        return {
            world_events.ScenarioStarted: self._scenario_started,
            world_events.PartitionsCreated: self._partitions_created,
            world_events.RequestsCounted: self._requests_counted,
            world_events.InvariantChecked: self._invariant_checked,
        }

    def _state_changed(self, now_us: int, event: events.GroupStateChanged) -> None:
        self._rounds.state_changed(event, now_us)
        if self._settling.state_changed(event):
            self._changed(now_us)
        if self._view is not None and event.state == GroupState.COMPLETING_REBALANCE:
            self._view.protocol_chosen(event.protocol)

    def _member_added(self, now_us: int, event: events.MemberAdded) -> None:
        if not self._member_rows and self._view is None:
            self._view = CoordinatorView()
            self._settling.members_told = False
            self._handlers = self._told_by_coordinator() | self._told_by_world()
            self._handlers[events.JoinParked] = partial(self._join_parked, self._view)
        if self._view is not None:
            self._view.learn(event.member_id, event.instance)
        self._changed(now_us)
        self._settling.member_added(self._name(event.member, event.member_id), event.member_id)

    def _member_replaced(self, now_us: int, event: events.MemberReplaced) -> None:
        if self._view is not None:
            self._view.learn(event.member_id, event.instance)
            self._ownership.end(event.instance, self._view.drops(event.member_id), None, now_us)
        self._rounds.member_replaced(event)
        name = self._name(event.member, event.member_id)
        self._settling.member_replaced(name, event.member_id, event.previous_member_id)

    def _member_removed(self, now_us: int, event: events.MemberRemoved) -> None:
        self._changed(now_us)
        self._settling.member_removed(event.member_id)
        if self._view is not None:
            dropped = self._view.drops(event.member_id)
            self._ownership.end(self._view.name(event.member_id), dropped, None, now_us)

    def _join_parked(self, view: CoordinatorView, now_us: int, event: events.JoinParked) -> None:
        self._give_up_to_join(view, event.member_id, now_us)

    def _join_answered(self, now_us: int, event: events.JoinAnswered) -> None:
        if event.error is not None:
            return
        name = event.member
        if self._view is not None:
            name = self._view.name(event.member_id)
            self._give_up_to_join(self._view, event.member_id, now_us)
        self._settling.join_answered(name, event.generation)

    def _give_up_to_join(self, view: CoordinatorView, member_id: str, now_us: int) -> None:
        self._ownership.end(view.name(member_id), view.joins(member_id), None, now_us, revoked=True)

    def _sync_answered(self, now_us: int, event: events.SyncAnswered) -> None:
        if event.error is not None:
            return
        _, member, member_id, generation, _, _ = event
        self._rounds.sync_answered(member_id, generation, now_us)
        name = member if self._view is None else self._view.name(member_id)
        self._settling.sync_answered(name, member_id, generation)
        if self._view is None:
            return
        revoked, added = self._view.answered(event.member_id, event.partitions or ())
        self._ownership.end(name, revoked, None, now_us, revoked=True)
        if revoked:
            self._settling.revoked(event.member_id, ASSIGNMENT)
        self._ownership.assign(name, added, None, 0, now_us)

    def _member_started(self, _now_us: int, event: member_events.MemberStarted) -> None:
        self._settling.member_started(event)

    def _rejoin_requested(self, _now_us: int, event: member_events.RejoinRequested) -> None:
        self._settling.rejoin_requested(event)

    def _assigned(self, now_us: int, event: member_events.PartitionsAssigned) -> None:
        _, member, _, generation, partitions, positions, duration_us = event
        self._settling.assignment_taken(member, generation)
        self._ownership.assign(member, partitions, positions, duration_us, now_us)

    def _revoked(self, now_us: int, event: member_events.PartitionsRevoked) -> None:
        self._settling.revoked(event.member_id, event.cause)
        self._ownership.end(
            event.member,
            event.partitions,
            event.positions,
            now_us,
            event.duration_us,
            revoked=event.cause != CLOSE,
        )

    def _lost(self, now_us: int, event: member_events.PartitionsLost) -> None:
        self._ownership.end(event.member, event.partitions, event.positions, now_us, event.duration_us)

    def _crashed(self, now_us: int, event: member_events.MemberCrashed) -> None:
        self._settling.gone(event.member)
        self._ownership.end(event.member, event.partitions, event.positions, now_us)

    def _paused(
        self, now_us: int, event: member_events.MemberPaused | streams_events.PartitionsPaused
    ) -> None:
        self._ownership.pause(event.member, event.partitions, event.positions, now_us)

    def _resumed(
        self, now_us: int, event: member_events.MemberResumed | streams_events.PartitionsResumed
    ) -> None:
        self._ownership.resume(event.member, event.partitions, event.positions, now_us)

    def _gone(self, _now_us: int, event: member_events.MemberClosed | member_events.MemberFailed) -> None:
        self._settling.gone(event.member)

    def _scenario_started(self, now_us: int, event: world_events.ScenarioStarted) -> None:
        if event.record_rate > 0:
            self._ownership.follow_records(RecordModel(event.record_rate, event.process_rate))
        self._ownership.create(event.partitions, now_us)

    def _partitions_created(self, now_us: int, event: world_events.PartitionsCreated) -> None:
        self._changed(now_us)
        self._settling.partitions_created()
        self._ownership.create(event.partitions, now_us)

    def _requests_counted(self, _now_us: int, event: world_events.RequestsCounted) -> None:
        self._requests.append((event.api, event.error, event.count))

    def _invariant_checked(self, _now_us: int, event: world_events.InvariantChecked) -> None:
        self._invariants[event.cause] = event.detail

    def _name(self, member: str, member_id: str) -> str:
        return member if self._view is None else self._view.name(member_id)

    def _changed(self, now_us: int) -> None:
        if self._settling.points and self.first_change_us is None:
            self.first_change_us = now_us
            if self._ownership.lag is not None:
                self._ownership.lag.mark(now_us)


def figures_by_group(rows: Iterable[Mapping[str, Any]]) -> dict[str, Figures]:
    """The figures of every group in a trace, by group id in the order of its appearance.

    ``rows``: as `groupstorm.trace.reader.read_rows` gives them. A group ends where the trace does.
    """
    accumulators: dict[str, FiguresAccumulator] = {}
    end_us = 0
    for row in rows:
        group = row.get("group", "")
        accumulator = accumulators.get(group)
        if accumulator is None:
            accumulator = accumulators[group] = FiguresAccumulator()
        accumulator.add_row(row)
        end_us = row["time_us"]
    return {group: accumulator.figures(end_us) for group, accumulator in accumulators.items()}
