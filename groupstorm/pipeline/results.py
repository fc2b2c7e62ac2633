"""The results that an analysis returns and prints, whichever engine computed it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from groupstorm.figures import Figures
from groupstorm.figures.by_group import WHOLE, Window

#: A run and one of its groups.
Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Request:
    """The data to analyze: traces by run name, of them these groups (none: all) in this window.

    ``slowest``: so many handovers of every run. ``out``: the folder for the tables, None for no tables.
    """

    traces: Mapping[str, Path]
    groups: Sequence[str] = ()
    window: Window = WHOLE
    slowest: int = 5
    out: Path | None = None


@dataclass(frozen=True, slots=True)
class SlowHandover:
    """Gaps of one kind that one round closed, by their longest: ``partition`` is that one's.

    Gaps that needed no round (a static member came back) are together if they began at one instant.
    """

    run: str
    partition: str
    partitions: int
    from_us: int
    gap_us: int
    old_owner: str | None
    new_owner: str | None
    generations: int | None
    ended_by: str
    cause: str | None
    round_us: int | None
    rebalance_cause: str | None


@dataclass(frozen=True, slots=True)
class RoundsByCause:
    """The number of times that one cause made a group rebalance, and what became of it."""

    run: str
    cause: str
    rounds: int
    stable: int
    members: int | None
    latency_avg_us: float | None
    latency_max_us: int | None


@dataclass(frozen=True, slots=True)
class EngineResult:
    """An engine's result; ``groups`` are all of the traces, in the order of their names within a run.

    Rows of ``handovers`` and ``rounds`` begin with run and group, and go on as `SlowHandover` and
    `RoundsByCause` do.
    """

    groups: Sequence[Key]
    figures: Mapping[Key, Figures]
    handovers: Sequence[Sequence[Any]] = field(default_factory=list)
    rounds: Sequence[Sequence[Any]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Analysis:
    """The findings of a set of traces: figures by run, the slowest handovers first, rounds by cause.

    A run with several groups stands under run:group. ``confirmed`` names the runs whose `figures.json`
    says the same, ``disagreements`` says where another one does not. ``engine`` computed it.
    """

    engine: str
    figures: Mapping[str, Figures]
    handovers: Sequence[SlowHandover]
    rounds: Sequence[RoundsByCause]
    confirmed: Sequence[str]
    disagreements: Sequence[str]


#: Table -> its columns with the types of Parquet. All begin with ``run`` and ``group``.
TABLES: Mapping[str, Mapping[str, str]] = {
    "intervals": {
        "partition": "string", "member": "string", "generation": "int64", "from_seq": "int64",
        "from_us": "int64", "from_position": "int64", "to_seq": "int64", "to_us": "int64",
        "to_position": "int64", "ended_by": "string", "cause": "string",
    },
    "handovers": {
        "partition": "string", "from_us": "int64", "to_us": "int64", "gap_us": "int64", "paused_us": "int64",
        "old_owner": "string", "new_owner": "string", "old_generation": "int64", "new_generation": "int64",
        "generations": "int64", "ended_by": "string", "cause": "string", "prepared_us": "int64",
        "rebalance_cause": "string",
    },
    "rounds": {
        "round": "int64", "prepared_seq": "int64", "prepared_us": "int64", "cause": "string",
        "generation": "int64", "completing_seq": "int64", "completing_us": "int64", "protocol": "string",
        "members": "int64", "stable_us": "int64", "answered_us": "int64", "latency_us": "int64",
    },
    "members": {
        "member": "string", "seq": "int64", "time_us": "int64", "until_us": "int64", "event": "string",
        "cause": "string", "error": "string", "generation": "int64", "partitions": "int64",
        "duration_us": "int64",
    },
}  # fmt: skip

#: Events that say whether a group exists and, of an import, whether it has members -> which of both. At other
#: times its partitions need no owner.
ABSENCES: Mapping[str, str] = {
    "group_deleted": "exists",
    "group_created": "exists",
    "members_gone": "has members",
    "members_back": "has members",
}
#: Those with which it exists, or has members, again.
ENDS_ABSENCE = frozenset({"group_created", "members_back"})

#: Events that change what a member is or has: the rows of the table ``members``. Parked requests and answers
#: to JoinGroup are left out.
MEMBER_EVENTS = (
    "member_started",
    "rejoin_requested",
    "member_added",
    "member_replaced",
    "member_removed",
    "sync_answered",
    "member_reconciled",
    "partitions_revoked",
    "partitions_lost",
    "partitions_assigned",
    "member_paused",
    "member_resumed",
    "partitions_paused",
    "partitions_resumed",
    "member_crashed",
    "member_closed",
    "member_failed",
)


def figure_columns() -> Iterator[tuple[str, str, bool]]:
    """The columns of the table of figures after ``run``: name, type of a value, whether it is a map."""
    for name, annotation in Figures.__annotations__.items():
        kind = annotation.removesuffix(" | None")
        value = kind.removeprefix("Mapping[str, ").removesuffix("]")
        yield name, value, value != kind


def figures_schema() -> str:
    """The columns of the table of figures after ``run`` as Spark's DDL, made from the types of `Figures`."""
    types = {"int": "bigint", "float": "double", "str": "string"}
    columns = []
    for name, kind, is_map in figure_columns():
        columns.append(f"{name} map<string, {types[kind]}>" if is_map else f"{name} {types[kind]}")
    return ", ".join(columns)
