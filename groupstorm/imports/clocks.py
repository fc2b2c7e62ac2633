"""The relation of the clocks of logs: what causality says about the offset of each to the first.

In every round of a classic group all members join before the coordinator answers any of them, and the leader
assigns before anybody has an assignment. So every generation that two logs have in common bounds the offset
of their clocks from both sides. A whole number of quarter hours is a time zone, the rest is skew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from groupstorm.imports.offsets_topic.meaning import COMMITTED, GENERATION, GROUP_GONE, MEMBER_GONE
from groupstorm.imports.prefixes import Writer
from groupstorm.imports.source import TIME_RULE, LogSource, Observation
from groupstorm.imports.timeline.members import name_before_uuid

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
    if kind in _RECORDS:
        return 2
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


#: The latest time before a barrier and the first after it, by (group, generation, barrier).
_Marks = dict[tuple[str, int, int], tuple[int | None, int | None]]


#: Records come behind the lines of one time that are about them.
_RECORDS: Final = frozenset({GENERATION, COMMITTED, GROUP_GONE, MEMBER_GONE})
#: Sources with the clock of the brokers.
_COORDINATORS: Final = frozenset({Writer.BROKER, Writer.OFFSETS_TOPIC})


class Anchors:
    """Remembers, log by log, when lines of each generation were written."""

    def __init__(self) -> None:
        self._marks: dict[int, _Marks] = {}
        self._joining: dict[tuple[int, str, str | None], int] = {}
        #: The generation that a client has joined last, and as which member.
        self._joined: dict[tuple[int, str, str | None], tuple[int, str]] = {}
        #: Log, group, generation -> name of a member -> when it asked to join.
        self._asked: dict[tuple[int, str, int], dict[str, int]] = {}
        #: Static members: group and instance.
        self._static: set[tuple[str, str]] = set()

    def add(self, one: Observation) -> None:
        if one.kind == GENERATION:
            self._add_generation(one)
            return
        if one.fields.get("instance") is not None:
            self._static.add((one.group, one.fields["instance"]))
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
            self._add_asked(one, generation)
        marks[key] = before, after

    def _add_asked(self, one: Observation, generation: int) -> None:
        """A member that joined asked before the barrier, unless it is a static one that came back.

        That one is answered at once, in a round that was over before it asked.
        """
        client = (one.source, one.group, one.fields.get("client"))
        member_id = one.fields.get("member_id") or ""
        name = name_before_uuid(member_id)
        asked = self._joining.pop(client, None)
        last, last_id = self._joined.get(client, (None, ""))
        self._joined[client] = generation, member_id
        if last == generation and last_id != member_id:
            self._static.add((one.group, name))
        elif asked is not None and last != generation and one.fields.get("instance") is None:
            names = self._asked.setdefault((one.source, one.group, generation), {})
            names[name] = max(asked, names.get(name, asked))

    def _add_generation(self, one: Observation) -> None:
        """The record of a generation stands at both barriers of its round: it is written when the assignment
        is there, and says when the joins were answered."""
        marks = self._marks.setdefault(one.source, {})
        if len(marks) >= GENERATIONS_MAX:
            return
        generation = one.fields["generation"]
        if one.fields["since_us"] is not None:
            marks[one.group, generation, 0] = one.fields["since_us"], one.fields["since_us"]
        if TIME_RULE not in one.fields:
            marks[one.group, generation, 1] = one.time_us, one.time_us

    def offsets(self, parsers: Sequence[LogSource]) -> dict[int, Offset]:
        """Each log's offset to the reference: records of the offsets topic, whose times are in UTC, else the
        first broker's log, else the first log of all.

        A broker's log and the records have one clock: they differ by a time zone at most.
        """
        for (source, group, generation), names in self._asked.items():
            before, after = self._marks[source].get((group, generation, 0), (None, None))
            asked = [at for name, at in names.items() if (group, name) not in self._static]
            if asked and after is not None:
                self._marks[source][group, generation, 0] = max(*asked, before or asked[0]), after
        reference = min(parsers, key=_reference_rank)
        found: dict[int, Offset] = {}
        for one in parsers:
            own, known = self._marks.get(one.number, {}), self._marks.get(reference.number, {})
            offset = _offset(own, known, max(one.clock.step_us, reference.clock.step_us))
            if one is reference or (one.writers & _COORDINATORS and Writer.BROKER in reference.writers):
                offset = Offset()
            elif one.writers & _COORDINATORS:
                zone_us = 0 if one.clock.zoned else offset.zone_us
                offset = Offset(zone_us, offset.earliest_us, offset.latest_us, zone_us)
            found[one.number] = offset
        self._share_zone(parsers, found)
        return found

    def _share_zone(self, parsers: Sequence[LogSource], found: dict[int, Offset]) -> None:
        """Brokers whose logs have no generation in common with the records are in the zone of the others."""
        logs = [one for one in parsers if Writer.BROKER in one.writers and not one.clock.zoned]
        zone = next((found[one.number] for one in logs if found[one.number].zone_us), None)
        for one in logs:
            if zone is not None and found[one.number] == Offset():
                found[one.number] = Offset(zone.zone_us, None, None, zone.zone_us)


def _reference_rank(one: LogSource) -> int:
    if Writer.OFFSETS_TOPIC in one.writers:
        return 0
    return 1 if Writer.BROKER in one.writers else 2


def _offset(own: _Marks, reference: _Marks, step_us: int) -> Offset:
    lows: list[int] = []
    highs: list[int] = []
    for key, (before, after) in own.items():
        other_before, other_after = reference.get(key, (None, None))
        if before is not None and other_after is not None:
            lows.append(before - other_after - step_us)
        if after is not None and other_before is not None:
            highs.append(after - other_before + step_us)
    if not lows and not highs:
        return Offset()
    least, most = max(lows or [min(highs)]), min(highs or [max(lows)])
    bounds = max(lows, default=None), min(highs, default=None)
    if least > most:
        middle = sorted(lows + highs)[len(lows + highs) // 2]
        return Offset(middle, *bounds, _zone(middle), True)
    zone = _zone((least + most) // 2)
    offset = max(zone, least) if lows else zone
    return Offset(min(offset, most) if highs else offset, *bounds, zone)


def _zone(offset_us: int) -> int:
    """The nearest number of quarter hours, if it is near enough to be a time zone; else 0."""
    quarters = (offset_us + QUARTER_US // 2) // QUARTER_US * QUARTER_US
    is_zone = abs(offset_us - quarters) <= _ZONE_SLACK_US and abs(quarters) <= 14 * 4 * QUARTER_US
    return quarters if is_zone else 0
