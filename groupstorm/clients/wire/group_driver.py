"""The consumer protocol (KIP-848) over TCP: drive a `ConsumerGroupMember`.

Two tasks stand for the two threads of Kafka's consumer (AsyncKafkaConsumer, ConsumerNetworkThread). The
network task sends heartbeats when they are due. The application task is poll(): it begins reconciliations,
runs the listener and commits.
"""

from __future__ import annotations

import asyncio
import base64
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import replace
from uuid import UUID, uuid4

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients import operations
from groupstorm.clients.consumer_group.member import ConsumerGroupMember
from groupstorm.clients.consumer_group.membership import LEAVES
from groupstorm.clients.consumer_group.states import MemberState
from groupstorm.clients.consumer_group.timing import FOREVER_MS
from groupstorm.clients.error_tables import COMMIT_RETRIED, COORDINATOR_UNKNOWN, RejoinCause
from groupstorm.clients.member_session import Generation
from groupstorm.clients.wire.membership_driver import MembershipDriver
from groupstorm.clients.wire.offsets import CommittedOffsets
from groupstorm.clients.wire.parts import ApplicationPolling, ConsumerParts, PollThrew
from groupstorm.clients.wire.waiting import WakeEvent, sleep_us
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import NO_GENERATION, ConsumerGroupHeartbeatResponse
from groupstorm.problems import InputError
from groupstorm.trace.events import member as events

#: ConsumerNetworkThread looks at least that often (MAX_POLL_TIMEOUT_MS).
_STEP_MS_MAX = 5_000
_REMEDY = (
    "group.protocol: consumer needs Kafka 4.0 or later, with consumer among the broker's "
    "group.coordinator.rebalance.protocols; set group.protocol=classic"
)


class GroupPolling(ApplicationPolling):
    """The calls with the consumer protocol (AsyncKafkaConsumer.poll).

    ``on_enter`` is called when poll() begins. ``is_due`` says whether poll() has to run the listener, to
    commit or to throw. ``on_subscribe`` takes the topics of a subscribe().
    """

    def __init__(
        self,
        parts: ConsumerParts,
        on_enter: Callable[[], None],
        is_due: Callable[[], bool],
        on_subscribe: Callable[[tuple[str, ...]], None],
    ) -> None:
        super().__init__(parts)
        self._on_enter = on_enter
        self._is_due = is_due
        self._on_subscribe = on_subscribe
        self._entered = 0

    @property
    def has_work(self) -> bool:
        return self._waits and self._is_due()

    def enter(self) -> None:
        self._entered += 1
        self._on_enter()
        super().enter()

    def polled(self) -> None:
        """Nothing: a call that returns at once follows another one by a few milliseconds."""

    def resubscribe(self, topics: tuple[str, ...]) -> None:
        """The next heartbeat tells the broker; a member that has not joined yet joins with these topics."""
        self.subscription = topics
        self._on_subscribe(topics)

    async def until_due(self, until_us: int | None) -> None:
        """Wait for `wake` or until ``until_us``, and until the application is inside poll()."""
        self._waits = True
        try:
            await self._wake_event.wait(until_us if self._polls else None)
            while not self._polls:
                await self._wake_event.wait(None)
        finally:
            self._waits = False

    async def until_next_call(self) -> None:
        """poll() has thrown: wait until the application calls it again."""
        entered = self._entered
        while self._entered == entered:
            await self._wake_event.wait(None)


