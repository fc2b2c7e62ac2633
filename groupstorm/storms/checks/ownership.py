"""The owners of partitions, by the rows of the members and by the assignments of the coordinator.

A member owns a partition from `partitions_assigned` until `partitions_revoked` or `partitions_lost` names it,
or until its process ends. It completes a generation with `partitions_assigned`, also if nothing is added.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from groupstorm.storms.checks.verdicts import (
    ASSIGNED_ONLY,
    LOST_IS_GONE,
    NO_NEW_ASSIGNMENT,
    ONE_OWNER,
    WORKS_ON_OWN,
    Verdicts,
    listed,
)
from groupstorm.trace.events import coordinator as coordinator_events
from groupstorm.trace.events import member as events
from groupstorm.trace.events import scenario as scenario_events
from groupstorm.trace.events.group_states import Cause, GroupState

#: Causes of `rejoin_requested` after which everything that the member owns is lost.
RESETS = frozenset({"UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION", "FENCED_INSTANCE_ID", "poll-timeout"})


class _Assigned(NamedTuple):
    """The partitions that a member was assigned in a generation. A member of a consumer group (KIP-848) that
    has partitions to give up stays in its epoch: it may still complete an earlier assignment of that epoch
    behind the last answer."""

    generation: int | None
    at_last: tuple[str, ...]
    at_some_time: frozenset[str]


class Holding:
    """The partitions that one process owns, by its own rows."""

    __slots__ = ("calls", "generation", "member_id", "name", "partitions", "reset_cause", "reset_in")

    def __init__(self, name: str) -> None:
        self.name = name
        self.partitions: set[str] = set()
        #: The last generation that it completed, and under which id.
        self.generation = -1
        self.member_id = ""
        #: The cause for which it must lose its partitions before it completes another generation; "" if none.
        self.reset_cause = ""
        #: The id and the generation that it had then.
        self.reset_in: tuple[str, int] | None = None
        #: Whether its listener is called for a round; such calls go on if the generation is reset meanwhile.
        self.calls = False


class OwnershipChecks:
    """Follows the holdings of all processes. ``members``: the ids that are in the group."""

    def __init__(self, verdicts: Verdicts, members: set[str]) -> None:
        self._verdicts = verdicts
        self._members = members
        self._holdings: dict[str, Holding] = {}
        self._holders: dict[str, list[Holding]] = {}
        #: The partitions that several processes have owned at a time: no others can have two owners.
        self._shared: set[str] = set()
        self._assigned: dict[str, _Assigned] = {}
        #: The partitions that the coordinator last left to each member of a consumer group.
        self._left: dict[str, tuple[str, ...]] = {}

    # -- what the coordinator says ---------------------------------------------------------------

    def sync_answered(self, _now_us: int, event: coordinator_events.SyncAnswered) -> None:
        """The member got its assignment."""
        if event.error is None and event.partitions is not None:
            before = self._assigned.get(event.member_id)
            earlier = before.at_some_time if before and before.generation == event.generation else frozenset()
            self._assigned[event.member_id] = _Assigned(
                event.generation, event.partitions, earlier.union(event.partitions)
            )

    def reconciled(self, _now_us: int, event: coordinator_events.MemberReconciled) -> None:
        """A member of a consumer group has to give up what is not named."""
        self._left[event.member_id] = event.partitions

    # -- what members say ------------------------------------------------------------------------

    def started(self, _now_us: int, event: events.MemberStarted) -> None:
        self._holdings[event.member] = Holding(event.member)

    def rejoin_requested(self, _now_us: int, event: events.RejoinRequested) -> None:
        if event.cause in RESETS:
            holding = self._holdings[event.member]
            if holding.partitions:
                holding.reset_cause = event.cause
                holding.reset_in = (event.member_id, event.generation)

    def taken(self, _now_us: int, event: events.PartitionsAssigned) -> None:
        """A member has completed a generation."""
        holding = self._holdings[event.member]
        calls, holding.calls = holding.calls, False
        # A member that leaves during onPartitionsRevoked gets the call of onPartitionsAssigned all the same
        # (ConsumerCoordinator.onJoinComplete), and completes nothing by it.
        completes = event.generation >= 0 or not calls
        if completes and (event.generation >= holding.generation or event.member_id != holding.member_id):
            # unless the member had joined this generation before it was reset, and looked up since then
            # where to start
            joined = event.member_id, event.generation
            if joined != holding.reset_in or event.generation <= holding.generation:
                self._check_lost(holding, event)
            holding.generation, holding.member_id = event.generation, event.member_id
        self._add(holding, event.partitions)
        self._check_shared(holding)
        assigned = self._assigned_in_generation(holding)
        if assigned is not None:
            self._check_assigned(holding, assigned.at_some_time)

    def given_up(self, _now_us: int, event: events.PartitionsRevoked | events.PartitionsLost) -> None:
        holding = self._holdings[event.member]
        if isinstance(event, events.PartitionsRevoked) and not holding.partitions.isdisjoint(
            event.partitions
        ):
            self._check_revoked(holding, event)
        holding.calls = event.cause == "assignment"
        self._remove(holding, event.partitions)
        if holding.reset_cause and not holding.partitions:
            holding.reset_cause = ""

    def ended(
        self, _now_us: int, event: events.MemberCrashed | events.MemberClosed | events.MemberFailed
    ) -> None:
        """The process is gone, and owns nothing any more."""
        holding = self._holdings[event.member]
        self._remove(holding, tuple(holding.partitions))

    # -- the end ---------------------------------------------------------------------------------

    def finish(self) -> None:
        """Look at all owners once more."""
        for holding in self._holdings.values():
            self._check_shared(holding)
            assigned = self._assigned_in_generation(holding)
            if assigned is not None:
                self._check_assigned(holding, assigned.at_last)

    def check_work(self, name: str, works_on: set[str]) -> None:
        """Check the partitions on which a process works at the end: it must own them."""
        holding = self._holdings.get(name)
        strange = sorted(works_on - (holding.partitions if holding is not None else set()))
        if strange:
            self._verdicts.violated(
                WORKS_ON_OWN, f"{name} processes {listed(strange)} at the end, but does not own them"
            )

    # -- parts -----------------------------------------------------------------------------------

    def _add(self, holding: Holding, partitions: Iterable[str]) -> None:
        holding.partitions.update(partitions)
        all_holders = self._holders
        for partition in partitions:
            if partition not in all_holders:
                all_holders[partition] = [holding]
            elif holding not in all_holders[partition]:
                all_holders[partition].append(holding)
                self._shared.add(partition)

    def _remove(self, holding: Holding, partitions: Iterable[str]) -> None:
        holding.partitions.difference_update(partitions)
        all_holders, alone = self._holders, [holding]
        for partition in partitions:
            if partition not in all_holders:
                continue
            holders = all_holders[partition]
            if holders == alone:
                del all_holders[partition]
            elif holding in holders:
                holders.remove(holding)

    def _check_shared(self, holding: Holding) -> None:
        """No two members of one generation own a partition. Processes that the coordinator has removed are
        no members any more: they may not know it yet."""
        if not self._shared:
            return
        for partition in sorted(holding.partitions & self._shared):
            names = sorted(
                each.name
                for each in self._holders[partition]
                if each.generation == holding.generation and each.member_id in self._members
            )
            if len(names) > 1:
                owners = " and ".join(names)
                self._verdicts.violated(
                    ONE_OWNER, f"{partition} is owned by {owners} in generation {holding.generation}"
                )

    def _check_revoked(self, holding: Holding, event: events.PartitionsRevoked) -> None:
        """A member revokes as long as it is a member; after that it has lost (onPartitionsLost). It may also
        revoke what it has not begun to fetch, and so never owned by its rows. A listener's call waits for
        poll(): a consumer (KIP-848) that was to give a partition up may have left the group by then."""
        cause = _cause_of_loss(holding, event.member_id)
        if not cause and event.generation < 0 and not self._was_to_revoke(event):
            cause = "it has left"
        if cause:
            self._verdicts.violated(
                LOST_IS_GONE,
                f"{holding.name} revoked {listed(sorted(event.partitions))}, "
                f"which it had lost before ({cause})",
            )

    def _was_to_revoke(self, event: events.PartitionsRevoked) -> bool:
        left = self._left.get(event.member_id)
        return left is not None and not set(event.partitions).intersection(left)

    def _check_lost(self, holding: Holding, event: events.PartitionsAssigned) -> None:
        """After its generation was reset, or under a new id, a member begins with nothing."""
        cause = _cause_of_loss(holding, event.member_id)
        if holding.partitions and cause:
            self._verdicts.violated(
                LOST_IS_GONE,
                f"{holding.name} completed generation {event.generation} and still owned "
                f"{listed(sorted(holding.partitions))}, which it had lost ({cause})",
            )

    def _assigned_in_generation(self, holding: Holding) -> _Assigned | None:
        """The assignment of the generation that the member completed last; None if nobody knows."""
        assigned = self._assigned.get(holding.member_id)
        return assigned if assigned is not None and assigned.generation == holding.generation else None

    def _check_assigned(self, holding: Holding, assigned: Collection[str]) -> None:
        """Check that a member owns nothing but its assignment in the generation that it completed last."""
        kept = holding.partitions.difference(assigned)
        if kept:
            self._verdicts.violated(
                ASSIGNED_ONLY,
                f"{holding.name} owns {listed(sorted(kept))} in generation {holding.generation}, "
                "which assigns it to others or to nobody",
            )


def _cause_of_loss(holding: Holding, member_id: str) -> str:
    """The reason why a member under this id has lost what the process owns; "" if it has not."""
    return holding.reset_cause or ("it has a new member id" if member_id != holding.member_id else "")


class SkippedAssignments:
    """Finds partitions that nobody owns though the group is Stable: Kafka's own behaviour, and its limits.

    A consumer group whose last member of the new protocol goes becomes a classic one, and a round begins
    (GroupMetadataManager.convertToClassicGroup). What that member had is assigned in this round. A
    coordinator that loads the group before the round has closed finds a Stable group, and begins no round.

    The coordinator gives a static member that comes back to a Stable group its assignment, and no round
    begins (GroupMetadataManager).

    * The leader is told to skip the assignor (KIP-814). It takes the topics that it sees then for those that
      it has assigned (ConsumerCoordinator.onLeaderElected). So it asks for no round for partitions that were
      created before it came back. With JoinGroup below version 9 the response names its old id as the leader:
      it does not know that it leads, and asks for no round for any partition.
    * A cooperative assignment gives a partition that moves to nobody. Its owner gives it up and asks for the
      round that assigns it (KIP-429). An owner that restarts before it has asked owns nothing that it could
      give up, and asks for none (ConsumerCoordinator.onJoinComplete).

    ``joins_before_v9``: whether the member of this name joins with JoinGroup below version 9.
    """

    def __init__(self, joins_before_v9: Callable[[str], bool]) -> None:
        self._joins_before_v9 = joins_before_v9
        self._state = ""
        self._leader: str | None = None
        #: The name of the leader that came back in this generation; "" if none did.
        self._returned = ""
        self._created: set[str] = set()
        #: Created before the leader came back.
        self._unseen: frozenset[str] = frozenset()
        #: By member id, the last assignment and the one before: the member owned no others.
        self._assignments: dict[str, list[tuple[str, ...]]] = {}
        #: The partitions that this generation assigns.
        self._assigned: set[str] = set()
        #: Partition -> the member that had it and came back in this generation.
        self._had: dict[str, str] = {}
        #: A downgrade has begun a round that has not closed yet.
        self._awaits_round = False
        #: The coordinator that has loaded the group does not know of that round.
        self._round_forgotten = False

    def partitions_created(self, _now_us: int, event: scenario_events.PartitionsCreated) -> None:
        self._created.update(event.partitions)

    def state_changed(self, _now_us: int, event: coordinator_events.GroupStateChanged) -> None:
        """Each round has an assignment of its own."""
        self._state = event.state
        if event.state == GroupState.COMPLETING_REBALANCE:
            self._leader = event.leader
            self._returned = ""
            self._awaits_round = self._round_forgotten = False
            self._assigned.clear()
            self._had.clear()

    def sync_answered(self, _now_us: int, event: coordinator_events.SyncAnswered) -> None:
        if event.error is None and event.partitions is not None:
            self._assigned.update(event.partitions)
            before = self._assignments.get(event.member_id, [])
            self._assignments[event.member_id] = [*before[-1:], event.partitions]

    def converted(self, _now_us: int, event: coordinator_events.GroupConverted) -> None:
        self._awaits_round = event.cause == Cause.DOWNGRADED
        self._round_forgotten = False

    def is_consumer_group(self, _now_us: int, _event: object) -> None:
        """The downgrade was undone or not written: the group has no rounds."""
        self._awaits_round = self._round_forgotten = False

    def created(self, _now_us: int, event: coordinator_events.GroupCreated) -> None:
        """A group that is loaded is Stable if it has members."""
        self._round_forgotten = self._awaits_round and event.cause == "loaded"

    def replaced(self, _now_us: int, event: coordinator_events.MemberReplaced) -> None:
        if self._state == GroupState.STABLE:
            for partitions in self._assignments.get(event.previous_member_id, ()):
                self._had.update(dict.fromkeys(partitions, event.member))
        if event.previous_member_id != self._leader:
            return
        self._leader = event.member_id
        if self._state == GroupState.STABLE:
            self._returned = event.member
            self._unseen = frozenset(self._created)

    def reason(self, without_owner: Collection[str]) -> str | None:
        """The sentence on why nobody owns these at the end; None if it has another reason."""
        if self._round_forgotten:
            return (
                f"{NO_NEW_ASSIGNMENT} for {listed(sorted(without_owner))}: no owner until another round, "
                "since the group had become a classic one, and its coordinator was gone before the round "
                "behind that had closed: the next one knows of no round "
                "(GroupMetadataManager.convertToClassicGroup)"
            )
        if self._state != GroupState.STABLE:
            return None
        given_up = [self._had[each] for each in sorted(without_owner) if self._is_given_up(each)]
        created = [each for each in sorted(without_owner) if not self._is_given_up(each)]
        why = []
        if given_up:
            names = listed(sorted(set(given_up)))
            why.append(
                f"{names} restarted under the same group.instance.id before the round in which it would have "
                "given them up, and asks for none (KIP-345, KIP-429)"
            )
        if created:
            why.append(self._leader_does_not_assign(created))
        if not all(why):
            return None
        return (
            f"{NO_NEW_ASSIGNMENT} for {listed(sorted(without_owner))}: no owner until another round, since "
            + "; ".join(why)
        )

    def _is_given_up(self, partition: str) -> bool:
        return partition in self._had and partition not in self._assigned

    def _leader_does_not_assign(self, created: Collection[str]) -> str:
        """The reason why the leader has not assigned these since their creation; "" if it is another one."""
        excused = self._created if self._joins_before_v9(self._returned) else self._unseen
        if not self._returned or not excused.issuperset(created):
            return ""
        if self._unseen.issuperset(created):
            return (
                f"{self._returned}, the static leader, has restarted after they were created, and a static "
                "leader that comes back does not assign (KIP-814)"
            )
        return (
            f"{self._returned}, the static leader, has restarted, and does not know that it leads (JoinGroup "
            "below version 9, KIP-814)"
        )
