"""A classic group and its members: plain state, and the counts that keep decisions cheap.

Nothing here sets timers, answers or emits events: the modules beside it decide (`joins`, `rebalances`,
`sessions`, ...). Kafka: ClassicGroup, ClassicGroupMember.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from groupstorm.coordinator.classic.states import EMPTY, PREPARING_REBALANCE
from groupstorm.coordinator.effects import PendingReply
from groupstorm.coordinator.errors import NO_ERROR, CoordinatorFault, Error
from groupstorm.coordinator.groups import GroupType
from groupstorm.coordinator.messages import JoinGroupMember
from groupstorm.coordinator.modern.member import ModernMember
from groupstorm.javahash import JavaHashMap
from groupstorm.trace.events.group_states import GroupState

#: Names and metadata of the protocols that a member supports, its favourite first.
Protocols = tuple[tuple[str, bytes], ...]


def _names(protocols: Protocols) -> tuple[str, ...]:
    return tuple([name for name, _ in protocols])


class Member:
    """One member. ``names``: those of its ``protocols``; both change only through `ClassicGroup.update`."""

    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "group_instance_id",
        "is_new",
        "join",
        "member_id",
        "names",
        "protocol_type",
        "protocols",
        "rebalance_timeout_ms",
        "session_timeout_ms",
        "sync",
    )

    def __init__(
        self,
        member_id: str,
        group_instance_id: str | None,
        client: tuple[str, str],
        timeouts_ms: tuple[int, int],
        protocol_type: str,
        protocols: Protocols,
    ) -> None:
        """``client``: its id and host; ``timeouts_ms``: session and rebalance timeout."""
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.client_id, self.client_host = client
        self.session_timeout_ms, self.rebalance_timeout_ms = timeouts_ms
        self.protocol_type = protocol_type
        self.protocols = protocols
        self.names = _names(protocols)
        self.assignment = b""
        #: The parked JoinGroup and SyncGroup.
        self.join: PendingReply | None = None
        self.sync: PendingReply | None = None
        #: In its first round: then the five minutes count even while it is parked.
        self.is_new = False

    def satisfies_heartbeat(self) -> bool:
        """A parked member needs no heartbeat, unless it is new (ClassicGroupMember.hasSatisfiedHeartbeat)."""
        return not self.is_new and (self.join is not None or self.sync is not None)

    def metadata(self, protocol: str | None) -> bytes:
        """The member's metadata for the protocol; `CoordinatorFault` if the member does not support it."""
        for name, metadata in self.protocols:
            if name == protocol:
                return metadata
        raise CoordinatorFault(f"member {self.member_id!r} does not support protocol {protocol!r}")