class GroupDriver(MembershipDriver):
    """Drives a member that the broker gives its partitions (ConsumerGroupHeartbeat).

    It is the member's `MemberStatus`, too.
    """

    #: The broker assigns the partitions.
    is_leader = False
    #: A commit goes out with the present epoch; the member may be on its way to another one.
    is_joining = False

    def __init__(self, parts: ConsumerParts) -> None:
        self.config = parts.config
        self.failure: str | None = None
        self._member = ConsumerGroupMember(
            parts.config,
            new_member_id(),
            lambda: parts.cluster.topic_names,
            lambda: bool(parts.positions.to_commit()),
            parts.clock() // 1000,
        )
        super().__init__(parts, self, sleep_us)
        self.polling: GroupPolling = GroupPolling(parts, self._poll, self._is_due, self._subscribe)
        self._network_wake = WakeEvent(parts.clock)
        self._step_us = 0
        #: The listener calls to come, oldest first, and what poll() has to throw.
        self._calls: deque[operations.RunCallback] = deque()
        self._errors: deque[str] = deque()
        self._lookup: asyncio.Task[None] | None = None
        self._left = asyncio.Event()
        self._has_told_leaving = False
        self._state = self._member.state

    # -- the member's status ---------------------------------------------------------------------

    @property
    def owned(self) -> tuple[TopicPartition, ...]:
        return self._member.owned

    @property
    def generation(self) -> Generation:
        epoch = self._member.epoch
        return Generation(epoch if epoch > 0 else NO_GENERATION, self._member.member_id)

    @property
    def may_commit(self) -> bool:
        return self._member.epoch > 0

    @property
    def is_settled(self) -> bool:
        return self._member.state is MemberState.STABLE

    @property
    def assigned_topic_ids(self) -> Collection[UUID]:
        return self._member.assigned_topic_ids

    def commit_answered(self, error: Error, sent: Generation) -> None:
        """Only the next heartbeat tells the member that it is out of the group (CommitRequestManager)."""
        if error in COORDINATOR_UNKNOWN:
            self.coordinator_moved()

    def metadata_refreshed(self) -> None:
        self.changed()

    # -- life ------------------------------------------------------------------------------------

    async def run(self) -> None:
        await self.watch.known.wait()
        self._subscribe(self.polling.subscription)
        self._look_up()
        _ = self.parts.spawn(self._run_network())
        while self.failure is None:
            await self.parts.running.wait()
            self._poll()
            await self._call_listener()
            self._throw()
            if self.commits.due:
                self.commits.reset()
                self.commit_soon()
            await self.polling.until_due(self._next_poll_us())
        await self._call_listener()
        self._emit_end(events.MemberFailed, self.failure)

    async def leave(self, leave_group: bool | None) -> None:
        member = self._member
        if member.owned:
            self.parts.positions.stop(member.owned)
            if self.parts.config.enable_auto_commit:
                await self._commit_at_close()
        callback = member.closing_callback()
        if callback is not None:
            _ = await self.partitions.run(callback)
        if not self._stays_silently(leave_group):
            member.close(leave_group)
            self.changed()
            _ = await self._left.wait()
        self._closed()

    def _stays_silently(self, leave_group: bool | None) -> bool:
        """A dynamic member that stays in the group until its session ends (KIP-1092).

        The Java client 4.3.1 leaves all the same: shouldHeartbeatNow() overrides
        shouldSendLeaveHeartbeatNow().
        """
        config = self.parts.config
        leaves = config.leave_group_on_close if leave_group is None else leave_group
        return leaves is False and config.group_instance_id is None

    async def abandon(self) -> None:
        self._member.close(None)
        self._member.end()
        self._carry_out()
        await asyncio.sleep(0)  # the last heartbeat is written now
        self._closed()

    # -- what others report ----------------------------------------------------------------------

    def changed(self) -> None:
        self._advance()
        self._network_wake.wake()
        self.polling.wake()
        self.parts.application.on_change()

    def coordinator_found(self) -> None:
        self._member.coordinator_found()
        self.changed()

    def coordinator_lost(self) -> None:
        self._member.coordinator_known = False
        self._look_up()
        self.changed()

    def coordinator_moved(self) -> None:
        self.parts.link.drop()
        self.coordinator_lost()

    def fail(self, error: Error) -> None:
        self._errors.append(error.name)

    # -- the network thread ----------------------------------------------------------------------

    async def _run_network(self) -> None:
        while True:
            await self.parts.running.wait()
            self._advance()
            await self._network_wake.wait(self._step_us)

    def _advance(self) -> None:
        """Let the member do what is due, and carry its operations out."""
        if self.parts.running.is_set():
            wait_ms = self._member.step(self._now_ms())
            # 0: an answer is missing; it will wake this task
            wait_ms = min(wait_ms or self.parts.config.retry_backoff_ms, _STEP_MS_MAX)
            self._step_us = self.parts.clock() + wait_ms * 1000
            self._tell_state()
        self._carry_out()

    async def _exchange(self, operation: operations.SendHeartbeat) -> None:
        config = self.parts.config
        try:
            response = await self.parts.link.ask(operation.request, config.request_timeout_ms)
        except InputError as problem:
            raise InputError(f"{problem}; {_REMEDY}") from None
        assert isinstance(response, ConsumerGroupHeartbeatResponse | operations.Disconnected)
        if not isinstance(response, operations.Disconnected) and response.error is Error.UNSUPPORTED_VERSION:
            raise InputError(_REMEDY)
        if operation.request.member_epoch == LEAVES and isinstance(response, ConsumerGroupHeartbeatResponse):
            self._has_told_leaving = True
        self._member.answered(operation, response, self._now_ms())
        self.changed()

    async def _commit(self, epoch: int, offsets: CommittedOffsets) -> None:
        result = await self.commits.commit_as(Generation(epoch, self._member.member_id), offsets)
        self._member.committed(result, self._now_ms())
        self.changed()

    async def _find_coordinator(self) -> None:
        error = await self.parts.link.find()
        self._lookup = None
        if error is Error.NONE:
            self.coordinator_found()
        else:
            self.fail(error)
            self.changed()

    def _look_up(self) -> None:
        if self._lookup is None:
            self._lookup = self.parts.spawn(self._find_coordinator())

    # -- the application thread ------------------------------------------------------------------

    def _poll(self) -> None:
        self._member.poll(self._now_ms())
        self._advance()
        self._network_wake.wake()

    def _is_due(self) -> bool:
        return bool(self._calls or self._errors) or self.commits.due

    def _next_poll_us(self) -> int | None:
        """When poll() looks again if nothing wakes it."""
        wait_ms = self._member.poll_wait_ms(self._now_ms())
        if wait_ms == FOREVER_MS:
            return self.commits.next_us
        next_us = self.parts.clock() + (wait_ms or self.parts.config.retry_backoff_ms) * 1000
        return next_us if self.commits.next_us is None else min(next_us, self.commits.next_us)

    async def _call_listener(self) -> None:
        while self._calls:
            operation = self._calls.popleft()
            if not self._member.callback_begins():
                self._carry_out()  # poll() throws: the member has unsubscribed
                continue
            failed = await self._call(operation)
            if failed:
                await self.polling.until_next_call()

    async def _call(self, operation: operations.RunCallback) -> bool:
        is_assigned = operation.kind is operations.CallbackKind.ASSIGNED
        if is_assigned:
            self.offsets.stop()
            self.commits.reset()
        failed = True
        try:
            failed = await self.partitions.run(operation)
        finally:
            self._member.callback_ended(failed)
            self.changed()
        if is_assigned:
            self.offsets.start()
        return failed

    def _throw(self) -> None:
        if self._errors and self.failure is None:
            raise PollThrew(self._errors.popleft())

    async def _commit_at_close(self) -> None:
        """Commit until the coordinator accepts or refuses it."""
        while True:
            result = await self.commits.commit()
            if not isinstance(result, operations.Disconnected) and result not in COMMIT_RETRIED:
                return
            await asyncio.sleep(self.parts.config.retry_backoff_ms / 1000)

    def _subscribe(self, topics: tuple[str, ...]) -> None:
        if topics != self.config.topics:
            self.config = replace(self.config, topics=topics, subscription_pattern=None)
            self.watch.refresh_soon()
        regex = self.config.subscription_pattern
        self._member.subscribe(frozenset() if regex is not None else frozenset(topics), regex)
        self.changed()

    # -- the member's operations -----------------------------------------------------------------

    def _carry_out(self) -> None:
        for operation in self._member.operations():
            match operation:
                case operations.SendHeartbeat():
                    _ = self.parts.spawn(self._exchange(operation))
                case operations.CommitWithEpoch(epoch):
                    _ = self.parts.spawn(self._commit(epoch, self.parts.positions.to_commit()))
                case operations.FindCoordinator():
                    self.parts.link.drop()
                    self._look_up()
                case operations.RefreshTopics():
                    self.watch.refresh_soon()
                case operations.StopProcessing(partitions):
                    self.partitions.pause(partitions)
                case operations.RunCallback():
                    self._calls.append(operation)
                    self.polling.wake()
                case operations.ReportError(error):
                    self._report(error)
                case operations.Left():
                    self._left.set()

    def _report(self, error: str) -> None:
        if self._member.state is MemberState.FATAL:
            self.failure = error
        self._errors.append(error)
        self.polling.wake()
        self.parts.application.on_change()

    # -- events ----------------------------------------------------------------------------------

    def _tell_state(self) -> None:
        """A member that has left because nobody polled joins again at the next poll()."""
        before, self._state = self._state, self._member.state
        if self._state is MemberState.STALE and before is not MemberState.STALE:
            who, cause = self.parts.who(self.generation), RejoinCause.POLL_TIMEOUT.value
            self.parts.emitter.emit(events.RejoinRequested(*who, cause))

    def _closed(self) -> None:
        self._emit_end(events.MemberClosed, "left" if self._has_told_leaving else "silent")

    def _emit_end(self, event: type[events.MemberFailed | events.MemberClosed], cause: str) -> None:
        config = self.parts.config
        self.parts.emitter.emit(event(config.group_id, config.client_id, self._member.member_id, cause))

    def _now_ms(self) -> int:
        return self.parts.clock() // 1000


def new_member_id() -> str:
    """As Kafka's Uuid.randomUuid(): no id begins with a dash."""
    while True:
        member_id = base64.urlsafe_b64encode(uuid4().bytes).rstrip(b"=").decode()
        if not member_id.startswith("-"):
            return member_id
