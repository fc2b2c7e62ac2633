"""Partitions that nobody owns since a static leader came back: Kafka's own behaviour, and its exact limits.

If the leader of a Stable group restarts under the same group.instance.id, the coordinator gives it the old
assignment and tells it to skip the assignor (KIP-814, GroupMetadataManager). The leader takes the topics that
it sees then for those that it has assigned (ConsumerCoordinator.onLeaderElected). So it asks for no round for
partitions that were created before it came back. With JoinGroup below version 9 the response names its old id
as the leader: it does not know that it leads, and asks for no round for any partition.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from groupstorm.storms.checks.verdicts import NO_NEW_ASSIGNMENT, listed
from groupstorm.trace.events import coordinator as coordinator_events
from groupstorm.trace.events import scenario as scenario_events
from groupstorm.trace.events.group_states import GroupState


class SkippedAssignments:
    """Follows the leader of the group and the partitions that are created. ``joins_before_v9``: whether the
    member of this name joins with JoinGroup below version 9."""

    def __init__(self, joins_before_v9: Callable[[str], bool]) -> None:
        self._joins_before_v9 = joins_before_v9
        self._state = ""
        self._leader: str | None = None
        #: The name of the leader that came back in this generation; "" if none did.
        self._returned = ""
        self._created: set[str] = set()
        #: Created before the leader came back.
        self._unseen: frozenset[str] = frozenset()

    def partitions_created(self, event: scenario_events.PartitionsCreated) -> None:
        self._created.update(event.partitions)

    def state_changed(self, event: coordinator_events.GroupStateChanged) -> None:
        """Each round has an assignment of its own."""
        self._state = event.state
        if event.state == GroupState.COMPLETING_REBALANCE:
            self._leader = event.leader
            self._returned = ""

    def replaced(self, event: coordinator_events.MemberReplaced) -> None:
        if event.previous_member_id != self._leader:
            return
        self._leader = event.member_id
        if self._state == GroupState.STABLE:
            self._returned = event.member
            self._unseen = frozenset(self._created)

    def reason(self, without_owner: Collection[str]) -> str | None:
        """Why nobody owns these at the end; None if it has another reason."""
        excused = self._created if self._joins_before_v9(self._returned) else self._unseen
        if not self._returned or self._state != GroupState.STABLE or not excused.issuperset(without_owner):
            return None
        why = (
            "has restarted after they were created, and a static leader that comes back does not assign "
            "(KIP-814)"
        )
        if not self._unseen.issuperset(without_owner):
            why = "has restarted, and does not know that it leads (JoinGroup below version 9, KIP-814)"
        partitions = listed(sorted(without_owner))
        return (
            f"{NO_NEW_ASSIGNMENT} for {partitions}: no owner until another round, since {self._returned}, "
            f"the static leader, {why}"
        )
