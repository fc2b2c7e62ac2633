"""Disturbances of a process while it owns partitions: pauses, faults of its connection, of the network.

Pauses are those of the whole process, as a garbage collector's, of an application with one batch, or of its
fetches from some partitions.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.storms.records.positions import ProcessingRates, names
from groupstorm.storms.scenario.randomness import Stream
from groupstorm.storms.scenario.settings import Settings
from groupstorm.storms.world.clock import Clock
from groupstorm.storms.world.periodic_requests.requests import PeriodicRequests
from groupstorm.storms.world.periodic_requests.series import Sender
from groupstorm.trace.events import member as events


class DisturbedProcess(Sender, Protocol):
    """A process as what disturbs it and its polls see it. Its parts stay the same as long as it lives."""

    alive: bool
    clock: Clock
    index: int
    name: str
    pauses: Pauses
    periodic_requests: PeriodicRequests
    rates: ProcessingRates
    step: int
    waits_for_poll: bool

    def emit(self, event: events.Event) -> None: ...

    def watch_polls(self) -> None:
        """The application's next poll() comes at another time."""
        ...

    def completed(self, step: int, result: Any) -> None:
        """The result has come for which the membership has waited since ``step``."""
        ...

    def polled(self) -> None:
        """The application calls poll(), in exact mode."""
        ...

    def poll_deadline_us(self, polled_us: int) -> int:
        """When max.poll.interval.ms has passed since a poll() at ``polled_us``, as the client counts it."""
        ...


class Pauses:
    """The times in which a process neither polls nor processes. A pause stops its heartbeats, too."""

    def __init__(self, clock: Clock, process: DisturbedProcess) -> None:
        #: When the process itself runs again.
        self.paused_until_us = 0
        #: When the application can poll again.
        self.until_us = 0
        self._clock = clock
        self._process = process
        self._busy_until_us = 0
        self._next_batch_us = 0

    @property
    def lasts(self) -> bool:
        return self._clock.now_us < self.until_us

    def pause(self, duration_us: int) -> None:
        """The process stands still: no heartbeat, no poll, no processing (GC, SIGSTOP)."""
        process = self._process
        if not process.alive or self.lasts:
            return
        self.until_us = self.paused_until_us = self._clock.now_us + duration_us
        process.periodic_requests.stop()
        self._begin(duration_us, "pause", polls=False)
        self._clock.after(duration_us, self._end_of_pause)

    def busy(self, duration_us: int) -> None:
        """The application works on one batch: no poll() until it is done; heartbeats go on."""
        process = self._process
        if not process.alive or self.lasts:
            return
        if not process.waits_for_poll or process.membership.rejoin_needed:
            self._next_batch_us = duration_us  # it comes with the next records
            return
        self._next_batch_us = 0
        self.until_us = self._busy_until_us = self._clock.now_us + duration_us
        if not process.config.profile.commits_between_polls:
            process.periodic_requests.stop_commits()
        self._begin(duration_us, "slow-batch", polls=True)
        process.watch_polls()
        self._clock.after(duration_us, self._end_of_batch)

    def next_batch(self) -> None:
        """The application has polled: a slow batch that was postponed comes now."""
        if self._next_batch_us:
            self.busy(self._next_batch_us)

    def end(self) -> None:
        """Go on if the process stood still: from its positions, on all partitions that it believes to own."""
        if self.until_us == 0:
            return
        self.until_us = self.paused_until_us = self._busy_until_us = 0
        process = self._process
        partitions = process.work.partitions
        positions = tuple(process.work.positions(self._clock.now_us).values())
        member_id = process.membership.generation.member_id
        group = process.config.group_id
        process.emit(events.MemberResumed(group, process.name, member_id, names(partitions), positions))
        process.rates.changed(began=True)

    def _begin(self, duration_us: int, cause: str, polls: bool) -> None:
        process = self._process
        process.periodic_requests.settle_commits()
        process.rates.stop()
        partitions = process.work.partitions
        now_us = self._clock.now_us
        process.work.loop.stall(now_us, duration_us, polls)
        positions = tuple(process.work.positions(now_us).values())
        member_id = process.membership.generation.member_id
        group = process.config.group_id
        process.emit(
            events.MemberPaused(
                group, process.name, member_id, names(partitions), positions, duration_us, cause
            )
        )

    def _end_of_pause(self) -> None:
        process = self._process
        if process.alive and self.paused_until_us:
            self.end()
            process.periodic_requests.restart()
            process.nudge()

    def _end_of_batch(self) -> None:
        process = self._process
        if process.alive and self._busy_until_us:
            self.end()
            if process.waits_for_poll and not process.membership.rejoin_needed:
                process.periodic_requests.start_commits()
            process.nudge()


