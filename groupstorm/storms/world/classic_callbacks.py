"""When the listener of a member of the classic protocol is called."""

from __future__ import annotations

from typing import Any, Protocol

from groupstorm.clients.membership import Membership
from groupstorm.clients.operations import ASSIGNED, CallbackKind, RunCallback
from groupstorm.coordinator.messages import NO_GENERATION
from groupstorm.storms.records.positions import Work
from groupstorm.storms.world.application_polls import ApplicationPolls
from groupstorm.storms.world.clock import Clock
from groupstorm.storms.world.rebalance_callbacks import TAKES_TIME, ListenerCalls


class ClassicProcess(Protocol):
    """What the callbacks need of their process. Its parts stay the same as long as it lives."""

    alive: bool
    membership: Membership
    polls: ApplicationPolls
    step: int
    work: Work

    def completed(self, step: int, result: Any) -> None:
        """The result has come for which the membership has waited since ``step``."""
        ...


class VirtualCallbacks:
    """The callbacks of one process, each of which takes its time."""

    __slots__ = ("_calls", "_clock", "_membership", "_process", "_round_failed")

    def __init__(self, clock: Clock, process: ClassicProcess, calls: ListenerCalls) -> None:
        self._clock = clock
        self._process = process
        self._membership = process.membership
        self._calls = calls
        #: The round whose callbacks are due has failed: the listener is not called.
        self._round_failed = False

    def run(self, operation: RunCallback) -> Any:
        """Carry the operation out: its result, or that it takes time.

        The listener is called inside poll(): a member that goes on processing may be at work.
        """
        process = self._process
        if process.work.loop.processed_partitions:
            next_poll_us = process.polls.next_us()
            if next_poll_us > self._clock.now_us:
                self._clock.at(next_poll_us, self._in_poll, process.step, operation)
                return TAKES_TIME
        if self._round_failed:
            if operation.kind is ASSIGNED:  # the last call of the round
                self._round_failed = False
                self._membership.owned = self._calls.held()
            return None
        return self._calls.call(operation)

    def _in_poll(self, step: int, operation: RunCallback) -> None:
        """The application polls while the membership waits for the listener."""
        process = self._process
        if step != process.step or not process.alive:
            return
        completes_round = operation.kind is ASSIGNED or operation.cause == "assignment"
        if completes_round and self._membership.generation.id == NO_GENERATION:
            # The heartbeat thread has left the group meanwhile: the round has failed. Nobody calls the
            # listener for it, the member owns what it owned before (AbstractCoordinator.joinGroupIfNeeded).
            self._round_failed = True
        elif operation.kind is CallbackKind.REVOKED and (lost := self._membership.lost_cause):
            # A response has reset the generation since the last poll() (ConsumerCoordinator.onJoinPrepare).
            operation = RunCallback(CallbackKind.LOST, operation.partitions, lost)
        result = self.run(operation)
        if result is not TAKES_TIME:
            process.completed(step, result)
