"""What the rows of one group say about owners, whoever wrote them: the members, or the coordinator alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from groupstorm.figures.coordinator_view import CoordinatorView
from groupstorm.figures.row_rules import MEMBERS_VIEW

Row = Mapping[str, Any]

#: The kind of a row after which a member goes on at another rate.
RATES_CHANGED = "rates"

#: What a member's row means for the partitions that it names.
OWNERSHIP_KINDS = {
    "partitions_assigned": "own",
    "partitions_revoked": "end",
    "partitions_lost": "end",
    "member_crashed": "end",
    "member_paused": "pause",
    "member_resumed": "resume",
    "partitions_paused": "pause",
    "partitions_resumed": "resume",
    "processing_rates_changed": RATES_CHANGED,
}


class OwnerFact(NamedTuple):
    """A member took (own), ended, paused or resumed a partition, or goes on at another rate."""

    kind: str
    partition: str
    member: str
    position: int | None
    rate: int | None = None


class OwnerFacts:
    """Takes the rows of one group, in their order. Without rows of members the coordinator's say who owns."""

    def __init__(self) -> None:
        self._view: CoordinatorView | None = None
        self._member_rows = False

    @property
    def by_members(self) -> bool:
        """False if ownership follows from the rows of the coordinator."""
        return self._view is None

    def member(self, row: Row) -> str:
        """The member that the row is about, by the name that the facts have; "" if it is about none."""
        if self._view is None:
            return str(row.get("member", ""))
        return self._view.name(row.get("member_id", ""))

    def of_row(self, row: Row) -> Iterator[OwnerFact]:
        """The facts of the next row."""
        self._choose_view(row)
        event = row["event"]
        if self._view is not None:
            yield from _facts_of_coordinator(self._view, row)
        elif event in OWNERSHIP_KINDS:
            positions = row.get("positions") or [None] * len(row["partitions"])
            rates = row.get("rates") or [None] * len(positions)
            for partition, position, rate in zip(row["partitions"], positions, rates, strict=True):
                yield OwnerFact(OWNERSHIP_KINDS[event], partition, row["member"], position, rate)

    def _choose_view(self, row: Row) -> None:
        event = row["event"]
        self._member_rows = self._member_rows or row["source"] == "member"
        if event == "group_imported":  # which says from whose rows ownership follows
            self._member_rows = row["cause"] == MEMBERS_VIEW
            self._view = None if self._member_rows else CoordinatorView()
        if event == "member_added" and not self._member_rows and self._view is None:
            self._view = CoordinatorView()


def _facts_of_coordinator(view: CoordinatorView, row: Row) -> Iterator[OwnerFact]:
    event, ended, added = row["event"], (), ()  # type: tuple[Any, Any, Any]
    if event == "group_state_changed" and row["state"] == "CompletingRebalance":
        view.protocol_chosen(row.get("protocol"))
    if event in ("member_added", "member_replaced"):
        view.learn(row["member_id"], row.get("instance"))
    if event in ("member_removed", "member_replaced"):
        ended = view.drops(row["member_id"])
    elif "error" in row:
        return
    elif event in ("join_parked", "join_answered"):
        ended = view.joins(row["member_id"])
    elif event == "sync_answered":
        ended, added = view.answered(row["member_id"], row.get("partitions", ()))
    elif event == "member_reconciled":
        holds = (*row.get("partitions", ()), *row.get("revoking", ()))
        ended, added = view.answered(row["member_id"], holds)
    for kind, partitions in (("end", ended), ("own", added)):
        for partition in partitions:
            yield OwnerFact(kind, partition, view.name(row["member_id"]), None)
