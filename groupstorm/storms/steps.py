"""What a scenario can do to a group, as one table of steps and their fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from groupstorm.problems import InputError
from groupstorm.storms.setting import MAX_MEMBERS, MAX_PARTITIONS
from groupstorm.storms.settings import BY_NAME, Settings

MAX_TIME_MS = 10 * 24 * 3_600_000
"""Ten days of virtual time: enough for any scenario, and a bound."""


@dataclass(frozen=True, slots=True)
class StepKind:
    """A kind of step: its meaning, and the fields that it takes beside ``at_ms`` and ``do``."""

    name: str
    meaning: str
    required: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()


STEP_KINDS: tuple[StepKind, ...] = (
    StepKind("start", "first members join, spread over over_ms", optional=frozenset({"members", "over_ms"})),
    StepKind(
        "add",
        "count more processes start (start_ms each), spread over over_ms",
        optional=frozenset({"count", "over_ms"}),
    ),
    StepKind("stop", "SIGTERM: stop_grace_ms, close(), gone", frozenset({"members"})),
    StepKind("crash", "SIGKILL, node loss: gone without a word", frozenset({"members"})),
    StepKind("restart", "stop, then start again under the same name", frozenset({"members"})),
    StepKind("crash-restart", "crash, then start again under the same name", frozenset({"members"})),
    StepKind("rolling-restart", "replace all processes (max_surge, max_unavailable, order)"),
    StepKind("busy", "works on one batch for for_ms: no poll() until then", frozenset({"members", "for_ms"})),
    StepKind(
        "pause", "the whole process stands still for for_ms (GC, SIGSTOP)", frozenset({"members", "for_ms"})
    ),
    StepKind(
        "disconnect", "cut off from the broker for for_ms, and working on", frozenset({"members", "for_ms"})
    ),
    StepKind(
        "lose-host", "Streams: SIGKILL, and the host's disk is gone with all state", frozenset({"members"})
    ),
    StepKind("lose-zone", "Streams: lose-host for all instances of a rack (0, 1, ...)", frozenset({"rack"})),
    StepKind(
        "restore-zone",
        "Streams: what lose-zone took starts again on new hosts, spread over over_ms",
        frozenset({"rack"}),
        frozenset({"over_ms"}),
    ),
    StepKind("rolling-upgrade", "Streams: rolling-restart, with the newest SubscriptionInfo from then on"),
    StepKind(
        "add-partitions", "topic has partitions partitions from now on", frozenset({"topic", "partitions"})
    ),
)
KINDS_BY_NAME: Mapping[str, StepKind] = {kind.name: kind for kind in STEP_KINDS}


@dataclass(frozen=True, slots=True)
class Step:
    """One step, resolved: times in milliseconds; ``members`` None means all first members."""

    at_ms: int
    do: str
    members: tuple[int, ...] | None = None
    for_ms: int = 0
    over_ms: int = 0
    count: int = 1
    topic: str = ""
    partitions: int = 0
    rack: int = 0

    def written(self) -> dict[str, Any]:
        """The step as a scenario file has it."""
        kind = KINDS_BY_NAME[self.do]
        fields = {name: getattr(self, name) for name in sorted(kind.required | kind.optional)}
        step = {"at_ms": self.at_ms, "do": self.do, **fields}
        if "members" in step:
            step["members"] = "all" if self.members is None else list(self.members)
        return step


def read_step(where: str, written: Any, settings: Settings) -> Step:
    """A step from a scenario file; a time may be the name of a setting. Raises InputError."""
    if not isinstance(written, Mapping):
        raise InputError(f"{where}: {written!r} is no step: expected {{at_ms: ..., do: ...}}")
    do = written.get("do")
    if not isinstance(do, str) or do not in KINDS_BY_NAME:
        raise InputError(f"{where}: do: {do!r} is not one of {', '.join(KINDS_BY_NAME)}")
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
        at_ms=_time(f"{where}: at_ms", written["at_ms"], settings),
        do=kind.name,
        members=_members(f"{where}: members", written.get("members", "all"), settings),
        for_ms=_time(f"{where}: for_ms", written.get("for_ms", 0), settings),
        over_ms=_time(f"{where}: over_ms", written.get("over_ms", 0), settings),
        count=_whole(f"{where}: count", written.get("count", 1), 1, MAX_MEMBERS),
        topic=_topic(f"{where}: topic", written["topic"], settings) if "topic" in fields else "",
        partitions=_whole(f"{where}: partitions", written.get("partitions", 0), 0, MAX_PARTITIONS),
        rack=_rack(f"{where}: rack", written["rack"], settings) if "rack" in fields else 0,
    )


def _time(where: str, written: Any, settings: Settings) -> int:
    if isinstance(written, str):
        if written not in BY_NAME or BY_NAME[written].kind != "integer":
            raise InputError(
                f"{where}: {written!r} is neither milliseconds nor the name of a duration's setting"
            )
        return settings.integer(written)
    return _whole(where, written, 0, MAX_TIME_MS)


def _whole(where: str, written: Any, least: int, most: int) -> int:
    if isinstance(written, bool) or not isinstance(written, int) or not least <= written <= most:
        raise InputError(f"{where}: {written!r}: expected a whole number from {least} to {most}")
    return written


def _topic(where: str, written: Any, settings: Settings) -> str:
    topics = topic_names(settings)
    if written not in topics:
        raise InputError(
            f"{where}: {written!r} is none of this scenario's topics ({topics[0]} .. {topics[-1]})"
        )
    return str(written)


def _rack(where: str, written: Any, settings: Settings) -> int:
    racks = settings.integer("racks")
    if racks == 0:
        raise InputError(f"{where}: {written!r}: this scenario has no racks: set racks")
    return _whole(where, written, 0, racks - 1)


def _members(where: str, written: Any, settings: Settings) -> tuple[int, ...] | None:
    if written == "all":
        return None
    indexes = written if isinstance(written, list) else [written]
    for index in indexes:
        if (
            isinstance(index, bool)
            or not isinstance(index, int)
            or not 0 <= index < settings.integer("members")
        ):
            raise InputError(
                f"{where}: {index!r}: expected all, or numbers of members "
                f"from 0 to {settings.integer('members') - 1}"
            )
    return tuple(indexes)


def topic_names(settings: Settings) -> tuple[str, ...]:
    """The scenario's topics: topic-0, topic-1, ..."""
    return tuple(f"topic-{number}" for number in range(settings.integer("topics")))
