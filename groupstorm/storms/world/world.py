"""The virtual world of one run: it hosts a scenario's processes and lets their time pass.

The processes of a scenario with plain consumers are one each, or pods with several. The consumers of a pod,
as Spring's listener containers with concurrency have them, start, drain, stop and are killed together. Each
is a member of the group.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from groupstorm.assignors.contract import Assignor
from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.profiles import GroupProtocol
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import CommittedOffset, Heartbeat, OffsetCommit
from groupstorm.storms.checks.invariants import InvariantChecks
from groupstorm.storms.checks.settling import Rounds
from groupstorm.storms.checks.verdicts import FENCED
from groupstorm.storms.deployments.autoscaler import partition_lag
from groupstorm.storms.records.positions import RecordRateRows
from groupstorm.storms.runs.steps_of_run import ConsumerProcess, Process, member_names
from groupstorm.storms.scenario.topics import topic_names
from groupstorm.storms.share.checks import ShareChecks
from groupstorm.storms.world.broker import GROUP, VirtualBroker, api_and_error
from groupstorm.storms.world.consumer import VirtualConsumer
from groupstorm.storms.world.environment import Environment, MemberProcess
from groupstorm.storms.world.member_settings import consumer_config, strategies
from groupstorm.storms.world.record_times import SlowRecordTimes
from groupstorm.trace.events.scenario import PartitionsCreated, PartitionsDeleted
from groupstorm.trace.rows import TracedEvent
from groupstorm.trace.schema import Source

P = TypeVar("P", bound=Process)


class Processes(ABC, Generic[P]):
    """The processes that a scenario runs, by name: consumers, or instances of a Kafka Streams application."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._incarnations: Counter[str] = Counter()
        self.running: dict[str, P] = {}

    @abstractmethod
    def new(self, index: int, name: str) -> P:
        """A process under ``name``: it takes the name over from an earlier one."""

    def _next_incarnation(self, name: str) -> int:
        self._incarnations[name] += 1
        return self._incarnations[name]

    def _remove(self, process: P) -> None:
        """The process is gone; its name may belong to a later one by now."""
        if self.running.get(process.name) is process:
            del self.running[process.name]

    @property
    def settled(self) -> bool:
        """Whether the processes are at rest, as far as the group cannot know."""
        return True

    @property
    def follow_ups(self) -> bool:
        """Whether members that are at rest will ask for another rebalance by themselves."""
        return False

    def give_up_follow_ups(self) -> bool:
        """Members ask for no more rebalances by themselves. Returns whether they did until now."""
        return False

    @abstractmethod
    def finish(self) -> None:
        """The run is over: check and count what the group does not know of."""


