"""Which rule reads which row: every row of one group goes to the running sums that it changes."""

from __future__ import annotations

from collections.abc import Mapping

from groupstorm.history.causes import CLOSE
from groupstorm.history.coordinator_view import CoordinatorView, reads_coordinator
from groupstorm.history.gaps import Handler
from groupstorm.history.group_sums import GroupSums
from groupstorm.history.rounds import is_rebalance
from groupstorm.trace.events import coordinator as events
from groupstorm.trace.events import imported as imported_events
from groupstorm.trace.events import member as member_events
from groupstorm.trace.events import scenario as world_events
from groupstorm.trace.events import share as share_events
from groupstorm.trace.events.group_states import GroupState

#: `rejoin_requested` with this cause: the member has left because max.poll.interval.ms passed without a poll.
POLL_TIMEOUT = "poll-timeout"

Handlers = dict[type, tuple[Handler, ...]]


class RowRules:
    """The rules of one group. ``handlers``: by the type of the event, in their order; others change nothing.
    ``before``: what a listener does with a row before them.

    ``member_rows``: whether the trace has had a row of a member. If it has none when the first member is
    added, or the group is loaded, the coordinator's rows are read as ownership from then on
    (`CoordinatorView`).
    """

    def __init__(self, sums: GroupSums, before: Mapping[type, Handler]) -> None:
        self.member_rows = False
        self._sums = sums
        self._rounds = sums.rounds
        self._settling = sums.settling
        self._ownership = sums.ownership
        self._existence = sums.existence
        self._moves = sums.moves
        self._origins = sums.origins
        self._progress = sums.progress
        #: The first consumer's start is known: un-owned time counts from then on.
        self._is_scenario = False
        own = {**sums.tasks.handlers, **sums.shares.handlers}
        others: Handlers = {kind: (handler,) for kind, handler in own.items()}
        others[share_events.ShareConsumerStarted] += (self._settling.share_consumer_started,)
        self._of_listener = before
        self.handlers = self._behind(
            self._coordinator_handlers() | self._member_handlers() | self._scenario_handlers() | others
        )

    def read_coordinator_rows_as_ownership(self) -> None:
        """From now on the rows of members say nothing, and those of the coordinator who owns what."""
        self._settling.view = CoordinatorView()
        self._sums.has_member_rows = False
        handlers = self._coordinator_handlers() | self._scenario_handlers()
        for kind in CoordinatorView.OF_OWNERS:
            handlers[kind] = (*handlers.get(kind, ()), self._held)
        handlers[events.MemberReplaced] += (self._sums.unknown.static_member_returned,)
        self.handlers = self._behind(handlers | dict.fromkeys(self._member_handlers(), ()))

    def _behind(self, handlers: Handlers) -> Handlers:
        """These handlers, and before each the one of the listener."""
        first = {kind: (handler, *handlers.get(kind, ())) for kind, handler in self._of_listener.items()}
        return handlers | first

    def _coordinator_handlers(self) -> Handlers:
        changed, origins, settling = self._sums.group_changed, self._origins, self._settling
        return {
            events.GroupCreated: (self._choose_view, self._existence.created),
            events.GroupDeleted: (self._existence.deleted,),
            events.GroupStateChanged: (self._rounds.state_changed, self._state_changed),
            events.MemberAdded: (
                self._choose_view, settling.learn, changed, origins.member_added, settling.member_added,
            ),
            events.MemberReplaced: (
                settling.learn, self._rounds.member_replaced, origins.member_replaced,
                settling.member_replaced,
            ),
            events.MemberRemoved: (changed, origins.member_removed, settling.member_removed),
            events.JoinAnswered: (settling.join_answered,),
            events.SyncAnswered: (self._rounds.sync_answered, settling.sync_answered),
            events.MemberReconciled: (settling.reconciled,),
            events.TargetAssigned: (self._rounds.target_assigned, self._target_assigned),
        }  # fmt: skip

    def _member_handlers(self) -> Handlers:
        gone = self._settling.gone
        return {
            member_events.MemberStarted: (
                self._member_started, self._origins.member_started, self._settling.member_started,
            ),
            member_events.RejoinRequested: (self._settling.rejoin_requested, self._rejoin_requested),
            member_events.PartitionsAssigned: (self._settling.assignment_taken, self._assigned),
            member_events.PartitionsRevoked: (self._settling.revoked, self._revoked),
            member_events.PartitionsLost: (self._lost,),
            member_events.MemberCrashed: (gone, self._crashed),
            member_events.MemberPaused: (self._paused,),
            member_events.MemberResumed: (self._resumed,),
            member_events.ProcessingRatesChanged: (self._processing_changed,),
            member_events.PartitionsPaused: (self._paused,),
            member_events.PartitionsResumed: (self._resumed,),
            member_events.MemberClosed: (gone, self._origins.closed),
            member_events.MemberFailed: (gone, self._origins.broke_off, self._sums.member_failed),
        }  # fmt: skip

    def _scenario_handlers(self) -> Handlers:
        sums, unknown = self._sums, self._sums.unknown
        changed = sums.group_changed, self._origins.partitions_changed, self._settling.partitions_changed
        return {
            world_events.ScenarioStarted: (self._scenario_started,),
            world_events.StepTaken: (self._origins.step_taken,),
            world_events.PartitionsCreated: (*changed, self._partitions_created),
            world_events.PartitionsDeleted: (*changed, self._partitions_deleted),
            world_events.RecordRatesChanged: (self._logs_changed,),
            world_events.RequestsCounted: (sums.requests_counted,),
            world_events.InvariantChecked: (sums.invariant_checked,),
            imported_events.GroupImported: (unknown.imported, self._origins.imported, self._choose_view),
            imported_events.EvidenceMissing: (unknown.missing,),
            imported_events.OwnershipKnown: (unknown.known,),
            imported_events.MembersGone: (self._existence.members_gone, sums.tasks.members_gone),
            imported_events.MembersBack: (self._existence.members_back, sums.tasks.members_back),
        }

    def _choose_view(
        self, _now_us: int, event: events.GroupCreated | events.MemberAdded | imported_events.GroupImported
    ) -> None:
        if self._settling.view is None and reads_coordinator(event, self.member_rows):
            self.read_coordinator_rows_as_ownership()
        elif isinstance(event, imported_events.GroupImported):
            self.member_rows = True

    def _state_changed(self, now_us: int, event: events.GroupStateChanged) -> None:
        if self._settling.state_changed(event):
            self._sums.group_changed(now_us, event)
        if event.state == GroupState.STABLE:
            lag = self._ownership.lag
            amounts = lag.processed_and_waiting(now_us) if lag is not None else (0, 0)
            self._progress.stable(event.generation, *amounts)
        elif event.state == GroupState.EMPTY:
            self._progress.emptied()

    def _target_assigned(self, now_us: int, event: events.TargetAssigned) -> None:
        if is_rebalance(event):
            self._sums.tasks.placed_by_broker(now_us)

    def _held(self, now_us: int, event: events.Event) -> None:
        """A row of the coordinator, in a trace that has no others, may say what its member owns."""
        assert self._settling.view is not None
        name, ended, added = self._settling.view.take(event)
        if not name:
            return
        is_gone = isinstance(event, events.MemberRemoved | events.MemberReplaced)
        self._ownership.end(name, ended, None, now_us, revoked=not is_gone)
        self._ownership.assign(name, added, None, 0, now_us)
        if ended and isinstance(event, events.SyncAnswered):
            self._settling.joins_again(name, event.member_id)

    def _member_started(self, now_us: int, _event: member_events.MemberStarted) -> None:
        if self._is_scenario:
            self._ownership.begin(now_us)

    def _rejoin_requested(self, _now_us: int, event: member_events.RejoinRequested) -> None:
        self._sums.poll_timeouts += event.cause == POLL_TIMEOUT

    def _assigned(self, now_us: int, event: member_events.PartitionsAssigned) -> None:
        _, member, _, _, partitions, positions, duration_us = event
        self._ownership.assign(member, partitions, positions or None, max(0, duration_us), now_us)

    def _revoked(self, now_us: int, event: member_events.PartitionsRevoked) -> None:
        self._ownership.end(
            event.member,
            event.partitions,
            event.positions or None,
            now_us,
            max(0, event.duration_us),
            revoked=event.cause != CLOSE,
            origin=self._origins.revoked(now_us, event),
        )

    def _lost(self, now_us: int, event: member_events.PartitionsLost) -> None:
        _, member, _, _, partitions, positions, _, duration_us, _ = event
        origin = self._origins.broke_off(now_us, event)
        self._ownership.end(member, partitions, positions or None, now_us, max(0, duration_us), origin=origin)

    def _crashed(self, now_us: int, event: member_events.MemberCrashed) -> None:
        origin = self._origins.broke_off(now_us, event)
        self._ownership.end(event.member, event.partitions, event.positions or None, now_us, origin=origin)

    def _paused(
        self, now_us: int, event: member_events.MemberPaused | member_events.PartitionsPaused
    ) -> None:
        self._ownership.pause(event.member, event.partitions, event.positions, now_us)

    def _resumed(
        self, now_us: int, event: member_events.MemberResumed | member_events.PartitionsResumed
    ) -> None:
        self._ownership.pause(event.member, event.partitions, event.positions, now_us, on=False)

    def _processing_changed(self, now_us: int, event: member_events.ProcessingRatesChanged) -> None:
        self._ownership.change_processing(
            event.member, event.partitions, event.positions, event.rates, now_us
        )

    def _scenario_started(self, now_us: int, event: world_events.ScenarioStarted) -> None:
        self._is_scenario = True
        self._ownership.begin_scenario(event.record_rate, event.process_rate, now_us)
        self._ownership.create(event.partitions, now_us)

    def _partitions_created(self, now_us: int, event: world_events.PartitionsCreated) -> None:
        self._ownership.create(event.partitions, now_us)

    def _partitions_deleted(self, now_us: int, event: world_events.PartitionsDeleted) -> None:
        model = self._ownership.model
        rates = [(name, model.log(name).rate) for name in event.partitions]
        self._ownership.delete(event.partitions, now_us)
        for name, rate in rates:
            self._moves.rate_changed(name, model.log(name).rate - rate)

    def _logs_changed(self, now_us: int, event: world_events.RecordRatesChanged) -> None:
        for partition, rate in zip(event.partitions, event.rates, strict=True):
            self._moves.rate_changed(partition, rate - self._ownership.model.log(partition).rate)
        self._ownership.change_logs(event.partitions, event.positions, event.rates, now_us)
