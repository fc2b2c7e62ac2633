"""The members of a group and its state, followed row by row: what each member has, and what it does."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from groupstorm.explain.explanation import Reader
from groupstorm.figures.accumulator import FiguresAccumulator
from groupstorm.history.coordinator_view import CoordinatorView
from groupstorm.history.unknown import OWNERSHIP
from groupstorm.trace.events.group_states import GroupState

Row = Mapping[str, Any]

_UUID_END: Final = re.compile(r"-([0-9a-f]{4})[0-9a-f]{4}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
_STARTED: Final = frozenset({"member_started", "member_added"})
_ENDED: Final = frozenset({"member_closed", "member_crashed", "member_failed", "share_consumer_gone"})
#: The cause of a `rejoin_requested` with which a closing consumer forgets its generation.
_LEAVES: Final = "left-group"
#: Rows of the coordinator from which on a member waits for its assignment.
_JOINS: Final = frozenset({"member_added", "member_replaced", "join_parked", "join_answered", "sync_parked"})
#: Rows of the coordinator that give a member its assignment.
_JOINED: Final = frozenset({"sync_answered", "member_reconciled"})
#: States of a group in which no member waits for the others to join.
_NOT_JOINING: Final = frozenset({GroupState.STABLE, "Assigning", "Reconciling"})


class Activity(StrEnum):
    """An activity of a member, in the words of a legend."""

    PAUSED = "stands still"
    JOINS = "joins, owns no partitions"
    REJOINS = "joins, keeps its partitions"
    IDLE = "is in the group, owns no partitions"
    UNKNOWN = "unknown"
    OWNS = "owns partitions"
    GONE = "is not there"


@dataclass(slots=True, eq=False)
class Member:
    """One lane. ``name``: as the figures name owners; ``client``: its client id;
    ``process``: its instance of a Kafka Streams application.

    ``has_member_id``: it goes by its member id. ``is_new``: whether the trace says that it was not there
    before its first row.
    """

    name: str
    client: str
    has_member_id: bool
    is_new: bool
    process: str = ""
    present: bool = True
    joining: bool = False
    stands_still: bool = False
    partitions: dict[str, None] = field(default_factory=dict)
    paused: set[str] = field(default_factory=set)
    #: Counts the changes of ``partitions``.
    version: int = 0

    @property
    def label(self) -> str:
        """The name; of a member id the client id and four characters of what the coordinator put to it."""
        if self.has_member_id and not self.name.startswith(self.client):
            return f"{self.client}-{self.name[:4]}"  # a member of a consumer group (KIP-848)
        return _UUID_END.sub(r"-\1", self.name)

    @property
    def names(self) -> tuple[str, ...]:
        """The names by which a user may call it."""
        return tuple(filter(None, (self.label, self.client, self.process, self.name)))

    def activity(self, knows_owners: bool) -> Activity:
        """``knows_owners``: whether the trace says who owns what."""
        if not self.present:
            return Activity.GONE
        if self.is_paused:
            return Activity.PAUSED
        if self.joining:
            return Activity.REJOINS if self.partitions and knows_owners else Activity.JOINS
        if not knows_owners:
            return Activity.UNKNOWN
        return Activity.OWNS if self.partitions else Activity.IDLE

    @property
    def is_paused(self) -> bool:
        """Whether the process stands still, or fetches from none of its partitions."""
        return self.stands_still or (bool(self.partitions) and self.paused >= self.partitions.keys())

    def goes(self) -> None:
        self.present = self.joining = self.stands_still = False

    def comes(self) -> None:
        self.present = True


class GroupLanes(Reader):
    """Takes the rows of one group, in their order, each behind the figures.

    Of a trace with rows of members these say what a member does, else those of the coordinator. ``state``: of
    the group; "" if it does not exist, None if the trace does not say. ``knows_owners``: whether the trace
    says who owns what.
    """

    def __init__(self) -> None:
        self.members: dict[str, Member] = {}
        self.state: str | None = ""
        self.knows_owners = True
        self.is_imported = False
        #: Partitions that have changed hands with the row at hand, each with a member and whether it took it.
        self._changes: list[tuple[str, str, bool]] = []
        self._view: CoordinatorView | None = None

    def interval_begun(self, partition: str, member: str, position: int | None) -> None:
        self._changes.append((partition, member, True))

    def interval_ended(self, partition: str, member: str, position: int | None) -> None:
        self._changes.append((partition, member, False))

    def take(self, row: Row, figures: FiguresAccumulator) -> Iterable[Member]:
        """Take the row, which ``figures`` have taken; returns the members of which it may have changed
        something."""
        event, self._view = row["event"], figures.view
        touched: dict[Member, None] = {}
        for partition, name, owns in self._changes:
            member = self._find(row, name)
            touched[member] = None
            member.version += 1
            if owns:
                member.partitions[partition] = None
            else:
                del member.partitions[partition]
                member.paused.discard(partition)
        self._changes.clear()
        if event == "group_imported":
            self.is_imported, self.state = True, None
        elif event == "group_state_changed":
            self.state = row["state"]
            if self.is_imported and self.state in _NOT_JOINING and not self.by_members:
                touched.update(dict.fromkeys(self._all_have_joined()))
        elif event == "group_deleted":
            self.state = ""
        elif event == "ownership_known" or (event == "evidence_missing" and row["cause"] == OWNERSHIP):
            self.knows_owners = event == "ownership_known"
            return self.members.values()
        elif self.by_members:
            if row["source"] == "member" and "member" in row:
                touched[self._member_row(row)] = None
            elif event == "member_removed" and self.is_imported:
                touched[self._removed_silently(row)] = None
        elif "error" not in row and (event in _JOINS or event in _JOINED or event == "member_removed"):
            touched[self._coordinator_row(row)] = None
        return touched

    def of(self, row: Row) -> Member | None:
        """The member that the row is about, if it is known."""
        return self.members.get(self._name(row))

    @property
    def by_members(self) -> bool:
        """Whether rows of members say what they do."""
        return self._view is None

    def _name(self, row: Row) -> str:
        """The member that the row is about, as the figures name it; "" if it is about none."""
        return str(row.get("member", "")) if self._view is None else self._view.name(row.get("member_id", ""))

    def _member_row(self, row: Row) -> Member:
        event, member = row["event"], self._find(row)
        member.process = row.get("process", member.process)
        if event == "member_started":
            member.comes()
            member.joining = True
        elif event == "rejoin_requested" and row["cause"] == _LEAVES:
            member.joining = False
        elif event == "rejoin_requested":
            member.comes()
            member.joining = True
        elif event == "partitions_assigned":
            member.comes()
            member.joining = False
        elif event == "share_consumer_started":
            member.comes()
        elif event in _ENDED:
            member.goes()
        elif event in ("member_paused", "partitions_paused"):
            member.stands_still |= event == "member_paused"
            member.paused.update(row["partitions"])
        elif event in ("member_resumed", "partitions_resumed"):
            member.stands_still &= event != "member_resumed"
            member.paused.difference_update(row["partitions"])
        return member

    def _coordinator_row(self, row: Row) -> Member:
        event, member = row["event"], self._find(row)
        if event == "member_removed":
            member.goes()
        else:
            member.comes()
            # a static member that is back in a Stable group gets its old assignment at once
            member.joining = event in _JOINS and not (self.is_imported and self.state in _NOT_JOINING)
        return member

    def _removed_silently(self, row: Row) -> Member:
        """The coordinator removes a member whose log ends without a LeaveGroup: a static one, closed."""
        member = self._find(row)
        if not member.partitions and not member.joining:
            member.goes()
        return member

    def _all_have_joined(self) -> Iterable[Member]:
        """A broker's log has no answers: in these states of the group nobody waits in JoinGroup."""
        for member in self.members.values():
            if member.joining:
                member.joining = False
                yield member

    def _find(self, row: Row, name: str = "") -> Member:
        name = name or self._name(row)
        member = self.members.get(name)
        if member is None:
            is_new = not self.is_imported or row["event"] in _STARTED
            client, has_member_id = row.get("member", name), name == row.get("member_id")
            member = self.members[name] = Member(name, client, has_member_id, is_new)
        return member