class GarbageCollections:
    """`gc_interval_ms` after the last pause, the process stands still for `gc_pause_ms`. Draws by counter."""

    def __init__(self, process: DisturbedProcess, settings: Settings, stream: Stream) -> None:
        self._process = process
        self._pause = settings.distribution("gc_pause_ms")
        self._interval = settings.distribution("gc_interval_ms")
        self._stream = stream
        self._number = 0

    def start(self) -> None:
        if self._pause.largest_us:
            self._process.clock.after(self._draw()[0], self._collect)

    def _draw(self) -> tuple[int, int]:
        """The time until the next pause, and its duration."""
        self._number += 1
        interval, pause = self._stream.pair(self._number)
        return max(1, self._interval.at(interval)), self._pause.at(pause)

    def _collect(self) -> None:
        if not self._process.alive:
            return
        _, pause_us = self._draw()
        if pause_us:
            self._process.pauses.pause(pause_us)
        interval_us, _ = self._draw()
        self._process.clock.after(pause_us + interval_us, self._collect)


def pause_fetching(process: DisturbedProcess, partitions: Iterable[TopicPartition]) -> None:
    """Hand out nothing of these (KafkaConsumer.pause); those that it has not begun are left alone."""
    begun = tuple([tp for tp in partitions if tp in process.work])
    if begun:
        positions = process.work.stop(begun, process.clock.now_us)
        group, member_id = process.config.group_id, process.membership.generation.member_id
        process.emit(events.PartitionsPaused(group, process.name, member_id, names(begun), positions))


def resume_fetching(process: DisturbedProcess, partitions: Iterable[TopicPartition]) -> None:
    """Hand out records of those that are paused."""
    paused = tuple([tp for tp in partitions if process.work.stands_still(tp)])
    if paused:
        positions = process.work.resume_some(paused, process.clock.now_us)
        group, member_id = process.config.group_id, process.membership.generation.member_id
        process.emit(events.PartitionsResumed(group, process.name, member_id, names(paused), positions))
        process.rates.changed(began=True)


class ConnectionFaults:
    """Breaks the connection of one process, and mends it when the time is over."""

    def __init__(self, process: DisturbedProcess) -> None:
        self._process = process

    def lose_coordinator(self, duration_us: int) -> None:
        """The connection to the coordinator breaks, and there is no other for so long."""
        process = self._process
        if not process.alive:
            return
        process.periodic_requests.stop()
        process.membership.coordinator_known = False
        process.connection.break_for(duration_us)
        process.clock.after(duration_us, self._reconnected)

    def partition(self, duration_us: int, direction: str) -> None:
        """The network swallows requests, responses or both (`steps.DIRECTIONS`).

        The client does not know; it closes a connection on which a request has had no response for
        request.timeout.ms.
        """
        process = self._process
        connection, until_us = process.connection, process.clock.now_us + duration_us
        if direction != "requests":
            connection.no_responses_until_us = max(connection.no_responses_until_us, until_us)
        if direction == "responses":
            process.clock.at(self._unanswered_us(), self._give_up_connection)
        else:
            connection.no_requests_until_us = max(connection.no_requests_until_us, until_us)
            process.periodic_requests.stop()
        process.clock.after(duration_us, self._reconnected)

    def _unanswered_us(self) -> int:
        """When request.timeout.ms has passed since the next heartbeat."""
        process = self._process
        timeout_us = process.client_clock.timer_us(process.config.request_timeout_ms)
        return process.periodic_requests.next_heartbeat_us() + timeout_us

    def _give_up_connection(self) -> None:
        process = self._process
        until_us, now_us = process.connection.no_responses_until_us, process.clock.now_us
        if now_us < until_us and process.membership.heartbeating:
            self.lose_coordinator(until_us - now_us)

    def _reconnected(self) -> None:
        process = self._process
        if process.alive and process.connection.passes:
            process.membership.coordinator_known = True
            process.periodic_requests.restart()
            process.nudge()
