"""Partitions that nobody owns though the group is Stable: Kafka's own behaviour, and its exact limits.

A consumer group whose last member of the new protocol goes becomes a classic one, and a round begins
(GroupMetadataManager.convertToClassicGroup). What that member had is assigned in this round. A coordinator
that loads the group before the round has closed finds a Stable group, and begins no round.

The coordinator gives a static member that comes back to a Stable group its assignment, and no round begins
(GroupMetadataManager).

* The leader is told to skip the assignor (KIP-814). It takes the topics that it sees then for those that it
  has assigned (ConsumerCoordinator.onLeaderElected). So it asks for no round for partitions that were created
  before it came back. With JoinGroup below version 9 the response names its old id as the leader: it does not
  know that it leads, and asks for no round for any partition.
* A cooperative assignment gives a partition that moves to nobody. Its owner gives it up and asks for the
  round that assigns it (KIP-429). An owner that restarts before it has asked owns nothing that it could give
  up, and asks for none (ConsumerCoordinator.onJoinComplete).
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from groupstorm.storms.checks.verdicts import NO_NEW_ASSIGNMENT, listed
from groupstorm.trace.events import coordinator as coordinator_events
from groupstorm.trace.events import scenario as scenario_events
from groupstorm.trace.events.group_states import Cause, GroupState


class SkippedAssignments:
    """Follows the leader of the group, the static members that come back, the partitions that are created and
    those that are assigned. ``joins_before_v9``: whether the member of this name joins with JoinGroup below
    version 9."""

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
