"""Rebalances with their rounds, the members that came and went, and times without an owner beside them.

All times are microseconds since the trace began; a `Row` is a row as `groupstorm.trace.reader` gives it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, NamedTuple

from groupstorm.history.gaps import ClosedGap
from groupstorm.trace.events.group_states import GroupState

Row = Mapping[str, Any]
#: `member_replaced` as the cause of a change: a static member is back under a new id.
REPLACED: Final = "replaced"


class ChangeKind(StrEnum):
    CAME = "came"
    WENT = "went"


class Change(NamedTuple):
    """A member came into the group or went out of it. ``alive``: its last row before it went, if there is
    one."""

    time_us: int
    kind: ChangeKind
    member: str
    member_id: str
    instance: str | None
    cause: str
    row: Row
    alive: Row | None = None

    @property
    def is_closed(self) -> bool:
        """Whether the member's own rows say that it was closed before the coordinator removed it."""
        row = self.alive
        if row is None or row["source"] != "member":
            return False
        return row["event"] == "member_closed" or row.get("cause") in ("close", "left-group")


@dataclass(slots=True, eq=False)
class Round:
    """One generation of a classic group, or one way of a consumer group back to Stable.

    ``begun``: the row with which the group left Stable or Empty. ``last_join``: the JoinGroup that came last;
    ``others_joined_us``: when the one before it came. ``removed_at_end``: with this removal the join phase
    ended, or the rows of one that is open.
    """

    begun: Row
    cause: str
    member: str
    others_joined_us: int | None = None
    last_join: Row | None = None
    last_joiner: str = ""
    removed_at_end: Row | None = None
    removed_member: str = ""
    joined: Row | None = None
    #: The last row of the group while the round was open: it lasted at least until then.
    last: Row | None = None
    ended: Row | None = None
    members: int | None = None

    @property
    def begun_us(self) -> int:
        return int(self.begun["time_us"])

    @property
    def joining_us(self) -> int | None:
        """The length of the join phase; None without one, or if it did not end."""
        return None if self.joined is None else int(self.joined["time_us"]) - self.begun_us

    @property
    def open_us(self) -> int:
        """For so long at least the group was in a join phase whose end no row tells; 0 if one does."""
        is_open = (
            self.joined is None
            and self.ended is None
            and self.begun.get("state") == GroupState.PREPARING_REBALANCE
        )
        return int(self.last["time_us"]) - self.begun_us if is_open and self.last is not None else 0

    @property
    def lasted_us(self) -> int:
        """The time until it ended, or at least until the last row that shows it open."""
        last = self.ended or self.last
        return 0 if last is None else int(last["time_us"]) - self.begun_us

    @property
    def assigning_us(self) -> int | None:
        """The time for which the group waited for the leader's plan."""
        if self.joined is None or self.ended is None:
            return None
        return int(self.ended["time_us"]) - int(self.joined["time_us"])


@dataclass(slots=True, eq=False)
class Rebalance:
    """A round and those that only finish it: the second round of a cooperative rebalance.

    ``unowned_us``: the times without an owner that it ended, summed over partitions. ``changes``: members
    that came and went in it. ``first_waits_us``: the longest time for which a partition waited for its first
    owner.
    """

    number: int
    rounds: list[Round] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    unowned_us: int = 0
    gaps: int = 0
    new_partitions: int = 0
    first_waits_us: int = 0
    longest: ClosedGap | None = None

    @property
    def begun_us(self) -> int:
        return self.rounds[0].begun_us

    @property
    def ended_us(self) -> int | None:
        """None if the trace ends before the group is Stable again."""
        ended = self.rounds[-1].ended
        return None if ended is None else int(ended["time_us"])

    def until_us(self, end_us: int) -> int:
        """When it ended; ``end_us`` if it did not."""
        return end_us if self.ended_us is None else self.ended_us

    @property
    def lasted_us(self) -> int:
        """The time in which the group was not Stable: at least that if the last round did not end."""
        return sum(one.lasted_us for one in self.rounds)

    @property
    def cause(self) -> str:
        return self.rounds[0].cause

    @property
    def culprit(self) -> str:
        """The member that began it, "" if no row names one."""
        return self.rounds[0].member

    def add_gap(self, gap: ClosedGap) -> None:
        self.unowned_us += gap.gap_us
        self.gaps += 1
        self.new_partitions += gap.old_owner is None and not gap.is_first
        self.first_waits_us = max(self.first_waits_us, gap.is_first * gap.gap_us)
        if self.longest is None or gap.gap_us > self.longest.gap_us:
            self.longest = gap


