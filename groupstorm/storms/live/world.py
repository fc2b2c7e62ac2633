"""The real world of one run: a broker, consumers over TCP, the clock on the wall."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Protocol
from uuid import UUID

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.brokers.contract import RunningBroker
from groupstorm.clients.inferred_consumer_group import InferredConsumerGroup
from groupstorm.clients.inferred_coordinator import InferredCoordinator
from groupstorm.clients.inferred_migration import InferredMigration
from groupstorm.clients.operations import Disconnected
from groupstorm.clients.profiles import GroupProtocol
from groupstorm.clients.wire.admin import grow_topic
from groupstorm.clients.wire.cluster import ClusterClient
from groupstorm.coordinator.messages import Request, Response
from groupstorm.storms.checks.invariants import InvariantChecks
from groupstorm.storms.live.clock import RealClock, Spawn
from groupstorm.storms.live.consumer import RealConsumer
from groupstorm.storms.records.logs import RecordLogs
from groupstorm.storms.records.positions import RecordRateRows, Records, caught_up
from groupstorm.storms.runs.steps_of_run import ConsumerProcess, Process
from groupstorm.storms.scenario.files import ResolvedScenario
from groupstorm.storms.scenario.settings import Settings
from groupstorm.storms.scenario.topics import rates_of
from groupstorm.storms.world.broker import GROUP, api_and_error
from groupstorm.storms.world.member_settings import consumer_config
from groupstorm.trace.events import coordinator as coordinator_events
from groupstorm.trace.events.group_states import GroupState
from groupstorm.trace.events.scenario import PartitionsCreated
from groupstorm.trace.rows import TracedEvent, TraceSink
from groupstorm.trace.schema import Source

_SETTLED_STATES = (GroupState.STABLE, GroupState.EMPTY)


def protocols(settings: Settings) -> frozenset[GroupProtocol]:
    """The group protocols that members speak, those of later releases included."""
    return frozenset(GroupProtocol(own.choice("group.protocol")) for own in settings.of_profiles())


class LiveConsumer(ConsumerProcess, Protocol):
    """A consumer in real time: a wire member, or one of a client library."""

    @property
    def settled(self) -> bool:
        """Whether it is in a generation and owns what that gave to it."""

    @property
    def generation(self) -> int: ...


class RealWorld:
    """A `ScenarioHost` in real time, which observes the requests and responses of its members."""

    def __init__(
        self,
        scenario: ResolvedScenario,
        broker: RunningBroker,
        cluster: ClusterClient,
        topics: Mapping[str, int],
        sink: TraceSink,
        spawn: Spawn,
    ) -> None:
        settings = scenario.settings
        self.scenario = scenario
        self.settings = settings
        self.seed = scenario.seed
        self.broker = broker
        self.spawn = spawn
        self.clock = RealClock(spawn)
        prefix = len(broker.prefix)
        self.records = Records(RecordLogs(lambda tp: rates_of(settings, tp.topic[prefix:], tp.partition)))
        self.rate_rows = RecordRateRows(self)
        self.invariants = InvariantChecks(settings.flag("joins"), causes_known=broker.emits_events)
        self.consumers: dict[str, LiveConsumer] = {}
        self.requests: Counter[tuple[str, str | None]] = Counter()
        self.group = broker.prefix + GROUP
        self._cluster = cluster
        self._sink: TraceSink | None = sink
        self._incarnations: Counter[str] = Counter()
        self._topics = dict(topics)
        self._release = 0
        self._group_state: str = GroupState.EMPTY.value
        self._inferred = self._inference()

    def _inference(self) -> InferredCoordinator | InferredConsumerGroup | InferredMigration | None:
        if self.broker.emits_events:
            return None
        spoken = protocols(self.settings)
        if GroupProtocol.CONSUMER not in spoken:
            return InferredCoordinator(self.group, self.coordinator_event)

        def topic_names() -> Mapping[UUID, str]:
            return self._cluster.topic_names

        def topics() -> Mapping[str, int]:
            return self._cluster.topics

        if len(spoken) == 1:
            return InferredConsumerGroup(self.group, self.coordinator_event, topic_names, topics)
        downgrades = self.settings.choice("group.consumer.migration.policy") in ("bidirectional", "downgrade")
        return InferredMigration(
            self.group, self.coordinator_event, topic_names, topics, downgrades=downgrades
        )

    # -- consumers -------------------------------------------------------------------------------

    @property
    def processes(self) -> Mapping[str, Process]:
        """The processes that a scenario's steps start and stop."""
        return self.consumers

    def use_release(self, number: int) -> None:
        self._release = number

    def new_process(self, index: int, name: str) -> Process:
        """A process under ``name``: it takes the name over from an earlier one."""
        self._incarnations[name] += 1
        settings = self.settings.release(self._release)
        config = consumer_config(settings, self.group, tuple(self._topics), name, index)
        consumer = RealConsumer(self, index, self._incarnations[name], config)
        self.consumers[name] = consumer
        return consumer

    def process_gone(self, consumer: LiveConsumer) -> None:
        if self.consumers.get(consumer.name) is consumer:
            del self.consumers[consumer.name]
        if isinstance(self._inferred, InferredConsumerGroup | InferredMigration):
            self._inferred.member_gone(consumer.name)

    # -- requests and the coordinator ------------------------------------------------------------

    def request_sent(self, request: Request) -> None:
        if self._inferred is not None:
            self._inferred.request_sent(request)

    def response_received(self, request: Request, response: Response | Disconnected) -> None:
        if not isinstance(response, Disconnected):
            self.requests[api_and_error(response)] += 1
        if self._inferred is not None:
            self._inferred.response_received(request, response)

    def coordinator_event(self, event: coordinator_events.Event) -> None:
        """An event of the coordinator: its own, or inferred."""
        if isinstance(event, coordinator_events.OffsetsCommitted) or event.group != self.group:
            return  # positions are in the events of the ownership that they belong to
        self.trace(Source.COORDINATOR, event)
        if isinstance(event, coordinator_events.GroupStateChanged):
            self._group_state = event.state

    # -- topics and records ----------------------------------------------------------------------

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        return tuple(TopicPartition(topic, p) for topic, count in self._topics.items() for p in range(count))

    def add_partitions(self, topic: str, count: int) -> None:
        """``topic`` gets ``count`` partitions (it cannot shrink)."""
        self.spawn(self._add_partitions(self.broker.prefix + topic, count))

    async def _add_partitions(self, topic: str, count: int) -> None:
        before = self._topics[topic]
        if count > before:
            await grow_topic(self._cluster, topic, count)
            self._topics[topic] = count
        created = [TopicPartition(topic, number) for number in range(before, self._topics[topic])]
        self.trace(Source.WORLD, PartitionsCreated(self.group, (topic,), tuple(map(str, created))))
        self._get_records(created)

    def _get_records(self, created: Sequence[TopicPartition]) -> None:
        """These partitions get records from now on."""
        self.rate_rows.look()

    def caught_up(self) -> bool:
        """Whether all records have been processed."""
        works = [one.work for one in self.consumers.values() if isinstance(one, RealConsumer)]
        return caught_up(self.records, works, self.partitions, self.clock.now_us)

    def group_lags(self) -> list[int]:
        """The lag of every partition, from what was processed: commits are not known here."""
        records, now_us = self.records, self.clock.now_us
        return [max(0, records.logs.end(tp, now_us) - records.reached(tp, now_us)) for tp in self.partitions]

    def committed_records(self) -> int:
        """Records that the group has processed, over all partitions: commits are not known here."""
        return sum(self.records.reached(partition, self.clock.now_us) for partition in self.partitions)

    # -- the trace and the end -------------------------------------------------------------------

    def trace(self, source: Source, event: TracedEvent) -> None:
        """Emit an event that happens now; after `end` none is emitted any more."""
        if self._sink is not None:
            self.invariants.add(self.clock.now_us, source, event)
            self._sink.add(self.clock.now_us, source, event)

    def write_trace(self) -> None:
        """Write the rows that were kept until the end of the run. This world keeps none."""

    def end(self) -> None:
        """The run is over: drop later events."""
        self._sink = None

    @property
    def settled(self) -> bool:
        """Whether the group is known to be Stable (or Empty), with all members in one generation."""
        living = [consumer for consumer in self.consumers.values() if consumer.started]
        generations = {consumer.generation for consumer in living}
        return (
            self._group_state in _SETTLED_STATES
            and len(generations) <= 1
            and all(consumer.settled for consumer in living)
        )

    @property
    def follow_ups(self) -> bool:
        """Whether members that are at rest will ask for another rebalance by themselves."""
        return False

    @property
    def unanswered(self) -> Sequence[str]:
        """None: a member that still waits at the end has not settled, which is a verdict of its own."""
        return ()

    def reads(self, _topic: str) -> bool:
        return True  # none of them has a pattern of its own

    @property
    def left_behind(self) -> Sequence[str]:
        """None: a real broker does not tell."""
        return ()
