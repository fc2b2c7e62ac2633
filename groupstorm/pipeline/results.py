"""The results that an analysis returns and prints, whichever engine computed it, and its tables in Arrow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from groupstorm.figures import Figures
from groupstorm.figures.accumulator import WHOLE, Window
from groupstorm.trace.parquet import import_pyarrow
from groupstorm.wording import seconds

if TYPE_CHECKING:
    import pyarrow

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

    Gaps that no round closed are together if they began at one instant.
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
    """An engine's result; ``groups`` are all of the traces.

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

    A run with several groups stands under run:group. ``uncounted``: those that end before their figures
    count, or begin after the window. ``confirmed`` names the runs whose `figures.json` says the same,
    ``disagreements`` says where another one does not. ``engine`` computed it.
    """

    engine: str
    figures: Mapping[str, Figures]
    handovers: Sequence[SlowHandover]
    rounds: Sequence[RoundsByCause]
    uncounted: Sequence[str]
    confirmed: Sequence[str]
    disagreements: Sequence[str]


class Interval(NamedTuple):
    """A row of ``intervals``: a time in which a member owned a partition without a break."""

    partition: str
    member: str
    generation: int | None
    from_seq: int
    from_us: int
    from_position: int | None
    to_seq: int | None
    to_us: int
    to_position: int | None
    ended_by: str | None
    cause: str | None


class Handover(NamedTuple):
    """A row of ``handovers``: a gap between two owners of a partition, or before the first one."""

    partition: str
    from_us: int
    to_us: int
    gap_us: int
    paused_us: int
    old_owner: str | None
    new_owner: str | None
    old_generation: int | None
    new_generation: int | None
    generations: int | None
    ended_by: str
    cause: str | None
    prepared_us: int | None
    rebalance_cause: str | None


class Round(NamedTuple):
    """A row of ``rounds``: a rebalance from PreparingRebalance on."""

    round: int
    prepared_seq: int
    prepared_us: int
    cause: str
    generation: int | None
    completing_seq: int | None
    completing_us: int | None
    protocol: str | None
    members: int | None
    stable_us: int | None
    answered_us: int | None
    latency_us: int | None


class MemberEvent(NamedTuple):
    """A row of ``members``: an event, and until when the member stayed so."""

    member: str
    seq: int
    time_us: int
    until_us: int | None
    event: str
    cause: str | None
    error: str | None
    generation: int | None
    partitions: int | None
    duration_us: int | None


TableRow = Interval | Handover | Round | MemberEvent

_ROWS = {"intervals": Interval, "handovers": Handover, "rounds": Round, "members": MemberEvent}

#: Table -> its columns with the types of Parquet. All begin with ``run`` and ``group``.
TABLES: Mapping[str, Mapping[str, str]] = {
    name: {
        column: "string" if "str" in str(kind) else "int64" for column, kind in row.__annotations__.items()
    }
    for name, row in _ROWS.items()
}

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


#: How an owner came to own no more: (event, cause) or the event alone -> a clause about ``old``.
_ENDINGS: Mapping[tuple[str, str | None], str] = {
    ("partitions_revoked", "rebalance"): "{old} gave up everything to join again",
    ("partitions_revoked", "assignment"): "{old} was not assigned it any more",
    ("partitions_revoked", "subscription"): "{old} dropped the topic",
    ("partitions_revoked", "close"): "{old} closed",
    ("partitions_lost", None): "{old} was out of the group ({cause})",
    ("member_crashed", None): "{old} crashed",
    ("member_started", None): "the group began",
    ("partitions_created", None): "it was created",
    ("member_removed", None): "{old} was removed ({cause})",
    ("member_replaced", None): "{old} came back under a new id",
    ("join_parked", None): "{old} joined again",
    ("join_answered", None): "{old} joined again",
    ("sync_answered", None): "{old} was not assigned it any more",
    ("member_reconciled", None): "{old} had given it up",
}


def why(handover: SlowHandover) -> str:
    """Tell what ended the old ownership, how long nobody noticed, and who came after how many generations."""
    ending = _ENDINGS.get((handover.ended_by, handover.cause)) or _ENDINGS[handover.ended_by, None]
    clauses = [ending.format(old=handover.old_owner, cause=handover.cause)]
    if handover.round_us is not None and handover.round_us > handover.from_us:
        waited = seconds((handover.round_us - handover.from_us) / 1_000_000)
        which = "the next round" if handover.generations == 1 else "the round that ended it"
        clauses.append(f"{which} began {waited} later ({handover.rebalance_cause})")
        if handover.round_us - handover.from_us > handover.gap_us:
            clauses.append("the group had no members meanwhile, which does not count")
    elif handover.round_us is not None:
        clauses.append(f"in a round because of {handover.rebalance_cause}")
    if handover.new_owner is None:
        clauses.append("nobody took it")
    elif handover.new_owner == handover.old_owner:
        clauses.append(f"{handover.new_owner} got it back")
    else:
        clauses.append(f"{handover.new_owner} took it")
    if handover.generations is not None and handover.generations > 1:
        clauses[-1] += f" {handover.generations} generations later"
    return "; ".join(clauses)


#: The columns in front of those that a table has, with their types.
Keys = Mapping[str, str]


def arrow_table(name: str, rows: Sequence[TableRow], keys: Mapping[str, str]) -> pyarrow.Table:
    """Rows of one of `TABLES`; in front of its columns those of the ``keys``, which have these values."""
    pyarrow = import_pyarrow()
    schema = _schema({**dict.fromkeys(keys, "string"), **TABLES[name]})
    columns = [pyarrow.repeat(pyarrow.scalar(value, "string"), len(rows)) for value in keys.values()]
    values = zip(*rows, strict=True) if rows else ((),) * len(TABLES[name])
    columns += map(pyarrow.array, values, schema.types[len(keys) :])
    return pyarrow.Table.from_arrays(columns, schema=schema)


def arrow_figures(rows: Iterable[tuple[Mapping[str, Any], Figures]], keys: Keys) -> pyarrow.Table:
    """A row per run: the values of ``keys``, and every figure."""
    pyarrow = import_pyarrow()
    schema = pyarrow.schema([*_schema(keys), *figure_fields()])
    return pyarrow.Table.from_pylist([{**head, **figure_values(figures)} for head, figures in rows], schema)


def figure_fields() -> list[pyarrow.Field]:
    """A field for each figure."""
    pyarrow = import_pyarrow()
    types = {"int": pyarrow.int64(), "float": pyarrow.float64(), "str": pyarrow.string()}
    return [
        pyarrow.field(name, pyarrow.map_(pyarrow.string(), types[kind]) if is_map else types[kind])
        for name, kind, is_map in figure_columns()
    ]


def figure_values(figures: Figures) -> dict[str, Any]:
    """The values that such fields take: maps as pairs."""
    return {name: [*v.items()] if isinstance(v, Mapping) else v for name, v in figures.to_json().items()}


def _schema(columns: Mapping[str, str]) -> pyarrow.Schema:
    pyarrow = import_pyarrow()
    return pyarrow.schema([(name, pyarrow.type_for_alias(kind)) for name, kind in columns.items()])