class ClassicGroup:
    """The state of one group, and what can be read from it directly."""

    kind: ClassVar[GroupType] = GroupType.CLASSIC

    def __init__(self, name: str) -> None:
        self.name = name
        self.state = EMPTY
        self.previous_state: GroupState | None = None
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.leader: str | None = None
        #: Java's order decides who leads next, and the order of answers and timers.
        self.members: JavaHashMap[str, Member] = JavaHashMap()
        #: group.instance.id -> member id
        self.static_members: dict[str, str] = {}
        #: Ids that were handed out with MEMBER_ID_REQUIRED and are not used yet -> client id.
        self.pending_members: dict[str, str] = {}
        #: Members that were answered JoinGroup and have not sent SyncGroup; the values mean nothing.
        self.pending_sync: dict[str, None] = {}
        #: The number of members that are parked in JoinGroup.
        self.awaiting_join = 0
        #: Protocol name -> how often it stands in the members' lists.
        self.supported: dict[str, int] = {}
        #: A member's list of names -> how many members have that list.
        self.preferences: dict[tuple[str, ...], int] = {}
        #: A member joined during the initial delay.
        self.new_member_added = False
        #: A record of the group is committed, so that reads see it.
        self.committed = False
        #: When the group came into its state (ClassicGroup.currentStateTimestamp).
        self.state_since_ms = 0
        #: The members' metadata when the last generation began, from which Kafka takes the subscribed
        #: topics; None before, and in groups whose metadata it does not read.
        self.subscriptions: tuple[bytes, ...] | None = None

    @property
    def is_simple(self) -> bool:
        """Whether only offsets were ever committed to the group (ClassicGroup.isSimpleGroup)."""
        return self.protocol_type is None and not self.members

    def former(self, ids: Iterable[str]) -> dict[str, ModernMember]:
        """The members, as those of a group to which this one is upgraded; all of them, whichever ``ids``."""
        return {
            one.member_id: ModernMember(
                one.member_id, instance=one.group_instance_id, client_id=one.client_id
            )
            for one in self.members.values()
        }

    def add(self, member: Member, join: PendingReply | None) -> None:
        """Add a member; the first one leads (ClassicGroup.add).

        `CoordinatorFault` if its instance is taken, its type differs or no protocol fits. As in Kafka an
        instance that was free is taken even then.
        """
        if member.group_instance_id is not None:
            if member.group_instance_id in self.static_members:
                raise CoordinatorFault(f"instance {member.group_instance_id!r} is already a member")
            self.static_members[member.group_instance_id] = member.member_id
        if not self.members:
            self.protocol_type = member.protocol_type
        if self.protocol_type != member.protocol_type:
            raise CoordinatorFault("the group and its member must have one protocol type")
        if not self.supports(member.protocol_type, member.protocols):
            raise CoordinatorFault("none of the member's protocols can be supported")
        if self.leader is None:
            self.leader = member.member_id
        self.members.put(member.member_id, member)
        self._count(member.names, 1)
        member.join = join
        if join is not None:
            self.awaiting_join += 1
        self.pending_members.pop(member.member_id, None)

    def remove(self, member_id: str) -> Member | None:
        """Forget a member or a pending id (ClassicGroup.remove). The member's parked join must have been
        answered."""
        member = self.members.remove(member_id)
        if member is not None:
            self._count(member.names, -1)
            if member.group_instance_id is not None:
                self.static_members.pop(member.group_instance_id, None)
        if self.leader == member_id:
            self.leader = self.members.first() if self.members else None
        self.pending_members.pop(member_id, None)
        self.pending_sync.pop(member_id, None)
        return member

    def replace(self, group_instance_id: str, old_id: str, new_id: str) -> Member:
        """Put a static member under a new id; everything else stays (ClassicGroup.replaceStaticMember).

        The old member's parked requests must have been answered. The new member does not count as new, so it
        has no limit of five minutes. The old id stays among the members that have not synced.
        """
        old = self.members.remove(old_id)
        if old is None:
            raise CoordinatorFault(f"cannot replace member {old_id!r}: there is none")
        member = Member(
            new_id,
            old.group_instance_id,
            (old.client_id, old.client_host),
            (old.session_timeout_ms, old.rebalance_timeout_ms),
            old.protocol_type,
            old.protocols,
        )
        member.assignment = old.assignment
        self.members.put(new_id, member)
        if self.leader == old_id:
            self.leader = new_id
        self.static_members[group_instance_id] = new_id
        return member

    def update(
        self, member: Member, protocols: Protocols, timeouts_ms: tuple[int, int], join: PendingReply | None
    ) -> None:
        """Take over a JoinGroup (ClassicGroup.updateMember); ``timeouts_ms``: session, rebalance."""
        if protocols is not member.protocols:
            member.protocols = protocols
            names = _names(protocols)
            if names != member.names:
                self._count(member.names, -1)
                member.names = names
                self._count(names, 1)
        member.session_timeout_ms, member.rebalance_timeout_ms = timeouts_ms
        self.awaiting_join += (join is not None) - (member.join is not None)
        member.join = join

    def _count(self, names: tuple[str, ...], by: int) -> None:
        supported = self.supported
        for name in names:
            supported[name] = supported.get(name, 0) + by
        lists = self.preferences.get(names, 0) + by
        if lists:
            self.preferences[names] = lists
        else:
            del self.preferences[names]

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        """Whether a member of this type and these protocols can join (ClassicGroup.supportsProtocols)."""
        if self.state is EMPTY:
            return bool(protocol_type) and bool(protocols)
        if self.protocol_type != protocol_type:
            return False
        return len(self.members) in [self.supported.get(name, 0) for name, _ in protocols]

    def validate(self, member_id: str, group_instance_id: str | None) -> Error:
        """UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID or NONE (ClassicGroup.validateMember)."""
        if group_instance_id is not None:
            current = self.static_members.get(group_instance_id)
            if current is None:
                return Error.UNKNOWN_MEMBER_ID
            if current != member_id:
                return Error.FENCED_INSTANCE_ID
        return Error.UNKNOWN_MEMBER_ID if self.members.get(member_id) is None else NO_ERROR

    def all_joined(self) -> bool:
        """Whether every member has joined and no id is pending (ClassicGroup.hasAllMembersJoined)."""
        return self.awaiting_join == len(self.members) and not self.pending_members

    def rebalance_timeout_ms(self) -> int:
        """The longest rebalance timeout of the members."""
        members = self.members.unordered_items()
        return max([member.rebalance_timeout_ms for _, member in members], default=0)

    def elect_joined_leader(self) -> bool:
        """The leader leads if it has joined, or else the first member that has; False if no member can lead
        (ClassicGroup.maybeElectNewJoinedLeader)."""
        if self.leader is not None and self.members[self.leader].join is not None:
            return True
        for member_id, member in self.members.items():
            if member.join is not None:
                self.leader = member_id
                return True
        return False

    def select_protocol(self) -> str:
        """Each member votes for its favourite among those that all support (ClassicGroup.selectProtocol).

        Among equals the first one in the order of Java's HashMap of the votes wins.
        """
        size = len(self.members)
        candidates = {name for name, count in self.supported.items() if count == size}
        counts: dict[str, int] = {}
        for names, members in self.preferences.items():
            favourite = _vote(names, candidates)
            counts[favourite] = counts.get(favourite, 0) + members
        most = max(counts.values())
        winners = [name for name, count in counts.items() if count == most]
        if len(winners) == 1:
            return winners[0]
        votes: JavaHashMap[str, int] = JavaHashMap()  # filled in the members' order: that breaks ties too
        for member in self.members.values():
            favourite = _vote(member.names, candidates)
            votes.put(favourite, (votes.get(favourite) or 0) + 1)
        return next(name for name, count in votes.items() if count == most)

    def described_members(self) -> tuple[JoinGroupMember, ...]:
        """All members with their metadata of the chosen protocol, as the leader gets them."""
        if self.state is PREPARING_REBALANCE:
            raise CoordinatorFault(f"group {self.name!r} has no protocol while it is {self.state}")
        protocol = self.protocol
        return tuple(
            [
                JoinGroupMember(member.member_id, member.group_instance_id, member.metadata(protocol))
                for member in self.members.values()
            ]
        )

    def __repr__(self) -> str:
        parts = [f"<Group {self.name!r} {self.state} gen={self.generation} members={len(self.members)}"]
        counts = {
            "joining": self.awaiting_join,
            "syncing": sum(member.sync is not None for _, member in self.members.unordered_items()),
            "pending": len(self.pending_members),
            "not-synced": len(self.pending_sync),
        }
        parts += [f"{name}={count}" for name, count in counts.items() if count]
        return " ".join(parts) + ">"


def _vote(names: tuple[str, ...], candidates: set[str]) -> str:
    for name in names:
        if name in candidates:
            return name
    raise CoordinatorFault(f"a member supports none of {sorted(candidates)}")
