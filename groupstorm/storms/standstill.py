"""A process that stands still while it owns partitions: paused altogether, or busy with one batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from groupstorm.clients import events
from groupstorm.storms.records import names

if TYPE_CHECKING:
    from groupstorm.storms.consumer import VirtualConsumer


class Standstill:
    """Until when a process neither polls nor processes. A pause stops its heartbeats as well."""

    __slots__ = (
        "_busy_until_us",
        "_consumer",
        "_next_batch_us",
        "paused_until_us",
        "until_us",
    )

    def __init__(self, consumer: VirtualConsumer) -> None:
        self.paused_until_us = 0
        #: When the process can poll again.
        self.until_us = 0
        self._consumer = consumer
        self._busy_until_us = 0
        self._next_batch_us = 0

    @property
    def joins_from_us(self) -> int:
        """When the process can join again: a busy application holds up those alone that do so in poll()."""
        at_poll = self._consumer.config.profile.rejoins_at_poll
        return self.until_us if at_poll else self.paused_until_us

    @property
    def lasts(self) -> bool:
        return self._consumer.clock.now_us < self.until_us

    def pause(self, duration_us: int) -> None:
        """The process stands still: no heartbeat, no poll, no processing (GC, SIGSTOP)."""
        consumer = self._consumer
        if not consumer.alive or self.lasts:
            return
        self.until_us = self.paused_until_us = consumer.clock.now_us + duration_us
        consumer.pulse.stop()
        self._begin(duration_us, "pause")
        consumer.clock.after(duration_us, self._end_of_pause)

    def busy(self, duration_us: int) -> None:
        """The application works on one batch: no poll() until it is done; heartbeats go on."""
        consumer = self._consumer
        if not consumer.alive or self.lasts:
            return
        if not consumer.waits_for_poll or consumer.membership.rejoin_needed:
            self._next_batch_us = duration_us  # it comes with the next records
            return
        self._next_batch_us = 0
        self.until_us = self._busy_until_us = consumer.clock.now_us + duration_us
        consumer.pulse.stop_commits()
        self._begin(duration_us, "slow-batch")
        consumer.outlasts_poll_interval(duration_us)
        consumer.clock.after(duration_us, self._end_of_batch)

    def next_batch(self) -> None:
        """The application has polled: a slow batch that was due comes now."""
        if self._next_batch_us:
            self.busy(self._next_batch_us)

    def end(self) -> None:
        """Go on, if it stood still: what it believes to own is processed from where it stopped."""
        if self.until_us == 0:
            return
        self.until_us = self.paused_until_us = self._busy_until_us = 0
        consumer = self._consumer
        partitions = consumer.work.partitions
        now_us = consumer.clock.now_us
        consumer.work.resume(now_us)
        positions = tuple(consumer.work.position(partition, now_us) for partition in partitions)
        member_id = consumer.membership.generation.member_id
        group = consumer.config.group_id
        consumer.emit(events.MemberResumed(group, consumer.name, member_id, names(partitions), positions))

    def _begin(self, duration_us: int, cause: str) -> None:
        consumer = self._consumer
        consumer.pulse.settle_commits()
        partitions = consumer.work.partitions
        positions = consumer.work.stop(partitions, consumer.clock.now_us)
        member_id = consumer.membership.generation.member_id
        group = consumer.config.group_id
        consumer.emit(
            events.MemberPaused(
                group, consumer.name, member_id, names(partitions), positions, duration_us, cause
            )
        )

    def _end_of_pause(self) -> None:
        consumer = self._consumer
        if consumer.alive and self.paused_until_us:
            self.end()
            consumer.pulse.restart()
            consumer.nudge()

    def _end_of_batch(self) -> None:
        consumer = self._consumer
        if consumer.alive and self._busy_until_us:
            self.end()
            if consumer.waits_for_poll and not consumer.membership.rejoin_needed:
                consumer.pulse.start_commits()
            consumer.nudge()
