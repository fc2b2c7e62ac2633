"""The events of what the scenario did to the group, and the sums that close a run."""

from __future__ import annotations

from typing import NamedTuple


class ScenarioStarted(NamedTuple):
    """First row of a storm's trace. ``detail``: the resolved scenario as one JSON line (seed included).

    Every partition of ``partitions`` exists from now on and gets ``record_rate`` records a second from
    time 0, until `record_rates_changed` names it; 0: there are no records. Its owner processes at most
    ``process_rate`` a second while it lags, until `processing_rates_changed` names it.
    """

    group: str
    detail: str
    partitions: tuple[str, ...]
    record_rate: int
    process_rate: int


class StepTaken(NamedTuple):
    """The scenario did something: ``cause`` is the step's kind (stop, start, crash, pause ...)."""

    group: str
    member: str | None
    cause: str
    detail: str


class PartitionsCreated(NamedTuple):
    """Topics were created or grew: these partitions exist from now on."""

    group: str
    topics: tuple[str, ...]
    partitions: tuple[str, ...]


class PartitionsDeleted(NamedTuple):
    """Topics were deleted: these partitions do not exist any more, and need no owner."""

    group: str
    topics: tuple[str, ...]
    partitions: tuple[str, ...]


class RecordRatesChanged(NamedTuple):
    """From now on the logs of ``partitions``, which end at ``positions``, grow by ``rates``."""

    group: str
    partitions: tuple[str, ...]
    positions: tuple[int, ...]
    rates: tuple[int, ...]


class TasksCreated(NamedTuple):
    """A Kafka Streams application: these tasks are to run from now on."""

    group: str
    tasks: tuple[str, ...]


class RequestsCounted(NamedTuple):
    """At the end: how many requests of one API got one answer (``error`` None: no error)."""

    group: str
    api: str
    error: str | None
    count: int  # type: ignore[assignment]  # the column's name; nobody counts with tuple.count here


class TrafficCounted(NamedTuple):
    """At the end: ``bytes`` of records went between members and brokers, ``cross_rack_bytes`` of them between
    racks, of which a gigabyte costs ``price`` millionths of a dollar.

    ``cause``: input (active tasks read), changelog (active tasks write), restore (active tasks read their
    changelogs), standby (standbys read them).
    """

    group: str
    cause: str
    bytes: int
    cross_rack_bytes: int
    price: int


class InvariantChecked(NamedTuple):
    """At the end: ``cause`` names the invariant, ``detail`` is "held" or the violation in a sentence."""

    group: str
    cause: str
    detail: str


class ScenarioEnded(NamedTuple):
    """Last row. What is still owned then is owned until this instant."""

    group: str


Event = (
    ScenarioStarted
    | StepTaken
    | PartitionsCreated
    | RecordRatesChanged
    | TasksCreated
    | RequestsCounted
    | TrafficCounted
    | InvariantChecked
    | ScenarioEnded
)
