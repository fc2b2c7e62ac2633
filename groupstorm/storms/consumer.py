"""One consumer process in virtual time: it carries out what a `Membership` asks for.

A process is one incarnation: when it stops or crashes, a later one under the same name is another
object. Whatever takes time is scheduled on the world's clock with the number of the step that waits for
it, so that an answer that comes too late finds nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients import events
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.generation import Generation
from groupstorm.clients.leadership import lead
from groupstorm.clients.membership import Flow, Membership
from groupstorm.clients.operations import (
    Assign,
    AssignmentFailed,
    AwaitPoll,
    Backoff,
    CommitPositions,
    Disconnected,
    FindCoordinator,
    Operation,
    RunCallback,
    Send,
    StopProcessing,
)
from groupstorm.clients.requests import offset_commit
from groupstorm.clients.standing import MemberState
from groupstorm.coordinator.errors import NO_ERROR
from groupstorm.coordinator.messages import (
    CommittedOffset,
    OffsetCommit,
    OffsetCommitResponse,
    Response,
)
from groupstorm.storms.answers import first_error
from groupstorm.storms.connection import Connection
from groupstorm.storms.distributions import Distribution
from groupstorm.storms.pulse import Pulse
from groupstorm.storms.randomness import DRAW_BITS, Stream
from groupstorm.storms.rebalance_listener import RebalanceListener
from groupstorm.storms.records import Work, names
from groupstorm.storms.standstill import Standstill
from groupstorm.trace.schema import Source

if TYPE_CHECKING:
    from groupstorm.assignors.contract import Assignor
    from groupstorm.storms.world import World

#: Looked up on the class, a member costs as much as a call before Python 3.12.
_MEMBER: Final = Source.MEMBER

#: What carrying out an operation returns when its result comes later.
TAKES_TIME: Any = object()

# What a process draws at one instant: each has its own number.
DRAW_POLL_INTERVAL, DRAW_POLL_WAIT, DRAW_ASSIGN = range(3)
DRAWS_PER_INSTANT = 4


class VirtualConsumer:
    """One incarnation of a consumer process inside a `World`."""

    __slots__ = (
        "_draws",
        "_flow",
        "_listener",
        "_metadata_check_us",
        "_poll_is_due",
        "_started_us",
        "_step",
        "alive",
        "assignors",
        "clock",
        "config",
        "connection",
        "index",
        "membership",
        "name",
        "on_exit",
        "pulse",
        "standstill",
        "started",
        "waits_for_poll",
        "work",
        "world",
    )

    def __init__(
        self,
        world: World,
        index: int,
        incarnation: int,
        config: ConsumerConfig,
        assignors: Sequence[Assignor] | None = None,
    ) -> None:
        self.world = world
        self.clock = world.clock
        self.index = index
        self.name = config.client_id
        self.config = config
        self.alive = True
        self.started = False
        self.on_exit: Callable[[], None] | None = None
        #: Those that it offers.
        self.assignors = world.assignors_of(config) if assignors is None else assignors
        self.membership = Membership(config, self.assignors, self._topic_metadata, self.emit)
        self.work = Work(world.records, self.name)
        self.connection = Connection(world, self, incarnation)
        self.pulse = Pulse(world, self)
        self.standstill = Standstill(self)
        self._listener = RebalanceListener(self)
        self._draws = Stream(world.seed, "application", self.name, incarnation)
        self._flow: Flow | None = None
        self._step = 0
        self.waits_for_poll = False
        self._poll_is_due = False
        self._started_us = 0
        self._metadata_check_us: int | None = None

    def __repr__(self) -> str:
        state = self.membership.state.name if self.alive else "gone"
        return f"<VirtualConsumer {self.name} {state} owned={len(self.work.partitions)}>"

    # -- life ------------------------------------------------------------------------------------

    def start(self) -> None:
        """The first poll()."""
        config = self.config
        self.started = True
        self._started_us = self.clock.now_us
        self.emit(events.MemberStarted(config.group_id, self.name, config.group_instance_id, config.topics))
        self._flow = self.membership.run()
        self._advance(None)

    def stop(self) -> None:
        """SIGTERM has been heeded: close() begins."""
        if not self.alive or self._flow is None:
            return
        self._flow.close()
        self.standstill.end()
        self._flow = self.membership.close()
        self.waits_for_poll = False
        self.pulse.stop_commits()
        self._advance(None)

    def crash(self) -> None:
        """SIGKILL or node loss: nothing is sent, nothing is heard any more."""
        if not self.alive:
            return
        now_us = self.clock.now_us
        membership = self.membership
        partitions = self.work.partitions
        if self._flow is not None:
            self._flow.close()
        self.pulse.stop()
        self.pulse.settle_commits()
        positions = self.work.drop(partitions, now_us)
        if self.started:
            self.emit(
                events.MemberCrashed(
                    self.config.group_id,
                    self.name,
                    membership.generation.member_id,
                    membership.generation.id,
                    names(partitions),
                    positions,
                    self.world.committed(partitions),
                )
            )
        self._exit()

    def disconnect(self, duration_us: int) -> None:
        """Cut off from the broker; the process works on what it owns."""
        if not self.alive or self.standstill.lasts:
            return
        self.pulse.cut()
        self.membership.coordinator_known = False
        self.connection.break_for(duration_us)
        self.clock.after(duration_us, self._reconnected)

    def metadata_may_have_changed(self) -> None:
        """Topics changed: the client sees it at its next metadata refresh."""
        refresh_us = self.config.metadata_max_age_ms * 1000
        age_us = self.clock.now_us - self._started_us
        due_us = self._started_us + (age_us // refresh_us + 1) * refresh_us
        if self.alive and self._metadata_check_us != due_us:
            self._metadata_check_us = due_us
            self.clock.at(due_us, self._metadata_refreshed)

    @property
    def settled(self) -> bool:
        """Whether it has joined and nothing is under way."""
        membership = self.membership
        return (
            self.waits_for_poll
            and membership.state is MemberState.STABLE
            and not membership.rejoin_needed
            and not self.standstill.lasts
            and not self.connection.broken
        )

    # -- the membership's operations -------------------------------------------------------------

    def _advance(self, result: Any) -> None:
        """Hand the membership a result and carry out what it asks for, until something takes time."""
        follow = self.pulse.follow
        self.waits_for_poll = False
        while result is not TAKES_TIME and self._flow is not None:
            self._step += 1
            try:
                operation = self._flow.send(result)
            except StopIteration:
                self.pulse.stop()
                self._exit()
                return
            kind = type(operation)
            if kind is not Assign:
                follow()  # the assignor holds the client's lock: no heartbeats while it runs
            result = _CARRIES_OUT[kind](self, operation)

    def later(self, delay_us: int, result: Any = None) -> Any:
        """``result`` after a while, or at once if it takes no time."""
        if not delay_us:
            return result
        self.clock.after(delay_us, self.completed, self._step, result)
        return TAKES_TIME

    def completed(self, step: int, result: Any) -> None:
        """What the membership waited for since ``step`` has come."""
        if step != self._step or not self.alive:
            return
        paused_until_us = self.standstill.paused_until_us
        if self.clock.now_us < paused_until_us:
            self.clock.at(paused_until_us, self.completed, step, result)
        else:
            self._advance(result)

    def _send(self, operation: Send) -> Any:
        request, timeout_ms = operation
        self.connection.send(request, timeout_ms, None, self._step)
        return TAKES_TIME

    def _find_coordinator(self, _: FindCoordinator) -> Any:
        self.connection.find_coordinator(partial(self.completed, self._step, None))
        return TAKES_TIME

    def _await_poll(self, _: AwaitPoll) -> Any:
        self.waits_for_poll = True
        self.pulse.start_commits()
        self.standstill.next_batch()
        self.nudge()
        return TAKES_TIME

    def nudge(self) -> None:
        """Something may have made a rejoin necessary: the application notices at its next poll()."""
        membership = self.membership
        if not self.alive or not self.waits_for_poll or self._poll_is_due:
            return
        if membership.rejoin_needed or membership.failure is not None:
            self.pulse.stop_commits()
            self._poll_is_due = True
            due_us = self.clock.now_us + self._until_poll_us()
            self.clock.at(max(due_us, self.standstill.joins_from_us), self._poll, self._step)

    def _until_poll_us(self) -> int:
        """From now to the next poll(); none for a client that does not wait for it."""
        if not self.config.profile.rejoins_at_poll:
            return 0
        interval_us = self.drawn_us(self.world.poll_interval, DRAW_POLL_INTERVAL)
        return self.draw(DRAW_POLL_WAIT) * interval_us >> DRAW_BITS

    def _poll(self, step: int) -> None:
        self._poll_is_due = False
        joins_from_us = self.standstill.joins_from_us
        if step == self._step and self.alive and self.clock.now_us < joins_from_us:
            self._poll_is_due = True
            self.clock.at(joins_from_us, self._poll, step)
        else:
            self.completed(step, None)

    def _back_off(self, operation: Backoff) -> Any:
        return self.later(operation.delay_ms * 1000)

    def _stop_processing(self, operation: StopProcessing) -> None:
        self.pulse.settle_commits()
        self.work.stop(operation.partitions, self.clock.now_us)

    def _assign(self, operation: Assign) -> Any:
        response = operation.response
        topics = self._topic_metadata()
        members = response.members
        assignor = next(each for each in self.assignors if each.name == response.protocol)
        protocol = self.membership.rebalance_protocol
        with self.world.assignor_work:
            plan = lead(assignor, protocol, topics, members, self.world.leader_memory)
        if isinstance(plan, AssignmentFailed):
            self.world.assignor_work.failed(plan.error, plan.message)
        settings = self.world.settings
        size = len(members) * sum(topics.values())
        duration_us = self.drawn_us(settings.distribution("assign_ms"), DRAW_ASSIGN)
        duration_us += settings.integer("assign_ns_per_member_partition") * size // 1000
        generation = self.membership.generation
        self.emit(
            events.AssignmentComputed(
                self.config.group_id,
                self.name,
                generation.member_id,
                generation.id,
                response.protocol or "",
                duration_us,
                len(members),
            )
        )
        self.pulse.hold(duration_us)
        return self.later(duration_us, plan)

    def _commit_positions(self, _: CommitPositions) -> Any:
        positions = self.work.positions(self.clock.now_us)
        if not positions:
            return NO_ERROR
        sent = self.membership.generation
        self.connection.send(
            self.offset_commit(positions, sent),
            self.config.request_timeout_ms,
            partial(self._commit_answered, positions, sent, self._step),
        )
        return TAKES_TIME

    def _commit_answered(
        self,
        positions: Mapping[TopicPartition, int],
        sent: Generation,
        step: int,
        response: Response | Disconnected,
    ) -> None:
        if not isinstance(response, OffsetCommitResponse):
            self.completed(step, response)
            return
        error = first_error(response)
        if error is NO_ERROR:
            self.world.commit(positions)
            self.pulse.commits_superseded()
        self.membership.commit_answered(error, sent)
        self.completed(step, error)

    def _run_callback(self, operation: RunCallback) -> Any:
        return self._listener.run(operation)

    def offset_commit(self, positions: Mapping[TopicPartition, int], sent: Generation) -> OffsetCommit:
        """A commit of these, sent in that generation."""
        offsets: dict[str, dict[int, CommittedOffset]] = {}
        for (topic, partition), position in positions.items():
            offsets.setdefault(topic, {})[partition] = CommittedOffset(position)
        return offset_commit(self.config, sent, offsets)

    # -- what befalls the process ----------------------------------------------------------------

    def reachable(self) -> bool:
        """Whether it can send heartbeats now."""
        now_us = self.clock.now_us
        return (
            self.alive
            and now_us >= self.connection.broken_until_us
            and now_us >= self.standstill.paused_until_us
        )

    def outlasts_poll_interval(self, duration_us: int) -> None:
        """The application is about to be away from poll() for so long: what is under way now takes it."""
        max_poll_us = self.config.max_poll_interval_ms * 1000
        if self.config.profile.has_max_poll_interval and duration_us > max_poll_us:
            self.clock.after(max_poll_us, self._poll_timed_out, self._step)

    def _poll_timed_out(self, step: int) -> None:
        """max.poll.interval.ms has passed: the heartbeat thread, if it runs, leaves the group."""
        if step != self._step or not self.alive or not self.membership.heartbeating:
            return
        leave = self.membership.poll_timed_out()
        self.pulse.follow()
        if leave is not None:
            self.connection.send(leave, self.config.request_timeout_ms, lambda _: None)
        self.nudge()

    def _reconnected(self) -> None:
        if self.alive and not self.connection.broken:
            self.membership.coordinator_known = True
            self.pulse.restart()
            self.nudge()

    def _metadata_refreshed(self) -> None:
        if self.alive:
            self.membership.metadata_refreshed()
            self.nudge()

    def _topic_metadata(self) -> Mapping[str, int]:
        """The topics as of this client's last metadata refresh."""
        refresh_us = self.config.metadata_max_age_ms * 1000
        age_us = self.clock.now_us - self._started_us
        return self.world.topics_at(self._started_us + age_us // refresh_us * refresh_us)

    def drawn_us(self, distribution: Distribution, purpose: int) -> int:
        """A duration that begins now."""
        if distribution.is_constant:
            return distribution.largest_us
        return distribution.at(self.draw(purpose))

    def expected_result(self) -> Callable[[Any], None]:
        """Takes the result of the operation that is under way, some time later."""
        return partial(self.completed, self._step)

    def draw(self, purpose: int) -> int:
        return self._draws.at(DRAWS_PER_INSTANT * self.clock.now_us + purpose)

    def _exit(self) -> None:
        self.alive = False
        self._flow = None
        self._step += 1
        self.world.process_gone(self)
        if self.on_exit is not None:
            self.on_exit()

    def emit(self, event: events.Event) -> None:
        self.world.trace(_MEMBER, event)


_CARRIES_OUT: Mapping[type[Operation], Callable[[VirtualConsumer, Any], Any]] = {
    Send: VirtualConsumer._send,
    FindCoordinator: VirtualConsumer._find_coordinator,
    AwaitPoll: VirtualConsumer._await_poll,
    Backoff: VirtualConsumer._back_off,
    RunCallback: VirtualConsumer._run_callback,
    StopProcessing: VirtualConsumer._stop_processing,
    CommitPositions: VirtualConsumer._commit_positions,
    Assign: VirtualConsumer._assign,
}
