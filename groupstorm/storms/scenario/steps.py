"""The steps of a scenario: one table of their kinds and fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Flag, auto
from typing import Any

from groupstorm.problems import InputError
from groupstorm.tables import rows

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
        if not self.settings:
            step.pop("settings", None)
        for name in ("start_ms", "ready_ms"):
            durations = step.pop(name, ())
            if durations:
                step[name] = list(durations)
        if step.get("api") == "":
            del step["api"]
        if "members" in step:
            step["members"] = "all" if self.members is None else list(self.members)
        return step


def refuse_chaos_steps(steps: Sequence[Step]) -> None:
    """Raises InputError for a step that only `groupstorm chaos` takes."""
    for number, step in enumerate(steps, start=1):
        if step.do in CHAOS_STEPS:
            raise InputError(f"steps: {number}: do: {step.do}: a step of groupstorm chaos only")
