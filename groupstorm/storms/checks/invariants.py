"""Invariants that every storm checks; one that breaks fails the run.

From the group protocol itself: two members of one generation never own one partition, generations
increase, the states follow one another, every parked request is answered, every partition has an owner
at the end, the group comes to rest. If members join their topics, partition n of all topics has one owner.
`groupstorm.storms.checks` has the checks that read the trace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.coordinator.records import AppendCause
from groupstorm.storms.checks.commits import CommittedPositions, FencedCommits, GivenUp
from groupstorm.storms.checks.consumer_groups import ConsumerGroupChecks
from groupstorm.storms.checks.final_state import FinalState
from groupstorm.storms.checks.membership import MembershipChecks, RequestChecks
from groupstorm.storms.checks.ownership import OwnedTime, OwnershipChecks
from groupstorm.storms.checks.skipped_assignments import SkippedAssignments
from groupstorm.storms.checks.states import StateChecks
from groupstorm.storms.checks.verdicts import (
    CO_PARTITIONED,
    FENCED,
    HELD,
    MEMBERS_LIVE,
    OWNED_AT_END,
    PARKED,
    REMOVAL_NOT_WRITTEN,
    SETTLES,
    WORKS_ON_OWN,
    Verdicts,
    listed,
)
from groupstorm.storms.checks.written_members import Appends
from groupstorm.storms.scenario.consistency import of_protocol
from groupstorm.storms.scenario.settings import Settings
from groupstorm.storms.scenario.steps import PARTITION, Step
from groupstorm.trace.events import coordinator as coordinator_events
from groupstorm.trace.events import member as member_events
from groupstorm.trace.events import scenario as scenario_events
from groupstorm.trace.rows import TracedEvent, TraceEntry
from groupstorm.trace.schema import Source

#: Writes of a consumer group: if one fails, the group is as the last one that was written left it.
_CONSUMER_GROUP_WRITES = frozenset(
    {AppendCause.MEMBER_HEARTBEAT, AppendCause.MEMBERS_REMOVED, AppendCause.GROUP_DOWNGRADED}
)


def longest_silence_us(settings: Settings, steps: Iterable[Step] = ()) -> int:
    """The silence after which a member is out of the group at the latest: its last request may still be under
    way when the silence begins, also in a partitioned network, and the coordinator counts in milliseconds."""
    held_ms = sum(step.for_ms for step in steps if step.do == PARTITION)
    sessions = {own.integer(of_protocol(own, "session.timeout.ms")) for own in settings.of_profiles()}
    session_ms = max(sessions)
    return (session_ms + held_ms + 1) * 1000 + settings.distribution("net_latency_ms").largest_us


class InvariantChecks:
    """A sink of the trace that checks every row, and the world at the end.

    ``silence_us``: after which silence a member must have been removed, None if that cannot be said.
    ``joins_before_v9``: of a member's name, whether it joins with JoinGroup below version 9.
    ``appends``: how the coordinator's writes end (None: at once).
    ``consumer_groups``: members may be of group.protocol=consumer.
    ``causes_known``: the coordinator itself has emitted its events; else they are inferred from responses.
    ``figures_from_us``: from when on the run's figures count. ``sees_commits``: every commit that is sent to
    the coordinator is told (`commit_arrives`).
    """

    def __init__(
        self,
        joins: bool = False,
        silence_us: int | None = None,
        causes_known: bool = True,
        joins_before_v9: Callable[[str], bool] = lambda _: False,
        appends: Appends | None = None,
        consumer_groups: bool = False,
        figures_from_us: int = 0,
        sees_commits: bool = False,
    ) -> None:
        self._verdicts = Verdicts(joins, consumer_groups)
        self.verdicts = self._verdicts.of
        members: set[str] = set()
        self._states = StateChecks(self._verdicts, causes_known)
        self._requests = RequestChecks(self._verdicts)
        self._ownership = OwnershipChecks(self._verdicts, members)
        self._membership = MembershipChecks(
            self._verdicts, members, self._requests, silence_us, appends or Appends()
        )
        self._consumer_groups = ConsumerGroupChecks(self._verdicts)
        self._skipped_assignments = SkippedAssignments(joins_before_v9)
        self._fenced_commits = FencedCommits(members)
        self._owned_time = OwnedTime(self._verdicts, members, figures_from_us)
        self._positions = CommittedPositions(self._verdicts, self._owned_time.owners)
        self._sees_commits = sees_commits
        self._time_us = 0
        self._checks: dict[type, Callable[[Any], None]] = {
            coordinator_events.GroupCreated: self._created,
            coordinator_events.GroupDeleted: self._deleted,
            coordinator_events.GroupStateChanged: self._state_changed,
            coordinator_events.OperationFailed: self._states.operation_failed,
            coordinator_events.MemberAdded: self._added,
            coordinator_events.MemberReplaced: self._replaced,
            coordinator_events.MemberRemoved: self._removed,
            coordinator_events.GroupEpochBumped: self._epoch_bumped,
            coordinator_events.MemberReconciled: self._reconciled,
            coordinator_events.TargetAssigned: self._consumer_groups.target_assigned,
            coordinator_events.GroupConverted: self._begins_anew,
            coordinator_events.AppendFailed: self._begins_anew,
            coordinator_events.JoinParked: self._join_parked,
            coordinator_events.JoinAnswered: self._join_answered,
            coordinator_events.SyncParked: self._sync_parked,
            coordinator_events.SyncAnswered: self._sync_answered,
            scenario_events.ScenarioStarted: self._scenario_started,
            scenario_events.PartitionsCreated: self._partitions_created,
            scenario_events.PartitionsDeleted: self._partitions_deleted,
            scenario_events.StepTaken: self._step_taken,
            member_events.MemberStarted: self._started,
            member_events.RejoinRequested: self._ownership.rejoin_requested,
            member_events.PartitionsAssigned: self._assigned,
            member_events.PartitionsRevoked: self._given_up,
            member_events.PartitionsLost: self._given_up,
            member_events.MemberPaused: self._paused,
            member_events.MemberResumed: self._resumed,
            member_events.MemberCrashed: self._crashed,
            member_events.MemberClosed: self._ended,
            member_events.MemberFailed: self._ended,
        }

    @property
    def violations(self) -> dict[str, str]:
        return {name: verdict for name, verdict in self.verdicts.items() if verdict != HELD}

    def violated(self, invariant: str, sentence: str) -> None:
        self._verdicts.violated(invariant, sentence)

    # -- the rows of the trace, in their order ---------------------------------------------------

    def add(self, time_us: int, source: Source, event: TracedEvent) -> None:
        self.add_all(((time_us, source, event),))

    def add_all(self, entries: Iterable[TraceEntry]) -> None:
        checks = self._checks
        for time_us, _, event in entries:
            check = checks.get(type(event))
            if check is not None:
                self._time_us = time_us
                check(event)

    def close(self) -> None:
        """Nothing to complete."""

    def _state_changed(self, event: coordinator_events.GroupStateChanged) -> None:
        self._states.state_changed(event)
        self._requests.state_changed(event)
        self._membership.state_changed(self._time_us, event)
        self._skipped_assignments.state_changed(event)
        self._fenced_commits.state_changed(event)

    def _created(self, event: coordinator_events.GroupCreated) -> None:
        self._states.group_created(event)
        self._membership.created(self._time_us, event)
        self._skipped_assignments.created(event)
        self._consumer_groups.begins_anew()
        self._fenced_commits.begins_anew()
        self._owned_time.group_is(self._time_us, there=True)

    def _deleted(self, event: coordinator_events.GroupDeleted) -> None:
        self._membership.group_deleted(self._time_us, event)
        self._consumer_groups.begins_anew()
        self._fenced_commits.begins_anew()
        self._owned_time.group_is(self._time_us, there=False)

    def _added(self, event: coordinator_events.MemberAdded) -> None:
        self._membership.added(self._time_us, event)

    def _replaced(self, event: coordinator_events.MemberReplaced) -> None:
        self._membership.replaced(self._time_us, event)
        self._consumer_groups.removed(event.previous_member_id)
        self._fenced_commits.removed(event.previous_member_id)
        self._skipped_assignments.replaced(event)

    def _removed(self, event: coordinator_events.MemberRemoved) -> None:
        self._membership.removed(self._time_us, event)
        self._requests.member_gone(event.member_id)
        self._consumer_groups.removed(event.member_id)
        self._fenced_commits.removed(event.member_id)

    def _begins_anew(
        self, event: coordinator_events.GroupConverted | coordinator_events.AppendFailed
    ) -> None:
        self._consumer_groups.begins_anew()
        self._fenced_commits.begins_anew()
        if isinstance(event, coordinator_events.AppendFailed):
            self._states.append_failed(event.cause)
            if event.cause in _CONSUMER_GROUP_WRITES:
                self._membership.consumer_group_reverted(self._time_us)
                self._skipped_assignments.is_consumer_group()
        else:
            self._states.converted()
            self._membership.converted(self._time_us, event)
            self._skipped_assignments.converted(event)

    def _epoch_bumped(self, event: coordinator_events.GroupEpochBumped) -> None:
        self._consumer_groups.epoch_bumped(event)
        self._membership.consumer_group_written(self._time_us)

    def _reconciled(self, event: coordinator_events.MemberReconciled) -> None:
        self._consumer_groups.reconciled(event)
        self._fenced_commits.reconciled(event)
        self._ownership.reconciled(event)
        self._membership.reconciled(self._time_us, event)
        self._skipped_assignments.is_consumer_group()

    def _join_parked(self, event: coordinator_events.JoinParked) -> None:
        self._requests.join_parked(event)
        self._membership.join_parked(self._time_us, event)

    def _join_answered(self, event: coordinator_events.JoinAnswered) -> None:
        self._requests.join_answered(event)
        self._membership.answered(self._time_us, event.member_id)

    def _sync_parked(self, event: coordinator_events.SyncParked) -> None:
        self._requests.sync_parked(event)
        self._membership.sync_parked(self._time_us, event)

    def _sync_answered(self, event: coordinator_events.SyncAnswered) -> None:
        self._requests.sync_answered(event)
        self._membership.answered(self._time_us, event.member_id)
        self._ownership.sync_answered(event)
        self._skipped_assignments.sync_answered(event)

    def _scenario_started(self, event: scenario_events.ScenarioStarted) -> None:
        self._owned_time.created(self._time_us, event.partitions)

    def _partitions_created(self, event: scenario_events.PartitionsCreated) -> None:
        self._skipped_assignments.partitions_created(event)
        self._owned_time.created(self._time_us, event.partitions)
        self._positions.created(event.partitions)

    def _partitions_deleted(self, event: scenario_events.PartitionsDeleted) -> None:
        self._owned_time.deleted(self._time_us, event.partitions)
        self._positions.deleted(event.partitions)

    def _step_taken(self, event: scenario_events.StepTaken) -> None:
        self._membership.step_taken(self._time_us, event)
        self._owned_time.step_taken(event)

    def _started(self, event: member_events.MemberStarted) -> None:
        self._membership.started(event)
        self._ownership.started(event)
        self._owned_time.started(self._time_us, event.member)

    def _assigned(self, event: member_events.PartitionsAssigned) -> None:
        self._membership.completed(event)
        self._ownership.taken(event)
        if self._sees_commits:
            self._positions.taken(self._time_us, event)
        self._owned_time.taken(self._time_us, event)

    def _given_up(self, event: member_events.PartitionsRevoked | member_events.PartitionsLost) -> None:
        self._ownership.given_up(event)
        self._stops_owning(event)

    def _stops_owning(self, event: GivenUp) -> None:
        if self._sees_commits:
            self._positions.given_up(self._time_us, event)
        self._owned_time.given_up(self._time_us, event)

    def _paused(self, event: member_events.MemberPaused) -> None:
        self._membership.paused(self._time_us, event)

    def _resumed(self, event: member_events.MemberResumed) -> None:
        self._membership.resumed(self._time_us, event)

    def _crashed(self, event: member_events.MemberCrashed) -> None:
        self._stops_owning(event)
        self._membership.crashed(self._time_us, event)
        self._ownership.ended(event)

    def _ended(self, event: member_events.MemberClosed | member_events.MemberFailed) -> None:
        self._membership.ended(event)
        self._ownership.ended(event)

    # -- commits, which have no rows --------------------------------------------------------------

    def commit_arrives(
        self, member_id: str, generation: int, positions: Mapping[str, int]
    ) -> Callable[[], None]:
        """A commit has come to the coordinator, behind all rows so far. Returns what to call, behind all rows
        by then, if the coordinator accepts it."""
        reason, arrived_us = self._fenced_commits.reason(member_id, generation, positions), self._time_us

        def accepted() -> None:
            if reason is not None:
                self.violated(
                    FENCED,
                    f"after {arrived_us / 1_000_000:.3f} s a commit of {member_id or 'nobody'} in generation "
                    f"{generation} for {listed(sorted(positions))} was accepted: {reason}",
                )
            self._positions.accepted(positions)

        return accepted

    # -- the world itself, and the figures ---------------------------------------------------------

    def generation_completed(
        self, name: str, owned: tuple[TopicPartition, ...], processed: tuple[TopicPartition, ...]
    ) -> None:
        """A member has completed a generation, in which it owns ``owned``: it must process nothing else."""
        if processed == owned:
            return
        strange = sorted(set(processed).difference(owned))
        if strange:
            self.violated(
                WORKS_ON_OWN, f"{name} processes {listed([str(tp) for tp in strange])}, but does not own them"
            )

    def figures_made(self, now_us: int, unowned: float | None, crashed: float | None) -> None:
        """The run is over. By its figures partitions had no owner for ``unowned`` seconds, for ``crashed`` of
        them since an owner had crashed."""
        self._owned_time.finish(now_us, unowned, crashed)

    def finish(self, world: FinalState, now_us: int) -> None:
        """Check what must be true at the end of a run, behind its last row."""
        settled = world.settled
        left_behind = _members_left_behind(world)
        if left_behind is not None:
            self.violated(MEMBERS_LIVE, left_behind)
        if not settled:
            self.violated(SETTLES, left_behind or "the group had not settled when the scenario ended")
        self._requests.finish()
        self._membership.finish(now_us, settled)
        self._ownership.finish()
        self._consumer_groups.finish(settled)
        waiting = world.unanswered
        if waiting:
            names = ", ".join(sorted(set(waiting)))
            self.violated(PARKED, f"still parked at the end: requests of {names}")
        self._check_owners(world, left_behind)
        if CO_PARTITIONED in self.verdicts:
            self._check_joins(world)

    def _check_owners(self, world: FinalState, left_behind: str | None) -> None:
        owned: set[TopicPartition] = set()
        for consumer in world.consumers.values():
            owned.update(consumer.work.partitions)
            self._ownership.check_work(consumer.name, {str(tp) for tp in consumer.work.partitions})
        missing = [partition for partition in world.partitions if partition not in owned]
        if missing and any(consumer.started for consumer in world.consumers.values()):
            sentence = f"{len(missing)} partitions have no owner at the end, {missing[0]} among them"
            reason = self._skipped_assignments.reason([str(partition) for partition in missing])
            self.violated(OWNED_AT_END, left_behind or reason or sentence)

    def _check_joins(self, world: FinalState) -> None:
        owner: dict[int, tuple[str, TopicPartition]] = {}
        torn: dict[int, str] = {}
        for consumer in world.consumers.values():
            for partition in consumer.work.partitions:
                other, first = owner.setdefault(partition.partition, (consumer.name, partition))
                if other != consumer.name:
                    torn[partition.partition] = f"{first} is with {other}, {partition} with {consumer.name}"
        if torn:
            self.violated(CO_PARTITIONED, f"{len(torn)} joins are torn apart: {torn[min(torn)]}")


def _members_left_behind(world: FinalState) -> str | None:
    """A member of a consumer group leaves or is fenced, and the write of that fails: the coordinator takes it
    back, but its session is over (GroupMetadataManager.cancelTimers comes before the write)."""
    names = sorted(set(world.left_behind))
    if not names:
        return None
    are, whom = ("is", "it as a member") if len(names) == 1 else ("are", "them as members")
    return (
        f"{REMOVAL_NOT_WRITTEN}: {listed(names)} {are} gone, but the coordinator could not write that: "
        f"the group keeps {whom} without a session that could end, until another broker takes the "
        "group over"
    )
