"""A storm's trace as the logs that Kafka 4.3's broker or Java clients would have written of it.

What the trace has and such logs do not (positions, commits, requests), is left out; the texts are the
templates that `groupstorm import` reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

Row = Mapping[str, Any]

#: The wall clock at time 0: a storm has none of its own.
BEGAN: Final = datetime(2026, 1, 1)
_BROKER: Final = "org.apache.kafka.coordinator.group.GroupMetadataManager"
_CLIENT: Final = "org.apache.kafka.clients.consumer.internals.ConsumerCoordinator"


class LogKind(StrEnum):
    """Which program's log a trace is printed as."""

    BROKER = "broker-log"
    JAVA = "java-log"


def as_log(rows: Iterable[Row], kind: LogKind) -> Iterator[str]:
    """The lines of the log, in the order of the trace."""
    printers: Mapping[LogKind, Callable[[], _Broker | _JavaClients]] = {
        LogKind.BROKER: _Broker,
        LogKind.JAVA: _JavaClients,
    }
    printer = printers[kind]()
    for row in rows:
        for message, logger in printer.lines(row):
            stamp = BEGAN + timedelta(microseconds=row["time_us"])
            yield f"[{stamp:%Y-%m-%d %H:%M:%S},{stamp.microsecond // 1000:03d}] INFO {message} ({logger})"


class _Broker:
    """What `GroupMetadataManager` of Kafka 4.3 logs of classic groups."""

    def __init__(self) -> None:
        self._state = "Empty"

    def lines(self, row: Row) -> Iterator[tuple[str, str]]:
        write = _BROKER_LINES.get(row["event"])
        message = None if write is None else write(self, row)
        if message is not None:
            yield f"[GroupCoordinator id=0 topic=__consumer_offsets partition=0] {message}", _BROKER

    def pending(self, row: Row) -> str:
        return (
            f"Dynamic member with unknown member id joins group {row['group']} in {self._state} state. "
            f"Created a new "
            f"member id {row['member_id']} and requesting the member to rejoin with this id."
        )

    def added(self, row: Row) -> str | None:
        group, member_id = row["group"], row["member_id"]
        if row["cause"] == "pending-member":
            return (
                f"Pending dynamic member with id {member_id} joins group {group} in {self._state} state. "
                f"Adding to "
                f"the "
                "group now."
            )
        if row["cause"] == "static-member":
            return (
                f"Static member with groupInstanceId={row['instance']} and unknown member id joins group "
                f"{group} in {self._state} state. Created a new member id {member_id} for this member and "
                f"added to "
                f"the "
                "group."
            )
        return (
            f"Dynamic member with unknown member id joins group {group} in state {self._state}. Created a "
            f"new "
            f"member id "
            f"{member_id} and added the member to the group."
        )

    def replaced(self, row: Row) -> str:
        return (
            f"Static member {row['instance']} of group {row['group']} with unknown member id rejoins, "
            f"assigning "
            f"new member id {row['member_id']}, while old member id {row['previous_member_id']} will be "
            f"removed."
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


_BROKER_LINES: Final[Mapping[str, Callable[[_Broker, Row], str | None]]] = {
    "member_pending": _Broker.pending,
    "member_added": _Broker.added,
    "member_replaced": _Broker.replaced,
    "member_removed": _Broker.removed,
    "group_state_changed": _Broker.state,
}


def _reason(row: Row) -> str:
    """The reason of a round, in the words of Kafka 4.3."""
    member_id = row.get("member_id")
    return {
        "left": f"explicit `LeaveGroup` request for ({member_id}) members.",
        "session-expired": f"removing member {member_id} on heartbeat expiration.",
        "leader-rejoined": f"Leader {member_id} re-joining group during Stable; client reason: not provided",
        "member-updated": f"Updating metadata for member {member_id} during Stable; client reason: not "
        "provided",
        "sync-timeout": f"Removing [{member_id}] on pending sync request expiration",
    }.get(
        row["cause"],
        f"Adding new member {member_id} with group instance id null; client reason: not provided",
    )


#: Cause of `rejoin_requested` -> the client's words.
_REJOINS: Final[Mapping[str, str]] = {
    "group-rebalancing": "group is already rebalancing",
    "revoked-partitions": "need to revoke partitions and re-join",
    "metadata-changed": "cached metadata has changed from one version to another",
    "subscription-changed": "subscription has changed from one list to another",
}


class _JavaClients:
    """What the Java consumers of a group log, all into one file."""

    def __init__(self) -> None:
        self._protocol = ""
        self._instances: dict[str, str] = {}

    def lines(self, row: Row) -> Iterator[tuple[str, str]]:
        event, group = row["event"], row["group"]
        if event == "group_state_changed" and row["state"] == "CompletingRebalance":
            self._protocol = row.get("protocol", "")
        if event == "member_started" and row.get("instance"):
            self._instances[row["member"]] = f"instanceId={row['instance']}, "
        write = _JAVA_LINES.get(event)
        if write is None or "error" in row:
            return
        for message in write(self, row):
            instance = self._instances.get(row["member"], "")
            yield f"[Consumer {instance}clientId={row['member']}, groupId={group}] {message}", _CLIENT

    def generation(self, row: Row) -> str:
        return (
            f"Generation{{generationId={row['generation']}, memberId='{row['member_id']}', "
            f"protocol='{self._protocol}'}}"
        )

    def started(self, row: Row) -> list[str]:
        return [f"Subscribed to topic(s): {', '.join(row['topics'])}"]

    def joined(self, row: Row) -> list[str]:
        return [f"Successfully joined group with generation {self.generation(row)}"]

    def synced(self, row: Row) -> list[str]:
        partitions = ", ".join(row.get("partitions", ()))
        return [
            f"Successfully synced group in generation {self.generation(row)}",
            f"Notifying assignor about the new Assignment(partitions=[{partitions}])",
        ]

    def assigned(self, row: Row) -> list[str]:
        return [f"Adding newly assigned partitions: [{', '.join(row['partitions'])}]"]

    def revoked(self, row: Row) -> list[str]:
        return [f"Revoke previously assigned partitions [{', '.join(row['partitions'])}]"]

    def lost(self, row: Row) -> list[str]:
        return [f"Lost previously assigned partitions [{', '.join(row['partitions'])}]"]

    def rejoin(self, row: Row) -> list[str]:
        cause = row["cause"]
        if cause.isupper():
            return [f"Request joining group due to: encountered {cause} from HEARTBEAT response"]
        reason = _REJOINS.get(cause)
        return [] if reason is None else [f"Request joining group due to: {reason}"]

    def parked(self, _row: Row) -> list[str]:
        return ["(Re-)joining group"]

    def closed(self, row: Row) -> list[str]:
        if row["cause"] != "left":
            return []
        return [
            f"Member {row['member_id']} sending LeaveGroup request to coordinator broker:9092 (id: "
            f"2147483647 "
            "rack: null) due to the consumer is being closed"
        ]


_JAVA_LINES: Final[Mapping[str, Callable[[_JavaClients, Row], list[str]]]] = {
    "member_started": _JavaClients.started,
    "rejoin_requested": _JavaClients.rejoin,
    "join_parked": _JavaClients.parked,
    "join_answered": _JavaClients.joined,
    "sync_answered": _JavaClients.synced,
    "partitions_assigned": _JavaClients.assigned,
    "partitions_revoked": _JavaClients.revoked,
    "partitions_lost": _JavaClients.lost,
    "member_closed": _JavaClients.closed,
}
