"""One process whose consumer is a member of a group whose broker assigns: it does what its member asks for.

The member's network thread runs at the instants that the member names, and after every call. The poll()s of
the application that matter are events: those that begin a reconciliation, run callbacks or join again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final

from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.consumer_group.heartbeating import HeartbeatingMember
from groupstorm.clients.consumer_group.member import ConsumerGroupMember
from groupstorm.clients.consumer_group.states import MemberState
from groupstorm.clients.error_tables import RejoinCause
from groupstorm.clients.member_session import Generation
from groupstorm.clients.operations import (
    CallbackKind,
    CommitWithEpoch,
    Disconnected,
    GroupOperation,
    Left,
    ReportError,
    RunCallback,
    StopProcessing,
)
from groupstorm.coordinator.errors import NO_ERROR, Error
from groupstorm.storms.scenario.settings import Settings
from groupstorm.storms.world.consumer_group.network_thread import ConsumerGroupView, NetworkThread
from groupstorm.storms.world.consumer_group.quiet_heartbeats import ConsumerGroupRequests
from groupstorm.storms.world.disturbances import pause_fetching
from groupstorm.storms.world.environment import Environment
from groupstorm.storms.world.process import VirtualProcess
from groupstorm.storms.world.rebalance_callbacks import TAKES_TIME, ListenerCalls, RebalanceHooks
from groupstorm.storms.world.record_times import drawn_member_id
from groupstorm.trace.events import member as events

#: The time for which close() waits (ConsumerUtils.DEFAULT_CLOSE_TIMEOUT_MS).
CLOSE_TIMEOUT_MS: Final = 30_000
#: Makes the member of a process from its id and the time on the machine's clock.
NewMember = Callable[[str, int], HeartbeatingMember[Any]]


class ConsumerGroupProcess(VirtualProcess[ConsumerGroupView]):
    """One incarnation of a process of `group.protocol=consumer`, or of an application's thread that is a
    member of another kind (``new_member``). ``hooks`` belong to that application."""

    __slots__ = (
        "_calls",
        "_due",
        "_in_callback",
        "_new_group_member",
        "_told_poll_us",
        "closing",
        "group_member",
        "network_thread",
        "topics_to_tell",
    )

    def __init__(
        self,
        environment: Environment,
        index: int,
        incarnation: int,
        config: ConsumerConfig,
        settings: Settings,
        new_member: NewMember | None = None,
        hooks: RebalanceHooks | None = None,
    ) -> None:
        self._new_group_member = new_member or self._new_consumer
        super().__init__(environment, index, incarnation, config, settings)
        self._calls = ListenerCalls(environment, self, hooks)
        #: The callbacks that wait for a poll().
        self._due: deque[RunCallback] = deque()
        self._in_callback = False
        #: The application has called close().
        self.closing = False
        #: The last poll() that the member knows.
        self._told_poll_us = -1
        #: The next heartbeat tells another subscription.
        self.topics_to_tell = False

    def __repr__(self) -> str:
        state = self.group_member.state.name if self.alive else "gone"
        return f"<ConsumerGroupProcess {self.name} {state} owned={len(self.work.partitions)}>"

    def _new_member(self) -> ConsumerGroupView:
        member_id = drawn_member_id(self._environment.seed, self.name, self._incarnation)
        self.group_member = self._new_group_member(member_id, self._now_ms)
        return ConsumerGroupView(self.group_member, self._coordinator_lost, self._poll_is_late)

    def _new_consumer(self, member_id: str, now_ms: int) -> HeartbeatingMember[Any]:
        return ConsumerGroupMember(
            self.config, member_id, self._metadata.names_by_id, self._has_positions, now_ms
        )

    def _new_requests(self) -> ConsumerGroupRequests:
        requests = ConsumerGroupRequests(self._environment, self)
        self.network_thread = NetworkThread(
            self, requests.rest_from, requests.wake_heartbeats, self._state_changed
        )
        return requests

    @property
    def _now_ms(self) -> int:
        return self.client_clock.ms(self.clock.now_us)

    def _coordinator_lost(self) -> None:
        self.network_thread.lose_coordinator()

    def _poll_is_late(self) -> None:
        """The member leaves: commits of its epoch are refused."""
        self.periodic_requests.wake_heartbeats()
        self.periodic_requests.settle_commits()

    def _has_positions(self) -> bool:
        return bool(self.work.partitions)

    # -- life ------------------------------------------------------------------------------------

    def _run(self) -> None:
        self.waits_for_poll = True
        self.work.loop.begin(self.clock.now_us)
        self._subscribe()
        self.network_thread.find_coordinator()
        if self._environment.exact:
            self.polls.simulate_each()
        self._poll()

    def _subscribe(self) -> None:
        """The client itself matches a pattern (KafkaConsumer.subscribe(Pattern))."""
        names = self.config.topics if self.config.topic_pattern is None else self._metadata.topics()
        self.group_member.subscribe(frozenset(filter(self.config.reads, names)))
        self.topics_to_tell = True

    def stop(self) -> None:
        """close(): commit, give the partitions up, leave."""
        if not self.alive or not self.started or self.closing:
            return
        self.network_thread.wake()
        self.closing = True
        self.pauses.end()
        self.rates.stop()
        self.periodic_requests.stop_commits()
        self.waits_for_poll = self._in_callback = False
        self._due.clear()
        self.membership.callbacks_due = 0
        self.step += 1
        self.clock.after(self.client_clock.timer_us(CLOSE_TIMEOUT_MS), self._close_timed_out)
        positions = self.work.positions(self.clock.now_us) if self.config.enable_auto_commit else {}
        generation = self.membership.generation
        if positions and generation.id > 0:
            self.commit(positions, generation, self._committed_on_close)
        else:
            self._revoke_on_close()

    def _committed_on_close(self, _: Error | Disconnected) -> None:
        if self.alive:
            self._revoke_on_close()

    def _revoke_on_close(self) -> None:
        callback = self.group_member.closing_callback()
        if callback is None or self._calls.call(callback) is not TAKES_TIME:
            self.network_thread.leave()

    def _close_timed_out(self) -> None:
        if self.alive:
            self.network_thread.end()
            self._left()

    def _left(self) -> None:
        cause = "left" if self.config.leaves_on_close else "silent"
        self.emit(events.MemberClosed(self.config.group_id, self.name, self.group_member.member_id, cause))
        self._exit()

    def _fail(self, error: str) -> None:
        """poll() throws, and the process ends."""
        self.periodic_requests.stop()
        self.emit(events.MemberFailed(self.config.group_id, self.name, self.group_member.member_id, error))
        self._exit()

    # -- poll() ----------------------------------------------------------------------------------

    def polled(self) -> None:
        """`nudge` has scheduled the polls that matter, in the same order in both modes."""
        if not self.waits_for_poll or self.pauses.lasts or self.membership.rejoin_needed:
            return
        if self.work.loop.last_poll_us(self.clock.now_us) == self.clock.now_us:
            self._poll()  # else the application polls later than it was expected to

    def note_polls(self) -> None:
        """Tell the member of the application's last poll(). It was none that mattered."""
        if not self.waits_for_poll:
            return
        polled_us = self.work.loop.last_poll_us(self.polls.passed_us)
        if polled_us is not None and polled_us > self._told_poll_us:
            self._told_poll_us = polled_us
            self.group_member.poll(self.client_clock.ms(polled_us))
        # Only the latest look counts: first come the heartbeats that a resting series has to make up for.
        if self.group_member.member_id not in self._environment.resting.heartbeats:
            self.group_member.looked(self.client_clock.ms(self._told_poll_us))

    def poll_deadline_us(self, polled_us: int) -> int:
        """The member counts whole milliseconds."""
        return self.client_clock.us(self.client_clock.ms(polled_us) + self.config.max_poll_interval_ms)

    def _poll(self) -> None:
        self._told_poll_us = self.clock.now_us
        self.group_member.poll(self._now_ms)
        self.network_thread.turn()
        self._run_callbacks()

    def nudge(self) -> None:
        """The application looks at its next poll(); the one of this instant has looked already."""
        if self._told_poll_us < self.clock.now_us:
            super().nudge()
        elif (self.membership.rejoin_needed or self.membership.failure) and not self._in_callback:
            self.clock.after(1, super().nudge)

    def _run_callbacks(self) -> None:
        while self._due and self.alive and not self._in_callback and self.membership.failure is None:
            callback = self._due.popleft()
            self.membership.callbacks_due -= 1
            if not self.group_member.callback_begins():
                self.network_thread.turn()
                continue
            if callback.kind is CallbackKind.LOST:
                # an onPartitionsAssigned that was due has run since: its partitions are lost, too
                callback = callback._replace(partitions=self._calls.held())
            self.step += 1
            self._in_callback, self.waits_for_poll = True, False
            if self._calls.call(callback) is TAKES_TIME:
                return
            self._callback_ended()
        if self.alive and self.membership.failure is not None and self.waits_for_poll:
            self._fail(self.membership.failure)

    def _callback_ended(self) -> None:
        self._in_callback, self.waits_for_poll = False, True
        self.group_member.callback_ended()
        self.network_thread.turn()

    def _go_on(self, result: Any) -> None:
        if self.closing:
            self.network_thread.leave()
            return
        if self._in_callback:
            self._callback_ended()
            self._run_callbacks()
        else:
            self._poll()
        if self.alive and self.waits_for_poll and not self.membership.rejoin_needed:
            self.pauses.next_batch()

    # -- the network thread ----------------------------------------------------------------------

    def carry_out(self, operation: GroupOperation) -> None:
        _CARRIES_OUT[type(operation)](self, operation)

    def _state_changed(self, before: MemberState) -> None:
        state = self.group_member.state
        if state is MemberState.ACKNOWLEDGING:
            self.periodic_requests.start_commits()
        if before is MemberState.STALE and state is MemberState.JOINING:
            generation, group = self.membership.generation, self.config.group_id
            cause = RejoinCause.POLL_TIMEOUT
            self.emit(events.RejoinRequested(group, self.name, generation.member_id, generation.id, cause))

    def _committed(self, result: Error | Disconnected) -> None:
        if self.network_thread.awake(self._committed, result):
            self.group_member.committed(result, self._now_ms)
            self.network_thread.turn()

    def heartbeat_answered(self, error: Error, sent: Generation) -> None:
        """No heartbeats of the classic protocol leave."""

    def refresh_topics(self) -> None:
        self._refresh_metadata()

    def _topics_refreshed(self) -> None:
        if self.network_thread.stands_still(self._metadata_refreshed):
            return
        self.network_thread.wake()
        if self.config.topic_pattern is not None:
            self._subscribe()
        self.network_thread.turn()

    # -- what the member asks for ----------------------------------------------------------------

    def _commit(self, operation: CommitWithEpoch) -> None:
        positions = self.work.positions(self.clock.now_us)
        if not positions:  # it closes, and has given them up: the client sends no commit of nothing
            self.clock.after(0, self._committed, NO_ERROR)
            return
        sent = Generation(operation.epoch, self.group_member.member_id)
        self.commit(positions, sent, self._committed)

    def _stop_processing(self, operation: StopProcessing) -> None:
        """From here on poll() hands out nothing of these; onPartitionsRevoked or onPartitionsLost follows. An
        application that polls too late works on what it has until then."""
        self.periodic_requests.settle_commits()
        if self.group_member.state is MemberState.STALE and not self._in_callback:
            return
        pause_fetching(self, operation.partitions)
        self.rates.changed(began=False)

    def _call_later(self, operation: RunCallback) -> None:
        self._due.append(operation)
        self.membership.callbacks_due += 1

    def _report(self, operation: ReportError) -> None:
        self.membership.failure = operation.error

    def _end(self, _: Left) -> None:
        if self.closing:
            self._left()


_CARRIES_OUT: Mapping[type[GroupOperation], Callable[[ConsumerGroupProcess, Any], None]] = {
    CommitWithEpoch: ConsumerGroupProcess._commit,
    StopProcessing: ConsumerGroupProcess._stop_processing,
    RunCallback: ConsumerGroupProcess._call_later,
    ReportError: ConsumerGroupProcess._report,
    Left: ConsumerGroupProcess._end,
}
