"""The virtual world of one run: a coordinator, its consumers, a network, a clock."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from groupstorm.assignors.contract import Assignor
from groupstorm.assignors.leadermemory import LeaderMemory
from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.generation import Generation
from groupstorm.clients.requests import heartbeat_instance
from groupstorm.coordinator import events as coordinator_events
from groupstorm.coordinator.config import CoordinatorConfig
from groupstorm.coordinator.coordinator import GroupCoordinator
from groupstorm.coordinator.effects import Effects
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import HeartbeatResponse, Request
from groupstorm.coordinator.records import AppendCause, Record
from groupstorm.coordinator.sessions import IN_TOUCH
from groupstorm.coordinator.states import PREPARING_REBALANCE, GroupState
from groupstorm.storms.answers import NAMES, answer_of
from groupstorm.storms.assignor_work import AssignorWork
from groupstorm.storms.checkers import Checkers
from groupstorm.storms.clock import Clock
from groupstorm.storms.connection import Exchange
from groupstorm.storms.consumer import VirtualConsumer
from groupstorm.storms.events import PartitionsCreated
from groupstorm.storms.member_ids import SeededMemberIds
from groupstorm.storms.members import consumer_config, strategies
from groupstorm.storms.patience import Patience
from groupstorm.storms.records import Records, lag
from groupstorm.storms.scenario import ResolvedScenario
from groupstorm.storms.stage import Process
from groupstorm.storms.steps import topic_names
from groupstorm.trace.rows import Told, TracedEvent, TraceSink
from groupstorm.trace.schema import Source

GROUP = "storm"

#: From how many events on the sink gets them: few enough to be in the processor's caches still.
TOLD_AT_ONCE = 250

#: Looked up on the class, a member costs as much as a call before Python 3.12.
_COORDINATOR: Final = Source.COORDINATOR

#: The scenario's settings that are the broker's.
BROKER_SETTINGS = (
    "group.initial.rebalance.delay.ms",
    "group.max.size",
    "group.min.session.timeout.ms",
    "group.max.session.timeout.ms",
)


class World:
    """Everything that one run consists of. ``exact``: heartbeats one by one (the oracle)."""

    def __init__(
        self,
        scenario: ResolvedScenario,
        assignors: Sequence[Assignor],
        sink: TraceSink,
        exact: bool = False,
        work: AssignorWork | None = None,
    ) -> None:
        settings = scenario.settings
        self.scenario = scenario
        self.settings = settings
        self.seed = scenario.seed
        self.group = GROUP
        self.exact = exact
        self.assignors = assignors
        self.clock = Clock()
        self.latency = settings.distribution("net_latency_ms")
        self.poll_interval = settings.distribution("poll_interval_ms")
        self.records = Records(settings.integer("record_rate"), settings.integer("process_rate"))
        self.checkers = Checkers(settings.flag("joins"))
        self.assignor_work = work or AssignorWork()
        self.leader_memory = LeaderMemory()
        self.consumers: dict[str, VirtualConsumer] = {}
        self.consumers_by_id: dict[str, VirtualConsumer] = {}
        self.requests: dict[tuple[str, str | None], int] = {}
        self._sink = sink
        self._told: list[Told] = []
        self._incarnations: Counter[str] = Counter()
        self._busy_until_us = 0
        self._service_us = settings.integer("coordinator_service_us")
        self._ending: tuple[int, list[str]] = (-1, [])
        self._patience: dict[int, Patience] = {}
        self._topic_changes: list[tuple[int, Mapping[str, int]]] = [
            (-1, dict.fromkeys(topic_names(settings), settings.integer("partitions")))
        ]
        #: All that there are now; empty: not listed yet.
        self._partitions: tuple[TopicPartition, ...] = ()
        self.coordinator = GroupCoordinator(
            CoordinatorConfig.from_mapping({name: str(settings.integer(name)) for name in BROKER_SETTINGS}),
            member_ids=SeededMemberIds(scenario.seed),
            append=self._append,
            last_contact=None if exact else self._last_contact_ms,
            keeps_offsets=False,
            on_earlier=self._due_earlier,
        )

    # -- time ------------------------------------------------------------------------------------

    def run_until(self, end_us: int) -> None:
        """Let everything happen that is due by ``end_us``: the coordinator's timers before requests."""
        clock = self.clock
        while True:
            deadline_ms = self.coordinator.next_deadline()
            due_us = end_us + 1 if deadline_ms is None else deadline_ms * 1000
            clock.limit_us = min(due_us, end_us + 1)
            clock.run()
            if clock.limit_us > end_us:
                break
            clock.advance_to(max(clock.limit_us, clock.now_us))
            self._carry_out(self.coordinator.fire(clock.now_us // 1000))
        clock.advance_to(max(end_us, clock.now_us))
        self.hand_over()

    def _due_earlier(self, deadline_ms: int) -> None:
        """The coordinator waits for something that comes before all that it waited for."""
        self.clock.limit_us = min(self.clock.limit_us, deadline_ms * 1000)

    # -- consumers -------------------------------------------------------------------------------

    def new_process(self, index: int, name: str) -> Process:
        """A process under ``name``: it takes the name over from an earlier one."""
        config = consumer_config(self.settings, GROUP, topic_names(self.settings), name, index)
        self._incarnations[name] += 1
        consumer = VirtualConsumer(self, index, self._incarnations[name], config)
        self.consumers[name] = consumer
        return consumer

    @property
    def processes(self) -> Mapping[str, Process]:
        """What a scenario's steps start and stop."""
        return self.consumers

    def process_gone(self, consumer: VirtualConsumer) -> None:
        if self.consumers.get(consumer.name) is consumer:
            del self.consumers[consumer.name]

    def assignors_of(self, config: ConsumerConfig) -> Sequence[Assignor]:
        """What this process offers: its client's own, where members have several clients."""
        offered = strategies(self.settings)
        if offered == config.partition_assignment_strategy:
            return self.assignors
        by_entry = dict(zip(offered, self.assignors, strict=True))
        return [by_entry[entry] for entry in config.partition_assignment_strategy]

    # -- the coordinator -------------------------------------------------------------------------

    def handle(self, request: Request, exchange: Exchange) -> None:
        """A request has arrived: its answer goes to ``exchange``, now or later."""
        self._carry_out(self.coordinator.handle(request, self.clock.now_us // 1000, exchange))

    def heartbeat(self, config: ConsumerConfig, generation: Generation) -> Error | None:
        """A heartbeat of ``generation`` has arrived: its answer; None where it has to wait for a write."""
        now_ms = self.clock.now_us // 1000
        error = self.coordinator.heartbeat(
            GROUP, generation.member_id, heartbeat_instance(config), generation.id, now_ms
        )
        if error is not None:
            self.count(NAMES[HeartbeatResponse, error], 1)
        return error

    def patience(self, timeout_ms: int) -> Patience:
        """Of all who wait so long for an answer."""
        patience = self._patience.get(timeout_ms)
        if patience is None:
            patience = self._patience[timeout_ms] = Patience(self.clock, timeout_ms * 1000)
        return patience

    def ask(self, request: Request, on_answer: partial[None]) -> None:
        """A request that mutes no connection (Heartbeat, background commit) has arrived."""
        self._carry_out(self.coordinator.handle(request, self.clock.now_us // 1000, on_answer))

    def _carry_out(self, effects: Effects) -> None:
        if effects.events:
            now_us, tell = self.clock.now_us, self._told.append
            for event in effects.events:
                if type(event) in _WATCHED:
                    self._react(event)
                else:
                    tell((now_us, _COORDINATOR, event))
            if len(self._told) >= TOLD_AT_ONCE:
                self.hand_over()
        for token, response in effects.replies:
            self.count(answer_of(response), 1)
            if type(token) is Exchange:
                token.answered(response)
            elif type(token) is partial:
                token(response)

    def _append(self, _records: Sequence[Record], _cause: AppendCause) -> tuple[int, Error | None]:
        """Group metadata takes its time. Offset commits are never written: most of them are not simulated,
        and an append holds up the answers behind it."""
        return self.settings.integer("append_latency_ms"), None

    def answer_leaves_us(self) -> int:
        """When the next answer leaves: the coordinator works on one request at a time."""
        now_us = self.clock.now_us
        begins_us = now_us if now_us > self._busy_until_us else self._busy_until_us
        self._busy_until_us = ends_us = begins_us + self._service_us
        return ends_us

    def _react(self, event: coordinator_events.Event) -> None:
        """The group has changed: heartbeats may be answered otherwise from now on."""
        self.trace(_COORDINATOR, event)
        if isinstance(event, coordinator_events.GroupStateChanged):
            self.checkers.see(event)
            if event.state in _WAKING_STATES:
                generation_over = event.state == GroupState.COMPLETING_REBALANCE
                for consumer in tuple(self.consumers.values()):
                    consumer.pulse.wake(generation_over)
        elif isinstance(event, coordinator_events.MemberRemoved):
            self._wake(event.member_id)
        elif isinstance(event, coordinator_events.MemberReplaced):
            self._wake(event.previous_member_id)

    def _wake(self, member_id: str) -> None:
        consumer = self.consumers_by_id.pop(member_id, None)
        if consumer is not None and consumer.alive:
            consumer.pulse.wake(generation_over=True)

    def _last_contact_ms(self, _group: str, member_id: str, deadline_ms: int) -> int | None:
        """What the coordinator asks when a session is about to end: see `pulse.last_contact_ms`.

        Sessions that end at one millisecond end in the order in which the members fell silent.
        """
        consumer = self.consumers_by_id.get(member_id)
        if consumer is None:
            return None
        session_ms = consumer.config.session_timeout_ms
        last_ms = consumer.pulse.last_contact_ms(deadline_ms, session_ms)
        if last_ms == IN_TOUCH or (last_ms is not None and last_ms + session_ms > deadline_ms):
            return last_ms
        if self._ending[0] != deadline_ms:
            self._ending = (deadline_ms, self._sessions_ending_at(deadline_ms))
        ending = self._ending[1]
        if member_id in ending and member_id != ending[0]:
            return deadline_ms - session_ms
        ending[:] = [other for other in ending if other != member_id]
        return None

    def out_of_touch(self, member_id: str, contact_us: int) -> None:
        """Heartbeats that the coordinator counted on have stopped; the last arrived at ``contact_us``."""
        self.coordinator.out_of_touch(GROUP, member_id, contact_us // 1000, self.clock.now_us // 1000)

    def _sessions_ending_at(self, deadline_ms: int) -> list[str]:
        """Members whose sessions end at this millisecond, those that were silent first before the others."""
        ending = []
        for member_id, consumer in self.consumers_by_id.items():
            contact_us = consumer.pulse.silent_since_us()
            session_ms = consumer.config.session_timeout_ms
            if contact_us is not None and contact_us // 1000 + session_ms == deadline_ms:
                ending.append((contact_us, member_id))
        return [member_id for _, member_id in sorted(ending)]

    # -- topics and records ----------------------------------------------------------------------

    def topics_at(self, time_us: int) -> Mapping[str, int]:
        """Topics and their numbers of partitions as they were at ``time_us``."""
        index = bisect_right(self._topic_changes, time_us, key=lambda change: change[0])
        return self._topic_changes[max(0, index - 1)][1]

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        if not self._partitions:
            topics = self._topic_changes[-1][1]
            self._partitions = tuple(
                [TopicPartition(topic, p) for topic, count in topics.items() for p in range(count)]
            )
        return self._partitions

    def add_partitions(self, topic: str, count: int) -> None:
        """``topic`` has ``count`` partitions from now on (it cannot shrink)."""
        topics = dict(self._topic_changes[-1][1])
        before = topics[topic]
        topics[topic] = max(before, count)
        self._topic_changes.append((self.clock.now_us, topics))
        self._partitions = ()
        created = tuple(str(TopicPartition(topic, p)) for p in range(before, topics[topic]))
        self.trace(Source.WORLD, PartitionsCreated(GROUP, (topic,), created))
        for consumer in self.consumers.values():
            consumer.metadata_may_have_changed()

    def commit(self, positions: Mapping[TopicPartition, int]) -> None:
        """The coordinator has accepted these."""
        self.records.committed.update(positions)

    def committed(self, partitions: tuple[TopicPartition, ...]) -> tuple[int, ...]:
        """The group's committed offsets; -1 where there is none."""
        for partition in partitions:
            for work in self.records.holders.get(partition, ()):
                holder = self.consumers.get(work.owner)
                if holder is not None:
                    holder.pulse.settle_commits()
        return tuple(self.records.committed.get(partition, -1) for partition in partitions)

    def lag(self) -> int:
        """Records that nobody has processed yet."""
        works = [consumer.work for consumer in self.consumers.values()]
        return lag(self.records, works, self.partitions, self.clock.now_us)

    # -- what is told ----------------------------------------------------------------------------

    def trace(self, source: Source, event: TracedEvent) -> None:
        """Tell an event that happens now."""
        self._told.append((self.clock.now_us, source, event))

    def hand_over(self) -> None:
        """Hand what was told on to the sink."""
        self._sink.add_all(self._told)
        self._told.clear()

    def is_current(self, generation: Generation) -> bool:
        """Whether the coordinator would answer a heartbeat of this generation without an error."""
        group = self.coordinator.group(GROUP)
        return (
            group is not None
            and group.generation == generation.id
            and group.state is not PREPARING_REBALANCE
            and group.members.get(generation.member_id) is not None
        )

    def generation_of(self, name: str) -> int | None:
        """The generation that the process of that name believes to be in."""
        consumer = self.consumers.get(name)
        return None if consumer is None else consumer.membership.generation.id

    def count(self, answer: tuple[str, str | None], number: int) -> None:
        """``number`` requests of an API were answered with an error, or without one (None)."""
        if number:
            self.requests[answer] = self.requests.get(answer, 0) + number

    # -- the state of things ---------------------------------------------------------------------

    def finish(self) -> None:
        """The run is over: verdicts."""
        self.checkers.finish(self)

    @property
    def settled(self) -> bool:
        """Whether the group is Stable (or Empty), made of exactly the living, with nothing under way."""
        group = self.coordinator.group(GROUP)
        living = [consumer for consumer in self.consumers.values() if consumer.started]
        if group is None:
            return not living
        if group.state not in _SETTLED_STATES or set(group.members) != {
            consumer.membership.generation.member_id for consumer in living
        }:
            return False
        return all(consumer.settled for consumer in living)

    def cease(self) -> bool:
        """Patience is at an end: members ask for no more rebalances by themselves. Whether they did."""
        return False

    @property
    def follow_ups(self) -> bool:
        """Whether members that are at rest will ask for another rebalance by themselves."""
        return False

    @property
    def unanswered(self) -> Sequence[str]:
        """Processes that still wait for the answer to a parked request."""
        consumers = self.consumers.values()
        return [consumer.name for consumer in consumers if consumer.connection.parked is not None]


#: Events that may change the answer to a heartbeat.
_WATCHED = frozenset(
    {
        coordinator_events.GroupStateChanged,
        coordinator_events.MemberRemoved,
        coordinator_events.MemberReplaced,
    }
)

_WAKING_STATES = frozenset({GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE})
_SETTLED_STATES = frozenset({GroupState.STABLE, GroupState.EMPTY})
