"""The leader of a share group's partitions in virtual time: it decides by `share_records` and emits rows."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NamedTuple, Protocol

from groupstorm.coordinator.errors import Error
from groupstorm.javahash import topic_partition_hash, uuid_hash
from groupstorm.share_records.acquisition import Acquired
from groupstorm.share_records.broker import Ports, ShareBroker
from groupstorm.share_records.config import ShareBrokerConfig
from groupstorm.share_records.coordinator import ShareCoordinator
from groupstorm.share_records.messages import Request, Response, ShareFetch, ShareFetchResponse
from groupstorm.share_records.partition import SharePartition
from groupstorm.share_records.ports import (
    DeadLetter,
    KafkaError,
    ReadAnswer,
    SharePartitionKey,
    StateBatch,
    TopicPartition,
    WriteState,
)
from groupstorm.share_records.states import AcknowledgeType, RecordState
from groupstorm.share_records.timers import Timers
from groupstorm.storms.scenario.settings import Settings
from groupstorm.storms.share.log import VirtualLog
from groupstorm.storms.world.broker import topic_id
from groupstorm.storms.world.environment import Environment
from groupstorm.trace.events import share as events
from groupstorm.trace.schema import Source
from groupstorm.turns import at_once

#: Why records are given back (`ShareRecordsReturned.cause`).
RELEASED, CLOSED, CONNECTION_CLOSED, LOCK_EXPIRED = "released", "closed", "connection-closed", "lock-expired"
REJECTED, DELIVERED_TOO_OFTEN = "rejected", "delivery-limit"
_INITIAL_STATE_EPOCH: Final = 0
#: A share coordinator writes a snapshot in place of every so-manieth update; nothing here depends on it.
_UPDATES_PER_SNAPSHOT: Final = 500


class Holder(Protocol):
    """A consumer, as its leader sees it."""

    name: str

    @property
    def connection_id(self) -> str: ...


class Given(NamedTuple):
    """Records that a consumer was given at ``at_us``, from offset ``first`` to ``last``."""

    first: int
    last: int
    holder: Holder
    at_us: int


class Sent(NamedTuple):
    """A request whose answer goes to ``receive``. ``partitions``: those from which it fetches."""

    holder: Holder
    request: Request
    partitions: Sequence[TopicPartition]
    receive: Callable[[Response], None]


class ShareLeader:
    """One broker that leads all partitions."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._clock = environment.clock
        settings = environment.settings
        self._append_us = settings.integer("append_latency_ms") * 1000
        self._dead_letter_topics = tuple(filter(None, [settings.choice("errors.deadletterqueue.topic.name")]))
        self._timers = Timers()
        self._logs: dict[TopicPartition, VirtualLog] = {}
        self._loaded: dict[SharePartitionKey, SharePartition] = {}
        self._coordinator = ShareCoordinator(_UPDATES_PER_SNAPSHOT, self.has_partition)
        self.broker = ShareBroker(_broker_options(settings), Ports(self, self, self), self._timers)
        own = {"share.auto.offset.reset": settings.choice("share.auto.offset.reset")}
        self.broker.set_group_options(
            environment.group,
            {
                **own,
                "errors.deadletterqueue.topic.name": settings.choice("errors.deadletterqueue.topic.name"),
            },
        )
        #: The ranges of each partition that were given out and are not all done, in that order.
        self._given: defaultdict[TopicPartition, deque[Given]] = defaultdict(deque)
        #: Whose request, or whose end, is worked on, and why records are given back by it.
        self._acting: tuple[Holder, Request | None, str] | None = None
        self._buries = False
        #: The connections that have closed: what an answer to one of them gives may be released already.
        self._closed: set[str] = set()
        self._alarm_us: int | None = None
        #: Fetches that wait, by partition, and the partitions whose next records are waited for.
        self._waiting: Counter[TopicPartition] = Counter()
        self._expecting: set[TopicPartition] = set()

    # -- requests --------------------------------------------------------------------------------

    def handle(self, sent: Sent, returns: str = RELEASED) -> None:
        """A request has arrived. ``returns``: why records are given back by it."""
        for partition in sent.partitions:
            self._waiting[partition] += 1
        self._act(sent.holder, sent.request, returns, lambda: at_once(self.broker.handle(sent.request, sent)))
        for partition in sent.partitions:
            self._expect(partition)

    def disconnect(self, holder: Holder) -> None:
        """A consumer's connection has closed."""
        self._closed.add(holder.connection_id)
        self._act(holder, None, CONNECTION_CLOSED, lambda: self.broker.disconnect(holder.connection_id))

    def _act(self, holder: Holder, request: Request | None, returns: str, act: Callable[[], None]) -> None:
        self._timers.now_ms = self._clock.now_us // 1000
        self._acting = holder, request, returns
        act()
        self._acting = None
        self._settle()

    def _settle(self) -> None:
        """Hand answers out, and wake when the next timer is due."""
        while replies := self.broker.drain():
            for sent, response in replies:
                assert isinstance(sent, Sent)
                self._answer(sent, response)
        self._unlock_forgotten()
        deadline_ms = self._timers.next_deadline()
        if deadline_ms is not None and (self._alarm_us is None or deadline_ms * 1000 < self._alarm_us):
            self._alarm_us = max(deadline_ms * 1000, self._clock.now_us)
            self._clock.at(self._alarm_us, self._fire, self._alarm_us)

    def _unlock_forgotten(self) -> None:
        """The broker forgets a group whose last connection has closed. A fetch of that connection may hold
        records still: no row says that it got them, and none that it gave them back."""
        for key, known in [*self._loaded.items()]:
            if self.broker.share_partitions.get(key) is not known:
                known.unlock_all()
                del self._loaded[key]

    def _answer(self, sent: Sent, response: Response) -> None:
        for partition in sent.partitions:
            self._waiting[partition] -= 1
        api = "ShareFetch" if isinstance(sent.request, ShareFetch) else "ShareAcknowledge"
        error = None if response.error is Error.NONE else response.error.name
        self._environment.broker.count((api, error), 1)
        if isinstance(sent.request, ShareFetch) and isinstance(response, ShareFetchResponse):
            acquired = [
                (partition, one)
                for partition, found in response.partitions.items()
                for one in found.acquired
                if sent.request.connection not in self._closed
                or self._holds(sent.request.member_id, partition, one)
            ]
            if acquired:
                for partition, one in acquired:
                    self._give(sent.holder, partition, one)
                self._emit(self._acquired(sent.holder, acquired))
        sent.receive(response)

    def _acquired(
        self, holder: Holder, acquired: Sequence[tuple[TopicPartition, Acquired]]
    ) -> events.ShareRecordsAcquired:
        rows = [
            (str(one), first, last - first + 1, deliveries, self.share_partition(one).in_flight_count)
            for one, (first, last, deliveries) in acquired
        ]
        partitions, positions, counts, deliveries, in_flight = zip(*rows, strict=True)
        group = self._environment.group
        return events.ShareRecordsAcquired(
            group, holder.name, partitions, positions, counts, deliveries, in_flight
        )

    def _holds(self, member_id: str, partition: TopicPartition, one: Acquired) -> bool:
        """Whether the records are locked for the member still, and the group is not forgotten."""
        known = self.broker.share_partitions.get(self._key(partition))
        batch = None if known is None else known.batches.floor(one.first_offset)
        return batch is not None and any(
            state.is_held(member_id) for _, _, state in batch.parts(one.first_offset, one.last_offset)
        )

    def _give(self, holder: Holder, partition: TopicPartition, one: Acquired) -> None:
        given, start = self._given[partition], self.share_partition(partition).start_offset
        while given and given[0].last < start:
            given.popleft()
        given.append(Given(one.first_offset, one.last_offset, holder, self._clock.now_us))

    def _fire(self, alarm_us: int) -> None:
        """A lock or a fetch's wait may be over."""
        if alarm_us != self._alarm_us:
            return
        self._alarm_us = None
        self._timers.now_ms = self._clock.now_us // 1000
        while self._timers.fire_one():
            pass
        self._settle()

    # -- records that arrive ---------------------------------------------------------------------

    def _expect(self, partition: TopicPartition) -> None:
        """Somebody waits for the next records of the partition."""
        if partition in self._expecting or not self._waiting[partition]:
            return
        arrives_us = self.log(partition).next_arrival_us()
        if arrives_us is not None:
            self._expecting.add(partition)
            self._clock.at(max(arrives_us, self._clock.now_us + 1), self._arrived, partition)

    def _arrived(self, partition: TopicPartition) -> None:
        self._expecting.discard(partition)
        if self._waiting[partition]:
            self._timers.now_ms = self._clock.now_us // 1000
            self.broker.records_arrived(partition)
            self._settle()
            self._expect(partition)

    def is_caught_up(self, partition: TopicPartition, arrived_by_us: int) -> bool:
        """Whether all records that had arrived by then have been delivered."""
        end = min(self._environment.records.logs.end(partition, arrived_by_us), self._end(partition))
        known = self.broker.share_partitions.get(self._key(partition))
        return known is not None and known.is_active and end <= known.next_fetch_offset()

    def start(self, partition: TopicPartition) -> int:
        """All records before it are done; -1: the group has not begun with the partition."""
        known = self.broker.share_partitions.get(self._key(partition))
        if known is not None and known.is_active:
            return known.start_offset
        state = self._coordinator.states.get(self._key(partition))
        return -1 if state is None else state.start

    def done(self, partition: TopicPartition) -> int:
        """The records before the first that is not done, and those behind it that are."""
        known = self.broker.share_partitions.get(self._key(partition))
        behind = known.complete_count if known is not None and known.is_active else 0
        return max(0, self.start(partition)) + behind

    def share_partition(self, partition: TopicPartition) -> SharePartition:
        return self.broker.share_partitions[self._key(partition)]

    def _end(self, partition: TopicPartition) -> int:
        return self.log(partition).latest_offset()

    def _key(self, partition: TopicPartition) -> SharePartitionKey:
        return SharePartitionKey(self._environment.group, partition)

    # -- the surroundings of the broker: share_records.ports ---------------------------------------

    def has_topic(self, topic: str) -> bool:
        return topic in self._environment.topics.now

    def has_partition(self, partition: TopicPartition) -> bool:
        return partition.partition < self._environment.topics.now.get(partition.topic, 0)

    def log(self, partition: TopicPartition) -> VirtualLog:
        log = self._logs.get(partition)  # a topic with a share group does not go
        if log is None:
            if not self.has_partition(partition):
                raise KafkaError(Error.UNKNOWN_TOPIC_OR_PARTITION)
            settings, curve = self._environment.settings, self._environment.records.logs.curve(partition)
            per_batch, size = settings.integer("records_per_batch"), settings.integer("record_bytes")
            log = self._logs[partition] = VirtualLog(curve, self._clock, per_batch, size)
        return log

    def partition_hash(self, partition: TopicPartition) -> int:
        """TopicIdPartition.hashCode."""
        one = topic_partition_hash(partition)
        return (31 * (31 + uuid_hash(topic_id(partition.topic))) + one) & 0xFFFF_FFFF

    def read(
        self, key: SharePartitionKey, leader_epoch: int, done: Callable[[ReadAnswer | None], None]
    ) -> None:
        if key not in self._coordinator.states:
            self._coordinator.initialize(key, _INITIAL_STATE_EPOCH, -1)
        done(self._coordinator.read(key, leader_epoch)[0])
        known = self._loaded[key] = self.broker.share_partitions[key]
        of = (str(key.topic_partition),)
        self._emit(events.SharePartitionsLoaded(key.group, of, (known.start_offset,)))

    def write(self, request: WriteState, done: Callable[[Error | None], None]) -> None:
        error, _ = self._coordinator.write(request)
        if not self._buries:
            self._tell(request)
        if not self._append_us:
            done(error)
        else:
            self._clock.after(self._append_us, self._written, self._acting, partial(done, error))

    def _written(self, acting: tuple[Holder, Request | None, str] | None, done: Callable[[], None]) -> None:
        """A consumer that closes gives records back once its acknowledgements are written."""
        self._timers.now_ms = self._clock.now_us // 1000
        self._acting = acting
        done()
        self._acting = None
        self._settle()

    def enqueue(self, letter: DeadLetter, done: Callable[[], None]) -> None:
        """The dead letter queue takes every record: its row was that of the archiving."""
        del letter
        self._buries = True
        done()
        self._buries = False

    # -- rows --------------------------------------------------------------------------------------

    def _tell(self, request: WriteState) -> None:
        """Emit what becomes of the records whose states are written."""
        partition, now_us = request.key.topic_partition, self._clock.now_us
        self._tell_unsent(partition, request.batches)
        for state, first, last in _joined(request.batches):
            last_given = self._last_given(partition, first)
            assert last_given is not None
            holder = last_given.holder
            _, asked, returns = self._acting or (holder, None, LOCK_EXPIRED)
            ranges = (str(partition),), (first,), (last - first + 1,)
            group, held_us = request.key.group, now_us - last_given.at_us
            if state is RecordState.ACKNOWLEDGED:
                self._emit(events.ShareRecordsAccepted(group, holder.name, *ranges))
            elif state is RecordState.AVAILABLE:
                self._emit(events.ShareRecordsReturned(group, holder.name, *ranges, held_us, returns))
            else:
                rejected = asked is not None and _is_rejected(asked, partition, first)
                cause = REJECTED if rejected else DELIVERED_TOO_OFTEN
                topics = self._dead_letter_topics
                self._emit(events.ShareRecordsArchived(group, holder.name, *ranges, held_us, cause, topics))

    def _tell_unsent(self, partition: TopicPartition, returned: Sequence[StateBatch]) -> None:
        """Emit the deliveries that end before their answer has left: the connection has closed."""
        if self._acting is None or self._acting[1] is not None:
            return
        holder = self._acting[0]
        for first, last, _, count in returned:
            given = self._last_given(partition, first)
            if given is None or given.holder is not holder:
                one = Acquired(first, last, count)
                self._give(holder, partition, one)
                self._emit(self._acquired(holder, [(partition, one)]))

    def _last_given(self, partition: TopicPartition, offset: int) -> Given | None:
        return next(
            (one for one in reversed(self._given[partition]) if one.first <= offset <= one.last), None
        )

    def _emit(self, event: events.Event) -> None:
        self._environment.trace.emit(Source.COORDINATOR, event)


def _joined(batches: Sequence[StateBatch]) -> list[tuple[RecordState, int, int]]:
    """The state of each range, its first and its last record; neighbours of one state are one range."""
    joined: list[tuple[RecordState, int, int]] = []
    for first, last, state, _ in batches:
        if joined and joined[-1][0] is state and joined[-1][2] == first - 1:
            joined[-1] = state, joined[-1][1], last
        else:
            joined.append((state, first, last))
    return joined


def _is_rejected(request: Request, partition: TopicPartition, offset: int) -> bool:
    return any(
        batch.type_of(offset) == AcknowledgeType.REJECT
        for batch in request.partitions.get(partition, ())
        if batch.first_offset <= offset <= batch.last_offset
    )


def _broker_options(settings: Settings) -> ShareBrokerConfig:
    return ShareBrokerConfig.from_mapping(
        {
            name: settings.integer(name)
            for name in (
                "group.share.record.lock.duration.ms",
                "group.share.delivery.count.limit",
                "group.share.partition.max.record.locks",
            )
        }
    )
