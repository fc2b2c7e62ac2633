"""The tables of kafka-consumer-groups --describe, from Kafka 1.1 (KIP-175) to 4.3: their columns and cells.

Releases differ in their columns: GROUP came with 2.4 (KIP-379), GROUP-INSTANCE-ID is there if a member has
one, epochs and target assignments came with 4.0. So columns are found by their names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple


class Table(StrEnum):
    """Which table a header begins."""

    OFFSETS = "offsets"
    MEMBERS = "members"
    STATE = "state"


#: The column that only this table has.
_MARKS: Final[Mapping[Table, str]] = {
    Table.OFFSETS: "LOG-END-OFFSET",
    Table.MEMBERS: "#PARTITIONS",
    Table.STATE: "ASSIGNMENT-STRATEGY",
}
_COLUMN = re.compile(r"COORDINATOR \(ID\)|\S+")
#: The coordinator's address and id are one cell.
_COORDINATOR_ID = re.compile(r"(?<=\S)\s+(?=\(-?\d+\))")
_NOTHING: Final = "-"
#: ``orders:0,1;other:3`` since 4.0, ``orders(0,1), other(3)`` before.
_ASSIGNED = re.compile(r"([\w.-]+)(?::(\d+(?:,\d+)*)|\((\d+(?:,\s*\d+)*)\))")
#: Columns whose cells may hold spaces, if they are the last ones of a table.
_LAST: Final = "ASSIGNMENT"


class Header(NamedTuple):
    table: Table
    columns: tuple[str, ...]


def header(text: str) -> Header | None:
    """The header that a line is; None if it is none."""
    columns = tuple(_COLUMN.findall(text))
    if len(columns) < 4 or not all(column.upper() == column for column in columns):
        return None
    for table, mark in _MARKS.items():
        if mark in columns:
            return Header(table, columns)
    return None


def is_of_share_groups(text: str) -> bool:
    """Whether a line is of what kafka-share-groups prints."""
    columns = set(text.split())
    return (
        text.startswith("Share group '")
        or {"PARTITION", "START-OFFSET"} <= columns
        or {"#PARTITIONS", "MEMBER-EPOCH"} <= columns
        or ({"(ID)", "STATE", "#MEMBERS"} <= columns and "ASSIGNMENT-STRATEGY" not in columns)
    )


def cells(head: Header, text: str) -> Mapping[str, str] | None:
    """Column -> cell of a row, without cells that are "-"; None if the row does not fit the header."""
    if head.table is Table.STATE:
        text = _COORDINATOR_ID.sub("", text)
    found = text.split()
    if len(found) > len(head.columns) and head.columns[-1] == _LAST:
        last = len(head.columns) - 1
        found = [*found[:last], " ".join(found[last:])]
    if len(found) != len(head.columns):
        return None
    return {column: cell for column, cell in zip(head.columns, found, strict=True) if cell != _NOTHING}


def assigned(cell: str) -> list[str]:
    """The partitions of an assignment's cell, as topic-partition."""
    return [
        f"{topic}-{number.strip()}"
        for topic, new, old in _ASSIGNED.findall(cell)
        for number in (new or old).split(",")
    ]
