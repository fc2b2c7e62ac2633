"""Who came into a group and went out of it, and by which names its members go."""

from __future__ import annotations

from typing import Final

from groupstorm.history.rebalances import REPLACED, Change, ChangeKind, Row

#: Rows of the coordinator that follow from a request of the member: it was alive.
_ALIVE: Final = frozenset(
    {"join_parked", "sync_parked", "offsets_committed", "member_added", "member_replaced"}
)


class Memberships:
    """Takes the rows of one group, in their order.

    ``by_clients``: whether client ids name members. They do once there are rows of members, and in an import;
    in a trace with the coordinator's rows alone members go by instance id or member id, since real clients
    often share a client id.
    """

    def __init__(self) -> None:
        self.by_clients = False
        #: Member id -> name, and client id.
        self._names: dict[str, str] = {}
        self._clients: dict[str, str] = {}
        #: The last row of each member that shows it alive.
        self._alive: dict[str, Row] = {}

    def learn(self, row: Row) -> None:
        """Take the name that the next row says."""
        member_id = row.get("member_id")
        if member_id and "member" in row:
            self._names[member_id] = self.name(row)
            self._clients[member_id] = row["member"]

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
        if row.get("member_id") and (row["source"] == "member" or row["event"] in _ALIVE):
            self._alive[row["member_id"]] = row

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
