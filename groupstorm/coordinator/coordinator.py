"""The group coordinator: requests and time in, replies and events out.

    coordinator = GroupCoordinator(CoordinatorConfig(), member_ids=random_member_id)
    effects = coordinator.handle(JoinGroup(...), now_ms, token)
    ...
    while (deadline := coordinator.next_deadline()) is not None and deadline <= now_ms:
        effects = coordinator.fire(now_ms)

No socket, no clock, no randomness: ``now_ms`` comes with every call and must not go back, member
ids come from ``member_ids``, and what happens to records says ``append``. A reply names the token
of its request, which may have come many calls before. Who drives it (a server, a storm in virtual
time, a script, a test) is not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import cast

from groupstorm.coordinator.config import CoordinatorConfig
from groupstorm.coordinator.deletions import (
    delete_topics,
    handle_delete_group,
    handle_offset_delete,
    on_expiration_timer,
    schedule_expiration,
)
from groupstorm.coordinator.descriptions import handle_describe, handle_list
from groupstorm.coordinator.effects import Answer, Effects
from groupstorm.coordinator.error_responses import error_response
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.faults import CoordinatorFault
from groupstorm.coordinator.group import ClassicGroup
from groupstorm.coordinator.heartbeats import handle_heartbeat, heartbeat
from groupstorm.coordinator.joins import handle_join
from groupstorm.coordinator.leaves import handle_leave
from groupstorm.coordinator.loading import end_transaction, load, move, snapshot, unload
from groupstorm.coordinator.messages import (
    DeleteGroup,
    DescribeGroup,
    Heartbeat,
    JoinGroup,
    JoinGroupResponse,
    LeaveGroup,
    ListGroups,
    OffsetCommit,
    OffsetDelete,
    OffsetFetch,
    Request,
    SyncGroup,
    SyncGroupResponse,
    TxnOffsetCommit,
)
from groupstorm.coordinator.offset_requests import handle_commit, handle_fetch, handle_txn_commit
from groupstorm.coordinator.rebalances import InitialDelay, on_join_timer, on_sync_timer
from groupstorm.coordinator.records import AppendPolicy, Record, immediate, operation_error
from groupstorm.coordinator.sessions import LastContact, on_session_timer, out_of_touch
from groupstorm.coordinator.shard import Shard
from groupstorm.coordinator.syncs import handle_sync
from groupstorm.coordinator.timers import SESSION, Timer, TimerKind
from groupstorm.coordinator.writes import Write

_Handler = Callable[[Shard, Request, Answer], Write | None]

_HANDLERS: dict[type, _Handler] = cast(
    "dict[type, _Handler]",
    {
        JoinGroup: handle_join,
        SyncGroup: handle_sync,
        Heartbeat: handle_heartbeat,
        LeaveGroup: handle_leave,
        OffsetCommit: handle_commit,
        TxnOffsetCommit: handle_txn_commit,
        OffsetFetch: handle_fetch,
        OffsetDelete: handle_offset_delete,
        DeleteGroup: handle_delete_group,
        DescribeGroup: handle_describe,
        ListGroups: handle_list,
    },
)

_OF_NO_GROUP = (TimerKind.APPEND, TimerKind.EXPIRATION)


class GroupCoordinator:
    """Kafka's coordinator of classic groups, as a value that time and requests change."""

    def __init__(
        self,
        config: CoordinatorConfig,
        *,
        member_ids: Callable[[str], str],
        append: AppendPolicy = immediate,
        last_contact: LastContact | None = None,
        whole_records: bool = False,
        keeps_offsets: bool = True,
        on_earlier: Callable[[int], None] | None = None,
    ) -> None:
        """``member_ids(prefix)`` draws a whole id, ``<prefix>-<uuid>``, and is asked only when no
        check refuses the join. ``last_contact(group, member_id, deadline_ms)`` is asked when a
        member's session is about to expire: when was it last heard of, if later than the
        coordinator knows (heartbeats that were not delivered one by one)? A time it has given
        before would be believed again: it must answer None the next time. It may also answer
        `IN_TOUCH`, and owes a call of `out_of_touch` then. ``whole_records``: records of groups hold
        their members, so that `load` and `move` can bring them back. ``keeps_offsets`` False: members'
        commits are checked and answered, but neither stored nor told, for a driver that knows the
        positions itself. ``on_earlier(deadline_ms)`` is called when something is set that is due before
        all that was due so far: a driver that keeps what `next_deadline` said need not ask after every
        call."""
        self._shard = Shard(config, member_ids, append, whole_records, keeps_offsets, on_earlier)
        self._last_contact = last_contact

    def handle(self, request: Request, now_ms: int, token: Hashable) -> Effects:
        """One request; its reply, for ``token``, comes now or with a later call."""
        shard = self._shard
        shard.now_ms = now_ms
        answer = Answer(token)
        try:
            write = _HANDLERS[type(request)](shard, request, answer)
            if write is not None:
                write.refuse = lambda error: self._refuse(request, answer, operation_error(error))
                shard.writes.submit(write)
        except CoordinatorFault as fault:
            if isinstance(request, ListGroups):
                raise
            shard.fault(request.group, getattr(request, "member_id", None), fault)
            self._refuse(request, answer, Error.UNKNOWN_SERVER_ERROR)
        return shard.take_effects()

    def heartbeat(
        self, group: str, member_id: str, group_instance_id: str | None, generation: int, now_ms: int
    ) -> Error | None:
        """The error that `handle` would answer a Heartbeat with, where nothing else would come of it: for
        drivers with very many. None where the answer has to wait for a write: then only `handle` can give
        it."""
        shard = self._shard
        if shard.writes.holds_answers(group):
            return None
        shard.now_ms = now_ms
        return heartbeat(shard, group, member_id, group_instance_id, generation)

    def _refuse(self, request: Request, answer: Answer, error: Error) -> None:
        if answer.done or isinstance(request, ListGroups):
            return
        shard = self._shard
        response = error_response(request, error)
        if isinstance(request, JoinGroup) and isinstance(response, JoinGroupResponse):
            shard.join_answered(answer, request.group, request.client_id, request.member_id, response)
        elif isinstance(request, SyncGroup) and isinstance(response, SyncGroupResponse):
            who = (request.group, request.client_id, request.member_id)
            shard.sync_answered(answer, *who, request.generation, response)
        else:
            shard.answer(answer, response)

    def on_topics_deleted(self, topics: Sequence[str], now_ms: int) -> Effects:
        """Topics were deleted: committed offsets for them go too, in all groups."""
        self._shard.now_ms = now_ms
        return self._submit(delete_topics(self._shard, topics))

    def load(self, records: Iterable[Record], now_ms: int) -> Effects:
        """Begin with what an earlier coordinator has written (whole records), in that order, and look
        for expired offsets from now on (offsets.retention.check.interval.ms)."""
        self._shard.now_ms = now_ms
        writes = load(self._shard, records)
        schedule_expiration(self._shard)
        return self._submit(writes)

    def move(self, groups: Iterable[str], now_ms: int) -> Effects:
        """Another coordinator takes these groups over: parked requests are answered NOT_COORDINATOR,
        and each group is again what was last written of it."""
        self._shard.now_ms = now_ms
        return self._submit(move(self._shard, groups))

    def snapshot(self) -> list[Record]:
        """The records that `load` would make the present groups and offsets of, as far as they are
        written."""
        return snapshot(self._shard)

    def unload(self, now_ms: int) -> Effects:
        """Give up: everything that is parked is answered NOT_COORDINATOR."""
        self._shard.now_ms = now_ms
        unload(self._shard)
        return self._shard.take_effects()

    def end_transaction(self, producer_id: int, is_commit: bool, now_ms: int) -> Effects:
        """A producer's transaction was committed or aborted: so are the offsets that wait for it."""
        self._shard.now_ms = now_ms
        return self._submit([end_transaction(self._shard, producer_id, is_commit)])

    def _submit(self, writes: Iterable[Write]) -> Effects:
        for write in writes:
            self._shard.writes.submit(write)
        return self._shard.take_effects()

    def out_of_touch(self, group: str, member_id: str, contact_ms: int, now_ms: int) -> None:
        """The heartbeats of a member that ``last_contact`` called IN_TOUCH have stopped; the last
        arrived at ``contact_ms``. Its session ends when the timeout has passed since then."""
        self._shard.now_ms = now_ms
        known = self._shard.groups.get(group)
        if known is not None:
            out_of_touch(self._shard, known, member_id, contact_ms)

    def expire_session(self, group: str, member_id: str, now_ms: int) -> Effects:
        """The member's session is over now, with all that follows, as if it had been silent for so long.

        Who is parked in JoinGroup or SyncGroup needs no heartbeat and stays, unless it is new and its five
        minutes are what ends: as in Kafka. A member that is not there changes nothing.
        """
        known = self._shard.groups.get(group)
        if known is not None and (member_id in known.pending_members or known.members.get(member_id)):
            self._shard.timers.set(TimerKind.SESSION, group, member_id, now_ms)
        return self.fire(now_ms)

    def next_deadline(self) -> int | None:
        """When `fire` is due next, in ms; None: nothing is waiting for time to pass."""
        return self._shard.timers.next_deadline()

    def fire(self, now_ms: int) -> Effects:
        """Everything that is due by ``now_ms``, the earliest first, equals in the order of setting."""
        self._shard.now_ms = now_ms
        while self._fire_next(now_ms):
            pass
        return self._shard.take_effects()

    def fire_one(self, now_ms: int) -> Effects | None:
        """Only the first of what is due; None where nothing is."""
        self._shard.now_ms = now_ms
        return self._shard.take_effects() if self._fire_next(now_ms) else None

    def _fire_next(self, now_ms: int) -> bool:
        timer = self._shard.timers.pop_due(now_ms)
        if timer is None:
            return False
        kind, group_name, name = timer.key
        if kind is not SESSION and kind in _OF_NO_GROUP:
            self._fire_of_no_group(timer)
            return True
        group = self._shard.groups.get(group_name)
        if group is None:
            return True
        try:
            write = self._on_group_timer(group, timer)
            if write is not None:
                self._shard.writes.submit(write)
        except CoordinatorFault as fault:
            self._shard.fault(group_name, name or None, fault)
        return True

    def _fire_of_no_group(self, timer: Timer) -> None:
        """A write may outlive its group."""
        if timer.key[0] is TimerKind.APPEND:
            self._shard.writes.on_timer(cast("Write", timer.payload))
        else:
            for expired in on_expiration_timer(self._shard):
                self._shard.writes.submit(expired)

    def _on_group_timer(self, group: ClassicGroup, timer: Timer) -> Write | None:
        kind, _, name = timer.key
        if kind is SESSION:
            return on_session_timer(self._shard, group, name, timer.deadline_ms, self._last_contact)
        if kind is TimerKind.JOIN:
            return on_join_timer(self._shard, group, cast("InitialDelay | None", timer.payload))
        return on_sync_timer(self._shard, group, cast("int", timer.payload))

    @property
    def groups(self) -> list[str]:
        """Names of the groups that there are, in Kafka's order."""
        return self._shard.groups.keys()

    def group(self, name: str) -> ClassicGroup | None:
        """The group as it is now, to look at: changing it is for the coordinator alone."""
        return self._shard.groups.get(name)

    def committed_offsets(self, group: str) -> dict[str, int]:
        """What the group has committed, by partition as Kafka prints them: topic-partition."""
        return {
            f"{topic}-{partition}": stored.committed.offset
            for topic, partition, stored in self._shard.offsets.of_group(group)
        }

    def __repr__(self) -> str:
        due = self.next_deadline()
        groups = " ".join(repr(group) for _, group in self._shard.groups.items())
        return f"<GroupCoordinator next_deadline={due} {groups}>"
