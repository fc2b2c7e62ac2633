"""One group at one time, as its coordinator describes it; the tables of one command are put together here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from groupstorm.imports.groups_command.tables import Table, assigned

#: The kind of an observation that describes a group, and of one that says where the logs of its topics end.
DESCRIBED: Final = "described"
LOG_ENDS: Final = "log-ends"


@dataclass(slots=True)
class Snapshot:
    """``members``: by member id; None if nothing says who they are. ``line``: the first line about the group.
    ``tables``: which tables name the group, and the lines of their headers.

    A member's ``partitions`` are None if nothing says what it has.
    """

    group: str
    line: int
    tables: dict[Table, int] = field(default_factory=dict)
    state: str | None = None
    protocol: str | None = None
    epoch: int | None = None
    members: dict[str, dict[str, Any]] | None = None
    committed: dict[str, int] = field(default_factory=dict)

    def add(self, table: Table, row: Mapping[str, str]) -> None:
        """A row of a table. Raises ValueError for a cell that should be a number, and then takes nothing."""
        for column in _NUMBERS:
            _number(row, column)
        if table is Table.STATE:
            self.state, self.protocol = row.get("STATE"), row.get("ASSIGNMENT-STRATEGY")
            self.epoch = _number(row, "GROUP-EPOCH")
            return
        member = self._member(row)
        if table is Table.MEMBERS and member is not None:
            self._assign(member, row)
        elif table is Table.OFFSETS and "TOPIC" in row and "PARTITION" in row:
            partition = f"{row['TOPIC']}-{int(row['PARTITION'])}"
            offset = _number(row, "CURRENT-OFFSET")
            if offset is not None:
                self.committed[partition] = offset
            if member is not None:
                owned = member["partitions"] or []
                member["partitions"] = owned if partition in owned else [*owned, partition]
        elif member is not None and member["partitions"] is None:
            member["partitions"] = []

    def no_members(self) -> None:
        """The command says that the group has no active members."""
        self.members = {}
        self.state = self.state or "Empty"

    def is_rebalancing(self) -> None:
        """The command warns that the group is rebalancing: what its members have is not printed."""
        self.state = self.state or "PreparingRebalance"

    def fields(self) -> dict[str, Any]:
        """The fields of an observation."""
        return {
            "state": self.state,
            "protocol": self.protocol,
            "epoch": self.epoch,
            "members": None if self.members is None else [*self.members.values()],
            "committed": dict(self.committed),
        }

    def _member(self, row: Mapping[str, str]) -> dict[str, Any] | None:
        if self.members is None:
            self.members = {}
        member_id = row.get("CONSUMER-ID")
        if member_id is None:
            return None
        member = self.members.setdefault(
            member_id,
            {"member_id": member_id, "instance": None, "client": None, "partitions": None, "epoch": None},
        )
        member["client"] = row.get("CLIENT-ID") or member["client"]
        member["instance"] = row.get("GROUP-INSTANCE-ID") or member["instance"]
        return member

    def _assign(self, member: dict[str, Any], row: Mapping[str, str]) -> None:
        cell = row.get("CURRENT-ASSIGNMENT", row.get("ASSIGNMENT"))
        member["epoch"] = _number(row, "CURRENT-EPOCH")
        if cell is not None:
            member["partitions"] = assigned(cell)
        elif _number(row, "#PARTITIONS") == 0:
            member["partitions"] = []
        if member["epoch"] is not None:
            member["target_epoch"] = _number(row, "TARGET-EPOCH")
            member["target"] = assigned(row.get("TARGET-ASSIGNMENT", ""))


#: Columns of numbers.
_NUMBERS: Final = (
    "GROUP-EPOCH",
    "PARTITION",
    "CURRENT-OFFSET",
    "#PARTITIONS",
    "CURRENT-EPOCH",
    "TARGET-EPOCH",
)


def _number(row: Mapping[str, str], column: str) -> int | None:
    return int(row[column]) if column in row else None
