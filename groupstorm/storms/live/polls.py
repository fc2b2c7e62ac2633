"""When an application in real time is inside poll(): a wire member stops polling while a long batch lasts."""

from __future__ import annotations

from typing import Final, Protocol

from groupstorm.clients.wire.consumer import WireConsumer
from groupstorm.storms.live.clock import RealClock
from groupstorm.storms.world.poll_loop import PollLoop

#: Shorter work between two polls is not worth an event of the real clock.
_SHORT_US: Final = 50_000

#: How long the application stays inside poll() between two batches, so that the member notices.
_INSIDE_US: Final = 1_000


class Application(Protocol):
    """The process whose polls are followed."""

    alive: bool
    wire: WireConsumer

    @property
    def stands_still(self) -> bool:
        """Whether a pause or a slow batch lasts: it says itself when the application polls."""
        ...


class RealPolls:
    """Follows the computed polls of one process as long as they may be far apart."""

    def __init__(self, clock: RealClock, loop: PollLoop, application: Application) -> None:
        self._clock = clock
        self._loop = loop
        self._application = application
        self._number = 0
        self._away = False
        #: Whether the wire member polls just when the application does.
        self.followed = False

    def follow(self) -> None:
        """The process has other partitions, or goes on after a pause."""
        self._number += 1
        self._come_back()
        self._look(self._number)

    def stop(self) -> None:
        """Something else says from now on when the application polls."""
        self._number += 1
        self._away = self.followed = False

    def _look(self, number: int) -> None:
        application, loop = self._application, self._loop
        if number != self._number or not application.alive or application.stands_still:
            return
        now_us = self._clock.now_us
        sure_until_us = loop.sure_until_us(now_us) if loop.keeps_up(now_us) else 0
        if sure_until_us and loop.longest_interval_us <= 2 * _SHORT_US:
            if sure_until_us > 0:
                self._clock.at(sure_until_us, self._look, number)
            self.followed = False
            return
        self.followed = True
        poll_us = loop.poll_after_us(now_us)
        if poll_us - now_us > _SHORT_US:
            self._away = True
            application.wire.polling.leave()
        self._clock.at(poll_us, self._poll, number)

    def _poll(self, number: int) -> None:
        if number == self._number and self._application.alive and not self._application.stands_still:
            self._come_back()
            self._clock.after(_INSIDE_US, self._look, number)

    def _come_back(self) -> None:
        if self._away:
            self._away = False
            self._application.wire.polling.enter()
