"""The group coordinator: requests and time in, replies and events out.

    coordinator = GroupCoordinator(CoordinatorConfig(), member_ids=random_member_id)
    effects = coordinator.handle(JoinGroup(...), now_ms, token)
    ...
    while (deadline := coordinator.next_deadline()) is not None and deadline <= now_ms:
        effects = coordinator.fire(now_ms)

The coordinator has no socket, no clock and no randomness. ``now_ms`` comes with every call and must not go
back, ``member_ids`` draws member ids, and ``append`` says what becomes of records. A reply names the token
of its request, which may have come many calls before. A server, a storm in virtual time, a script or a test
drives the coordinator.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Final, cast
from uuid import UUID

from groupstorm.coordinator.changes import MEMBER_TIMERS
from groupstorm.coordinator.classic.changes import answer_join, answer_sync
from groupstorm.coordinator.classic.group import ClassicGroup
from groupstorm.coordinator.classic.rebalances import on_join_timer, on_sync_timer
from groupstorm.coordinator.classic.sessions import on_session_timer
from groupstorm.coordinator.config import CoordinatorConfig
from groupstorm.coordinator.consumer.group import ConsumerGroup
from groupstorm.coordinator.consumer.heartbeats import handle_consumer_heartbeat, on_consumer_timer
from groupstorm.coordinator.deletions import (
    delete_topics,
    handle_delete_group,
    handle_offset_delete,
    on_expiration_timer,
    schedule_expiration,
)
from groupstorm.coordinator.descriptions import (
    handle_describe,
    handle_describe_consumer_group,
    handle_describe_share_group,
    handle_describe_streams_group,
    handle_list,
)
from groupstorm.coordinator.dispatch import WINGS, handle_heartbeat, handle_join, handle_leave, handle_sync
from groupstorm.coordinator.effects import Effects, PendingReply, Write
from groupstorm.coordinator.errors import Error, Refused
from groupstorm.coordinator.failures import attempt, broken_off, error_response
from groupstorm.coordinator.groups import Group
from groupstorm.coordinator.loading import load, move, snapshot, unload
from groupstorm.coordinator.long_work import LongWork
from groupstorm.coordinator.messages import (
    ConsumerGroupHeartbeat,
    DeleteGroup,
    DescribeConsumerGroup,
    DescribeGroup,
    GroupRequest,
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
from groupstorm.coordinator.modern.subscribed import SubscribedGroup
from groupstorm.coordinator.offset_requests import (
    end_transaction,
    handle_commit,
    handle_fetch,
)
from groupstorm.coordinator.records import AppendPolicy, Record, immediate, operation_error
from groupstorm.coordinator.shard import Shard
from groupstorm.coordinator.share.group import ShareGroup
from groupstorm.coordinator.share.heartbeats import handle_share_heartbeat, on_share_timer
from groupstorm.coordinator.share.messages import (
    AlterShareGroupOffsets,
    DeleteShareGroupOffsets,
    DescribeShareGroup,
    ListSharePartitions,
    ShareGroupHeartbeat,
)
from groupstorm.coordinator.share.persister import Persister
from groupstorm.coordinator.share.state_partitions import (
    forget_topics,
    handle_alter_share_offsets,
    handle_delete_share_offsets,
    handle_list_share_partitions,
)
from groupstorm.coordinator.streams.description_plugin import DescriptionPlugin
from groupstorm.coordinator.streams.group import StreamsGroup
from groupstorm.coordinator.streams.heartbeats import handle_streams_heartbeat
from groupstorm.coordinator.streams.membership import on_streams_timer
from groupstorm.coordinator.streams.messages import (
    DescribeStreamsGroup,
    StreamsGroupHeartbeat,
    UpdateTopologyDescription,
)
from groupstorm.coordinator.streams.topology_descriptions import (
    handle_update_description,
    on_cleaning_timer,
    schedule_cleaning,
)
from groupstorm.coordinator.timers import (
    APPEND,
    DESCRIPTIONS,
    EXPIRATION,
    JOIN,
    MEMBER_SESSION,
    SESSION,
    SHARE_INITIALIZATION,
    STREAMS_DELAY,
    Timer,
)
from groupstorm.coordinator.topics import Topic
from groupstorm.coordinator.writes import on_append_timer, submit, turn_of_parked
from groupstorm.turns import Turns, at_once

#: Handles one request on one group, perhaps in turns.
Handler = Callable[[Shard, GroupRequest, PendingReply], Write | Turns[Write | None] | None]

HANDLERS: dict[type, Handler] = cast(
    "dict[type, Handler]",
    {
        JoinGroup: handle_join,
        SyncGroup: handle_sync,
        Heartbeat: handle_heartbeat,
        LeaveGroup: handle_leave,
        OffsetCommit: handle_commit,
        TxnOffsetCommit: handle_commit,
        OffsetFetch: handle_fetch,
        OffsetDelete: handle_offset_delete,
        DeleteGroup: handle_delete_group,
        DescribeGroup: handle_describe,
        ConsumerGroupHeartbeat: handle_consumer_heartbeat,
        DescribeConsumerGroup: handle_describe_consumer_group,
        StreamsGroupHeartbeat: handle_streams_heartbeat,
        DescribeStreamsGroup: handle_describe_streams_group,
        UpdateTopologyDescription: handle_update_description,
        ShareGroupHeartbeat: handle_share_heartbeat,
        DescribeShareGroup: handle_describe_share_group,
        ListSharePartitions: handle_list_share_partitions,
        AlterShareGroupOffsets: handle_alter_share_offsets,
        DeleteShareGroupOffsets: handle_delete_share_offsets,
    },
)

#: Requests whose answers may wait for the group.
_PARKED: Final = (JoinGroup, SyncGroup)

_MODERN_TIMERS = frozenset({*MEMBER_TIMERS, STREAMS_DELAY, SHARE_INITIALIZATION})
_ON_TIMER: dict[type, Callable[[Shard, Any, Timer], Write | None]] = {
    ConsumerGroup: on_consumer_timer,
    StreamsGroup: on_streams_timer,
    ShareGroup: on_share_timer,
}


class GroupCoordinator:
    """Kafka's coordinator of groups, as a value that requests and time change."""

    def __init__(
        self,
        config: CoordinatorConfig,
        *,
        member_ids: Callable[[str], str],
        append: AppendPolicy = immediate,
        whole_records: bool = False,
        works_in_turns: bool = False,
        description_plugin: DescriptionPlugin | None = None,
        persister: Persister | None = None,
    ) -> None:
        """``member_ids(prefix)`` draws a whole id, ``<prefix>-<uuid>``; it is called only for joins that no
        check refuses. ``whole_records``: records of groups hold their members, as `load` and `move` need
        them. ``works_in_turns``: long work is left to `take_long_work`.
        ``description_plugin``: keeps descriptions of the topologies of streams groups. ``persister``: keeps
        the state of the partitions of share groups; None: it confirms everything."""
        self._shard = Shard(config, member_ids, append, whole_records, WINGS)
        self._handlers: Mapping[type, Handler] = HANDLERS
        self._shard.description_plugin = description_plugin
        if persister is not None:
            self._shard.persister = persister
        self._long = LongWork(self._shard, works_in_turns)
        self._works_in_turns = works_in_turns

    def handle(
        self,
        request: Request,
        now_ms: int,
        token: Hashable,
        may_match: Callable[[str], bool] | None = None,
    ) -> Effects:
        """Handle one request. The reply to ``token`` comes now or with a later call.

        ``may_match``: which topics the regular expressions match that this request has resolved; None: all
        that there are (GroupMetadataManager.filterTopicDescribeAuthorizedTopics)."""
        shard = self._shard
        shard.now_ms = now_ms
        reply = PendingReply(token)
        if isinstance(request, ListGroups):
            handle_list(shard, request, reply)
            return shard.take_effects()
        handler = self._handlers[type(request)]
        self._long.carry_out(request.group, self._serve(handler, request, reply, may_match))
        if shard.background and not self._works_in_turns:
            return at_once(self._long.resolve())
        return shard.take_effects()

    def _serve(
        self,
        handler: Handler,
        request: GroupRequest,
        reply: PendingReply,
        may_match: Callable[[str], bool] | None,
    ) -> Turns[None]:
        shard = self._shard
        shard.may_match = may_match
        try:
            write = handler(shard, request, reply)
            if write is not None and not isinstance(write, Write):
                write = yield from write
        except Refused as refusal:
            write = None
            self._refuse(request, reply, refusal.error, str(refusal) or None)
        except Exception as problem:  # noqa: BLE001  # `broken_off` says why
            write = broken_off(shard, request.group, request, problem, self._refuse_broken, (request, reply))
        if write is None and not reply.done and isinstance(request, _PARKED):
            write = turn_of_parked(shard, request)
        if write is not None:
            write.refuse = lambda error: self._refuse(request, reply, operation_error(error))
            submit(shard, write)

    def take_long_work(self) -> list[Turns[Effects]]:
        """The work that is too long for one call, since the last time: groups at work, and regular
        expressions to resolve. With ``works_in_turns`` the caller carries it out. Meanwhile requests to these
        groups wait; every other call that may look at them finishes the work first."""
        return self._long.take_new()

    def _refuse_broken(self, request: GroupRequest, reply: PendingReply) -> None:
        self._refuse(request, reply, Error.UNKNOWN_SERVER_ERROR)

    def _refuse(
        self, request: GroupRequest, reply: PendingReply, error: Error, sentence: str | None = None
    ) -> None:
        if reply.done:
            return
        shard = self._shard
        response = error_response(request, error, sentence)
        if isinstance(request, JoinGroup) and isinstance(response, JoinGroupResponse):
            answer_join(shard, reply, request.group, request.client_id, request.member_id, response)
        elif isinstance(request, SyncGroup) and isinstance(response, SyncGroupResponse):
            who = (request.group, request.client_id, request.member_id)
            answer_sync(shard, reply, *who, request.generation, response)
        else:
            shard.answer(reply, response)

    def next_deadline(self) -> int | None:
        """When `fire` is due next, in ms; None if nothing waits for time to pass."""
        return self._shard.timers.next_deadline()

    def fire(self, now_ms: int) -> Effects:
        """Fire the timers that are due by ``now_ms``, the earliest first, equals in the order of setting."""
        self._shard.now_ms = now_ms
        while self._fire_next(now_ms):
            pass
        return self._shard.take_effects()

    def fire_one(self, now_ms: int) -> Effects | None:
        """Fire only the first timer that is due; None if none is."""
        self._shard.now_ms = now_ms
        return self._shard.take_effects() if self._fire_next(now_ms) else None

    def _fire_next(self, now_ms: int) -> bool:
        timer = self._pop_due(now_ms)
        if timer is None:
            return False
        kind, group_name, name = timer.key
        if kind is APPEND:  # a write may outlive its group
            on_append_timer(self._shard, timer.payload)
            return True
        if kind is EXPIRATION:
            for expired in on_expiration_timer(self._shard):
                submit(self._shard, expired)
            return True
        if kind is DESCRIPTIONS:
            for cleaned in on_cleaning_timer(self._shard):
                submit(self._shard, cleaned)
            return True
        group = self._shard.groups.get(group_name)
        if group is None:
            return True
        write = attempt(self._shard, group_name, name or None, self._on_group_timer, (group, timer))
        if write is not None:
            submit(self._shard, write)
        return True

    def _pop_due(self, now_ms: int) -> Timer | None:
        timers = self._shard.timers
        while (timer := timers.pop_due(now_ms)) is not None and self._long:
            kind, group, name = timer.key
            if group not in self._long and kind not in (EXPIRATION, DESCRIPTIONS):
                break
            timers.set(kind, group, name, timer.deadline_ms, timer.payload)  # the work may cancel it
            self._long.finish(*filter(None, [group]))
        return timer

    def _on_group_timer(self, group: Group, timer: Timer) -> Write | None:
        kind, _, name = timer.key
        on_modern_timer = _ON_TIMER.get(type(group))
        if (on_modern_timer is not None) is not (kind in _MODERN_TIMERS):
            return None  # it was set before the group changed its protocol
        if on_modern_timer is not None:
            return on_modern_timer(self._shard, group, timer)
        classic = cast("ClassicGroup", group)
        if kind is SESSION:
            return on_session_timer(self._shard, classic, name)
        if kind is JOIN:
            return on_join_timer(self._shard, classic, timer.payload)
        return on_sync_timer(self._shard, classic, timer.payload)

    # what a broker needs besides requests

    def load(self, records: Iterable[Record], now_ms: int) -> Effects:
        """Begin with the records of an earlier coordinator (whole records, in their order), and look for
        expired offsets from now on (offsets.retention.check.interval.ms)."""
        self._shard.now_ms = now_ms
        writes = load(self._shard, records)
        schedule_cleaning(self._shard)  # a group whose description is gone expires at the same instant
        schedule_expiration(self._shard)
        return self._submit(writes)

    def move(self, groups: Iterable[str], now_ms: int) -> Effects:
        """Another coordinator takes these groups over: parked requests are answered NOT_COORDINATOR, and
        each group is again as its last written record says."""
        self._shard.now_ms = now_ms
        self._long.finish()
        return self._submit(move(self._shard, groups))

    def snapshot(self) -> list[Record]:
        """The written records from which `load` rebuilds the groups and offsets."""
        return snapshot(self._shard)

    def unload(self, now_ms: int) -> Effects:
        """Give up: every parked request is answered NOT_COORDINATOR."""
        self._shard.now_ms = now_ms
        self._long.finish()
        unload(self._shard)
        return self._shard.take_effects()

    def update_topics(self, changed: Mapping[str, Topic], removed: Sequence[str], now_ms: int) -> Effects:
        """Topics were created or have grown (``changed``), or no longer exist (``removed``): their groups
        look at their subscriptions again, and offsets and share partitions of removed topics are deleted."""
        shard = self._shard
        shard.now_ms = now_ms
        self._long.finish()
        gone = list(map(shard.topics.topic_id, removed))
        touched = set(shard.topics.update(changed, removed))
        for _, group in shard.groups.items():
            if isinstance(group, SubscribedGroup) and not touched.isdisjoint(group.subscribed):
                group.request_refresh()
            if isinstance(group, StreamsGroup) and group.topology is not None:
                needed = group.topology.subtopologies
                group.refresh_is_due |= not all(touched.isdisjoint(one.required) for one in needed)
        return self._submit([*delete_topics(shard, removed), *forget_topics(shard, gone)])

    def set_group_options(self, group: str, options: Mapping[str, int | str]) -> None:
        """Give one group options of its own (GROUP resources of IncrementalAlterConfigs), all of them at
        once; `InputError` names the option that is wrong."""
        self._shard.group_options.set(group, options)

    def end_transaction(self, producer_id: int, is_commit: bool, now_ms: int) -> Effects:
        """A producer's transaction was committed or aborted: so are the offsets that wait for it."""
        self._shard.now_ms = now_ms
        return self._submit([end_transaction(self._shard, producer_id, is_commit)])

    def expire_session(self, group: str, member_id: str, now_ms: int) -> Effects:
        """End the member's session now, with all that follows, as if the member had been silent for so long.

        As in Kafka a member that is parked in JoinGroup or SyncGroup needs no heartbeat and stays, unless the
        member is new: then its five minutes end. If there is no such member, nothing changes.
        """
        self._shard.now_ms = now_ms
        self._long.finish(group)
        known = self._shard.groups.get(group)
        if isinstance(known, ClassicGroup):
            if member_id in known.pending_members or known.members.get(member_id):
                self._shard.timers.set(SESSION, group, member_id, now_ms)
        elif known is not None and member_id in known.members:
            self._shard.timers.set(MEMBER_SESSION, group, member_id, now_ms)
        return self.fire(now_ms)

    def _submit(self, writes: Iterable[Write]) -> Effects:
        for write in writes:
            submit(self._shard, write)
        return self._shard.take_effects()

    # to look at

    @property
    def groups(self) -> list[str]:
        """The names of the groups, in Kafka's order."""
        return self._shard.groups.keys()

    @property
    def timed_groups(self) -> list[str]:
        """The names of the groups that have a timer; the creation of one may have failed."""
        return self._shard.timers.groups()

    def group(self, name: str) -> Group | None:
        """The group as it is now, to look at: only the coordinator changes it."""
        return self._shard.groups.get(name)

    def topic_name(self, topic_id: UUID) -> str | None:
        """The name of the topic with this id; None if there is none."""
        return self._shard.topics.name(topic_id)

    def committed_offsets(self, group: str) -> dict[str, int]:
        """The group's committed offsets by partition, which Kafka prints as topic-partition."""
        return {
            f"{topic}-{partition}": stored.committed.offset
            for topic, partition, stored in self._shard.offsets.of_group(group)
        }

    def has_pending_offsets(self, group: str) -> bool:
        """Whether an open transaction has sent offsets of the group."""
        return bool(self._shard.pending_offsets.of_group(group))

    def __repr__(self) -> str:
        due = self.next_deadline()
        groups = " ".join(repr(group) for _, group in self._shard.groups.items())
        return f"<GroupCoordinator next_deadline={due} {groups}>"
