"""Partitions that change hands in a consumer group, as the coordinator sees it."""

from __future__ import annotations

from typing import NamedTuple

from groupstorm.trace.events import coordinator as events


class Handover(NamedTuple):
    """``released_us``: the old owner has told that it does not own the partition any more, or is out of the
    group. ``granted_us``: the new owner's heartbeat was answered with it."""

    released_us: int
    granted_us: int


class Handovers:
    """The last release and the last grant of every partition, by the rows of the coordinator."""

    def __init__(self) -> None:
        self._held: dict[str, frozenset[str]] = {}
        self._released_us: dict[str, int] = {}
        self._granted: dict[str, tuple[str, int]] = {}

    def reconciled(self, now_us: int, event: events.MemberReconciled) -> None:
        """What a member has by now, and what it has still to give up."""
        before = self._held.get(event.member, frozenset())
        held = self._held[event.member] = frozenset((*event.partitions, *event.revoking))
        for partition in before - held:
            self._released_us[partition] = now_us
        for partition in held - before:
            self._granted[partition] = event.member, now_us

    def removed(self, now_us: int, event: events.MemberRemoved) -> None:
        for partition in self._held.pop(event.member, ()):
            self._released_us[partition] = now_us

    def of(self, partition: str, from_us: int, new_owner: str | None) -> Handover | None:
        """How the partition came to ``new_owner`` in a gap that began at ``from_us``; None if not by a
        handover of a consumer group."""
        member, granted_us = self._granted.get(partition, ("", -1))
        if member != new_owner or granted_us < from_us:
            return None
        released_us = max(self._released_us.get(partition, from_us), from_us)
        return Handover(min(released_us, granted_us), granted_us)
