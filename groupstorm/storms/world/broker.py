"""The broker of the virtual world: the group coordinator, which works on one request at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from itertools import islice
from typing import Any, Final, TypeAlias
from uuid import UUID

from groupstorm.clients.member_session import Generation
from groupstorm.coordinator.classic.group import ClassicGroup
from groupstorm.coordinator.classic.states import STABLE
from groupstorm.coordinator.config import COMPATIBILITY, Compatibility, CoordinatorConfig
from groupstorm.coordinator.consumer.group import ConsumerGroup, ConsumerGroupState
from groupstorm.coordinator.effects import Effects
from groupstorm.coordinator.errors import NO_ERROR, Error
from groupstorm.coordinator.messages import (
    LeaveGroupResponse,
    OffsetCommit,
    OffsetCommitResponse,
    Request,
    Response,
)
from groupstorm.coordinator.records import AppendCause, Record
from groupstorm.coordinator.share.group import ShareGroup
from groupstorm.coordinator.simulated import SimulatedGroupCoordinator
from groupstorm.coordinator.streams.group import StreamsGroup
from groupstorm.coordinator.timers import TimerKind
from groupstorm.coordinator.topics import Topic
from groupstorm.storms.scenario.setting_names import SHARE, STREAMS_PROTOCOL
from groupstorm.storms.scenario.settings import Settings
from groupstorm.storms.world.clock import ORDER_BITS, Clock
from groupstorm.trace.events import coordinator as coordinator_events
from groupstorm.trace.rows import TracedEvent, TraceEntry, TraceSink
from groupstorm.trace.schema import Source
from groupstorm.trace.writer import Tee

#: From how many events on the sink gets them: few enough to be in the processor's caches still.
FLUSH_AT: Final = 250


class TraceBuffer:
    """Stamps events with the virtual time. ``pending`` are the events that the sinks do not have yet; the
    broker appends to it directly, which saves a call for each event. ``checks`` see, between the events, what
    has no row."""

    def __init__(self, clock: Clock, sink: TraceSink, checks: TraceSink) -> None:
        self._clock = clock
        self._sink = sink
        self._checks = checks
        #: Calls, each with the number of pending events that come before it.
        self._between: list[tuple[int, Callable[[], None]]] = []
        self.pending: list[TraceEntry] = []

    def emit(self, source: Source, event: TracedEvent) -> None:
        """Emit an event that happens now."""
        self.pending.append((self._clock.now_us, source, event))

    def between_events(self, call: Callable[[], None]) -> None:
        """Call when the checks have all events so far and no later one."""
        self._between.append((len(self.pending), call))

    def flush(self) -> None:
        """Hand all pending events on."""
        pending, checks, at = self.pending, self._checks, 0
        self._sink.add_all(pending)
        rest = iter(pending)
        for before, call in self._between:
            if before > at:
                checks.add_all(islice(rest, before - at))
            call()
            at = before
        checks.add_all(rest)
        pending.clear()
        self._between.clear()

    def close(self) -> None:
        """Hand the last events on, and let go of the sink: what a run leaves behind has cycles, which would
        keep the trace until Python looks for them."""
        self.flush()
        self._sink = self._checks = Tee()


#: These have an error for each partition or each member.
_OF_PARTS: Final = (OffsetCommitResponse, LeaveGroupResponse)


def first_error(response: OffsetCommitResponse) -> Error:
    """The first error of a commit's partitions."""
    for _, _, error in response.partitions:
        if error is not NO_ERROR:
            return error
    return NO_ERROR


def _leave_error(response: LeaveGroupResponse) -> Error:
    if response.error is not NO_ERROR:
        return response.error
    return next((member.error for member in response.members), NO_ERROR)


def api_and_error(response: Response) -> tuple[str, str | None]:
    """Kafka's names of the API that a response answers and of its error, if it has one."""
    if not isinstance(response, _OF_PARTS):
        error = response.error
    elif isinstance(response, OffsetCommitResponse):
        error = first_error(response)
    else:
        error = _leave_error(response)
    return API_AND_ERROR[type(response), error]


