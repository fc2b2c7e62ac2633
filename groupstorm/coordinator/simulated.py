"""The coordinator of storms: sessions that are suspended while heartbeats are computed, offsets that are not
stored.

The decisions are those of `GroupCoordinator`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

from groupstorm.coordinator.classic.group import ClassicGroup
from groupstorm.coordinator.config import CoordinatorConfig
from groupstorm.coordinator.consumer.group import ConsumerGroup
from groupstorm.coordinator.coordinator import HANDLERS, GroupCoordinator, Handler
from groupstorm.coordinator.effects import PendingReply, Write
from groupstorm.coordinator.groups import Group
from groupstorm.coordinator.messages import OffsetCommit
from groupstorm.coordinator.offset_requests import check_commit, handle_commit
from groupstorm.coordinator.records import AppendPolicy, immediate
from groupstorm.coordinator.shard import Shard
from groupstorm.coordinator.share.group import ShareGroup
from groupstorm.coordinator.timers import MEMBER_SESSION, SESSION, Timer, TimerKind, Timers

_SESSIONS: Final = (SESSION, MEMBER_SESSION)


class ObservedTimers(Timers):
    """Timers that call ``on_earlier`` with a deadline that comes before all others.

    The payload of a session is when its member was last in contact: ``moment()`` if a request sets it.
    """

    def __init__(self, on_earlier: Callable[[int], None], moment: Callable[[], int]) -> None:
        super().__init__()
        self._on_earlier = on_earlier
        self._moment = moment

    def set(self, kind: TimerKind, group: str, name: str, deadline_ms: int, payload: Any = None) -> None:
        if kind in _SESSIONS:
            payload = self._moment()
        super().set(kind, group, name, deadline_ms, payload)

    def set_session_since(
        self, kind: TimerKind, group: str, name: str, deadline_ms: int, contact: int
    ) -> None:
        """Set the session of a member whose last contact, the moment ``contact``, lies in the past: it ends
        before the sessions of the same deadline whose members were in contact later. A session that begins
        later stays as it is."""
        known = self._set.get((kind, group, name))
        if known is not None and known.payload >= contact:
            return
        super().set(kind, group, name, deadline_ms, contact)
        due = self._due[deadline_ms]
        first = self._passed if deadline_ms == self._deadlines[0] else 0
        at = len(due) - 1
        while at > first and _is_later(due[at - 1], contact):
            at -= 1
        due.insert(at, due.pop())

    def _add_deadline(self, deadline_ms: int) -> None:
        is_earliest = not self._deadlines or deadline_ms < self._deadlines[0]
        super()._add_deadline(deadline_ms)
        if is_earliest:
            self._on_earlier(deadline_ms)


def _is_later(timer: Timer, contact: int) -> bool:
    """Whether the timer is a session whose member was in contact after the moment ``contact``."""
    return timer.key[0] in _SESSIONS and timer.payload > contact


def _handle_commit(shard: Shard, request: OffsetCommit, reply: PendingReply) -> Write | None:
    """Check and answer a member's commit, but neither store it nor emit an event."""
    if request.generation < 0:
        return handle_commit(shard, request, reply)
    check_commit(shard, request, reply)
    return None


_WITHOUT_OFFSETS: dict[type, Handler] = HANDLERS | {OffsetCommit: cast("Handler", _handle_commit)}


class SimulatedGroupCoordinator(GroupCoordinator):
    """`GroupCoordinator` for a driver in virtual time that computes heartbeats and knows the positions."""

    def __init__(
        self,
        config: CoordinatorConfig,
        *,
        member_ids: Callable[[str], str],
        append: AppendPolicy = immediate,
        whole_records: bool = False,
        keeps_offsets: bool = True,
        on_earlier: Callable[[int], None] = lambda _: None,
        moment: Callable[[], int] | None = None,
    ) -> None:
        """``keeps_offsets`` False: commits of members are checked and answered, but neither stored nor
        emitted. ``on_earlier(deadline_ms)`` is called when a timer is set that comes before all others, so
        that the driver need not call `next_deadline` after every call. ``moment()``: a number that grows with
        the driver's time and decides the order of sessions that end at one millisecond; by default the time
        of the request."""
        super().__init__(config, member_ids=member_ids, append=append, whole_records=whole_records)
        #: Members whose requests the driver computes.
        self._suspended: set[str] = set()
        if not keeps_offsets:
            self._handlers = _WITHOUT_OFFSETS
        self._timers = ObservedTimers(on_earlier, moment or (lambda: self._shard.now_ms))
        self._shard.timers = self._timers

    def last_write(self, group: str) -> Write | None:
        """The last write of the group that is under way: it holds back the responses that wait; None if none
        is. To look at only."""
        return self._shard.writes.last(group)

    def session_until_ms(self, group: str, member_id: str) -> int | None:
        """When the session of a member of the classic group ends; None if no timer is set."""
        return self._timers.deadline_of(SESSION, group, member_id)

    def suspend_session(self, member_id: str) -> None:
        """The driver computes the member's requests, which come often enough: its session does not end until
        `resume_session`."""
        self._suspended.add(member_id)

    def resume_session(self, member_id: str) -> None:
        """The driver sends the member's requests again."""
        self._suspended.discard(member_id)

    def in_contact(
        self, kind: TimerKind, group: str, member_id: str, contact_ms: int, contact: int, now_ms: int
    ) -> None:
        """The last one of the member's requests that the driver has computed arrived at ``contact_ms``, the
        moment ``contact``. It started the session again if the member's sessions are of this kind."""
        shard = self._shard
        known = shard.groups.get(group)
        is_classic = isinstance(known, ClassicGroup)
        if known is None or member_id not in known.members or is_classic is not (kind is SESSION):
            return
        shard.now_ms = now_ms
        if isinstance(known, ClassicGroup):
            timeout_ms = known.members[member_id].session_timeout_ms
        else:
            timeout_ms = shard.group_options.modern(known.kind, group).session_timeout_ms
        until_ms = max(now_ms, contact_ms + timeout_ms)
        self._timers.set_session_since(kind, group, member_id, until_ms, contact)

    def is_at_rest(self, group: str, member_id: str, epoch: int) -> bool:
        """Whether the member of a share group has its target, and no heartbeat can change anything."""
        shard = self._shard
        known = shard.group_as(group, ShareGroup)
        if known is None or member_id not in known.members or known.is_refresh_due(shard.now_ms):
            return False
        is_current = known.members[member_id].epoch == epoch == known.epoch == known.assignment_epoch
        return is_current and not known.to_initialize and not known.has_unassigned(shard.topics)

    def members_without_session(self, group: str) -> tuple[tuple[str, str], ...]:
        """Members of a consumer group that no session removes: their member ids and client ids."""
        known, timers = self._shard.group_as(group, ConsumerGroup), self._shard.timers
        members = () if known is None else tuple(known.members.values())
        return tuple(
            (member.member_id, member.client_id)
            for member in members
            if timers.deadline_of(MEMBER_SESSION, group, member.member_id) is None
        )

    def _on_group_timer(self, group: Group, timer: Timer) -> Write | None:
        kind, _, member_id = timer.key
        if kind in _SESSIONS and member_id in self._suspended:
            return None
        return super()._on_group_timer(group, timer)
