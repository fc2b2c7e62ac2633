"""When a group is there and has members: at other times its partitions are not un-owned."""

from __future__ import annotations

from groupstorm.history.ownership import Ownership


class Existence:
    """Follows a group's deletions and creations and, of an imported trace, when it has no members.

    A storm and a broker have no rows of the second kind: there a group without members is un-owned.
    """

    def __init__(self, ownership: Ownership) -> None:
        self._ownership = ownership
        self._exists = self._has_members = True
        self._gone_us = 0
        self._without_members_us = 0

    def deleted(self, now_us: int, _event: object) -> None:
        """The group was deleted, or its coordinator has ended."""
        self._exists = False
        self._ownership.group_deleted(now_us)

    def created(self, now_us: int, _event: object) -> None:
        self._exists = True
        if self._has_members:
            self._ownership.group_created(now_us)

    def members_gone(self, now_us: int, _event: object) -> None:
        """Nobody is in the group from now on."""
        if self._has_members:
            self._has_members, self._gone_us = False, now_us
            self._ownership.group_deleted(now_us)

    def members_back(self, now_us: int, _event: object) -> None:
        if self._has_members:
            return
        self._has_members = True
        self._without_members_us += now_us - self._gone_us
        if self._exists:
            self._ownership.group_created(now_us)

    def begin_window(self, from_us: int) -> None:
        """Time without members counts from ``from_us`` on."""
        self._without_members_us, self._gone_us = 0, from_us

    def without_members_us(self, end_us: int) -> int:
        """Return the time in which the group had no members, if the trace ends at ``end_us``."""
        return self._without_members_us + (0 if self._has_members else end_us - self._gone_us)