@dataclass(slots=True, eq=False)
class Absence:
    """Times without an owner that no rebalance ended: their owner was away and came back, or nobody came.

    One absence sums up the gaps of one member from one instant on.
    """

    member: str
    from_us: int
    to_us: int
    unowned_us: int = 0
    gaps: int = 0
    returned: bool = False

    def add_gap(self, gap: ClosedGap) -> None:
        self.unowned_us += gap.gap_us
        self.gaps += 1
        self.to_us = max(self.to_us, gap.to_us)
        self.returned = self.returned or gap.new_owner == self.member


class SlowRevocation(NamedTuple):
    """A member of a consumer group had to give up partitions from ``first`` on, and said so with ``last``."""

    member: str
    first: Row
    last: Row

    @property
    def lasted_us(self) -> int:
        return int(self.last["time_us"]) - int(self.first["time_us"])


#: Rows of the coordinator that follow from a request of the member: it was alive.
_ALIVE: Final = frozenset(
    {"join_parked", "sync_parked", "offsets_committed", "member_added", "member_replaced"}
)
#: Rows that show a share consumer alive, or say its end: they have no member ids.
_ALIVE_SHARED: Final = frozenset({"share_consumer_gone", "share_records_acquired", "share_records_accepted"})


class Memberships:
    """Takes the rows of one group, in their order.

    ``by_clients``: whether client ids name members. They do once there are rows of members, and in an import;
    in a trace with the coordinator's rows alone members go by instance id or member id, since real clients
    often share a client id.
    """

    def __init__(self) -> None:
        self.by_clients = False
        #: Member id -> name, and client id; client id -> the member id that it had last.
        self._names: dict[str, str] = {}
        self._clients: dict[str, str] = {}
        self._ids: dict[str, str] = {}
        #: The last row of each member that shows it alive.
        self._alive: dict[str, Row] = {}

    def learn(self, row: Row) -> None:
        """Take the name that the next row says."""
        member_id = row.get("member_id")
        if member_id and "member" in row:
            self._names[member_id] = self.name(row)
            self._clients[member_id] = row["member"]
            self._ids[row["member"]] = member_id

    def changes(self, row: Row) -> list[Change]:
        """The changes that the row says. A static member that comes back goes and comes."""
        event, previous = row["event"], row.get("previous_member_id", "")
        if event == "member_added":
            return [self._change(ChangeKind.CAME, row, row["cause"])]
        if event == "member_removed":
            return [self._change(ChangeKind.WENT, row, row["cause"], row["member_id"])]
        if event == "member_replaced":
            went = self._change(ChangeKind.WENT, row, REPLACED, previous)
            return [went, self._change(ChangeKind.CAME, row, REPLACED)]
        return []

    def see_alive(self, row: Row) -> None:
        """Remember the row if it shows its member alive."""
        member_id = row.get("member_id")
        is_shared = row["event"] in _ALIVE_SHARED
        if is_shared and self.by_clients:
            member_id = self._ids.get(row["member"])
        if member_id and (is_shared or row["source"] == "member" or row["event"] in _ALIVE):
            self._alive[member_id] = row

    def name(self, row: Row) -> str:
        """The name of the member that a row is about, "" if it is about none."""
        member_id = row.get("member_id", "")
        if self.by_clients:
            return str(row.get("member") or self._names.get(member_id, ""))
        return str(row.get("instance") or self._names.get(member_id) or member_id)

    def name_of(self, member_id: str) -> str:
        return self._names.get(member_id, member_id)

    def client(self, member: str) -> str:
        """The client id of a member that goes by its member id; any other name as it is."""
        return self._clients.get(member, member)

    def forget(self, change: Change) -> None:
        """The member id of a member that went means nothing any more."""
        member_id = change.row.get("previous_member_id") or change.member_id
        self._names.pop(member_id, None)
        self._clients.pop(member_id, None)

    def _change(self, kind: ChangeKind, row: Row, cause: str, gone_id: str = "") -> Change:
        alive = self._alive.pop(gone_id, None)
        name, member_id, instance = self.name(row), row["member_id"], row.get("instance")
        return Change(row["time_us"], kind, name, member_id, instance, cause, row, alive)
