"""The world of a run with real clients: processes, reports, requests, logs."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace

from groupstorm.assignors.userdata import TopicPartition, UserDataError, decode_assignment
from groupstorm.clients.brokers.contract import RunningBroker
from groupstorm.clients.consumer_group.membership import JOINS, LEAVES
from groupstorm.clients.error_tables import FENCING
from groupstorm.clients.operations import Disconnected
from groupstorm.clients.wire.cluster import ClusterClient
from groupstorm.coordinator import messages
from groupstorm.coordinator.errors import Error
from groupstorm.storms.live.clock import Spawn
from groupstorm.storms.live.real_clients import observations
from groupstorm.storms.live.real_clients.assembly import Assembly
from groupstorm.storms.live.real_clients.consumer import ClientConsumer
from groupstorm.storms.live.real_clients.libraries import Library, order
from groupstorm.storms.live.real_clients.processes import Parts, Report
from groupstorm.storms.live.world import RealWorld
from groupstorm.storms.records.logs import LogCurve
from groupstorm.storms.runs.steps_of_run import Process
from groupstorm.storms.scenario.files import ResolvedScenario
from groupstorm.storms.scenario.topics import rates_of
from groupstorm.storms.world.member_settings import consumer_config
from groupstorm.trace.events.scenario import RecordRatesChanged
from groupstorm.trace.rows import TracedEvent, TraceSink
from groupstorm.trace.schema import Source

#: Steps that act on a process by a signal that its other consumers would feel.
_SIGNALLED = ("crash", "crash-restart", "pause")

#: A log's end counts as reached if the members stand where it ended so long before: reports are that late.
_REPORTED_WITHIN_US = 1_500_000


class ClientWorld(RealWorld):
    """A `ScenarioHost` whose members are consumers of a client library."""

    def __init__(
        self,
        scenario: ResolvedScenario,
        broker: RunningBroker,
        cluster: ClusterClient,
        topics: Mapping[str, int],
        sink: TraceSink,
        spawn: Spawn,
        library: Library,
        parts: Parts,
    ) -> None:
        super().__init__(scenario, broker, cluster, topics, sink, spawn)
        self.pool = parts.pool
        self.forwarder = parts.forwarder
        self._library = library
        self._bootstrap = parts.bootstrap
        self._producer = parts.producer
        self._output = sink
        self._began_ns = time.monotonic_ns() - self.clock.now_us * 1000
        self._observations: list[observations.Observation] = []
        self._ended = False
        self._signalled = _signalled(scenario)
        self._left: set[str] = set()
        self._joined: dict[str, int] = {}
        #: Partition -> the first offset of its log in the scenario; in the real log it is 0.
        self._shifts: dict[str, int] = {}
        self._growing = 0
        self._reached: dict[str, int] = {}
        self._written: deque[tuple[int, Mapping[str, int]]] = deque()
        parts.forwarder.observer = self
        parts.producer.listen("", self._on_written)
        for partition in self.partitions:
            self._write_to(partition, 0)

    # -- consumers -------------------------------------------------------------------------------

    def new_process(self, index: int, name: str) -> Process:
        self._incarnations[name] += 1
        self._left.discard(name)
        self._joined.pop(name, None)
        settings = self.settings.release(self._release)
        config = consumer_config(settings, self.group, tuple(self._topics), name, index)
        ordered = order(self._library, settings.of_member(index), config, self._bootstrap, self.seed)
        consumer = ClientConsumer(self, index, name, config.group_instance_id, ordered)
        self.consumers[name] = consumer
        return consumer

    def must_be_alone(self, index: int) -> bool:
        """Whether a step of the scenario kills or stops the process of this member."""
        return self._signalled is None or index in self._signalled

    def has_left(self, name: str) -> bool:
        return name in self._left

    def joined_generation(self, name: str) -> int:
        return self._joined.get(name, -1)

    # -- what is observed ------------------------------------------------------------------------

    def time_us(self, monotonic_ns: int) -> int:
        """The scenario's time of a report: CLOCK_MONOTONIC is the same in all processes."""
        return max(0, (monotonic_ns - self._began_ns) // 1000)

    def observe(self, observation: observations.Observation) -> None:
        if self._ended:
            return
        observation = self._shifted(observation)
        self._observations.append(observation)
        if isinstance(observation, observations.Progressed | observations.Released):
            for partition, position in observation.positions.items():
                self._reached[partition] = max(position, self._reached.get(partition, 0))

    def request_sent(self, request: messages.Request) -> None:
        super().request_sent(request)
        if isinstance(request, messages.LeaveGroup):
            self._left.add(request.client_id)
            self._left_unasked(request.client_id)
        elif isinstance(request, messages.ConsumerGroupHeartbeat) and request.member_epoch < 0:
            if request.member_epoch == LEAVES:
                self._left.add(request.client_id)
            self._left_unasked(request.client_id)

    def _left_unasked(self, name: str) -> None:
        consumer = self.consumers.get(name)
        if isinstance(consumer, ClientConsumer) and not consumer.is_stopping:
            self.observe(observations.LeftUnasked(self.clock.now_us, name))

    def response_received(
        self, request: messages.Request, response: messages.Response | Disconnected
    ) -> None:
        super().response_received(request, response)
        now_us = self.clock.now_us
        if isinstance(request, messages.JoinGroup) and isinstance(response, messages.JoinGroupResponse):
            if response.error is Error.NONE:
                self._joined[request.client_id] = response.generation
                about = (response.member_id, response.generation, response.protocol or "")
                self.observe(observations.Joined(now_us, request.client_id, *about))
        elif isinstance(request, messages.SyncGroup) and isinstance(response, messages.SyncGroupResponse):
            self._synced(now_us, request, response)
        elif isinstance(request, messages.Heartbeat) and isinstance(response, messages.HeartbeatResponse):
            if response.error is Error.REBALANCE_IN_PROGRESS:
                self.observe(observations.RebalanceSeen(now_us, request.client_id))
        elif isinstance(request, messages.ConsumerGroupHeartbeat):
            if isinstance(response, messages.ConsumerGroupHeartbeatResponse):
                self._heartbeat_answered(request, response)
        elif isinstance(request, messages.OffsetCommit) and isinstance(
            response, messages.OffsetCommitResponse
        ):
            accepted = {
                (topic, number) for topic, number, error in response.partitions if error is Error.NONE
            }
            names = {str(topic_id): name for topic_id, name in self._cluster.topic_names.items()}
            positions = {
                f"{names.get(topic, topic)}-{number}": committed.offset
                for topic, partitions in request.offsets.items()
                for number, committed in partitions.items()
                if (topic, number) in accepted
            }
            self.observe(observations.Committed(now_us, positions))

    def _heartbeat_answered(
        self, request: messages.ConsumerGroupHeartbeat, response: messages.ConsumerGroupHeartbeatResponse
    ) -> None:
        name, now_us = request.client_id, self.clock.now_us
        if response.error in FENCING:
            self.observe(observations.Fenced(now_us, name, response.error.name))
        if response.error is not Error.NONE or response.member_epoch < 0:
            return
        if response.member_epoch != self._joined.get(name) or request.member_epoch == JOINS:
            self._joined[name] = response.member_epoch
            self.observe(
                observations.EpochReached(
                    now_us, name, response.member_id or request.member_id, response.member_epoch
                )
            )
        consumer = self.consumers.get(name)
        if response.assignment is not None and isinstance(consumer, ClientConsumer):
            names = self._cluster.topic_names
            consumer.given = frozenset(
                f"{names[topic]}-{number}"
                for topic, numbers in response.assignment.items()
                for number in numbers
            )

    def _synced(self, now_us: int, request: messages.SyncGroup, response: messages.SyncGroupResponse) -> None:
        name = request.client_id
        consumer = self.consumers.get(name)
        if response.error is not Error.NONE or not isinstance(consumer, ClientConsumer):
            return
        try:
            partitions = decode_assignment(response.assignment).partitions
        except UserDataError:
            partitions = ()  # no bytes: nothing was assigned
        consumer.given = frozenset(map(str, partitions))
        self.observe(observations.Synced(now_us, name))

    # -- records ---------------------------------------------------------------------------------

    def _write_to(self, partition: TopicPartition, now_us: int) -> None:
        """Let the producer write to this partition from now on. What its rates gave it before is missing in
        the real log, whose offsets begin at 0."""
        topic = partition.topic.removeprefix(self.broker.prefix)
        rates = rates_of(self.settings, topic, partition.partition)
        if not any(rate for _, rate in rates):
            return
        self._shifts[str(partition)] = written = LogCurve(rates).end(now_us)
        self._producer.command(
            "write",
            "",
            began_ns=self._began_ns,
            topic=partition.topic,
            partition=partition.partition,
            rates=rates,
            written=written,
        )

    def _on_written(self, report: Report) -> None:
        time_us = self.time_us(report["t"])
        self.observe(observations.Written(time_us, report["ends"]))
        self._written.append((time_us, self._shifted_positions(report["ends"])))

    def caught_up(self) -> bool:
        """Whether members have reported all records as processed that had been written a moment ago.

        A partition without owner has not caught up, and neither has a topic that is about to grow.
        """
        now_us = self.clock.now_us
        while len(self._written) > 1 and self._written[1][0] <= now_us - _REPORTED_WITHIN_US:
            self._written.popleft()
        ends = self._written[0][1] if self._written else {}
        owned = {name for one in self.consumers.values() for name in map(str, one.work.partitions)}
        behind = any(end > self._reached.get(partition, end) for partition, end in ends.items())
        return not (behind or self._growing or self._shifts.keys() - owned)

    def add_partitions(self, topic: str, count: int) -> None:
        self._growing += 1
        super().add_partitions(topic, count)

    def _get_records(self, created: Sequence[TopicPartition]) -> None:
        now_us = self.clock.now_us
        for partition in created:
            self._write_to(partition, now_us)
        self._growing -= 1

    def _shifted(self, seen: observations.Observation) -> observations.Observation:
        if isinstance(seen, observations.Progressed | observations.Released):
            positions = self._shifted_positions(seen.positions)
            return replace(seen, positions=positions, first=self._shifted_positions(seen.first))
        if isinstance(seen, observations.Committed):
            return replace(seen, positions=self._shifted_positions(seen.positions))
        if isinstance(seen, observations.Written):
            return replace(seen, ends=self._shifted_positions(seen.ends))
        return seen

    def _shifted_positions(self, positions: Mapping[str, int]) -> Mapping[str, int]:
        return {name: position + self._shifts.get(name, 0) for name, position in positions.items()}

    # -- the trace -------------------------------------------------------------------------------

    def trace(self, source: Source, event: TracedEvent) -> None:
        """Keep a row until `write_trace`; from then on write it.

        Rates of the logs are those of the settings until the producer has reported for the first time.
        """
        if isinstance(event, RecordRatesChanged) and self._written:
            return
        if self._ended:
            super().trace(source, event)
        else:
            self.observe(observations.Row(self.clock.now_us, source, event))

    def write_trace(self) -> None:
        """The run is over: write the rows of all that was observed; later rows are written at once."""
        now_us = self.clock.now_us
        self._ended = True
        seen = [one for one in self._observations if one.time_us <= now_us]
        assembly = Assembly(self.group, tuple(self._topics), seen)
        for time_us, source, event in assembly.rows():
            self.invariants.add(time_us, source, event)
            self._output.add(time_us, source, event)


def _signalled(scenario: ResolvedScenario) -> frozenset[int] | None:
    """The members whose processes get signals; None: all."""
    steps = [step for step in scenario.steps if step.do in _SIGNALLED]
    if any(step.members is None for step in steps):
        return None
    return frozenset(index for step in steps for index in step.members or ())