class _Names(dict[tuple[type, Error], tuple[str, str | None]]):
    """Kafka's names, made when they are first wanted."""

    def __missing__(self, response: tuple[type, Error]) -> tuple[str, str | None]:
        kind, error = response
        names = self[response] = (kind.__name__.removesuffix("Response"), error.name if error else None)
        return names


#: (type of the response, error) -> Kafka's names of the API and the error.
API_AND_ERROR = _Names()


GROUP = "storm"

#: The scenario's settings that are the broker's.
BROKER_SETTINGS = (
    "group.initial.rebalance.delay.ms",
    "group.max.size",
    "group.min.session.timeout.ms",
    "group.max.session.timeout.ms",
    "group.consumer.max.size",
    "group.share.max.size",
    "group.streams.initial.rebalance.delay.ms",
)

#: The options with bounds of their own, which follow them: group.consumer.min. and group.consumer.max.
_BOUNDED: Final = ("session.timeout.ms", "heartbeat.interval.ms", "assignment.interval.ms")


#: Looked up on the class, a member costs as much as a call before Python 3.12.
_COORDINATOR: Final = Source.COORDINATOR

OnCommit: TypeAlias = Callable[[OffsetCommit, Callable[[Response], None]], Callable[[Response], None]]

#: Events after which the coordinator may answer a heartbeat differently.
_GROUP_CHANGES = frozenset(
    {
        coordinator_events.GroupStateChanged,
        coordinator_events.MemberRemoved,
        coordinator_events.MemberReplaced,
    }
)


