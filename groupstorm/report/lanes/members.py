"""The members of a group and its state, followed row by row: who owns what, and what each member does."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, NamedTuple

from groupstorm.history.coordinator_view import CoordinatorView, reads_coordinator
from groupstorm.history.unknown import OWNERSHIP
from groupstorm.trace.events.group_states import GroupState
from groupstorm.trace.events.imported import GroupImported
from groupstorm.trace.rows import TracedEvent

Row = Mapping[str, Any]

_UUID_END: Final = re.compile(r"-([0-9a-f]{4})[0-9a-f]{4}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
_STARTED: Final = frozenset({"member_started", "member_added"})
_ENDED: Final = frozenset({"member_closed", "member_crashed", "member_failed"})
#: The cause of a `rejoin_requested` with which a closing consumer forgets its generation.
_LEAVES: Final = "left-group"
#: Rows of the coordinator from which on a member waits for its assignment.
_JOINS: Final = frozenset({"member_added", "member_replaced", "join_parked", "join_answered", "sync_parked"})
#: Rows of the coordinator that give a member its assignment.
_JOINED: Final = frozenset({"sync_answered", "member_reconciled"})
#: States of a group in which no member waits for the others to join.
_NOT_JOINING: Final = frozenset({GroupState.STABLE, "Assigning", "Reconciling"})


#: The meaning of a member's row for the partitions that it names.
_OWNERSHIP_KINDS: Final = {
    "partitions_assigned": "own",
    "partitions_revoked": "end",
    "partitions_lost": "end",
    "member_crashed": "end",
    "member_paused": "pause",
    "member_resumed": "resume",
    "partitions_paused": "pause",
    "partitions_resumed": "resume",
}


class Activity(StrEnum):
    """An activity of a member, in the words of a legend."""

    PAUSED = "stands still"
    JOINS = "joins, owns no partitions"
    REJOINS = "joins, keeps its partitions"
    IDLE = "is in the group without partitions"
    UNKNOWN = "unknown"
    OWNS = "owns partitions"
    GONE = "is not there"


@dataclass(slots=True, eq=False)
class Member:
    """One lane. ``name``: as the facts of ownership have it (`OwnerFacts`); ``client``: its client id;
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


class OwnerFact(NamedTuple):
    """A member took (own), ended, paused or resumed a partition."""

    kind: str
    partition: str
    member: str


class OwnerFacts:
    """Takes the rows of one group, in their order. In a trace without rows of members the coordinator's rows
    say who owns what."""

    def __init__(self) -> None:
        self._view: CoordinatorView | None = None
        self._member_rows = False

    @property
    def by_members(self) -> bool:
        """Whether the rows of members say who owns what; if not, those of the coordinator do."""
        return self._view is None

    def member(self, row: Row) -> str:
        """The member that the row is about, by the name that the facts have; "" if it is about none."""
        if self._view is None:
            return str(row.get("member", ""))
        return self._view.name(row.get("member_id", ""))

    def of_row(self, row: Row, event: TracedEvent) -> Iterator[OwnerFact]:
        """Take the next row, and its event; returns what it says about owners."""
        self._member_rows = self._member_rows or row["source"] == "member"
        if isinstance(event, GroupImported) or self._view is None:
            is_read = reads_coordinator(event, self._member_rows)
            self._view = CoordinatorView() if is_read else None
            self._member_rows = self._member_rows or (isinstance(event, GroupImported) and not is_read)
        if self._view is not None:
            member, ended, added = self._view.take(event)
            for kind, partitions in (("end", ended), ("own", added)):
                for partition in partitions:
                    yield OwnerFact(kind, partition, member)
        elif row["event"] in _OWNERSHIP_KINDS:
            for partition in row["partitions"]:
                yield OwnerFact(_OWNERSHIP_KINDS[row["event"]], partition, row["member"])


class GroupLanes:
    """Takes the rows of one group, in their order.

    Of a trace with rows of members these say what a member does, else those of the coordinator. ``state``: of
    the group; "" if it does not exist, None if the trace does not say. ``knows_owners``: whether the trace
    says who owns what.
    """

    def __init__(self) -> None:
        self.members: dict[str, Member] = {}
        self.state: str | None = ""
        self.knows_owners = True
        self.is_imported = False
        #: The facts of the last row about owners.
        self.facts: Sequence[OwnerFact] = ()
        self._facts = OwnerFacts()

    def add(self, row: Row, typed: TracedEvent) -> Iterable[Member]:
        """Take the next row, and its event; returns the members of which it may have changed something."""
        event = row["event"]
        touched: dict[Member, None] = {}
        self.facts = [*self._facts.of_row(row, typed)]
        for fact in self.facts:
            touched[self._apply(fact, row)] = None
        if event == "group_imported":
            self.is_imported, self.state = True, None
        elif event == "group_state_changed":
            self.state = row["state"]
            if self.is_imported and self.state in _NOT_JOINING and not self._facts.by_members:
                touched.update(dict.fromkeys(self._all_have_joined()))
        elif event == "group_deleted":
            self.state = ""
        elif event == "ownership_known" or (event == "evidence_missing" and row["cause"] == OWNERSHIP):
            self.knows_owners = event == "ownership_known"
            return self.members.values()
        elif self._facts.by_members:
            if row["source"] == "member" and "member" in row:
                touched[self._member_row(row)] = None
            elif event == "member_removed" and self.is_imported:
                touched[self._removed_silently(row)] = None
        elif "error" not in row and (event in _JOINS or event in _JOINED or event == "member_removed"):
            touched[self._coordinator_row(row)] = None
        return touched

    def of(self, row: Row) -> Member | None:
        """The member that the row is about, if it is known."""
        return self.members.get(self._facts.member(row))

    @property
    def by_members(self) -> bool:
        """Whether rows of members say what they do."""
        return self._facts.by_members

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
        elif event in _ENDED:
            member.goes()
        elif event == "member_paused":
            member.stands_still = True
        elif event == "member_resumed":
            member.stands_still = False
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

    def _apply(self, fact: OwnerFact, row: Row) -> Member:
        member = self._find(row, fact.member)
        if fact.kind == "own":
            member.version += fact.partition not in member.partitions
            member.partitions[fact.partition] = None
        elif fact.kind == "end":
            member.version += fact.partition in member.partitions
            member.partitions.pop(fact.partition, None)
            member.paused.discard(fact.partition)
        elif fact.kind == "pause":
            member.paused.add(fact.partition)
        elif fact.kind == "resume":
            member.paused.discard(fact.partition)
        return member

    def _find(self, row: Row, name: str = "") -> Member:
        name = name or self._facts.member(row)
        member = self.members.get(name)
        if member is None:
            is_new = not self.is_imported or row["event"] in _STARTED
            client, has_member_id = row.get("member", name), name == row.get("member_id")
            member = self.members[name] = Member(name, client, has_member_id, is_new)
        return member
