"""One consumer process of the classic protocol: it carries out what a `Membership` asks for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from groupstorm.assignors.contract import Assignor
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.leadership import lead
from groupstorm.clients.member_session import Generation
from groupstorm.clients.membership import Flow, Membership
from groupstorm.clients.operations import (
    ASSIGNED,
    Assign,
    AssignmentFailed,
    AwaitJoinInterval,
    AwaitPoll,
    Backoff,
    CallbackKind,
    CommitPositions,
    FindCoordinator,
    Operation,
    PauseFetching,
    ResumeFetching,
    ReturnRecords,
    RunCallback,
    Send,
    StopProcessing,
)
from groupstorm.coordinator.errors import NO_ERROR, Error
from groupstorm.coordinator.messages import NO_GENERATION, JoinGroup
from groupstorm.storms.scenario.setting_names import STREAMS
from groupstorm.storms.scenario.settings import Settings
from groupstorm.storms.world.disturbances import pause_fetching, resume_fetching
from groupstorm.storms.world.environment import Environment
from groupstorm.storms.world.periodic_requests.requests import PeriodicRequests
from groupstorm.storms.world.process import VirtualProcess
from groupstorm.storms.world.rebalance_callbacks import TAKES_TIME, ListenerCalls, RebalanceHooks
from groupstorm.storms.world.record_times import ASSIGN
from groupstorm.trace.events import member as events


class VirtualConsumer(VirtualProcess[Membership]):
    """One incarnation of a consumer process, whose member speaks the classic protocol.

    ``assignors`` are those that it offers, ``settings`` its own; ``hooks`` belong to an application on top of
    it, if there is one.
    """

    __slots__ = (
        "_assignors",
        "_calls",
        "_flow",
        "_followed",
        "_joined_us",
        "_polls_at_once",
        "_round_failed",
    )

    def __init__(
        self,
        environment: Environment,
        index: int,
        incarnation: int,
        config: ConsumerConfig,
        assignors: Sequence[Assignor],
        settings: Settings,
        hooks: RebalanceHooks | None = None,
    ) -> None:
        self._assignors = assignors
        super().__init__(environment, index, incarnation, config, settings)
        self._calls = ListenerCalls(environment, self, hooks)
        #: The round whose callbacks are due has failed: the listener is not called.
        self._round_failed = False
        self._flow: Flow | None = None
        #: The membership's state that its heartbeats follow; each generation begins in another state.
        self._followed = self.membership.state
        self._polls_at_once = settings.choice("application") == STREAMS
        #: When its last JoinGroup left; None before the first one.
        self._joined_us: int | None = None

    def _new_member(self) -> Membership:
        refreshes = self.config.profile.refreshes_before_join
        return Membership(
            self.config,
            self._assignors,
            self._metadata.topics,
            self.emit,
            self._metadata.refresh if refreshes else None,
        )

    def _new_requests(self) -> PeriodicRequests:
        environment = self._environment
        return PeriodicRequests(
            environment.network,
            environment.resting,
            environment.heartbeat_timer(self.settings.of_member(self.index), self.config, self._incarnation),
            environment.sends_heartbeats,
            self,
        )

    def __repr__(self) -> str:
        state = self.membership.state.name if self.alive else "gone"
        return f"<VirtualConsumer {self.name} {state} owned={len(self.work.partitions)}>"

    # -- life ------------------------------------------------------------------------------------

    def _run(self) -> None:
        self._flow = self.membership.run()
        self._go_on(None)

    def _exit(self) -> None:
        self._flow = None
        super()._exit()

    def polled(self) -> None:
        """A poll() that matters is one that the membership waits for."""

    def _topics_refreshed(self) -> None:
        self.membership.metadata_refreshed()

    def stop(self) -> None:
        """The application answers SIGTERM: close() begins."""
        if not self.alive or self._flow is None:
            return
        self.pauses.end()
        self.rates.stop()
        self._flow = self.membership.close()
        self.periodic_requests.stop_commits()
        self._go_on(None)

    # -- the membership's operations -------------------------------------------------------------

    def _go_on(self, result: Any) -> None:
        """Hand the membership a result and carry out its operations, until one of them takes time."""
        requests, membership = self.periodic_requests, self.membership
        self.waits_for_poll = False
        while result is not TAKES_TIME and self._flow is not None:
            self.step += 1
            try:
                operation = self._flow.send(result)
            except StopIteration:
                self.periodic_requests.stop()
                self._exit()
                return
            kind, state = type(operation), membership.state
            # the assignor holds the client's lock: no heartbeats while it runs
            if kind is not Assign and (state is not self._followed or requests.heartbeats is None):
                self._followed = state
                requests.follow_membership()
            result = _CARRIES_OUT[kind](self, operation)

    def heartbeat_answered(self, error: Error, sent: Generation) -> None:
        """A heartbeat was answered that had been sent in that generation."""
        self.membership.heartbeat_answered(error, sent)

    def _send(self, operation: Send) -> Any:
        request, timeout_ms = operation
        if type(request) is JoinGroup:
            self._joined_us = self.clock.now_us
        self.connection.send(request, timeout_ms, None, self.step)
        return TAKES_TIME

    def _find_coordinator(self, _: FindCoordinator) -> Any:
        self.connection.find_coordinator(partial(self.completed, self.step, None))
        return TAKES_TIME

    def _await_poll(self, _: AwaitPoll) -> Any:
        self.waits_for_poll = True
        self.work.loop.begin(self.clock.now_us)
        self.periodic_requests.follow_work()
        if self._environment.exact:
            self.polls.simulate_each()
        self.periodic_requests.start_commits()
        self.pauses.next_batch()
        self.nudge()
        return TAKES_TIME

    def _back_off(self, operation: Backoff) -> Any:
        return self.later(self.client_clock.timer_us(operation.delay_ms))

    def _await_join_interval(self, operation: AwaitJoinInterval) -> Any:
        interval_us = self.client_clock.timer_us(operation.interval_ms)
        if self._joined_us is None or self.clock.now_us - self._joined_us >= interval_us:
            return None
        return self.later(interval_us)

    def _stop_processing(self, operation: StopProcessing) -> None:
        self.periodic_requests.settle_commits()
        self.work.stop(operation.partitions, self.clock.now_us)

    def _pause_fetching(self, operation: PauseFetching) -> None:
        pause_fetching(self, operation.partitions)

    def _resume_fetching(self, operation: ResumeFetching) -> None:
        resume_fetching(self, operation.partitions)

    def _return_records(self, _: ReturnRecords) -> Any:
        """Wait for the poll() behind the one that returns now. If nothing arrives, poll() waits, and does not
        return; a thread of Kafka Streams polls again at once."""
        now_us, logs = self.clock.now_us, self._environment.records.logs
        arrives = any(logs.rate(partition, now_us) for partition in self.membership.owned)
        if not arrives or self._polls_at_once:
            return None
        return self.later(self.work.loop.poll_after_us(now_us) - now_us)

    def _assign(self, operation: Assign) -> Any:
        """The leader's assignor runs at once, and its plan comes after a computed duration.

        Settings say how long it takes, not the machine: the same seed gives the same trace everywhere.
        """
        environment, membership, topics = self._environment, self.membership, self._metadata.topics()
        response, members = operation.response, operation.response.members
        membership.assignor_begins()
        with environment.assignor_work:
            plan = lead(
                operation.assignor, membership.rebalance_protocol, topics, members, environment.leader_memory
            )
        if isinstance(plan, AssignmentFailed):
            environment.assignor_work.failed(plan.error, plan.message)
        duration_us = self.draws.duration_us(self.settings.distribution("assign_ms"), ASSIGN)
        size = len(members) * sum(topics.values())
        duration_us += self.settings.integer("assign_ns_per_member_partition") * size // 1000
        number, member_id, _ = membership.generation
        who, protocol = (self.config.group_id, self.name, member_id, number), response.protocol or ""
        self.emit(events.AssignmentComputed(*who, protocol, duration_us, len(members)))
        self.periodic_requests.hold_heartbeats(duration_us)
        return self.later(duration_us, plan)

    def _commit_positions(self, _: CommitPositions) -> Any:
        positions = self.work.positions(self.clock.now_us)
        if not positions:
            return NO_ERROR
        self.commit(positions, self.membership.generation, self.expected_result())
        return TAKES_TIME

    def _run_callback(self, operation: RunCallback) -> Any:
        """Call the listener: its result, or that it takes time.

        The listener is called inside poll(): a member that goes on processing may be at work.
        """
        if self.work.loop.processed_partitions:
            next_poll_us = self.polls.next_us()
            if next_poll_us > self.clock.now_us:
                self.clock.at(next_poll_us, self._in_poll, self.step, operation)
                return TAKES_TIME
        if self._round_failed:
            if operation.kind is ASSIGNED:  # the last call of the round
                self._round_failed = False
                self.membership.owned = self._calls.held()
            return None
        return self._calls.call(operation)

    def _in_poll(self, step: int, operation: RunCallback) -> None:
        """The application polls while the membership waits for the listener."""
        if step != self.step or not self.alive:
            return
        completes_round = operation.kind is ASSIGNED or operation.cause == "assignment"
        if completes_round and self.membership.generation.id == NO_GENERATION:
            # The heartbeat thread has left the group meanwhile: the round has failed. Nobody calls the
            # listener for it, the member owns what it owned before (AbstractCoordinator.joinGroupIfNeeded).
            self._round_failed = True
        elif operation.kind is CallbackKind.REVOKED and (lost := self.membership.lost_cause):
            # A response has reset the generation since the last poll() (ConsumerCoordinator.onJoinPrepare).
            operation = RunCallback(CallbackKind.LOST, operation.partitions, lost)
        result = self._run_callback(operation)
        if result is not TAKES_TIME:
            self.completed(step, result)


_CARRIES_OUT: Mapping[type[Operation], Callable[[VirtualConsumer, Any], Any]] = {
    Send: VirtualConsumer._send,
    FindCoordinator: VirtualConsumer._find_coordinator,
    AwaitPoll: VirtualConsumer._await_poll,
    Backoff: VirtualConsumer._back_off,
    AwaitJoinInterval: VirtualConsumer._await_join_interval,
    RunCallback: VirtualConsumer._run_callback,
    StopProcessing: VirtualConsumer._stop_processing,
    PauseFetching: VirtualConsumer._pause_fetching,
    ResumeFetching: VirtualConsumer._resume_fetching,
    ReturnRecords: VirtualConsumer._return_records,
    CommitPositions: VirtualConsumer._commit_positions,
    Assign: VirtualConsumer._assign,
}
