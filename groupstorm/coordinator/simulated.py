"""The coordinator of storms: heartbeats that are computed instead of sent, offsets that are not stored.

The decisions are those of `GroupCoordinator`. docs/coordinator.md describes the arrangement under "What
storms add".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, cast

from groupstorm.coordinator.classic.heartbeats import heartbeat
from groupstorm.coordinator.classic.sessions import expiring_member
from groupstorm.coordinator.config import CoordinatorConfig
from groupstorm.coordinator.consumer.group import ConsumerGroup
from groupstorm.coordinator.coordinator import HANDLERS, GroupCoordinator, Handler
from groupstorm.coordinator.effects import PendingReply
from groupstorm.coordinator.errors import NO_ERROR, REBALANCE_IN_PROGRESS, Error
from groupstorm.coordinator.groups import AnyGroup
from groupstorm.coordinator.messages import OffsetCommit
from groupstorm.coordinator.offset_requests import check_commit, handle_commit
from groupstorm.coordinator.pending_writes import Write
from groupstorm.coordinator.records import AppendPolicy, immediate
from groupstorm.coordinator.shard import Shard
from groupstorm.coordinator.timers import MEMBER_SESSION, SESSION, Timer, TimerKind, Timers

#: (group, member id, deadline in ms) -> when the member last sent a request, in ms, if that is later than
#: the coordinator knows, or `IN_TOUCH`. A time that leads to the same deadline again means: other members,
#: whose sessions end at the same millisecond, were silent before this one. The coordinator asks again behind
#: them.
LastContact = Callable[[str, str, int], int | None]

#: Later than any time: heartbeats come often enough. The session cannot end until `out_of_touch` says that
#: they have stopped, or another request starts the session again.
IN_TOUCH: Final = 1 << 62


class ObservedTimers(Timers):
    """Timers that call ``on_earlier`` with a deadline that comes before all others.

    The payload of a MEMBER_SESSION is when its member was last in contact: ``moment()`` if a request sets it.
    """

    __slots__ = ("_moment", "_on_earlier")

    def __init__(self, on_earlier: Callable[[int], None], moment: Callable[[], int]) -> None:
        super().__init__()
        self._on_earlier = on_earlier
        self._moment = moment

    def set(self, kind: TimerKind, group: str, name: str, deadline_ms: int, payload: object = None) -> None:
        if kind is MEMBER_SESSION:
            payload = self._moment()
        super().set(kind, group, name, deadline_ms, payload)

    def set_member_session_since(self, group: str, name: str, deadline_ms: int, contact: int) -> None:
        """Set the session of a member whose last contact, the moment ``contact``, lies in the past: it ends
        before the sessions of the same deadline whose members were in contact later."""
        super().set(MEMBER_SESSION, group, name, deadline_ms, contact)
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
    return timer.key[0] is MEMBER_SESSION and cast("int", timer.payload) > contact


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
        last_contact: LastContact | None = None,
        keeps_offsets: bool = True,
        on_earlier: Callable[[int], None] = lambda _: None,
        moment: Callable[[], int] | None = None,
    ) -> None:
        """``last_contact(group, member_id, deadline_ms)`` is called when a member's session is about to end.
        It must not give the same time twice: the coordinator would believe it again. After `IN_TOUCH` the
        driver owes a call of `out_of_touch`. ``keeps_offsets`` False: commits of members are checked and
        answered, but neither stored nor emitted. ``on_earlier(deadline_ms)`` is called when a timer is set
        that comes before all others, so that the driver need not call `next_deadline` after every call.
        ``moment()``: a number that grows with the driver's time and decides the order of sessions that end at
        one millisecond; by default the time of the request."""
        super().__init__(config, member_ids=member_ids, append=append, whole_records=whole_records)
        self._last_contact = last_contact
        if not keeps_offsets:
            self._handlers = _WITHOUT_OFFSETS
        self._timers = ObservedTimers(on_earlier, moment or (lambda: self._shard.now_ms))
        self._shard.timers = self._timers

    def heartbeat(
        self, group: str, member_id: str, group_instance_id: str | None, generation: int, now_ms: int
    ) -> Error | None:
        """The error with which `handle` would answer this Heartbeat, for drivers with very many of them; None
        if the answer has to wait for a write: then only `handle` can give it, and the member's session has
        started again."""
        shard = self._shard
        shard.now_ms = now_ms
        error = heartbeat(shard, group, member_id, group_instance_id, generation)
        waits = (error is NO_ERROR or error is REBALANCE_IN_PROGRESS) and group in shard.writes
        return None if waits else error

    def last_write(self, group: str) -> Write | None:
        """The last write of the group that is under way: it holds back the responses that wait; None if none
        is. To look at only."""
        return self._shard.writes.last(group)

    def writes_under_way(self, group: str) -> int:
        """How many writes of the group are under way."""
        return sum(write.behind is None for write in self._shard.writes.of_group(group))

    def out_of_touch(self, group: str, member_id: str, contact_ms: int, now_ms: int) -> None:
        """The heartbeats of a member that ``last_contact`` called `IN_TOUCH` have stopped. The last of them
        arrived at ``contact_ms``; the session ends when its timeout has passed since then."""
        shard = self._shard
        shard.now_ms = now_ms
        known = shard.classic_group(group)
        member = None if known is None else known.members.get(member_id)
        if member is not None and shard.timers.deadline_of(SESSION, group, member_id) is None:
            until_ms = max(now_ms, contact_ms + member.session_timeout_ms)
            shard.timers.set(SESSION, group, member_id, until_ms)

    def session_since(self, group: str, member_id: str, contact_ms: int, contact: int, now_ms: int) -> None:
        """The same of a member of a consumer group: the last request that was not sent, but computed, arrived
        at ``contact_ms``, the moment ``contact``."""
        shard = self._shard
        shard.now_ms = now_ms
        known = shard.consumer_group(group)
        if known is not None and known.members.get(member_id) is not None:
            until_ms = max(now_ms, contact_ms + shard.group_options.session_timeout_ms(group))
            self._timers.set_member_session_since(group, member_id, until_ms, contact)

    def members_without_session(self, group: str) -> tuple[tuple[str, str], ...]:
        """Members of a consumer group that no session removes: their member ids and client ids."""
        known, timers = self._shard.consumer_group(group), self._shard.timers
        members = () if known is None else tuple(known.members.values())
        return tuple(
            (member.member_id, member.client_id)
            for member in members
            if timers.deadline_of(MEMBER_SESSION, group, member.member_id) is None
        )

    def _on_group_timer(self, group: AnyGroup, timer: Timer) -> Write | None:
        if self._last_contact is not None and self._goes_on(self._last_contact, group, timer):
            return None
        return super()._on_group_timer(group, timer)

    def _goes_on(self, last_contact: LastContact, group: AnyGroup, timer: Timer) -> bool:
        """Whether the timer ends the session of a member of which computed heartbeats came; then the session
        goes on from the last of them."""
        kind, _, member_id = timer.key
        if isinstance(group, ConsumerGroup):
            if kind is not MEMBER_SESSION or group.members.get(member_id) is None:
                return False
            return last_contact(group.name, member_id, timer.deadline_ms) == IN_TOUCH
        member = expiring_member(group, member_id) if kind is SESSION else None
        if member is None or member.is_new:
            return False
        contact_ms = last_contact(group.name, member_id, timer.deadline_ms)
        if contact_ms == IN_TOUCH:
            return True
        if contact_ms is None or contact_ms + member.session_timeout_ms < timer.deadline_ms:
            return False
        until_ms = contact_ms + member.session_timeout_ms
        self._shard.timers.set(SESSION, group.name, member_id, until_ms)
        return True
