"""Columns of a trace, versions 1 and 2: names, types, meaning. `docs/trace.md` is made from these tables."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, StrEnum

#: Raised when a column changes its name, type or meaning. Columns and events may be added within a version.
SCHEMA_VERSION = 1
#: Of traces that `groupstorm import` made from logs: version 1, with `PROVENANCE_COLUMNS`, and without a
#: value in columns that the logs do not tell.
IMPORTED_VERSION = 2
READABLE_VERSIONS = (SCHEMA_VERSION, IMPORTED_VERSION)
#: Names the version in a trace: in the metadata of Parquet; as the only key of the first line of JSON lines,
#: which version 1 leaves out.
VERSION_KEY = "groupstorm.trace.schema"


class ColumnType(Enum):
    """The types that a trace needs; each format has its own word for them."""

    INT = "int64"
    TEXT = "string"
    TEXTS = "list<string>"
    INTS = "list<int64>"


class Source(StrEnum):
    """Who saw the event."""

    COORDINATOR = "coordinator"
    MEMBER = "member"
    WORLD = "world"


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: ColumnType
    meaning: str


COLUMNS: tuple[Column, ...] = (
    Column("seq", ColumnType.INT, "position in the trace, from 0: the order of events at one instant"),
    Column("time_us", ColumnType.INT, "microseconds since the trace began (virtual time in storms)"),
    Column("source", ColumnType.TEXT, "coordinator, member or world: who saw the event"),
    Column("event", ColumnType.TEXT, "what happened: the event type's name in snake case"),
    Column("group", ColumnType.TEXT, "group id"),
    Column("member", ColumnType.TEXT, "the client's own name (client.id): stays over restarts"),
    Column("member_id", ColumnType.TEXT, "the id that the coordinator gave: new with every restart"),
    Column("previous_member_id", ColumnType.TEXT, "the id that a static member had before"),
    Column("instance", ColumnType.TEXT, "group.instance.id of a static member"),
    Column("generation", ColumnType.INT, "generation of the group, or that the member believes in"),
    Column("previous_state", ColumnType.TEXT, "state of the group before"),
    Column("state", ColumnType.TEXT, "state of the group after"),
    Column("cause", ColumnType.TEXT, "why it happened, from a closed list per event"),
    Column("error", ColumnType.TEXT, "Kafka's name of the error that was answered; null for NONE"),
    Column("protocol", ColumnType.TEXT, "name of the chosen assignor"),
    Column("leader", ColumnType.TEXT, "member id of the group's leader"),
    Column("partitions", ColumnType.TEXTS, "topic partitions as Kafka prints them: topic-partition"),
    Column("revoking", ColumnType.TEXTS, "topic partitions that a member has to give up, and has not yet"),
    Column("positions", ColumnType.INTS, "per partition: offset at which processing starts or stopped"),
    Column("committed", ColumnType.INTS, "per partition: the committed offset of the group; -1: none"),
    Column("duration_us", ColumnType.INT, "how long it took or will take, in microseconds"),
    Column("api", ColumnType.TEXT, "Kafka's name of a request"),
    Column("count", ColumnType.INT, "how many"),
    Column("detail", ColumnType.TEXT, "a sentence or a value for people"),
    Column("topics", ColumnType.TEXTS, "subscribed or changed topics"),
    Column("record_rate", ColumnType.INT, "records produced per partition and second"),
    Column("process_rate", ColumnType.INT, "records that a partition's owner can process per second"),
    Column("rates", ColumnType.INTS, "per partition: records per 1,000 seconds"),
    Column("process", ColumnType.TEXT, "instance of a Kafka Streams application, whose threads are members"),
    Column("task", ColumnType.TEXT, "task of a Kafka Streams application, as Kafka prints it: 0_1"),
    Column("tasks", ColumnType.TEXTS, "tasks of an application"),
    Column("rack", ColumnType.TEXT, "rack (zone) of an instance"),
    Column("version", ColumnType.INT, "version of SubscriptionInfo"),
    Column("lag", ColumnType.INT, "records of a changelog that are still to be read"),
    Column("bytes", ColumnType.INT, "bytes of records"),
    Column("cross_rack_bytes", ColumnType.INT, "those of them that went from one rack to another"),
    Column("price", ColumnType.INT, "of a gigabyte between racks, both ways, in millionths of a dollar"),
    Column(
        "counts",
        ColumnType.INTS,
        "share groups, per partition: records of a range that begins at its position",
    ),
    Column(
        "deliveries", ColumnType.INTS, "share groups, per partition: how often these records were delivered"
    ),
    Column(
        "in_flight",
        ColumnType.INTS,
        "share groups, per partition: records that the group has in flight there",
    ),
)

#: The columns in which rows of an imported trace tell about themselves.
PROVENANCE_COLUMNS: tuple[Column, ...] = (
    Column("provenance", ColumnType.TEXT, "observed (a line says it), inferred (a rule says it) or missing"),
    Column(
        "evidence",
        ColumnType.TEXTS,
        "the lines behind the row as file:line, or the records as file:offset",
    ),
    Column("rule", ColumnType.TEXT, "the rule by which the row, or a value of it, was inferred"),
    Column(
        "earliest_us", ColumnType.INT, "it happened at this time at the earliest, if time_us is not exact"
    ),
    Column("latest_us", ColumnType.INT, "it happened at this time at the latest, if time_us is not exact"),
)


def columns_of(version: int) -> tuple[Column, ...]:
    """All columns of a version of the schema."""
    return COLUMNS if version == SCHEMA_VERSION else (*COLUMNS, *PROVENANCE_COLUMNS)
