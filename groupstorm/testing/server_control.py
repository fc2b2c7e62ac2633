"""Faults, views and waiting on a running server. All of it runs on the server's event loop."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from uuid import UUID

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.broker.broker import Broker
from groupstorm.broker.connection import Connection
from groupstorm.broker.log.batches import BatchError
from groupstorm.broker.requests import BrokerEffects
from groupstorm.broker.share_logs import share_key
from groupstorm.broker.shell import Server
from groupstorm.clients.consumer.records import AbortedRecords, ConsumerRecord
from groupstorm.coordinator.classic.group import ClassicGroup
from groupstorm.coordinator.config_options import ConfigError, check_group
from groupstorm.coordinator.consumer.group import ConsumerGroup
from groupstorm.coordinator.coordinator import GroupCoordinator
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.groups import Group
from groupstorm.coordinator.share.group import ShareGroup
from groupstorm.problems import InputError
from groupstorm.testing.arguments import listed, text
from groupstorm.testing.faults import FaultControl, Interception, check_client
from groupstorm.testing.groups import (
    NO_GROUP,
    GroupPredicate,
    GroupView,
    LockedRecords,
    LogEnds,
    MemberView,
    Progress,
    Wanted,
)
from groupstorm.testing.records import decoded
from groupstorm.testing.viewed import classic_group, consumer_group, locked_records, share_group
from groupstorm.testing.waiting import WaitFuture
from groupstorm.trace.events.coordinator import Event, OffsetsCommitted
from groupstorm.trace.rows import TracedEvent, as_mapping, event_name
from groupstorm.trace.schema import Source

#: Microseconds since the server started, and an event of the coordinator.
TimedEvent = tuple[int, Event]

#: The interval at which conditions are looked at whose changes are no events.
_SOON_S = 0.02
#: The number of events in the message of a failed wait.
_LAST_EVENTS = 12


class ServerControl(FaultControl):
    """Controls one server, from its construction on."""

    def __init__(self, server: Server, keep_events: int | None = None) -> None:
        """``keep_events``: how many of the last events are kept; None: all."""
        super().__init__()
        self.events: deque[TimedEvent] = deque(maxlen=keep_events)
        #: The number of events before those that are kept.
        self.forgotten = 0
        #: The groups whose offsets were sent in transactions.
        self.transactional: set[str] = set()
        self._server = server
        self._soon: asyncio.TimerHandle | None = None
        self._paused: set[int] = set()
        self._interception = Interception(server, self.faults, self._conditions.look_again)
        server.intercept = self._interception
        server.on_connection = self._pause_new
        server.add_observer(self._observe)

    def _observe(self, time_us: int, events: Sequence[Event]) -> None:
        """Keep the coordinator's events, and wake the tests that have waited for them."""
        room = self.events.maxlen
        if room is not None:
            self.forgotten += max(0, len(self.events) + len(events) - room)
        self.events.extend((time_us, event) for event in events)
        for event in events:
            if isinstance(event, OffsetsCommitted) and self._coordinator.has_pending_offsets(event.group):
                self.transactional.add(event.group)
        self._conditions.look_again()

    # faults

    def drop_connections(self, client_id: str | None = None) -> int:
        check_client(client_id, self._interception.client_ids)
        there = self._server.connections.values()
        dropped = [one for one in there if client_id in (None, one.client_id)]
        for connection in dropped:
            connection.abort()
        return len(dropped)

    def move_coordinator(self, group: str, broker: int | None = None) -> int:
        """See `Broker.move_coordinator`; gives the broker that coordinates the group from now on.

        Raises InputError for a group or a broker that there is not.
        """
        self._known_group(group)
        self._nodes(broker)
        self._server.apply(lambda brokers, now_ms: brokers.move_coordinator(group, broker, now_ms))
        return self._server.broker.state.cluster.groups.node_of(group)

    def pause(self, broker: int | None = None) -> None:
        nodes = self._nodes(broker)
        self._paused.update(nodes)
        for connection in self._server.connections.values():
            if connection.node in nodes:
                connection.pause()

    def resume(self, broker: int | None = None) -> None:
        nodes = self._nodes(broker)
        self._paused.difference_update(nodes)
        for connection in tuple(self._server.connections.values()):
            if connection.node in nodes:
                connection.resume()

    def _pause_new(self, connection: Connection) -> None:
        if connection.node in self._paused:
            connection.pause()

    @property
    def paused(self) -> list[int]:
        """The ids of the brokers that are paused."""
        return sorted(self._paused)

    def expire_member(self, group: str, member: str) -> str:
        """End the session of a member; ``member``: its member id, group.instance.id or client.id. Gives its
        member id.

        Raises InputError if that is not one member of the group, or if the member is parked: a parked member
        needs no heartbeat, so that its session cannot end.
        """
        known = self._known_group(group)
        member_id = _member_named(group, self.view(group).members, text("member", member))
        parked = known.members[member_id] if isinstance(known, ClassicGroup) else None
        if parked is not None and parked.satisfies_heartbeat():
            what = "JoinGroup" if parked.join is not None else "SyncGroup"
            raise InputError(f"member: {member!r} is parked in {what}: its session does not end meanwhile")
        self._server.apply(lambda broker, now_ms: broker.expire_session(group, member_id, now_ms))
        return member_id

    def configure_group(self, group: str, options: Mapping[str, str]) -> None:
        """Set these options of a group. Raises InputError."""
        state = self._server.broker.state
        try:
            configs = check_group({**state.group_configs.get(group, {}), **options}, state.coordinator_config)
        except ConfigError as problem:
            raise InputError(f"settings: {problem}") from problem

        def act(broker: Broker, now_ms: int) -> BrokerEffects:
            broker.state.configure_group(group, configs)
            return broker.fire(now_ms)

        self._server.apply(act)

    def _known_group(self, group: str) -> Group:
        known = self._group(text("group", group))
        if known is None:
            there = listed(self._coordinator.groups)
            raise InputError(f"group: {group!r}: there is no such group; there are: {there}")
        return known

    def _nodes(self, broker: int | None) -> tuple[int, ...]:
        nodes = self._server.broker.state.cluster.nodes
        if broker is None:
            return nodes
        if broker not in nodes or isinstance(broker, bool):
            raise InputError(f"broker: {broker!r}: expected one of {', '.join(map(str, nodes))}")
        return (broker,)

    # records

    def append(self, topic: str, partition: int, batch: bytes) -> int:
        """Append a record batch; gives its offset. Raises InputError if the broker refuses it."""
        offset = 0

        def act(broker: Broker, now_ms: int) -> BrokerEffects:
            nonlocal offset
            offset, effects = broker.append(topic, partition, batch, now_ms)
            return effects

        try:
            self._server.apply(act)
        except BatchError as problem:
            raise InputError(f"{topic}-{partition}: {problem.error.name}: {problem}") from problem
        return offset

    def records(self, topic: str, partition: int, committed_only: bool) -> list[ConsumerRecord]:
        """Return the records of the partition. ``committed_only``: without open and aborted transactions."""
        log = self._server.broker.state.topics.partition(topic, partition)
        assert log is not None
        until = log.last_stable_offset if committed_only else None
        aborted = (
            log.transactions.aborted_between(log.start_offset, log.last_stable_offset)
            if committed_only
            else ()
        )
        found, _ = decoded(
            TopicPartition(topic, partition),
            log.start_offset,
            b"".join(log.read(log.start_offset, log.size_bytes, at_least_one=True, until=until)),
            [AbortedRecords(one.producer_id, one.first_offset) for one in aborted],
            committed_only,
        )
        return found

    # views

    @property
    def groups(self) -> tuple[str, ...]:
        """The names of all groups, in order."""
        return tuple(sorted(self._coordinator.groups))

    def view(self, group: str) -> GroupView:
        """The group as it is now."""
        known = self._group(group)
        if isinstance(known, ClassicGroup):
            return classic_group(known)
        if isinstance(known, ConsumerGroup):
            return consumer_group(known, self._coordinator.topic_name)
        if isinstance(known, ShareGroup):
            return share_group(known, self._coordinator.topic_name)
        return NO_GROUP

    def all_committed(self, group: str) -> dict[str, int]:
        """Committed offsets by partition, as Kafka prints them: orders-0."""
        return self._coordinator.committed_offsets(group)

    def progress(self, group: str) -> Progress:
        """The group's offsets and partitions, and the ends of all logs."""
        ends = {
            f"{topic.name}-{number}": LogEnds(log.start_offset, log.end_offset)
            for topic in self._server.broker.state.topics
            for number, log in enumerate(topic.partitions)
        }
        committed = self.all_committed(group)
        if isinstance(self._group(group), ShareGroup):
            committed = self._done_of_share_group(group)
        return Progress(ends, committed, self.view(group).owners.keys())

    def _done_of_share_group(self, group: str) -> dict[str, int]:
        """The ends of logs less the records that the group is not done with, as DescribeShareGroupOffsets
        tells the lag; of a partition whose state nobody has written yet, where its leader begins."""
        state = self._server.broker.state
        begun = {one.key: one.start_offset for one in self._server.broker.share_partitions(group)}
        found = {}
        for topic in state.topics:
            for number in range(len(topic.partitions)):
                key, name = share_key(group, topic.topic_id, number), f"{topic.name}-{number}"
                error, summary = state.share_states.summary(key)
                if error is Error.NONE and summary.start >= 0:
                    found[name] = summary.start + max(0, summary.complete)
                elif key in begun:
                    found[name] = begun[key]
        return found

    def in_flight(self, group: str) -> dict[str, tuple[LockedRecords, ...]]:
        """The locked records of a share group, by partition; locks that are over now have ended. Raises
        InputError."""
        self._known_group(group)
        clients = {member.member_id: member.client_id for member in self.view(group).members}
        found: dict[str, tuple[LockedRecords, ...]] = {}

        def act(broker: Broker, now_ms: int) -> BrokerEffects:
            effects = broker.fire(now_ms)
            for partition in broker.share_partitions(group):
                topic, number = partition.key.topic_partition
                locked = locked_records(partition, clients, now_ms)
                if locked:
                    found[f"{self._coordinator.topic_name(UUID(topic))}-{number}"] = locked
            return effects

        self._server.apply(act)
        return found

    def trace(self, since: int = 0) -> list[dict[str, object]]:
        """The kept rows of a trace (docs/trace.md), from this number on."""
        return [
            as_mapping(seq, time_us, Source.COORDINATOR, event)
            for seq, (time_us, event) in enumerate(self.events, self.forgotten)
            if seq >= since
        ]

    def last_events(self, group: str) -> list[str]:
        """The last events of a group, one line each."""
        mine = [one for one in self.events if one[1].group == group]
        return [_line(*one) for one in mine[-_LAST_EVENTS:]]

    # waiting

    def wait_for(self, group: str, wanted: Wanted) -> WaitFuture:
        """Is done as soon as the group fulfils the condition, which is checked at every event of the
        coordinator; a test's own condition every `_SOON_S` too."""

        def is_so() -> bool:
            if wanted.is_met(self.view(group)):
                return True
            if isinstance(wanted, GroupPredicate) or isinstance(self._group(group), ShareGroup):
                self._look_soon()  # records, or that a share member has reached an epoch, are no events
            return False

        return self._conditions.when(is_so)

    def wait_caught_up(self, group: str, topics: Sequence[str]) -> WaitFuture:
        """Is done as soon as the group has committed the ends of these topics; none: of those that it has.

        The end of a transaction, deleted records and the acknowledgements of a share group are no events.
        """

        def is_so() -> bool:
            if self.progress(group).is_at_end(topics):
                return True
            self._look_soon()
            return False

        return self._conditions.when(is_so)

    def _look_soon(self) -> None:
        """Look at the conditions again in a moment, if no event comes earlier."""
        if self._soon is None:
            self._soon = asyncio.get_running_loop().call_later(_SOON_S, self._look_again)

    def _look_again(self) -> None:
        self._soon = None
        self._conditions.look_again()

    @property
    def _coordinator(self) -> GroupCoordinator:
        coordinator = self._server.broker.coordinator
        assert isinstance(coordinator, GroupCoordinator)
        return coordinator

    def _group(self, group: str) -> Group | None:
        return self._coordinator.group(group)


def _member_named(group: str, members: Sequence[MemberView], name: str) -> str:
    """The id of the member that has this member id, group.instance.id or client.id. Raises InputError."""
    ways: Sequence[Callable[[MemberView], str | None]] = (
        lambda member: member.member_id,
        lambda member: member.group_instance_id,
        lambda member: member.client_id,
    )
    for way in ways:
        found = [member.member_id for member in members if way(member) == name]
        if len(found) == 1:
            return found[0]
        if found:
            raise InputError(f"member: {name!r} are several, name one by its member id: {', '.join(found)}")
    known = ", ".join(member.member_id for member in members) or "nobody"
    raise InputError(f"member: {name!r} is not in group {group}: in it is {known}")


def _line(time_us: int, event: TracedEvent) -> str:
    fields = [
        f"{name}={','.join(map(str, value)) if isinstance(value, tuple) else value}"
        for name, value in zip(event._fields, event, strict=True)
        if name != "group" and value not in (None, "", ())
    ]
    return f"{time_us / 1_000_000:10.6f} s  {event_name(type(event)).replace('_', ' ')}: {' '.join(fields)}"
