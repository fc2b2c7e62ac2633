"""Schedules: what a seed lets go wrong, and when. Only data and decisions."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from groupstorm.problems import InputError
from groupstorm.storms.scenario.randomness import DRAW_BITS, Stream

_MS = 1000
#: So many things go wrong in a schedule at most.
MOST = 3
#: An instance is hit at most so many of its steps behind the drawn time.
_MOST_STEPS = 60
#: One message in so many takes ten times as long as the longest of the others.
_SLOW_ONE_IN = 200


class Kind(StrEnum):
    """The kinds of failure."""

    CRASH = "crash"
    """An instance is killed, and started again later."""
    RESTART = "restart"
    """An instance is asked to stop, and started again when it has ended."""
    PAUSE = "pause"
    """An instance stands still."""
    PARTITION = "partition"
    """An instance is cut off from the brokers."""
    DISCONNECT = "disconnect"
    """The connections of an instance are lost."""
    BROKER_PAUSE = "broker-pause"
    """The brokers answer nothing."""
    MOVE_COORDINATOR = "move-coordinator"
    """Another broker takes every group over; a single one loads them anew."""


#: The shortest and the longest duration of a failure, in milliseconds.
_LASTS_MS = {
    Kind.CRASH: (500, 20_000),
    Kind.RESTART: (0, 0),
    Kind.PAUSE: (500, 90_000),
    Kind.PARTITION: (500, 60_000),
    Kind.DISCONNECT: (0, 0),
    Kind.BROKER_PAUSE: (500, 20_000),
    Kind.MOVE_COORDINATOR: (0, 0),
}


@dataclass(frozen=True, slots=True)
class Happening:
    """A failure. ``target``: chooses among the instances that run then; ``steps``: an instance
    is hit so many steps later, between any two of its awaits."""

    kind: Kind
    at_us: int
    target: int = 0
    steps: int = 0
    lasts_us: int = 0

    def __str__(self) -> str:
        parts = [f"{self.kind}@{self.at_us}", f"t{self.target}", f"s{self.steps}", f"d{self.lasts_us}"]
        return ",".join(parts)


@dataclass(frozen=True, slots=True)
class Schedule:
    """A seed for latencies and for the order among equals, and what goes wrong. ``is_calm``: every message
    takes equally long, and equals keep their order."""

    seed: int
    happenings: tuple[Happening, ...] = ()
    is_calm: bool = False

    def __str__(self) -> str:
        """As `parse` reads it."""
        return " ".join([f"seed={self.seed}", *["calm"] * self.is_calm, *map(str, self.happenings)])

    def simpler(self) -> Iterator[Schedule]:
        """Schedules of which each has less than this one, those with much less first."""
        for index in range(len(self.happenings)):
            yield replace(self, happenings=self.happenings[:index] + self.happenings[index + 1 :])
        if not self.is_calm:
            yield replace(self, is_calm=True)
        for index, one in enumerate(self.happenings):
            if one.steps:
                changed = replace(one, steps=0)
                yield replace(
                    self, happenings=(*self.happenings[:index], changed, *self.happenings[index + 1 :])
                )


class Latencies:
    """The latency of each message, by counter: one message less changes no other's latency."""

    def __init__(self, schedule: Schedule, from_us: int, to_us: int) -> None:
        self._from_us = from_us
        self._span_us = 0 if schedule.is_calm else to_us - from_us
        self._to_us = to_us
        self._seed = schedule.seed
        self._is_calm = schedule.is_calm
        self._streams: dict[tuple[int, int], Stream] = {}

    def __call__(self, connection: int, direction: int, message: int) -> int:
        if self._is_calm:
            return self._from_us
        key = (connection, direction)
        stream = self._streams.get(key)
        if stream is None:
            stream = self._streams[key] = Stream(self._seed, "latency", *key)
        short, rare = stream.pair(message + 1)
        if rare % _SLOW_ONE_IN == 0:
            return self._to_us * 10
        return self._from_us + (self._span_us * short >> DRAW_BITS)


def drawn(seed: int, kinds: Collection[Kind], within_us: int) -> Schedule:
    """The schedule of a seed: none to `MOST` things of these kinds, within so many microseconds."""
    chosen = sorted(kinds)
    if not chosen:
        return Schedule(seed)
    stream = Stream(seed, "happenings")
    count = stream.at(0) % (MOST + 1)
    return Schedule(
        seed, tuple(sorted((_one(stream, 10 * (n + 1), chosen, within_us) for n in range(count)), key=_when))
    )


def _one(stream: Stream, base: int, kinds: Sequence[Kind], within_us: int) -> Happening:
    kind = kinds[stream.at(base) % len(kinds)]
    least_ms, most_ms = _LASTS_MS[kind]
    lasts_us = (least_ms + ((most_ms - least_ms) * stream.at(base + 1) >> DRAW_BITS)) * _MS
    return Happening(
        kind,
        within_us * stream.at(base + 2) >> DRAW_BITS,
        stream.at(base + 3) % 100,
        stream.at(base + 4) % _MOST_STEPS,
        lasts_us,
    )


def _when(one: Happening) -> tuple[int, str]:
    return one.at_us, str(one)


_HAPPENING = re.compile(
    r"(?P<kind>[a-z-]+)@(?P<at>\d{1,15}),t(?P<target>\d{1,9}),s(?P<steps>\d{1,9}),d(?P<lasts>\d{1,15})"
)


def parse(text: str) -> Schedule:
    """Parse a schedule that `str` has printed. Raises InputError."""
    words = text.split()
    seed = re.fullmatch(r"seed=(\d{1,18})", words[0]) if words else None
    if seed is None:
        raise InputError(f"schedule: {text!r}: expected seed=NUMBER in front, as a failure prints it")
    rest = words[1:]
    is_calm = rest[:1] == ["calm"]
    return Schedule(int(seed[1]), tuple(_parsed(word) for word in rest[is_calm:]), is_calm)


def _parsed(word: str) -> Happening:
    match = _HAPPENING.fullmatch(word)
    if match is None or match["kind"] not in list(Kind):
        raise InputError(f"schedule: {word!r}: expected KIND@TIME,tN,sN,dN, as a failure prints it")
    return Happening(
        Kind(match["kind"]), int(match["at"]), int(match["target"]), int(match["steps"]), int(match["lasts"])
    )
