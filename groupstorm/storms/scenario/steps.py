"""The steps of a scenario: one table of their kinds and fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Flag, auto
from typing import Any

from groupstorm.problems import InputError

MAX_TIME_MS = 10 * 24 * 3_600_000
"""Ten days of virtual time: enough for any scenario."""


class Taker(Flag):
    """The processes that can be put through a step: emulated consumers and Streams instances in virtual time,
    consumers in real time, services of one's own (`groupstorm chaos`)."""

    CONSUMERS = auto()
    STREAMS = auto()
    REAL_TIME = auto()
    SERVICES = auto()


_ANYBODY = ~Taker(0)


@dataclass(frozen=True, slots=True)
class StepKind:
    """A kind of step: its meaning, its fields beside ``at_ms`` and ``do``, and who can be put through it."""

    name: str
    meaning: str
    required: frozenset[str]
    optional: frozenset[str]
    takers: Taker


def _kind(
    name: str,
    meaning: str,
    required: str = "",
    optional: str = "",
    takers: Taker = _ANYBODY,
) -> StepKind:
    """A row of the table: names of fields with spaces between them."""
    return StepKind(name, meaning, frozenset(required.split()), frozenset(optional.split()), takers)


STEP_KINDS: tuple[StepKind, ...] = (
    _kind("start", "first members join, spread over over_ms", optional="members over_ms"),
    _kind("add", "count more processes start (start_ms each), spread over over_ms", optional="count over_ms"),
    _kind("stop", "SIGTERM: stop_grace_ms, close(), gone", "members"),
    _kind("crash", "SIGKILL, node loss: gone without LeaveGroup", "members"),
    _kind("restart", "stop, then start again under the same name", "members", "settings"),
    _kind("crash-restart", "crash, then start again under the same name", "members"),
    _kind(
        "rolling-restart",
        "replace all processes (max_surge, max_unavailable, order); new ones have settings; start_ms and "
        "ready_ms: lists with the durations of each replacement, in their order",
        optional="settings start_ms ready_ms",
    ),
    _kind(
        "busy",
        "works on one batch for for_ms: no poll() until then",
        "members for_ms",
        takers=Taker.CONSUMERS | Taker.REAL_TIME,
    ),
    _kind(
        "pause",
        "the whole process stands still for for_ms (GC, SIGSTOP)",
        "members for_ms",
        takers=~Taker.STREAMS,
    ),
    _kind(
        "disconnect",
        "cut off from the broker for for_ms; processing goes on",
        "members for_ms",
        takers=~Taker.STREAMS,
    ),
    _kind(
        "reconnect-storm",
        "their connections break at once, count times, evenly within for_ms; each time for 50 ms",
        "members count for_ms",
        takers=~Taker.STREAMS,
    ),
    _kind(
        "partition",
        "the network swallows requests, responses or both (direction) for for_ms, and delivers them then",
        "members for_ms direction",
        takers=Taker.CONSUMERS,
    ),
    _kind(
        "slow-appends",
        "a write of group metadata that begins within for_ms takes append_ms",
        "for_ms append_ms",
        takers=Taker.CONSUMERS,
    ),
    _kind(
        "failing-appends",
        "a write of group metadata that begins within for_ms fails: COORDINATOR_NOT_AVAILABLE",
        "for_ms",
        takers=Taker.CONSUMERS,
    ),
    _kind(
        "lose-host",
        "Streams: SIGKILL, and the host's disk is gone with all state",
        "members",
        takers=Taker.STREAMS,
    ),
    _kind(
        "lose-zone",
        "Streams: lose-host for all instances of a rack (0, 1, ...)",
        "rack",
        takers=Taker.STREAMS,
    ),
    _kind(
        "restore-zone",
        "Streams: the instances that lose-zone took start again on new hosts, spread over over_ms",
        "rack",
        "over_ms",
        takers=Taker.STREAMS,
    ),
    _kind(
        "rolling-upgrade",
        "Streams: rolling-restart, with the newest SubscriptionInfo from then on",
        takers=Taker.STREAMS,
    ),
    _kind(
        "add-partitions",
        "topic has partitions partitions from now on",
        "topic partitions",
        takers=Taker.CONSUMERS | Taker.REAL_TIME,
    ),
    _kind(
        "canary",
        "replace count processes as rolling-restart does, wait for for_ms, replace the others",
        "count for_ms",
    ),
    _kind("recreate", "stop all processes; when the last one is gone, start them again"),
    _kind("blue-green", "start as many new processes; when all are available, stop the old ones"),
    _kind("autoscale", "the autoscaler decides on the number of processes for for_ms", "for_ms"),
    _kind(
        "drain-node",
        "evict these members' pods within disruption_budget; Kubernetes replaces them",
        "members",
    ),
    _kind(
        "create-topic",
        "a topic is created; members with a topic_pattern see it at their next metadata refresh",
        "topic partitions",
        takers=Taker.CONSUMERS,
    ),
    _kind(
        "coordinator-failover",
        "the coordinator's broker dies; another one has loaded the group for_ms later",
        "for_ms",
        takers=Taker.CONSUMERS | Taker.SERVICES,
    ),
    _kind(
        "delete-topic", "a topic is deleted, with its records and offsets", "topic", takers=Taker.CONSUMERS
    ),
    _kind(
        "pause-brokers",
        "chaos: the brokers read and answer nothing for for_ms",
        "for_ms",
        takers=Taker.SERVICES,
    ),
    _kind(
        "slow-requests",
        "chaos: for for_ms every request, or every one of api, is served delay_ms later",
        "for_ms delay_ms",
        "api",
        takers=Taker.SERVICES,
    ),
    _kind(
        "fail-requests",
        "chaos: the next count requests of api are answered with error",
        "api error",
        "count",
        takers=Taker.SERVICES,
    ),
)


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
