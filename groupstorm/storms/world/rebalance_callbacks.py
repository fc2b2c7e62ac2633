"""The callbacks of a process that gains or loses partitions in a rebalance (ConsumerRebalanceListener)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, Protocol

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.member_session import Generation
from groupstorm.clients.operations import (
    ASSIGNED,
    GIVEN_UP_EVENTS,
    Disconnected,
    RunCallback,
)
from groupstorm.clients.requests import offset_fetch
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import Response
from groupstorm.storms.records.positions import names
from groupstorm.storms.scenario.setting_names import NONE
from groupstorm.storms.scenario.settings import Settings
from groupstorm.storms.world.application_polls import ApplicationPolls
from groupstorm.storms.world.disturbances import DisturbedProcess
from groupstorm.storms.world.environment import Environment
from groupstorm.storms.world.record_times import CALLBACK, ApplicationDraws
from groupstorm.trace.events import member as events
from groupstorm.trace.schema import Source

#: The result of an operation whose actual result comes later.
TAKES_TIME: Any = object()

#: Looked up on the class, a member costs as much as a call before Python 3.12.
_MEMBER: Final = Source.MEMBER


class LocalState:
    """The state that a process keeps of its partitions: joins, aggregates (`restore_ms`).

    A process has the state of the partitions of its last assignment, even while it gives them up for a
    moment, as eager members do. State of a partition that another process owned in between is rebuilt.
    """

    def __init__(self) -> None:
        self._partitions: tuple[TopicPartition, ...] = ()

    def assigned(self, owned: tuple[TopicPartition, ...]) -> int:
        """The process owns exactly these from now on; returns for how many the state is to be rebuilt."""
        before, self._partitions = self._partitions, owned
        return 0 if owned is before else len(set(owned).difference(before))


class CallbackProcess(DisturbedProcess, Protocol):
    """A process as its callbacks see it. Its parts stay the same as long as it lives."""

    draws: ApplicationDraws
    polls: ApplicationPolls
    settings: Settings

    def later(self, delay_us: int, result: Any = None) -> Any:
        """``result`` after a while, or at once if it takes no time."""
        ...

    def expected_result(self) -> Callable[[Any], None]:
        """Takes the result of the operation that is under way, some time later."""
        ...

    def commit(
        self,
        positions: Mapping[TopicPartition, int],
        sent: Generation,
        then: Callable[[Error | Disconnected], None],
    ) -> None: ...


class RebalanceHooks(Protocol):
    """The calls by which an application on top of the consumer extends its callbacks, in their order."""

    def before_giving_up(self, operation: RunCallback) -> Mapping[TopicPartition, int]:
        """Partitions are about to go. Returns the positions to commit before the callback returns."""

    def given_up(self, partitions: Sequence[TopicPartition]) -> None:
        """The process does not process these any more."""

    def before_taking(self) -> None:
        """An assignment has come."""

    def start_positions(self, committed: tuple[int, ...]) -> tuple[int, ...]:
        """Where to start; ``committed`` are the group's offsets, -1 if there is none."""

    def fetching(self, begun: Sequence[TopicPartition]) -> None:
        """The positions of these are known: the process fetches."""


class _Assignment(NamedTuple):
    """Partitions that an assignment adds, and the generation that it belongs to."""

    number: int
    added: tuple[TopicPartition, ...]
    generation: Generation


