"""Partitions that change hands in a consumer group, as the coordinator sees it."""

from __future__ import annotations

from typing import NamedTuple

from groupstorm.trace.events import coordinator as events
from groupstorm.trace.events.group_states import Cause


class Handover(NamedTuple):
    """``released_us``: the old owner has told that it does not own the partition any more, or is out of the
    group; ``expired``: its session had ended. ``granted_us``: the new owner's heartbeat was answered with it.
    """

    released_us: int
    expired: bool
    granted_us: int


class Handovers:
    """The last release and the last grant of every partition, by the rows of the coordinator.

    A member is known by its id: a process that has crashed and started again has another one, while the old
    member holds its partitions until its session ends.
    """

    def __init__(self) -> None:
        self._held: dict[str, frozenset[str]] = {}
        self._released: dict[str, tuple[int, bool]] = {}
        self._granted: dict[str, tuple[str, int]] = {}

    def reconciled(self, now_us: int, event: events.MemberReconciled) -> None:
        """Note the partitions that the member has been granted, and the ones that it has released."""
        before = self._held.get(event.member_id, frozenset())
        held = self._held[event.member_id] = frozenset((*event.partitions, *event.revoking))
        for partition in before - held:
            self._released[partition] = now_us, False
        for partition in held - before:
            self._granted[partition] = event.member, now_us

    def removed(self, now_us: int, event: events.MemberRemoved) -> None:
        for partition in self._held.pop(event.member_id, ()):
            self._released[partition] = now_us, event.cause == Cause.SESSION_EXPIRED

    def replaced(self, event: events.MemberReplaced) -> None:
        """A static member is back under a new id, with what it had."""
        self._held[event.member_id] = self._held.pop(event.previous_member_id, frozenset())

    def of(self, partition: str, from_us: int, new_owner: str | None) -> Handover | None:
        """Return the handover of the partition to ``new_owner`` in a gap that began at ``from_us``.

        None if it did not come there by a handover of a consumer group.
        """
        member, granted_us = self._granted.get(partition, ("", -1))
        if member != new_owner or granted_us < from_us:
            return None
        released_us, expired = self._released.get(partition, (from_us, False))
        return Handover(min(max(released_us, from_us), granted_us), expired, granted_us)