class World:
    """A `ScenarioHost` in virtual time: the parts of the run, and its processes."""

    def __init__(self, environment: Environment, processes: Processes[Any]) -> None:
        self._environment = environment
        self._processes = processes
        self.scenario = environment.scenario
        self.settings = environment.settings
        self.seed = environment.seed
        self.group = environment.group
        self.clock = environment.clock
        self.records = environment.records
        self.invariants: InvariantChecks | ShareChecks = environment.checks
        self.rate_rows = RecordRateRows(self)

    def run_until(self, end_us: int) -> None:
        """Do everything that is due by ``end_us``; at one instant, the coordinator's timers come last."""
        clock, broker = self.clock, self._environment.broker
        while True:
            due_us = broker.due_us()
            clock.limit_us = (end_us if due_us is None else min(due_us, end_us)) + 1
            clock.run()
            due_us = broker.due_us()  # calls may have set an earlier timer, or cancelled this one
            if due_us is not None and due_us < clock.limit_us:
                clock.advance_to(max(due_us, clock.now_us))
                broker.fire_timers()
            elif clock.limit_us > end_us:
                break
        clock.advance_to(max(end_us, clock.now_us))
        self._environment.trace.flush()

    # -- processes -------------------------------------------------------------------------------

    @property
    def processes(self) -> Mapping[str, Process]:
        return self._processes.running

    def use_release(self, number: int) -> None:
        self._environment.release = number

    def new_process(self, index: int, name: str) -> Process:
        process: Process = self._processes.new(index, name)
        return process

    @property
    def consumers(self) -> Mapping[str, ConsumerProcess]:
        return self._environment.members.by_name

    @property
    def settled(self) -> bool:
        """Whether the group is Stable or Empty, made of exactly the living, with nothing under way."""
        return self._processes.settled and self._environment.members.settled_in(
            self._environment.broker.group
        )

    @property
    def has_pauses(self) -> bool:
        """Whether a member stands still, or works on a long batch."""
        return any(process.pauses.lasts for process in self._environment.members.by_name.values())

    def member(self, name: str) -> MemberProcess:
        return self._environment.members.by_name[name]

    @property
    def follow_ups(self) -> bool:
        return self._processes.follow_ups

    def give_up_follow_ups(self) -> bool:
        """Members ask for no more rebalances by themselves. Returns whether they did until now."""
        return self._processes.give_up_follow_ups()

    @property
    def unanswered(self) -> Sequence[str]:
        return self._environment.members.unanswered

    def reads(self, topic: str) -> bool:
        return any(one.config.reads(topic) for one in self._environment.members.by_name.values())

    @property
    def left_behind(self) -> Sequence[str]:
        return [
            name
            for member_id, name in self._environment.broker.coordinator.members_without_session(GROUP)
            if not self._environment.members.has(name, member_id)
        ]

    # -- topics and records ----------------------------------------------------------------------

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        return self._environment.topics.partitions

    def add_partitions(self, topic: str, count: int) -> None:
        """``topic`` has ``count`` partitions from now on (it cannot shrink), or is created with them."""
        created = self._environment.topics.grow(topic, count, self.clock.now_us)
        self._environment.topics_changed({topic: self._environment.topics.now[topic]})
        self.records.created(created, self.clock.now_us)
        if self.slow_records is not None:
            self.slow_records.created(created)
        # An owner that has not noticed the deletion goes on without a row: then the next owner's row is the
        # first one that names the partition again.
        new = tuple([str(partition) for partition in created if not self.records.holders.get(partition)])
        if new:
            self.trace(Source.WORLD, PartitionsCreated(self.group, (topic,), new))
        self.rate_rows.look(created)
        for member in self._environment.members.by_name.values():
            member.metadata_may_have_changed()

    def delete_topic(self, topic: str) -> None:
        """``topic`` is gone, with its records and the group's offsets.

        Members that own partitions of it get UNKNOWN_TOPIC_OR_PARTITION for their next fetch and refresh
        their metadata; the others see it at their next regular refresh.
        """
        gone = self._environment.topics.delete(topic, self.clock.now_us)
        self._environment.topics_changed({}, [topic])
        self.trace(Source.WORLD, PartitionsDeleted(self.group, (topic,), tuple(map(str, gone))))
        self.records.forget(gone)
        for member in self._environment.members.by_name.values():
            if any(partition in member.work for partition in gone):
                member.fetches_unknown_partitions()
            else:
                member.metadata_may_have_changed()

    @property
    def committed(self) -> Mapping[TopicPartition, int]:
        """The group's offsets now, background commits included."""
        partitions = self.partitions
        offsets = self._environment.members.committed(partitions)
        return {part: offset for part, offset in zip(partitions, offsets, strict=True) if offset >= 0}

    def fail_over(self, until_us: int, delay_within_us: Callable[[int], int]) -> None:
        """There is no coordinator until then: requests and responses are lost, and with them heartbeats.

        FindCoordinator gets COORDINATOR_NOT_AVAILABLE until then, and the client asks again after a pause;
        ``delay_within_us`` draws how much later than the coordinator is there.
        """
        environment, now_us = self._environment, self.clock.now_us
        counted_us = max(now_us, environment.network.down_until_us)
        until_us = environment.network.down_until_us = max(until_us, counted_us)
        environment.broker.fail_over(until_us)
        for member in tuple(environment.members.by_name.values()):
            backoff_ms = member.config.retry_backoff_ms
            asked = (until_us - counted_us) // (backoff_ms * 1000)
            environment.broker.count(("FindCoordinator", Error.COORDINATOR_NOT_AVAILABLE.name), asked)
            member.faults.lose_coordinator(until_us - now_us + delay_within_us(backoff_ms))

    def slow_appends(self, until_us: int, append_ms: int) -> None:
        self._environment.broker.slow_appends(until_us, append_ms)

    def fail_appends(self, until_us: int) -> None:
        self._environment.broker.fail_appends(until_us)

    @property
    def slow_records(self) -> SlowRecordTimes | None:
        return self._environment.slow_records

    @property
    def rounds(self) -> Rounds:
        return self._environment.rounds

    def caught_up(self) -> bool:
        return self._environment.members.caught_up(self.partitions, self.clock.now_us)

    def group_lags(self) -> list[int]:
        """The lag of every partition from its committed offset; without one it counts as one record."""
        partitions, logs = self.partitions, self.records.logs
        committed = self._environment.members.committed(partitions)
        ends = [logs.end(partition, self.clock.now_us) for partition in partitions]
        return [partition_lag(end, offset) for end, offset in zip(ends, committed, strict=True)]

    def committed_records(self) -> int:
        """Records that the group has committed, over all partitions."""
        return sum(max(0, offset) for offset in self._environment.members.committed(self.partitions))

    # -- the trace, the end ----------------------------------------------------------------------

    def trace(self, source: Source, event: TracedEvent) -> None:
        self._environment.trace.emit(source, event)

    @property
    def requests(self) -> Mapping[tuple[str, str | None], int]:
        return self._environment.broker.requests

    def finish(self) -> None:
        """The run is over: verdicts and sums, behind the last event of the group."""
        self._environment.trace.flush()
        self.invariants.finish(self, self.clock.now_us)
        self._processes.finish()
        for member in tuple(self._environment.members.by_name.values()):
            for partition, position in member.work.positions(self.clock.now_us).items():
                self._environment.invariants.records.at_end(member.name, str(partition), position)
            member.periodic_requests.stop()
            member.rates.finish()
        _probe(self._environment.broker, self._environment.invariants)

    def close_trace(self) -> None:
        """Hand all events to the sink: there will be no more."""
        self._environment.trace.close()


