"""The log that the coordinator of a Kafka 4.3 broker would write."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from tools.log_printing import Line, Row
from tools.log_printing.consumer_groups import PrintedConsumerGroups

_LOGGER: Final = "org.apache.kafka.coordinator.group.GroupMetadataManager"
_PREFIX: Final = "[GroupCoordinator id=0 topic=__consumer_offsets partition=0]"
#: Rows of both kinds of group: the row behind them says of which kind the group is.
_OF_EITHER: Final = frozenset({"member_added", "member_removed", "member_replaced"})
_OF_CONSUMER_GROUPS: Final = frozenset(
    {"group_epoch_bumped", "target_assigned", "member_reconciled", "group_converted"}
)
_CLASSIC_STATES: Final = frozenset({"PreparingRebalance", "CompletingRebalance"})


class PrintedBroker:
    """The lines of `GroupMetadataManager`, at DEBUG, in the order of the trace."""

    def __init__(self) -> None:
        self._classic = _ClassicGroups()
        self._consumer = PrintedConsumerGroups()

    def lines(self, rows: Iterable[Row]) -> Iterator[Line]:
        waiting: list[Row] = []
        for row in rows:
            if row["source"] != "coordinator":
                self._consumer.see(row)
                continue
            if row["event"] in _OF_EITHER:
                waiting.append(row)
                continue
            of_consumer_group = row["event"] in _OF_CONSUMER_GROUPS
            for one in waiting:
                yield from self._lines(one, of_consumer_group)
            waiting.clear()
            states = (row.get("state"), row.get("previous_state"))
            if row["event"] == "group_state_changed" and _CLASSIC_STATES.isdisjoint(states):
                # they do not log their state; a streams group that begins has no row of its first epoch
                if row["state"] == "Assigning" and row["generation"] != self._consumer.group_epoch:
                    yield from self._lines({**row, "event": "group_epoch_bumped"}, True)
                continue
            yield from self._lines(row, of_consumer_group)
        for one in waiting:
            yield from self._lines(one, False)

    def _lines(self, row: Row, of_consumer_group: bool) -> Iterator[Line]:
        message: str | None
        if of_consumer_group:
            level, message = self._consumer.message(row)
        else:
            level, message = "INFO", self._classic.message(row)
        if message is not None:
            yield Line(row["time_us"], f"{_PREFIX} {message}", _LOGGER, level)


class _ClassicGroups:
    """The log lines of classic groups."""

    def __init__(self) -> None:
        self._state = "Empty"

    def message(self, row: Row) -> str | None:
        write = _LINES.get(row["event"])
        return None if write is None else write(self, row)

    def pending(self, row: Row) -> str:
        return (
            f"Dynamic member with unknown member id joins group {row['group']} in {self._state} state. "
            f"Created a new member id {row['member_id']} and requesting the member to rejoin with this id."
        )

    def added(self, row: Row) -> str | None:
        group, member_id = row["group"], row["member_id"]
        if row["cause"] == "pending-member":
            return (
                f"Pending dynamic member with id {member_id} joins group {group} in {self._state} state. "
                "Adding to the group now."
            )
        if row["cause"] == "static-member":
            return (
                f"Static member with groupInstanceId={row['instance']} and unknown member id joins group "
                f"{group} in {self._state} state. Created a new member id {member_id} for this member and "
                "added to the group."
            )
        return (
            f"Dynamic member with unknown member id joins group {group} in state {self._state}. Created a "
            f"new member id {member_id} and added the member to the group."
        )

    def replaced(self, row: Row) -> str:
        return (
            f"Static member {row['instance']} of group {row['group']} with unknown member id rejoins, "
            f"assigning new member id {row['member_id']}, while old member id "
            f"{row['previous_member_id']} will be removed."
        )

    def removed(self, row: Row) -> str | None:
        group, member_id, cause = row["group"], row["member_id"], row["cause"]
        if cause == "left":
            return (
                f"[GroupId {group}] Dynamic member {member_id} has left group through explicit `LeaveGroup` "
                "request; client reason: the consumer is being closed"
            )
        if cause == "rebalance-timeout":
            return f"Group {group} removed dynamic members who haven't joined: [{member_id}]"
        return f"Member {member_id} in group {group} has failed, removing it from the group."

    def state(self, row: Row) -> str | None:
        group, generation, state = row["group"], row["generation"], row["state"]
        self._state = state
        if state == "PreparingRebalance":
            return (
                f"Preparing to rebalance group {group} in state PreparingRebalance with old generation "
                f"{generation} (reason: {_reason(row)})."
            )
        if state == "CompletingRebalance":
            return f"Stabilized group {group} generation {generation} with {row['count']} members."
        if state == "Stable":
            return (
                f"Assignment received from leader {row.get('leader')} for group {group} for generation "
                f"{generation}. The group has {row['count']} members, 0 of which are static."
            )
        return f"Group {group} with generation {generation} is now empty."


_LINES: Final[Mapping[str, Callable[[_ClassicGroups, Row], str | None]]] = {
    "member_pending": _ClassicGroups.pending,
    "member_added": _ClassicGroups.added,
    "member_replaced": _ClassicGroups.replaced,
    "member_removed": _ClassicGroups.removed,
    "group_state_changed": _ClassicGroups.state,
}


def _reason(row: Row) -> str:
    """The reason of a round, in the words of Kafka 4.3."""
    member_id = row.get("member_id")
    return {
        "left": f"explicit `LeaveGroup` request for ({member_id}) members.",
        "downgraded": f"Downgrade group {row['group']} from consumer to classic for member leaving.",
        "session-expired": f"removing member {member_id} on heartbeat expiration.",
        "leader-rejoined": f"Leader {member_id} re-joining group during Stable; client reason: not provided",
        "member-updated": f"Updating metadata for member {member_id} during Stable; client reason: not "
        "provided",
        "sync-timeout": f"Removing [{member_id}] on pending sync request expiration",
    }.get(
        row["cause"],
        f"Adding new member {member_id} with group instance id null; client reason: not provided",
    )
