"""The phases of a group's timers: the instants of their periods at which the steps of a scenario come.

A group that a deployment or a crash meets has run for a while: its next heartbeats and background commits are
due at any instant of their interval, and each client fetched topic metadata at some time of its own. With
``phases: drawn`` the seed decides; ``aligned`` begins everything at 0, so that times can be derived by hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from groupstorm.storms.scenario.randomness import DRAW_BITS, Stream
from groupstorm.storms.scenario.settings import Settings
from groupstorm.storms.scenario.steps import Step

DRAWN: Final = "drawn"
START: Final = "start"
#: Heartbeats and background commits of the first members are shifted by the longer of their periods.
_HEARTBEATS: Final = ("heartbeat.interval.ms", "group.consumer.heartbeat.interval.ms")


class Phases:
    """The phases of one run: they depend on its seed, its steps and its intervals alone, so that variants
    that have the same intervals have the same phases."""

    __slots__ = ("_begun_us", "_seed", "start_us")

    def __init__(self, settings: Settings, steps: Sequence[Step], seed: int) -> None:
        self._seed = seed if settings.choice("phases") == DRAWN else None
        #: The delay with which members start after their step, all of them alike: at most a quarter of the
        #: time until the first other step.
        self.start_us = self.within_us("first members", _start_within_us(settings, steps))
        starts_ms = (step.over_ms for step in steps if step.do == START and step.at_ms == 0)
        #: The processes that start until then are first members: later ones are new indeed.
        self._begun_us = self.start_us + max(starts_ms, default=0) * 1000

    def within_us(self, of: str, period_us: int) -> int:
        """The phase of what recurs with this period; 0 if phases are aligned."""
        return 0 if self._seed is None else Stream(self._seed, "phase", of).at(0) * period_us >> DRAW_BITS

    def metadata_age_us(self, name: str, now_us: int, max_age_us: int) -> int:
        """The age of a client's topic metadata if its process starts now, at most ``max_age_us``."""
        return self.within_us(f"metadata/{name}", max_age_us) if now_us <= self._begun_us else 0


def _start_within_us(settings: Settings, steps: Sequence[Step]) -> int:
    periods_ms = [settings.integer(name) for name in _HEARTBEATS]
    if settings.flag("enable.auto.commit"):
        periods_ms.append(settings.integer("auto.commit.interval.ms"))
    later_ms = min((step.at_ms for step in steps if step.do != START), default=None)
    within_us = max(periods_ms) * 1000
    return within_us if later_ms is None else min(within_us, later_ms * 250)