_VERSIONS = (9, 4)
_ACCEPTED = (None, "REBALANCE_IN_PROGRESS")


def _probe(broker: VirtualBroker, checks: InvariantChecks) -> None:
    """Send a commit and a heartbeat in the name of each member, in a generation or epoch that is over.

    Few runs have a member that commits or heartbeats in a generation that is over, so a coordinator that
    takes such requests would seldom be found out. Nobody sees the requests: they are in no trace and no
    figure.
    """
    for member_id, epoch, partition in checks.fenced_commits.former_epochs():
        topic, _, number = partition.rpartition("-")
        offsets = {topic: {int(number): CommittedOffset(0)}}
        commit = OffsetCommit(GROUP, member_id, None, epoch, offsets, _VERSIONS[0])
        for request in (commit, Heartbeat(GROUP, member_id, None, epoch, _VERSIONS[1])):
            effects = broker.coordinator.handle(request, broker.clock.now_us // 1000, request)
            errors = [api_and_error(answer)[1] for token, answer in effects.replies if token is request]
            if errors and errors[0] in _ACCEPTED:
                what = f"{type(request).__name__} of {member_id} in generation {epoch}"
                checks.violated(FENCED, f"at the end of the run {what} was accepted")


class PlainConsumers(Processes[Any]):
    """Every process is a consumer. ``assignors``: those of all the scenario's clients together."""

    def __init__(self, environment: Environment, assignors: Sequence[Assignor]) -> None:
        super().__init__(environment)
        self.running = environment.members.by_name
        self._assignors = assignors

    def new(self, index: int, name: str) -> Process:
        """A consumer under ``name``: it takes the name over from an earlier one."""
        return self.new_member(index, name, name)

    def new_member(self, index: int, name: str, instance: str) -> MemberProcess:
        """A consumer under ``name``, whose group.instance.id is ``instance`` if it is static."""
        environment = self._environment
        settings = environment.settings.release(environment.release)
        topics = topic_names(environment.settings)
        config = consumer_config(settings, environment.group, topics, name, index, instance)
        incarnation, own = self._next_incarnation(name), settings.of_member(index)
        consumer: MemberProcess
        if config.group_protocol is GroupProtocol.CONSUMER:
            # Storms of the classic protocol start without the modules of the other one.
            from groupstorm.storms.world.consumer_group.process import ConsumerGroupProcess

            consumer = ConsumerGroupProcess(environment, index, incarnation, config, own)
        else:
            offered = self._offered(config)
            consumer = VirtualConsumer(environment, index, incarnation, config, offered, own)
        environment.members.add(consumer)
        return consumer

    def _offered(self, config: ConsumerConfig) -> Sequence[Assignor]:
        """Return this process's assignors: its client's own ones if members have several clients."""
        all_offered = strategies(self._environment.settings)
        if all_offered == config.partition_assignment_strategy:
            return self._assignors
        by_entry = dict(zip(all_offered, self._assignors, strict=True))
        return [by_entry[entry] for entry in config.partition_assignment_strategy]

    def finish(self) -> None:
        """Nothing is left to count."""


class Pod:
    """A process that is gone when the last of its ``consumers`` is."""

    def __init__(
        self, index: int, name: str, consumers: Sequence[MemberProcess], on_gone: Callable[[Pod], None]
    ) -> None:
        self.index = index
        self.name = name
        self.alive = True
        self.started = False
        self.on_exit: Callable[[], None] | None = None
        self._consumers = consumers
        self._on_gone = on_gone
        for consumer in consumers:
            consumer.on_exit = self._consumer_gone

    def start(self) -> None:
        self.started = True
        for consumer in self._consumers:
            consumer.start()

    def stop(self) -> None:
        for consumer in self._consumers:
            if consumer.alive:  # else a fatal error has ended it before
                consumer.stop()

    def crash(self) -> None:
        for consumer in self._consumers:
            consumer.crash()

    def _consumer_gone(self) -> None:
        if self.alive and not any(consumer.alive for consumer in self._consumers):
            self.alive = False
            self._on_gone(self)
            if self.on_exit is not None:
                self.on_exit()


class Pods(PlainConsumers):
    """Every process is a pod with ``each`` consumers, whose places in the group follow each other."""

    def __init__(self, environment: Environment, assignors: Sequence[Assignor], each: int) -> None:
        super().__init__(environment, assignors)
        self.running = {}
        self._each = each

    def new(self, index: int, name: str) -> Process:
        """A pod under ``name``: it takes the name over from an earlier one.

        A static consumer's group.instance.id is the pod's with a number from 1 on, as Spring names it.
        """
        consumers = [
            self.new_member(index * self._each + number, member, f"{name}-{number + 1}")
            for number, member in enumerate(member_names(name, self._each))
        ]
        pod = self.running[name] = Pod(index, name, consumers, self._remove)
        return pod
