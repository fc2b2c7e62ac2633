"""The real world of one run: a broker, consumers over TCP, the clock on the wall."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.brokers.contract import RunningBroker
from groupstorm.clients.operations import Disconnected
from groupstorm.clients.overheard import OverheardGroup
from groupstorm.clients.wire.admin import grow_topic
from groupstorm.clients.wire.cluster import Cluster
from groupstorm.coordinator import events as coordinator_events
from groupstorm.coordinator.messages import Request, Response
from groupstorm.coordinator.states import GroupState
from groupstorm.storms.answers import answer_of
from groupstorm.storms.checkers import Checkers
from groupstorm.storms.events import PartitionsCreated
from groupstorm.storms.live.clock import RealClock, Spawn
from groupstorm.storms.live.consumer import RealConsumer
from groupstorm.storms.members import consumer_config
from groupstorm.storms.records import Records, lag
from groupstorm.storms.scenario import ResolvedScenario
from groupstorm.storms.stage import Process
from groupstorm.storms.world import GROUP
from groupstorm.trace.rows import TracedEvent, TraceSink
from groupstorm.trace.schema import Source

_SETTLED_STATES = (GroupState.STABLE, GroupState.EMPTY)


class RealWorld:
    """A `stage.Stage`. It is told what its members and their coordinator say to each other."""

    def __init__(
        self,
        scenario: ResolvedScenario,
        broker: RunningBroker,
        cluster: Cluster,
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
        self.records = Records(settings.integer("record_rate"), settings.integer("process_rate"))
        self.checkers = Checkers(settings.flag("joins"))
        self.consumers: dict[str, RealConsumer] = {}
        self.requests: Counter[tuple[str, str | None]] = Counter()
        self.group = broker.prefix + GROUP
        self._cluster = cluster
        self._sink: TraceSink | None = sink
        self._incarnations: Counter[str] = Counter()
        self._topics = dict(topics)
        self._group_state: str = GroupState.EMPTY.value
        self._overheard = None if broker.tells_events else OverheardGroup(self.group, self.coordinator_event)

    # -- consumers -------------------------------------------------------------------------------

    @property
    def processes(self) -> Mapping[str, Process]:
        """What a scenario's steps start and stop."""
        return self.consumers

    def new_process(self, index: int, name: str) -> Process:
        """A process under ``name``: it takes the name over from an earlier one."""
        self._incarnations[name] += 1
        config = consumer_config(self.settings, self.group, tuple(self._topics), name, index)
        consumer = RealConsumer(self, index, self._incarnations[name], config)
        self.consumers[name] = consumer
        return consumer

    def process_gone(self, consumer: RealConsumer) -> None:
        if self.consumers.get(consumer.name) is consumer:
            del self.consumers[consumer.name]

    # -- what is heard ---------------------------------------------------------------------------

    def sent(self, request: Request) -> None:
        if self._overheard is not None:
            self._overheard.sent(request)

    def answered(self, request: Request, response: Response | Disconnected) -> None:
        if not isinstance(response, Disconnected):
            self.requests[answer_of(response)] += 1
        if self._overheard is not None:
            self._overheard.answered(request, response)

    def coordinator_event(self, event: coordinator_events.Event) -> None:
        """What the coordinator did, told by itself or overheard."""
        if isinstance(event, coordinator_events.OffsetsCommitted) or event.group != self.group:
            return  # positions are told with the ownership that they belong to
        self.trace(Source.COORDINATOR, event)
        if isinstance(event, coordinator_events.GroupStateChanged):
            self._group_state = event.state
            self.checkers.see(event)

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
        created = tuple(str(TopicPartition(topic, p)) for p in range(before, self._topics[topic]))
        self.trace(Source.WORLD, PartitionsCreated(self.group, (topic,), created))

    def lag(self) -> int:
        """Records that nobody has processed yet."""
        works = [consumer.work for consumer in self.consumers.values()]
        return lag(self.records, works, self.partitions, self.clock.now_us)

    # -- what is told ----------------------------------------------------------------------------

    def trace(self, source: Source, event: TracedEvent) -> None:
        """Tell an event that happens now; after the end nothing is told any more."""
        if self._sink is not None:
            self._sink.add(self.clock.now_us, source, event)

    def end(self) -> None:
        """What still happens is no part of the run."""
        self._sink = None

    def generation_of(self, name: str) -> int | None:
        consumer = self.consumers.get(name)
        return None if consumer is None else consumer.generation

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
        """Nobody: who still waits at the end has not settled, and that is told."""
        return ()