class ListenerCalls:
    """The listener of one process: each call takes its time."""

    def __init__(
        self, environment: Environment, process: CallbackProcess, hooks: RebalanceHooks | None
    ) -> None:
        self._environment = environment
        self._clock = environment.clock
        self._process = process
        self._config = process.config
        self._connection = process.connection
        self._draws = process.draws
        self._assign_time = process.settings.distribution("assign_callback_ms")
        self._revoke_time = process.settings.distribution("revoke_callback_ms")
        self._restore_time = process.settings.distribution("restore_ms")
        self._membership = process.membership
        self._periodic_requests = process.periodic_requests
        self._work = process.work
        self._hooks = hooks
        self._local_state = LocalState()
        self._assignments = 0
        #: Owned partitions that are not begun: the number of the assignment whose look-up begins them. A
        #: look-up of an earlier one, which was under way when they were given up, does not.
        self._to_begin: dict[TopicPartition, int] = {}

    def call(self, operation: RunCallback) -> Any:
        """Call the listener now: the result of the operation, or that it takes time."""
        if operation.kind is ASSIGNED:
            return self._take(operation.partitions)
        return self._give_up(operation)

    def held(self) -> tuple[TopicPartition, ...]:
        """The partitions that the process works on, and those whose positions it looks up, in order."""
        return tuple(sorted({*self._work.partitions, *self._to_begin}))

    # -- partitions go ---------------------------------------------------------------------------

    def _give_up(self, operation: RunCallback) -> Any:
        hooks = self._hooks
        if hooks is None:
            return self._process.later(self._stop_processing(operation))
        positions = hooks.before_giving_up(operation)
        duration_us = self._stop_processing(operation)
        hooks.given_up(operation.partitions)
        return self._commit(positions, duration_us) if positions else self._process.later(duration_us)

    def _stop_processing(self, operation: RunCallback) -> int:
        """Process these partitions no more; returns how long the callback will take."""
        self._periodic_requests.stop_commits()
        positions = self._work.drop(operation.partitions, self._clock.now_us)
        for partition in self._to_begin.keys() & operation.partitions:
            del self._to_begin[partition]
        duration_us = self._draws.duration_us(self._revoke_time, CALLBACK)
        generation = self._membership.generation
        self._environment.trace.emit(
            _MEMBER,
            GIVEN_UP_EVENTS[operation.kind](
                self._config.group_id,
                self._process.name,
                generation.member_id,
                generation.id,
                names(operation.partitions),
                positions,
                self._environment.members.committed(operation.partitions),
                duration_us,
                operation.cause,
            ),
        )
        self._process.polls.interrupted_for(duration_us)
        return duration_us

    def _commit(self, positions: Mapping[TopicPartition, int], duration_us: int) -> Any:
        """Whatever the response is, the callback returns; what was not committed is processed again."""
        sent, returned = self._membership.generation, self._process.expected_result()
        self._process.commit(positions, sent, lambda _: self._clock.after(duration_us, returned, None))
        return TAKES_TIME

    # -- partitions come -------------------------------------------------------------------------

    def _take(self, added: tuple[TopicPartition, ...]) -> Any:
        """Run the callback; then, beside the membership's next steps, learn where to start and fetch."""
        if self._hooks is not None:
            self._hooks.before_taking()
        self._assignments += 1
        assignment = _Assignment(self._assignments, added, self._membership.generation)
        restore_us = self._restore_us()
        if not added:
            self._fetch(assignment, 0)
            return None
        self._to_begin.update(dict.fromkeys(added, assignment.number))
        duration_us = self._draws.duration_us(self._assign_time, CALLBACK) + restore_us
        if duration_us:
            self._clock.after(duration_us, self._look_up, assignment, duration_us)
        else:
            self._look_up(assignment, duration_us)
        self._process.polls.interrupted_for(duration_us)
        return self._process.later(duration_us)

    def _look_up(self, assignment: _Assignment, duration_us: int) -> None:
        """Ask for the committed offsets, again and again if the connection is lost."""
        if not self._process.alive:
            return
        topics: dict[str, tuple[int, ...]] = {}
        for topic, partition in assignment.added:
            topics[topic] = (*topics[topic], partition) if topic in topics else (partition,)
        self._connection.send(
            offset_fetch(self._config, topics),
            self._config.request_timeout_ms,
            partial(self._looked_up, assignment, duration_us),
        )

    def _looked_up(
        self, assignment: _Assignment, duration_us: int, response: Response | Disconnected
    ) -> None:
        if isinstance(response, Disconnected):
            self._connection.find_coordinator(partial(self._look_up, assignment, duration_us))
        else:
            self._fetch(assignment, duration_us)

    def _fetch(self, assignment: _Assignment, duration_us: int) -> None:
        """The member has taken its assignment: it fetches the partitions that it still owns."""
        if not self._process.alive:
            return
        number, added, generation = assignment
        work = self._work
        begun: tuple[TopicPartition, ...] = ()
        positions: tuple[int, ...] = ()
        if added:
            to_begin = self._to_begin
            begun = tuple([tp for tp in added if tp in to_begin and to_begin[tp] == number])
            starts = self._start_positions(begun)
            if work.reset == NONE and min(starts, default=0) < 0:
                self._membership.failure = "NoOffsetForPartitionException"  # poll() throws
                self._process.polls.nudge()
                return
            for partition in begun:
                del self._to_begin[partition]
            positions = work.start(begun, starts, self._clock.now_us)
            self._periodic_requests.begun(dict(zip(begun, positions, strict=True)))
        self._environment.trace.emit(
            _MEMBER,
            events.PartitionsAssigned(
                self._config.group_id,
                self._process.name,
                generation.member_id,
                generation.id,
                names(begun),
                positions,
                duration_us,
            ),
        )
        self._process.rates.changed(began=bool(begun))
        self._process.polls.watch()
        self._environment.invariants.generation_completed(
            self._process.name, self._membership.owned, work.partitions
        )
        if self._hooks is not None:
            self._hooks.fetching(begun)

    def _start_positions(self, begun: tuple[TopicPartition, ...]) -> tuple[int, ...]:
        committed = self._environment.members.committed(begun)
        return committed if self._hooks is None else self._hooks.start_positions(committed)

    def _restore_us(self) -> int:
        """Before the callback returns, as a consumer does that seeks and reads its stores anew."""
        rebuilt = self._local_state.assigned(self._membership.owned)
        return rebuilt * self._draws.duration_us(self._restore_time, CALLBACK) if rebuilt else 0
