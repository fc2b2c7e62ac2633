"""The parts of a situation."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

from tests.oracle.member.scripted_broker import On, Reaction


class Act(Enum):
    """An act of the application when the broker has seen something."""

    LEAVE_POLL = "leave_poll"
    ENTER_POLL = "enter_poll"
    CLOSE = "close"


class After(NamedTuple):
    """After this incarnation's ``nth`` request of an API (in one generation, if that is named): ``act``."""

    api: str
    nth: int
    act: Act
    generation: int | None = None


class WhenQuiet(NamedTuple):
    """When the broker has not been asked anything for so long: ``act``."""

    quiet_ms: int
    act: Act


class WhenEnded(NamedTuple):
    """When the consumer is closed, the next incarnation of the process starts."""


Acts = tuple[After | WhenQuiet | WhenEnded, ...]
#: Reactions to certain requests; all others are answered as ever.
Script = Mapping[On, Reaction]


class Situation(NamedTuple):
    """One situation. ``config`` in Kafka's option names, over `CONFIG`."""

    name: str
    variant: str
    script: Script
    acts: Acts
    config: Mapping[str, str | int] = {}
    subscribed: tuple[str, ...] = ("t",)

    def __str__(self) -> str:
        return f"{self.name}[{self.variant}]" if self.variant else self.name


#: Topics of the scripted broker and their partitions.
TOPICS: Mapping[str, int] = {"t": 3, "u": 2}

#: Short times, so that a situation takes well under a second.
CONFIG: Mapping[str, str | int] = {
    "group.id": "g", "client.id": "c", "partition.assignment.strategy": "cooperative-sticky",
    "session.timeout.ms": 10_000, "heartbeat.interval.ms": 120, "max.poll.interval.ms": 60_000,
    "request.timeout.ms": 5_000, "retry.backoff.ms": 20, "metadata.max.age.ms": 300_000,
    "enable.auto.commit": "true", "auto.commit.interval.ms": 60_000,
}  # fmt: skip
