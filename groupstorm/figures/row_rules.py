"""Which rule reads which row: every row of one group goes to the running sums that it changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from groupstorm.figures.causes import CLOSE
from groupstorm.figures.coordinator_view import CoordinatorView
from groupstorm.figures.group_sums import GroupSums
from groupstorm.figures.rounds import is_rebalance
from groupstorm.figures.settling import ASSIGNMENT
from groupstorm.trace.events import coordinator as events
from groupstorm.trace.events import imported as imported_events
from groupstorm.trace.events import member as member_events
from groupstorm.trace.events import scenario as world_events
from groupstorm.trace.events.group_states import GroupState

#: `rejoin_requested` with this cause: the member has left because max.poll.interval.ms passed without a poll.
POLL_TIMEOUT = "poll-timeout"

#: `group_imported` with this cause: every member has a log of its own.
MEMBERS_VIEW = "members"

Handler = Callable[[int, Any], None]


class RowRules:
    """The rules of one group. ``handlers``: by the type of the event; others change nothing.

    ``member_rows``: whether the trace has had a row of a member. If it has none when the first member is
    added, the coordinator's rows are read as ownership from then on (`CoordinatorView`).
    """

    def __init__(self, sums: GroupSums) -> None:
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
        self._view: CoordinatorView | None = None
        self.handlers: dict[type, Handler] = {
            **self._coordinator_handlers(),
            **self._member_handlers(),
            **self._scenario_handlers(),
            **sums.tasks.handlers,
        }

    def _read_coordinator_rows_as_ownership(self) -> None:
        self._view = CoordinatorView()
        self._sums.has_member_rows = self._settling.has_member_rows = False
        self.handlers = self._coordinator_handlers() | self._scenario_handlers()
        self.handlers[events.JoinParked] = partial(self._join_parked, self._view)

    def _coordinator_handlers(self) -> dict[type, Handler]:
        return {
            events.GroupCreated: self._group_created,
            events.GroupDeleted: self._group_deleted,
            events.GroupStateChanged: self._state_changed,
            events.MemberAdded: self._member_added,
            events.MemberReplaced: self._member_replaced,
            events.MemberRemoved: self._member_removed,
            events.JoinAnswered: self._join_answered,
            events.SyncAnswered: self._sync_answered,
            events.MemberReconciled: self._member_reconciled,
            events.TargetAssigned: self._target_assigned,
        }

    def _member_handlers(self) -> dict[type, Handler]:
        return {
            member_events.MemberStarted: self._member_started,
            member_events.RejoinRequested: self._rejoin_requested,
            member_events.PartitionsAssigned: self._assigned,
            member_events.PartitionsRevoked: self._revoked,
            member_events.PartitionsLost: self._lost,
            member_events.MemberCrashed: self._crashed,
            member_events.MemberPaused: self._paused,
            member_events.MemberResumed: self._resumed,
            member_events.ProcessingRatesChanged: self._processing_changed,
            member_events.PartitionsPaused: self._paused,
            member_events.PartitionsResumed: self._resumed,
            member_events.MemberClosed: self._closed,
            member_events.MemberFailed: self._failed,
        }

    def _scenario_handlers(self) -> dict[type, Handler]:
        return {
            world_events.ScenarioStarted: self._scenario_started,
            world_events.StepTaken: self._origins.step_taken,
            world_events.PartitionsCreated: self._partitions_created,
            world_events.PartitionsDeleted: self._partitions_deleted,
            world_events.RecordRatesChanged: self._logs_changed,
            world_events.RequestsCounted: self._requests_counted,
            world_events.InvariantChecked: self._invariant_checked,
            imported_events.GroupImported: self._imported,
            imported_events.EvidenceMissing: self._evidence_missing,
            imported_events.OwnershipKnown: self._ownership_known,
            imported_events.MembersGone: self._members_gone,
            imported_events.MembersBack: self._members_back,
        }

    def _group_created(self, now_us: int, _event: events.GroupCreated) -> None:
        self._existence.created(now_us)

    def _group_deleted(self, now_us: int, _event: events.GroupDeleted) -> None:
        self._existence.deleted(now_us)

    def _state_changed(self, now_us: int, event: events.GroupStateChanged) -> None:
        self._rounds.state_changed(event, now_us)
        if self._settling.state_changed(event):
            self._sums.group_changed(now_us)
        if event.state == GroupState.STABLE:
            lag = self._ownership.lag
            self._progress.stable(*(lag.processed_and_waiting(now_us) if lag is not None else (0, 0)))
        if self._view is not None and event.state == GroupState.COMPLETING_REBALANCE:
            self._view.protocol_chosen(event.protocol)

    def _target_assigned(self, now_us: int, event: events.TargetAssigned) -> None:
        if is_rebalance(event):
            self._rounds.generations += 1
            self._sums.tasks.placed_by_broker(now_us)

    def _member_added(self, now_us: int, event: events.MemberAdded) -> None:
        if not self.member_rows and self._view is None:
            self._read_coordinator_rows_as_ownership()
        if self._view is not None:
            self._view.learn(event.member_id, event.instance)
        self._sums.group_changed(now_us)
        self._origins.member_added(event.member, event.member_id)
        self._settling.member_added(self._name(event.member, event.member_id), event.member_id)

    def _member_replaced(self, now_us: int, event: events.MemberReplaced) -> None:
        if self._view is not None:
            self._view.learn(event.member_id, event.instance)
            self._ownership.end(event.instance, self._view.drops(event.member_id), None, now_us)
            self._sums.unknown.static_member_returned()
        self._rounds.member_replaced(event)
        self._origins.member_replaced(event.member, event.member_id)
        name = self._name(event.member, event.member_id)
        self._settling.member_replaced(name, event.member_id, event.previous_member_id)

    def _member_removed(self, now_us: int, event: events.MemberRemoved) -> None:
        self._sums.group_changed(now_us)
        self._origins.member_removed(now_us, event)
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
        if generation is not None:
            self._rounds.sync_answered(member_id, generation, now_us)
        name = member if self._view is None else self._view.name(member_id)
        self._settling.sync_answered(name, member_id, generation)
        if self._view is not None and self._holds(self._view, member_id, event.partitions or (), now_us):
            self._settling.revoked(event.member_id, ASSIGNMENT)

    def _member_reconciled(self, now_us: int, event: events.MemberReconciled) -> None:
        held = *event.partitions, *event.revoking
        self._settling.reconciled(event.member, event.partitions)
        if self._view is not None:
            self._holds(self._view, event.member_id, held, now_us)

    def _holds(
        self, view: CoordinatorView, member_id: str, partitions: Sequence[str], now_us: int
    ) -> Sequence[str]:
        """From now on the member owns these; returns what it owned besides."""
        name = view.name(member_id)
        revoked, added = view.answered(member_id, partitions)
        self._ownership.end(name, revoked, None, now_us, revoked=True)
        self._ownership.assign(name, added, None, 0, now_us)
        return revoked

    def _member_started(self, now_us: int, event: member_events.MemberStarted) -> None:
        if self._is_scenario:
            self._ownership.begin(now_us)
        self._origins.member_started(event.member)
        self._settling.member_started(event)

    def _rejoin_requested(self, _now_us: int, event: member_events.RejoinRequested) -> None:
        self._settling.rejoin_requested(event)
        self._sums.poll_timeouts += event.cause == POLL_TIMEOUT

    def _assigned(self, now_us: int, event: member_events.PartitionsAssigned) -> None:
        _, member, _, generation, partitions, positions, duration_us = event
        self._settling.assignment_taken(member, generation)
        self._ownership.assign(member, partitions, positions or None, max(0, duration_us), now_us)

    def _revoked(self, now_us: int, event: member_events.PartitionsRevoked) -> None:
        self._settling.revoked(event.member_id, event.cause)
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
        _, member, member_id, _, partitions, positions, _, duration_us, _ = event
        origin = self._origins.broke_off(now_us, member, member_id)
        self._ownership.end(member, partitions, positions or None, now_us, max(0, duration_us), origin=origin)

    def _crashed(self, now_us: int, event: member_events.MemberCrashed) -> None:
        self._settling.gone(event.member)
        origin = self._origins.broke_off(now_us, event.member, event.member_id)
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

    def _closed(self, _now_us: int, event: member_events.MemberClosed) -> None:
        self._settling.gone(event.member)

    def _failed(self, now_us: int, event: member_events.MemberFailed) -> None:
        self._settling.gone(event.member)
        self._origins.broke_off(now_us, event.member, event.member_id)

    def _scenario_started(self, now_us: int, event: world_events.ScenarioStarted) -> None:
        self._is_scenario = True
        self._ownership.begin_scenario(event.record_rate, event.process_rate, now_us)
        self._ownership.create(event.partitions, now_us)

    def _partitions_created(self, now_us: int, event: world_events.PartitionsCreated) -> None:
        self._sums.group_changed(now_us)
        self._origins.partitions_changed()
        self._settling.partitions_changed()
        self._ownership.create(event.partitions, now_us)

    def _partitions_deleted(self, now_us: int, event: world_events.PartitionsDeleted) -> None:
        self._sums.group_changed(now_us)
        self._origins.partitions_changed()
        self._settling.partitions_changed()
        model = self._ownership.model
        rates = [(name, model.log(name).rate) for name in event.partitions]
        self._ownership.delete(event.partitions, now_us)
        for name, rate in rates:
            self._moves.rate_changed(name, model.log(name).rate - rate)

    def _logs_changed(self, now_us: int, event: world_events.RecordRatesChanged) -> None:
        for partition, rate in zip(event.partitions, event.rates, strict=True):
            self._moves.rate_changed(partition, rate - self._ownership.model.log(partition).rate)
        self._ownership.change_logs(event.partitions, event.positions, event.rates, now_us)

    def _requests_counted(self, _now_us: int, event: world_events.RequestsCounted) -> None:
        self._sums.requests.append((event.api, event.error, event.count))

    def _invariant_checked(self, _now_us: int, event: world_events.InvariantChecked) -> None:
        self._sums.invariants[event.cause] = event.detail

    def _imported(self, _now_us: int, event: imported_events.GroupImported) -> None:
        """An imported trace says from whose rows ownership follows."""
        self._sums.unknown.imported()
        if event.cause == MEMBERS_VIEW:
            self.member_rows = True
        elif self._view is None:
            self._read_coordinator_rows_as_ownership()

    def _evidence_missing(self, _now_us: int, event: imported_events.EvidenceMissing) -> None:
        self._sums.unknown.missing(event)

    def _ownership_known(self, _now_us: int, _event: imported_events.OwnershipKnown) -> None:
        self._sums.unknown.known()

    def _members_gone(self, now_us: int, _event: imported_events.MembersGone) -> None:
        self._existence.members_gone(now_us)

    def _members_back(self, now_us: int, _event: imported_events.MembersBack) -> None:
        self._existence.members_back(now_us)

    def _name(self, member: str, member_id: str) -> str:
        return member if self._view is None else self._view.name(member_id)
