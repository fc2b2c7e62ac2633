"""The steps of a scenario: one table of their kinds and fields, how a file's steps are read, and phases.

A group that a deployment or a crash meets has run for a while: its next heartbeats and background commits are
due at any instant of their interval, and each client fetched topic metadata at some time of its own. So a
step comes at some phase of these periods. With ``phases: drawn`` the seed decides; ``aligned`` begins
everything at 0, so that times can be derived by hand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Flag, auto
from typing import Any, Final

from groupstorm.problems import InputError, not_one_of
from groupstorm.storms.scenario.member_rules import Releases, check_overlay
from groupstorm.storms.scenario.quantities import TOPIC_NAME_EXPECTED, is_topic_name, whole
from groupstorm.storms.scenario.randomness import DRAW_BITS, Stream
from groupstorm.storms.scenario.setting_names import MAX_MEMBERS, MAX_PARTITIONS
from groupstorm.storms.scenario.settings import BY_NAME, Settings
from groupstorm.storms.scenario.topics import topic_names, topic_partitions
from groupstorm.tables import rows
from groupstorm.units import microseconds

MAX_TIME_MS = 10 * 24 * 3_600_000
"""Ten days of virtual time: enough for any scenario."""


class Taker(Flag):
    """The processes that can be put through a step: emulated consumers and Streams instances in virtual time,
    consumers in real time, services of one's own (`groupstorm chaos`)."""

    CONSUMERS = auto()
    STREAMS = auto()
    REAL_TIME = auto()
    SERVICES = auto()


@dataclass(frozen=True, slots=True)
class StepKind:
    """A kind of step: its meaning, its fields beside ``at_ms`` and ``do``, and who can be put through it."""

    name: str
    meaning: str
    required: frozenset[str]
    optional: frozenset[str]
    takers: Taker


def _kind(row: list[str]) -> StepKind:
    """A row of the table: names of fields, or of takers, with spaces between them."""
    name, required, optional, written, meaning = row
    takers = Taker(0)
    for one in written.split():
        takers |= Taker[one.upper().replace("-", "_")]
    return StepKind(
        name, meaning, frozenset(required.split()), frozenset(optional.split()), takers or ~Taker(0)
    )


STEP_KINDS: tuple[StepKind, ...] = tuple(_kind(row) for row in rows(__package__, "tables/step_kinds"))


def _taken_by(taker: Taker) -> frozenset[str]:
    return frozenset(kind.name for kind in STEP_KINDS if taker in kind.takers)


CONSUMER_STEPS = _taken_by(Taker.CONSUMERS) - _taken_by(Taker.STREAMS)
STREAMS_STEPS = _taken_by(Taker.STREAMS) - _taken_by(Taker.CONSUMERS)
VIRTUAL_STEPS = _taken_by(Taker.CONSUMERS) - _taken_by(Taker.REAL_TIME)
SERVICE_STEPS = _taken_by(Taker.SERVICES)
#: Faults of the brokers between a service of one's own and its records.
CHAOS_STEPS = SERVICE_STEPS - _taken_by(Taker.CONSUMERS)
#: The sides of the traffic that a partition of the network can swallow.
DIRECTIONS = ("requests", "responses", "both")

START = "start"
COORDINATOR_FAILOVER = "coordinator-failover"
PARTITION = "partition"
SLOW_APPENDS, FAILING_APPENDS = "slow-appends", "failing-appends"
ROLLING_RESTART = "rolling-restart"
CREATE_TOPIC = "create-topic"
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
    append_ms: int = 0
    direction: str = ""
    #: Kafka's names of a kind of request, "" for all, and of an error.
    api: str = ""
    error: str = ""
    delay_ms: int = 0
    #: The durations of the replacements of a rolling restart, in their order: from the end of the old process
    #: to the first poll() of the new one, and from there until that counts as ready. The settings draw those
    #: of the others.
    start_ms: tuple[int, ...] = ()
    ready_ms: tuple[int, ...] = ()
    #: The settings of processes that start from this step on, in the place of the scenario's.
    settings: Mapping[str, Any] = field(default_factory=dict)
    #: The number of steps with settings up to this one.
    release: int = 0

    def written(self) -> dict[str, Any]:
        """The step as a scenario file has it."""
        kind = KINDS_BY_NAME[self.do]
        fields = {name: getattr(self, name) for name in sorted(kind.required | kind.optional)}
        step = {"at_ms": self.at_ms, "do": self.do, **fields}
        for name in ("start_ms", "ready_ms"):
            if durations := step.pop(name, ()):
                step[name] = list(durations)
        for name in ("settings", "api"):
            if not step.get(name, True):
                del step[name]
        if "members" in step:
            step["members"] = "all" if self.members is None else list(self.members)
        return step


def refuse_chaos_steps(steps: Sequence[Step]) -> None:
    """Raises InputError for a step that only `groupstorm chaos` takes."""
    for number, step in enumerate(steps, start=1):
        if step.do in CHAOS_STEPS:
            raise InputError(f"steps: {number}: do: {step.do}: a step of groupstorm chaos only")


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


DRAWN: Final = "drawn"
#: Heartbeats and background commits of the first members are shifted by the longer of their periods.
_HEARTBEATS: Final = ("heartbeat.interval.ms", "group.consumer.heartbeat.interval.ms")


class Phases:
    """The phases of one run: they depend on its seed, its steps and its intervals alone, so that variants
    that have the same intervals have the same phases."""

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


def partitions_at_end(settings: Settings, steps: Sequence[Step]) -> dict[str, int]:
    """The topics with their partitions, as many as they ever have."""
    return {**topic_partitions(settings)} | {step.topic: step.partitions for step in steps if step.partitions}