class SeededMemberIds:
    """The n-th id of a run is the same in every run of that seed (Kafka: client id, dash, random UUID)."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._drawn = 0

    def __call__(self, prefix: str) -> str:
        self._drawn += 1
        digest = blake2b(f"{self._seed}/member-id/{self._drawn}".encode(), digest_size=16).digest()
        return f"{prefix}-{UUID(bytes=digest, version=4)}"


def broker_options(settings: Settings) -> dict[str, str]:
    """The broker's options, by Kafka's names. Share and streams groups are those of Kafka 4.4.0, on whose
    client their members run."""
    options = {name: str(settings.integer(name)) for name in BROKER_SETTINGS}
    for name in _BOUNDED:
        for kind in ("consumer", "share", "streams"):
            value = str(settings.integer(f"group.{kind}.{name}"))
            for bound in ("", "min.", "max."):
                options[f"group.{kind}.{bound}{name}"] = value
    standbys = str(settings.integer("num.standby.replicas"))
    options |= {f"group.streams.{bound}standby.replicas": standbys for bound in ("num.", "max.")}
    policy = "group.consumer.migration.policy"
    options[policy] = settings.choice(policy)
    if any(own.choice("group.protocol") in (SHARE, STREAMS_PROTOCOL) for own in settings.of_profiles()):
        options[COMPATIBILITY] = Compatibility.REPAIRED_4_4_0
    return options


def topic_id(name: str) -> UUID:
    """The id of the topic: the same in every run. A topic that is deleted and created anew keeps it."""
    return UUID(bytes=blake2b(f"topic-id/{name}".encode(), digest_size=16).digest(), version=4)


class VirtualBroker:
    """Hands requests to the coordinator, its events to the trace and its responses to the senders.

    ``on_group_change`` receives the events after which heartbeats may be answered differently; ``on_write``
    is called when a write begins: responses wait for it.
    ``fails_over``: the coordinator keeps what it wrote, for its successor. ``requests`` counts the responses
    by API and error.
    """

    def __init__(
        self,
        settings: Settings,
        seed: int,
        clock: Clock,
        trace: TraceBuffer,
        on_group_change: Callable[[coordinator_events.Event], None],
        on_write: Callable[[], None],
        fails_over: bool = False,
    ) -> None:
        self.clock = clock
        self.requests: Counter[tuple[str, str | None]] = Counter()
        self._trace = trace
        self._on_group_change = on_group_change
        self._on_write = on_write
        self._has_written = False
        #: Sees each commit that arrives, and replaces the receiver of its response.
        self.on_commit: OnCommit = lambda _, receive: receive
        self._append_latency_ms = settings.integer("append_latency_ms")
        self._service_us = settings.integer("coordinator_service_us")
        self._slow_append_ms = self._appends_slow_until_us = self._appends_fail_until_us = 0
        self._busy_until_us = 0
        self._down_until_us: int | None = None
        self.coordinator = SimulatedGroupCoordinator(
            CoordinatorConfig.from_mapping(broker_options(settings)),
            member_ids=SeededMemberIds(seed),
            append=self._append,
            whole_records=fails_over,
            keeps_offsets=False,
            on_earlier=self._due_earlier,
            moment=lambda: clock.moment,
        )

    # -- requests --------------------------------------------------------------------------------

    def handle(self, request: Request, receive: Callable[[Response], None]) -> None:
        """A request has arrived: ``receive`` gets its response, now or later."""
        if type(request) is OffsetCommit:
            receive = self.on_commit(request, receive)
        self._carry_out(self.coordinator.handle(request, self.clock.now_us // 1000, receive))

    def response_leaves_us(self) -> int:
        """When the next response leaves: the coordinator works on one request at a time."""
        now_us = self.clock.now_us
        begins_us = now_us if now_us > self._busy_until_us else self._busy_until_us
        self._busy_until_us = ends_us = begins_us + self._service_us
        return ends_us

    def count(self, response: tuple[str, str | None], number: int) -> None:
        """``number`` requests of an API were answered with an error, or without one (None)."""
        if number:
            self.requests[response] += number

    def _carry_out(self, effects: Effects) -> None:
        if self._has_written:
            self._has_written = False
            self._on_write()
        if effects.events:
            now_us, pending = self.clock.now_us, self._trace.pending
            for event in effects.events:
                pending.append((now_us, _COORDINATOR, event))
                if type(event) in _GROUP_CHANGES:
                    self._on_group_change(event)
            if len(pending) >= FLUSH_AT:
                self._trace.flush()
        replies: list[tuple[Any, Response]] = effects.replies  # the tokens are what `handle` was given
        for receive, response in replies:
            self.requests[api_and_error(response)] += 1
            receive(response)

    def _append(self, _records: Sequence[Record], _cause: AppendCause) -> tuple[int, Error | None]:
        """Group metadata takes its time. Offset commits are never written: most of them are not simulated,
        and an append holds up the responses behind it."""
        now_us = self.clock.now_us
        self._has_written = True
        takes_ms = self._slow_append_ms if now_us < self._appends_slow_until_us else self._append_latency_ms
        error = Error.NOT_ENOUGH_REPLICAS if now_us < self._appends_fail_until_us else None
        return takes_ms, error

    @property
    def is_writing(self) -> bool:
        """Whether a write is under way, behind which the coordinator holds responses back."""
        return self.coordinator.last_write(GROUP) is not None

    def slow_appends(self, until_us: int, append_ms: int) -> None:
        """Writes that begin before ``until_us`` take so long; a later call overrides an earlier one."""
        self._appends_slow_until_us, self._slow_append_ms = until_us, append_ms

    def fail_appends(self, until_us: int) -> None:
        """Writes that begin before ``until_us`` fail."""
        self._appends_fail_until_us = max(self._appends_fail_until_us, until_us)

    # -- time ------------------------------------------------------------------------------------

    def due_us(self) -> int | None:
        """When the coordinator's next timer is due; None if it waits for nothing."""
        if self._down_until_us is not None:
            return self._down_until_us
        deadline_ms = self.coordinator.next_deadline()
        return None if deadline_ms is None else deadline_ms * 1000

    def fire_timers(self) -> None:
        """Let the coordinator do what is due now. What would be due while there is none passes."""
        if self._down_until_us is not None:
            if self.clock.now_us < self._down_until_us:
                return
            self._down_until_us = None
            self._carry_out(self.coordinator.move([GROUP], self.clock.now_us // 1000))
            return
        self._carry_out(self.coordinator.fire(self.clock.now_us // 1000))

    def _due_earlier(self, deadline_ms: int) -> None:
        """The coordinator has set a timer that is due before all others."""
        self.clock.limit_us = min(self.clock.limit_us, deadline_ms * 1000 + 1)

    def fail_over(self, until_us: int) -> None:
        """The coordinator's broker is gone. Another one has read the group's records at ``until_us``: the
        group is as they say, and the sessions of its members begin anew."""
        self._down_until_us = max(until_us, self._down_until_us or 0)
        self.clock.limit_us = min(self.clock.limit_us, until_us + 1)

    # -- the group -------------------------------------------------------------------------------

    def topics_changed(self, changed: Mapping[str, int], removed: Sequence[str] = ()) -> None:
        """Topics were created or have grown (``changed``: numbers of partitions), or were deleted."""
        topics = {name: Topic(topic_id(name), count) for name, count in changed.items()}
        self._carry_out(self.coordinator.update_topics(topics, removed, self.clock.now_us // 1000))

    @property
    def group(self) -> ClassicGroup | ConsumerGroup | StreamsGroup | None:
        group = self.coordinator.group(GROUP)
        return group if isinstance(group, ClassicGroup | ConsumerGroup | StreamsGroup) else None

    @property
    def consumer_group(self) -> ConsumerGroup | None:
        """The group, if it is one of KIP-848."""
        group = self.coordinator.group(GROUP)
        return group if isinstance(group, ConsumerGroup) else None

    @property
    def share_group(self) -> ShareGroup | None:
        """The group, if it is one of KIP-932."""
        group = self.coordinator.group(GROUP)
        return group if isinstance(group, ShareGroup) else None

    def is_quiet(self, member_id: str, epoch: int) -> bool:
        """Whether no heartbeat of the consumer or share group can change anything, and the member is where
        it should be."""
        if self.share_group is not None:
            return not self.is_writing and self.coordinator.is_at_rest(GROUP, member_id, epoch)
        group = self.consumer_group
        if group is None or group.state is not ConsumerGroupState.STABLE or self.is_writing:
            return False
        member = group.members.get(member_id)
        is_current = member is not None and member.epoch == epoch and member.classic is None
        return is_current and group.refresh_ms > self.clock.now_us // 1000

    def is_calm(self, generation: Generation, until_us: int) -> bool:
        """Whether the classic group is Stable in this generation with this member, whose session lasts longer
        than until then, and no write is under way: no heartbeat or commit can change anything."""
        group, member_id = self.coordinator.group(GROUP), generation.member_id
        if (
            not isinstance(group, ClassicGroup)
            or group.generation != generation.id
            or group.state is not STABLE
            or self.is_writing
        ):
            return False
        deadline_ms = self.coordinator.session_until_ms(GROUP, member_id)
        return deadline_ms is not None and until_us < deadline_ms * 1000

    def has_member(self, generation: Generation) -> bool:
        """Whether the group has this member, and a classic group is in this generation."""
        group = self.coordinator.group(GROUP)
        if isinstance(group, ClassicGroup) and group.generation != generation.id:
            return False
        return group is not None and group.members.get(generation.member_id) is not None

    def in_contact(self, kind: TimerKind, member_id: str, contact: int) -> None:
        """The last one of a member's requests that were computed arrived at this moment: its session, which
        is of this kind, started again."""
        now_ms = self.clock.now_us // 1000
        self.coordinator.in_contact(kind, GROUP, member_id, (contact >> ORDER_BITS) // 1000, contact, now_ms)
