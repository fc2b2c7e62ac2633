"""Ownership as the coordinator can know it, for a trace that has no rows of members.

Real clients at `groupstorm serve` write no rows. So a member counts as the owner of the partitions that its
SyncGroup was answered with, from the answer on. The ownership ends with an answer that no longer names
the partition, when the member is removed, when a static member comes back under a new id (KIP-345: its
old process is gone) and, under an eager protocol, when it joins again: an eager member gives up everything
before it joins (KIP-429).

In a consumer group (KIP-848) a member owns what the coordinator has given it, and what it has to give up
until it says that it has done so. When such a partition changes hands, `Handovers` knows in every trace.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Final, NamedTuple

from groupstorm.trace.events import coordinator as events
from groupstorm.trace.events.group_states import Cause, GroupState
from groupstorm.trace.events.imported import GroupImported

#: `group_imported` with this cause: every member has a log of its own.
MEMBERS_VIEW: Final = "members"
#: Names of protocols whose members keep their partitions while they join: all that say so in their
#: name (CooperativeStickyAssignor and its kin), and Kafka Streams' (cooperative since 2.4, KIP-429).
COOPERATIVE_MARK = "cooperative"
COOPERATIVE_NAMES = ("stream",)
#: So many of the last departures and revocations are known: a watch has no end.
_SPANS_MAX: Final = 1_000


def is_cooperative(protocol: str | None) -> bool:
    """Whether members of a group with this protocol keep their partitions while they join again."""
    return protocol is not None and (COOPERATIVE_MARK in protocol or protocol in COOPERATIVE_NAMES)


_OF_MEMBERS: Final = (
    events.MemberAdded, events.MemberReplaced, events.MemberRemoved, events.JoinParked, events.JoinAnswered,
    events.SyncAnswered, events.MemberReconciled,
)  # fmt: skip


def reads_coordinator(event: object, member_rows: bool) -> bool:
    """Whether the rows of the coordinator say who owns what from this one on.

    An import says it in its first row; in any other trace no row of a member came before its first member, or
    before the coordinator loaded the group with the members that it had.
    """
    if isinstance(event, GroupImported):
        return event.cause != MEMBERS_VIEW
    is_first = isinstance(event, events.MemberAdded) or (
        isinstance(event, events.GroupCreated) and event.cause == "loaded"
    )
    return is_first and not member_rows


class CoordinatorView:
    """Names members and remembers what each was assigned.

    Real clients often share one client id, so a member goes by its instance id or else its member id.
    """

    #: The rows that `take` reads.
    OF_OWNERS: Final = (events.GroupStateChanged, *_OF_MEMBERS)

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._assigned: dict[str, tuple[str, ...]] = {}
        self._cooperative = False

    def name(self, member_id: str) -> str:
        return self._names.get(member_id, member_id)

    def learn(self, member_id: str, instance: str | None) -> None:
        if instance is not None:
            self._names[member_id] = instance

    def take(self, event: object) -> tuple[str, Sequence[str], Sequence[str]]:
        """Take the next row: the member that it is about, the partitions that this member owns no more, and
        those that it owns from now on."""
        ended: Sequence[str] = ()
        added: Sequence[str] = ()
        if isinstance(event, events.GroupStateChanged) and event.state == GroupState.COMPLETING_REBALANCE:
            self._cooperative = is_cooperative(event.protocol)
        if not isinstance(event, _OF_MEMBERS):
            return "", ended, added
        if isinstance(event, events.MemberAdded | events.MemberReplaced):
            self.learn(event.member_id, event.instance)
        name = self.name(event.member_id)
        if isinstance(event, events.MemberRemoved | events.MemberReplaced):
            ended = self._assigned.pop(name, ())
        elif isinstance(event, events.MemberReconciled):
            ended, added = self._answered(name, (*event.partitions, *event.revoking))
        elif isinstance(event, events.SyncAnswered):
            if event.error is None:
                ended, added = self._answered(name, event.partitions or ())
        elif isinstance(event, events.JoinParked) or (
            isinstance(event, events.JoinAnswered) and event.error is None
        ):
            ended = () if self._cooperative else self._assigned.pop(name, ())
        return name, ended, added

    def _answered(self, name: str, partitions: tuple[str, ...]) -> tuple[Sequence[str], Sequence[str]]:
        """A new assignment: the partitions that the member loses, and those that it gains."""
        before = self._assigned.get(name, ())
        self._assigned[name] = partitions
        kept, owned = set(partitions), set(before)
        return [p for p in before if p not in kept], [p for p in partitions if p not in owned]


class Handover(NamedTuple):
    """``released_us``: the old owner has told that it does not own the partition any more, or is out of the
    group; ``expired``: its session had ended. ``grants``, the new owner's last: when a heartbeat was answered
    with it, when this member took it, or was out before it did, and whether its session had ended.
    """

    released_us: int
    expired: bool
    grants: Sequence[tuple[int, int, bool]]


class Handovers:
    """The releases since its last owner, and the last grant, of every partition: a member may go before it
    takes what it is granted.

    A member is known by its id: a process that has crashed and started again has another one, while the old
    member holds its partitions until its session ends.
    """

    def __init__(self) -> None:
        self._held: dict[str, frozenset[str]] = {}
        #: Partition -> when it had been granted, when it was released, and whether a session had ended.
        self._released: dict[str, list[tuple[int, int, bool]]] = {}
        #: Partition -> its new owner, since when, and when a member's subscription had changed last by then.
        self.granted: dict[str, tuple[str, int, int]] = {}
        self._updated_us = 0
        #: When members began to revoke; spans of revocations, and of sessions (from 0 on), by their ends.
        self._revoking: dict[str, int] = {}
        self._held_up: list[tuple[int, int, bool]] = []

    def updated(self, now_us: int, _event: events.MemberUpdated) -> None:
        """Note that a member subscribes to other topics than before."""
        self._updated_us = now_us

    def reconciled(self, now_us: int, event: events.MemberReconciled) -> None:
        """Note the partitions that the member has been granted, and the ones that it has released."""
        before = self._held.get(event.member_id, frozenset())
        held = self._held[event.member_id] = frozenset((*event.partitions, *event.revoking))
        if event.revoking:
            self._revoking.setdefault(event.member_id, now_us)
        elif event.member_id in self._revoking:
            self._hold(self._revoking.pop(event.member_id), now_us, False)
        for partition in before - held:
            self._release(now_us, partition, False)
        for partition in held - before:
            self.granted[partition] = event.member, now_us, self._updated_us

    def removed(self, now_us: int, event: events.MemberRemoved) -> None:
        expired = event.cause == Cause.SESSION_EXPIRED
        since_us = self._revoking.pop(event.member_id, now_us)
        self._hold(0 if expired else since_us, now_us, expired)
        for partition in self._held.pop(event.member_id, ()):
            self._release(now_us, partition, expired)

    def _release(self, now_us: int, partition: str, expired: bool) -> None:
        granted_us = self.granted[partition][1]
        self._released.setdefault(partition, []).append((granted_us, now_us, expired))

    def _hold(self, from_us: int, to_us: int, expired: bool) -> None:
        self._held_up.append((from_us, to_us, expired))
        del self._held_up[:-_SPANS_MAX]

    def held_up(self, from_us: int, to_us: int) -> tuple[int, bool]:
        """Return until when one member held up most of a wait, as it had partitions to give up or its session
        had to end, and whether it was the session: the broker grants such a member nothing more."""
        past = takewhile(lambda span: span[1] > from_us, reversed(self._held_up))
        spans = [*past, *((since_us, to_us, False) for since_us in self._revoking.values())]
        found = [(min(us, to_us) - max(since_us, from_us), us, expired) for since_us, us, expired in spans]
        lasted_us, until_us, expired = max(found, default=(0, from_us, False))
        return (min(until_us, to_us), expired) if 2 * lasted_us > to_us - from_us else (from_us, False)

    def taken(self, partition: str) -> None:
        """Note that a member processes the partition: the next release is its own."""
        self._released.pop(partition, None)

    def replaced(self, event: events.MemberReplaced) -> None:
        """A static member is back under a new id, with what it had."""
        self._held[event.member_id] = self._held.pop(event.previous_member_id, frozenset())

    def of(
        self, partition: str, from_us: int, to_us: int, new_owner: str | None, is_new: bool
    ) -> Handover | None:
        """Return the handover of the partition to ``new_owner`` in a gap from ``from_us`` to ``to_us``; None:
        nobody has taken it until then, and it is free, or has been granted in the gap.

        None if it did not come there by a handover of a consumer group. Nobody has a partition that
        ``is_new``, and no member may have known its topic before it subscribed anew.
        """
        member, granted_us, updated_us = self.granted.get(partition, ("", -1, 0))
        if new_owner is None and not any(partition in held for held in self._held.values()):
            granted_us = to_us
        elif new_owner not in (member, None) or granted_us < from_us:
            return None
        free = granted_us, updated_us if is_new else from_us, False
        (_, released_us, expired), *others = self._released.get(partition, [free])
        released_us = min(max(released_us, from_us), granted_us)
        return Handover(released_us, expired, [*others, (granted_us, to_us, False)])
