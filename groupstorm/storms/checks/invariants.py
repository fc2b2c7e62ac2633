"""Invariants that every storm checks; one that breaks fails the run.

From the group protocol itself: two members of one generation never own one partition, generations
increase, the states follow one another, every parked request is answered, every partition has an owner
at the end, the group comes to rest. If members join their topics, partition n of all topics has one owner.
`groupstorm.storms.checks` has the checks that read the trace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.coordinator.records import AppendCause
from groupstorm.figures.table import Figures
from groupstorm.storms.checks.commits import Appends, CommittedPositions, FencedCommits
from groupstorm.storms.checks.figure_checks import OwnedTime, RepeatedRecords
from groupstorm.storms.checks.membership import MembershipChecks, RequestChecks
from groupstorm.storms.checks.ownership import OwnershipChecks, SkippedAssignments
from groupstorm.storms.checks.settling import FinalState
from groupstorm.storms.checks.states import ConsumerGroupChecks, StateChecks
from groupstorm.storms.checks.verdicts import (
    ASSIGNED_ONLY,
    CO_PARTITIONED,
    FENCED,
    HELD,
    MEMBERS_LIVE,
    NOBODY_READS,
    OWNED_AT_END,
    PARKED,
    REMOVAL_NOT_WRITTEN,
    SETTLES,
    WORKS_ON_OWN,
    Verdicts,
    listed,
)
from groupstorm.storms.scenario.consistency import of_protocol
from groupstorm.storms.scenario.settings import Settings
from groupstorm.storms.scenario.steps import PARTITION, Step
from groupstorm.trace.events import coordinator as events
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


_Check = Callable[[int, Any], None]


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
        self.fenced_commits = FencedCommits(members)
        self._owned_time = OwnedTime(self._verdicts, members, figures_from_us)
        self._positions = CommittedPositions(self._verdicts, self._owned_time.owners)
        self.records = RepeatedRecords(self._verdicts, self._owned_time.owners, figures_from_us)
        self._sees_commits = sees_commits
        self._time_us = 0
        self._checks = self._coordinator_checks() | self._member_checks() | self._scenario_checks()

    def _coordinator_checks(self) -> dict[type, tuple[_Check, ...]]:
        states, requests, membership = self._states, self._requests, self._membership
        consumer_groups, commits, skipped = (
            self._consumer_groups, self.fenced_commits, self._skipped_assignments,
        )  # fmt: skip
        begins_anew = consumer_groups.begins_anew, commits.begins_anew
        owned_time, ownership = self._owned_time, self._ownership
        return {
            events.GroupCreated: (
                states.group_created, membership.created, skipped.created, *begins_anew,
                owned_time.group_created,
            ),
            events.GroupDeleted: (membership.group_deleted, *begins_anew, owned_time.group_deleted),
            events.GroupStateChanged: (
                states.state_changed, requests.state_changed, membership.state_changed,
                skipped.state_changed, commits.state_changed,
            ),
            events.OperationFailed: (states.operation_failed,),
            events.MemberAdded: (membership.added,),
            events.MemberReplaced: (
                membership.replaced,
                lambda _, event: consumer_groups.removed(event.previous_member_id),
                lambda _, event: commits.removed(event.previous_member_id),
                skipped.replaced,
            ),
            events.MemberRemoved: (
                membership.removed, requests.removed,
                lambda _, event: consumer_groups.removed(event.member_id),
                lambda _, event: commits.removed(event.member_id),
            ),
            events.GroupEpochBumped: (
                consumer_groups.epoch_bumped,
                lambda now_us, _: membership.consumer_group_written(now_us),
            ),
            events.MemberReconciled: (
                consumer_groups.reconciled, commits.reconciled, ownership.reconciled,
                membership.reconciled, skipped.is_consumer_group,
            ),
            events.TargetAssigned: (consumer_groups.target_assigned,),
            events.GroupConverted: (
                *begins_anew, states.converted, membership.converted, skipped.converted,
            ),
            events.AppendFailed: (*begins_anew, states.append_failed, self._append_failed),
            events.JoinParked: (requests.join_parked, membership.log.join_parked),
            events.JoinAnswered: (requests.join_answered, membership.answered),
            events.SyncParked: (requests.sync_parked, membership.log.sync_parked),
            events.SyncAnswered: (
                requests.sync_answered, membership.answered, ownership.sync_answered,
                skipped.sync_answered,
            ),
        }  # fmt: skip

    def _member_checks(self) -> dict[type, tuple[_Check, ...]]:
        membership, ownership, owned_time = self._membership, self._ownership, self._owned_time
        taken: tuple[_Check, ...] = (self.records.taken,)
        given_up: tuple[_Check, ...] = (self.records.given_up,)
        if self._sees_commits:
            taken, given_up = (self._positions.taken, *taken), (self._positions.given_up, *given_up)
        return {
            member_events.MemberStarted: (membership.started, ownership.started, owned_time.started),
            member_events.RejoinRequested: (ownership.rejoin_requested,),
            member_events.PartitionsAssigned: (
                membership.completed, ownership.taken, *taken, owned_time.taken,
            ),
            member_events.PartitionsRevoked: (ownership.given_up, *given_up, owned_time.given_up),
            member_events.PartitionsLost: (ownership.given_up, *given_up, owned_time.given_up),
            member_events.MemberPaused: (membership.paused,),
            member_events.MemberResumed: (membership.resumed,),
            member_events.MemberCrashed: (
                *given_up, owned_time.given_up, membership.crashed, ownership.ended,
            ),
            member_events.MemberClosed: (membership.ended, ownership.ended),
            member_events.MemberFailed: (membership.ended, ownership.ended),
        }  # fmt: skip

    def _scenario_checks(self) -> dict[type, tuple[_Check, ...]]:
        owned_time, positions, records = self._owned_time, self._positions, self.records
        created = self._skipped_assignments.partitions_created
        return {
            scenario_events.ScenarioStarted: (owned_time.created, owned_time.scenario_started),
            scenario_events.RecordRatesChanged: (owned_time.rates_changed,),
            scenario_events.PartitionsCreated: (created, owned_time.created, positions.created),
            scenario_events.PartitionsDeleted: (
                owned_time.deleted, positions.deleted, records.deleted,
            ),
            scenario_events.StepTaken: (self._membership.step_taken, owned_time.step_taken),
        }  # fmt: skip

    @property
    def violations(self) -> dict[str, str]:
        return {name: verdict for name, verdict in self.verdicts.items() if verdict != HELD}

    def violated(self, invariant: str, sentence: str) -> None:
        self._verdicts.violated(invariant, sentence)

    # -- the rows of the trace, in their order ---------------------------------------------------

    def add(self, time_us: int, source: Source, event: TracedEvent) -> None:
        self.add_all(((time_us, source, event),))

    def add_all(self, entries: Iterable[TraceEntry]) -> None:
        every = self._checks
        for time_us, _, event in entries:
            kind = type(event)
            if kind in every:
                self._time_us = time_us
                for check in every[kind]:
                    check(time_us, event)

    def close(self) -> None:
        """Nothing to complete."""

    def _append_failed(self, now_us: int, event: events.AppendFailed) -> None:
        if event.cause in _CONSUMER_GROUP_WRITES:
            self._membership.consumer_group_reverted(now_us)
            self._skipped_assignments.is_consumer_group(now_us, event)

    # -- commits, which have no rows --------------------------------------------------------------

    def commit_arrives(
        self, member_id: str, generation: int, positions: Mapping[str, int]
    ) -> Callable[[], None]:
        """A commit has come to the coordinator, behind all rows so far. Returns what to call, behind all rows
        by then, if the coordinator accepts it."""
        reason = self.fenced_commits.reason(member_id, generation, positions)
        if reason is not None:
            reason = (
                f"after {self._time_us / 1_000_000:.3f} s a commit of {member_id or 'nobody'} in generation "
                f"{generation} for {listed(sorted(positions))} was accepted: {reason}"
            )
        return partial(self._commit_accepted, positions, reason)

    def _commit_accepted(self, positions: Mapping[str, int], fenced: str | None) -> None:
        """A commit was accepted. ``fenced``: says that it must not have been."""
        if fenced is not None:
            self.violated(FENCED, fenced)
        self._positions.accepted(positions)

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

    def figures_made(self, now_us: int, figures: Figures) -> None:
        """The run is over, and these are its figures."""
        self._owned_time.finish(now_us, figures)
        self.records.finish(figures.records_duplicated)

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
        existing = {partition.topic for partition in world.partitions}
        for strange in sorted(one for one in owned.difference(world.partitions) if one.topic in existing):
            self.violated(ASSIGNED_ONLY, f"{strange} is assigned and does not exist")
        missing = [partition for partition in world.partitions if partition not in owned]
        if missing and any(consumer.started for consumer in world.consumers.values()):
            sentence = f"{len(missing)} partitions have no owner at the end, {missing[0]} among them"
            reason = self._skipped_assignments.reason([str(partition) for partition in missing])
            topics = sorted({partition.topic for partition in missing})
            if not any(map(world.reads, topics)):
                reason = f"{NOBODY_READS} {listed(topics)}: {sentence}"
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
