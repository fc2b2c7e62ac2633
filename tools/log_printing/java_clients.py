"""The log that the Java consumers of a group would write, all into one file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from tools.log_printing import Line, Row

_LOGGER: Final = "org.apache.kafka.clients.consumer.internals.ConsumerCoordinator"

#: Cause of `rejoin_requested` -> the client's words.
_REJOINS: Final[Mapping[str, str]] = {
    "group-rebalancing": "group is already rebalancing",
    "revoked-partitions": "need to revoke partitions and re-join",
    "metadata-changed": "cached metadata has changed from one version to another",
    "subscription-changed": "subscription has changed from one list to another",
}


class PrintedJavaClients:
    """The lines of all consumers, in the order of the trace."""

    def __init__(self) -> None:
        self._protocol = ""
        self._instances: dict[str, str] = {}

    def lines(self, rows: Iterable[Row]) -> Iterator[Line]:
        for row in rows:
            event = row["event"]
            if event == "group_state_changed" and row["state"] == "CompletingRebalance":
                self._protocol = row.get("protocol", "")
            if event == "member_started" and row.get("instance"):
                self._instances[row["member"]] = f"instanceId={row['instance']}, "
            write = _JAVA_LINES.get(event)
            if write is None or "error" in row:
                continue
            instance = self._instances.get(row["member"], "")
            prefix = f"[Consumer {instance}clientId={row['member']}, groupId={row['group']}]"
            for message in write(self, row):
                yield Line(row["time_us"], f"{prefix} {message}", _LOGGER)

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
        if cause == "poll-timeout":
            return [
                "consumer poll timeout has expired. This means the time between subsequent calls to poll() "
                "was longer than the configured max.poll.interval.ms."
            ]
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


_JAVA_LINES: Final[Mapping[str, Callable[[PrintedJavaClients, Row], list[str]]]] = {
    "member_started": PrintedJavaClients.started,
    "rejoin_requested": PrintedJavaClients.rejoin,
    "join_parked": PrintedJavaClients.parked,
    "join_answered": PrintedJavaClients.joined,
    "sync_answered": PrintedJavaClients.synced,
    "partitions_assigned": PrintedJavaClients.assigned,
    "partitions_revoked": PrintedJavaClients.revoked,
    "partitions_lost": PrintedJavaClients.lost,
    "member_closed": PrintedJavaClients.closed,
}
