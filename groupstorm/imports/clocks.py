"""How the clocks of logs go together: what causality says about the offset of each to the first.

In every round of a classic group all members join before the coordinator answers any of them, and the leader
assigns before anybody has an assignment. So every generation that two logs have in common bounds the offset
of their clocks from both sides. A whole number of quarter hours is a time zone, the rest is skew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from groupstorm.imports.observation import Observation
from groupstorm.imports.parser import LogParser
from groupstorm.imports.prefixes import Writer

QUARTER_US: Final = 15 * 60 * 1_000_000
#: Generations per log that are remembered: a million rounds more say no more about a clock.
GENERATIONS_MAX: Final = 20_000
#: Two clocks that differ by a zone agree to this, apart from their skew.
_ZONE_SLACK_US: Final = 60 * 1_000_000

#: Kind -> which barrier of a round it stands at (0: the joins are answered, 1: the assignment is there), and
#: whether it happens before it (-1), at it (0) or after it (1).
_BARRIERS: Final[Mapping[str, tuple[int, int]]] = {
    "stabilized": (0, 0),
    "assignment": (1, 0),
    "joining": (0, -1),
    "joined": (0, 1),
    "finished": (1, -1),
    "synced": (1, 1),
    "assigned": (1, 1),
}


def anchor_rank(kind: str) -> int:
    """The order of lines of different logs at one time."""
    place = _BARRIERS.get(kind)
    return 1 if place is None else place[1] + 1


class Offset(NamedTuple):
    """``us``: the log's clock less the first log's. The bounds are None where nothing bounds it.

    ``zone_us``: the part of it that is a time zone. ``contradiction``: the bounds exclude each other: the
    clock was set while the log was written, or the log is of two hosts.
    """

    us: int = 0
    earliest_us: int | None = None
    latest_us: int | None = None
    zone_us: int = 0
    contradiction: bool = False

    @property
    def is_bounded(self) -> bool:
        return self.earliest_us is not None and self.latest_us is not None


#: The latest time before a barrier and the first after it, by (group, generation, barrier).
_Marks = dict[tuple[str, int, int], tuple[int | None, int | None]]


class Anchors:
    """Remembers, log by log, when lines of each generation were written."""

    def __init__(self) -> None:
        self._marks: dict[int, _Marks] = {}
        self._joining: dict[tuple[int, str, str | None], int] = {}

    def add(self, one: Observation) -> None:
        place = _BARRIERS.get(one.kind)
        if place is None:
            return
        barrier, side = place
        if one.kind == "joining":
            self._joining[one.source, one.group, one.fields.get("client")] = one.time_us
            return
        generation = one.fields.get("generation")
        if not isinstance(generation, int):
            return
        marks = self._marks.setdefault(one.source, {})
        key = (one.group, generation, barrier)
        if key not in marks and len(marks) >= GENERATIONS_MAX:
            return
        before, after = marks.get(key, (None, None))
        if side <= 0:
            before = one.time_us if before is None else max(before, one.time_us)
        if side >= 0:
            after = one.time_us if after is None else min(after, one.time_us)
        if one.kind == "joined":
            asked = self._joining.pop((one.source, one.group, one.fields.get("client")), None)
            # a static member that comes back is answered at once, in a round that was over before it asked
            if asked is not None and one.fields.get("instance") is None:
                before = asked if before is None else max(before, asked)
        marks[key] = before, after

    def offsets(self, parsers: Sequence[LogParser]) -> dict[int, Offset]:
        """Each log's offset to the reference: the first broker's log, else the first log of all."""
        reference = next((one for one in parsers if Writer.BROKER in one.writers), parsers[0])
        known = self._marks.get(reference.number, {})
        found: dict[int, Offset] = {}
        for one in parsers:
            if one is reference or Writer.BROKER in one.writers:
                found[one.number] = Offset()
            else:
                step_us = max(one.step_us, reference.step_us)
                found[one.number] = _offset(self._marks.get(one.number, {}), known, step_us)
        return found


def _offset(own: _Marks, reference: _Marks, step_us: int) -> Offset:
    low: int | None = None
    high: int | None = None
    middles: list[int] = []
    for key, (before, after) in own.items():
        other_before, other_after = reference.get(key, (None, None))
        at_least = None if before is None or other_after is None else before - other_after - step_us
        at_most = None if after is None or other_before is None else after - other_before + step_us
        if at_least is not None:
            low = at_least if low is None else max(low, at_least)
            middles.append(at_least)
        if at_most is not None:
            high = at_most if high is None else min(high, at_most)
            middles.append(at_most)
    if not middles:
        return Offset()
    if low is not None and high is not None and low > high:
        middle = sorted(middles)[len(middles) // 2]
        return Offset(middle, low, high, _zone(middle), True)
    least = low if low is not None else high
    most = high if high is not None else low
    if least is None or most is None:
        return Offset()
    zone = _zone((least + most) // 2)
    offset = min(max(zone, low if low is not None else zone), high if high is not None else zone)
    return Offset(offset, low, high, zone)


def _zone(offset_us: int) -> int:
    """The nearest number of quarter hours, if it is near enough to be a time zone; else 0."""
    quarters = (offset_us + QUARTER_US // 2) // QUARTER_US * QUARTER_US
    return (
        quarters
        if abs(offset_us - quarters) <= _ZONE_SLACK_US and abs(quarters) <= 14 * 4 * QUARTER_US
        else 0
    )
