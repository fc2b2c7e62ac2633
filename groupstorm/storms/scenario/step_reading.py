"""Reads the steps of a scenario file: each field by its rule, with the place of what is wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from groupstorm.problems import InputError, not_one_of
from groupstorm.storms.scenario.member_rules import Releases, check_overlay
from groupstorm.storms.scenario.names import TOPIC_NAME_EXPECTED, is_topic_name
from groupstorm.storms.scenario.quantities import whole
from groupstorm.storms.scenario.settings import BY_NAME, Settings
from groupstorm.storms.scenario.settings_table import MAX_MEMBERS, MAX_PARTITIONS
from groupstorm.storms.scenario.steps import (
    CREATE_TOPIC,
    DIRECTIONS,
    KINDS_BY_NAME,
    MAX_TIME_MS,
    ROLLING_RESTART,
    Step,
)
from groupstorm.storms.scenario.topics import topic_names
from groupstorm.units import microseconds


def created_topics(steps: Sequence[Any]) -> tuple[str, ...]:
    """The topics that steps of a scenario file create."""
    named = [
        step.get("topic") for step in steps if isinstance(step, Mapping) and step.get("do") == CREATE_TOPIC
    ]
    return tuple(dict.fromkeys(topic for topic in named if isinstance(topic, str)))


def with_releases(steps: Sequence[Any], settings: Settings) -> tuple[Any, ...]:
    """The steps of a scenario file; rolling restarts without settings take those of `releases`."""
    overlays = iter(settings.of_type("releases", Releases).overlays)
    found = []
    for step in steps:
        if isinstance(step, Mapping) and step.get("do") == ROLLING_RESTART:
            overlay = next(overlays, {})
            found.append({"settings": overlay, **step} if overlay else step)
        else:
            found.append(step)
    return tuple(found)


def releases(source: str, steps: Sequence[Any]) -> tuple[tuple[str, Mapping[str, Any]], ...]:
    """The settings that steps of a scenario file roll out, each with its place. Raises InputError."""
    found = []
    for number, step in enumerate(steps, start=1):
        if isinstance(step, Mapping) and "settings" in step:
            where = f"{source}: steps: {number}: settings"
            found.append((f"{where}: ", check_overlay(where, step["settings"])))
    return tuple(found)


def read_step(where: str, written: Any, settings: Settings, created: Sequence[str], release: int) -> Step:
    """Read a step of a scenario file; a time may be the name of a setting. Raises InputError.

    ``created``: the topics that steps of the scenario create. ``release``: the number of steps with settings
    up to this one.
    """
    if not isinstance(written, Mapping):
        raise InputError(f"{where}: {written!r} is no step: expected {{at_ms: ..., do: ...}}")
    do = written.get("do")
    if not isinstance(do, str) or do not in KINDS_BY_NAME:
        raise InputError(f"{where}: do: {not_one_of(do, KINDS_BY_NAME, 100)}")
    kind = KINDS_BY_NAME[do]
    fields = set(written) - {"do", "at_ms"}
    unknown = fields - kind.required - kind.optional
    if unknown:
        takes = ", ".join(sorted(kind.required | kind.optional)) or "no fields"
        raise InputError(f"{where}: {do} has no field {sorted(map(str, unknown))[0]!r}: it takes {takes}")
    missing = ({"at_ms"} - set(written)) | (kind.required - fields)
    if missing:
        raise InputError(f"{where}: {do} needs {', '.join(sorted(missing))}")
    return Step(
        at_ms=read_time(f"{where}: at_ms", written["at_ms"], settings),
        do=kind.name,
        members=_members(f"{where}: members", written.get("members", "all"), settings),
        for_ms=read_time(f"{where}: for_ms", written.get("for_ms", 0), settings),
        over_ms=read_time(f"{where}: over_ms", written.get("over_ms", 0), settings),
        count=whole(f"{where}: count", written.get("count", 1), 1, MAX_MEMBERS),
        topic=_topic(f"{where}: topic", written["topic"], settings, created) if "topic" in fields else "",
        partitions=whole(f"{where}: partitions", written.get("partitions", 0), 0, MAX_PARTITIONS),
        rack=_rack(f"{where}: rack", written["rack"], settings) if "rack" in fields else 0,
        append_ms=read_time(f"{where}: append_ms", written.get("append_ms", 0), settings),
        direction=_direction(f"{where}: direction", written["direction"]) if "direction" in fields else "",
        api=_name(f"{where}: api", written.get("api", "")),
        error=_name(f"{where}: error", written.get("error", "")),
        delay_ms=read_time(f"{where}: delay_ms", written.get("delay_ms", 0), settings),
        start_ms=_durations(f"{where}: start_ms", written.get("start_ms", [])),
        ready_ms=_durations(f"{where}: ready_ms", written.get("ready_ms", [])),
        settings=dict(written.get("settings", {})),
        release=release,
    )


def read_time(where: str, written: Any, settings: Settings) -> int:
    """Milliseconds from a number, a duration, or the name of a setting. Raises InputError."""
    if isinstance(written, str):
        if written in BY_NAME and BY_NAME[written].kind == "integer":
            return settings.integer(written)
        in_us = microseconds(written)
        if in_us is None or in_us % 1000:
            raise InputError(
                f"{where}: {written!r} is neither milliseconds, nor a duration (60s), nor the name of a "
                "duration's setting"
            )
        written = int(in_us) // 1000
    return whole(where, written, 0, MAX_TIME_MS)


def _name(where: str, written: Any) -> str:
    """A name of Kafka's; the broker knows which there are."""
    if not isinstance(written, str):
        raise InputError(f"{where}: {written!r}: expected one of Kafka's names")
    return written


def _durations(where: str, written: Any) -> tuple[int, ...]:
    if not isinstance(written, list):
        raise InputError(f"{where}: {written!r}: expected a list of milliseconds, one for each process")
    return tuple(whole(where, one, 0, MAX_TIME_MS) for one in written)


def _topic(where: str, written: Any, settings: Settings, created: Sequence[str]) -> str:
    topics = topic_names(settings)
    if isinstance(written, str) and written in created:
        if not is_topic_name(written):
            raise InputError(f"{where}: {written!r}: {TOPIC_NAME_EXPECTED}")
        return written
    if written not in topics:
        raise InputError(
            f"{where}: {written!r} is none of this scenario's topics ({topics[0]} .. {topics[-1]})"
        )
    return str(written)


def _direction(where: str, written: Any) -> str:
    if written not in DIRECTIONS:
        raise InputError(f"{where}: {written!r}: expected {', '.join(DIRECTIONS)}")
    return str(written)


def _rack(where: str, written: Any, settings: Settings) -> int:
    racks = settings.integer("racks")
    if racks == 0:
        raise InputError(f"{where}: {written!r}: this scenario has no racks: set racks")
    return whole(where, written, 0, racks - 1)


def _members(where: str, written: Any, settings: Settings) -> tuple[int, ...] | None:
    if written == "all":
        return None
    indexes, members = written if isinstance(written, list) else [written], settings.integer("members")
    for index in indexes:
        is_number = isinstance(index, int) and not isinstance(index, bool)
        if not is_number or not 0 <= index < members:
            needed = f": the step needs {index + 1} or more" if is_number and index >= members else ""
            known = f"from 0 to {members - 1}, as members is {members}{needed}"
            raise InputError(f"{where}: {index!r}: expected all, or numbers of members {known}")
    return tuple(indexes)
