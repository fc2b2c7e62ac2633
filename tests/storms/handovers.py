"""A partition's way from one member of a consumer group to the next, part by part, from a trace's rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from groupstorm.trace.events import coordinator, member


class HandedOver(NamedTuple):
    """Microseconds: the old owner has stopped and waits for its poll() to revoke; the new owner's next
    heartbeat; the new owner's poll() and the way to its first fetch."""

    partition: str
    stopped_us: int
    until_revoked_us: int
    until_heartbeat_us: int
    until_poll_us: int

    @property
    def unowned_us(self) -> int:
        return self.until_revoked_us + self.until_heartbeat_us + self.until_poll_us


def handovers(rows: Iterable[tuple[int, str, Any]]) -> list[HandedOver]:
    """Return the handovers between members that stay in the group."""
    stopped: dict[str, int] = {}
    revoked: dict[str, int] = {}
    granted: dict[str, int] = {}
    found: list[HandedOver] = []
    for time_us, _, event in rows:
        match event:
            case member.PartitionsPaused():
                stopped.update(dict.fromkeys(event.partitions, time_us))
            case member.PartitionsRevoked(cause="assignment"):
                revoked.update(dict.fromkeys(event.partitions, time_us))
            case coordinator.MemberReconciled():
                for partition in event.partitions:
                    if partition in revoked and partition not in granted:
                        granted[partition] = time_us
            case member.PartitionsAssigned():
                for partition in event.partitions:
                    if partition in granted and partition in stopped:
                        at_us, gave_us = stopped.pop(partition), revoked[partition]
                        found.append(
                            HandedOver(
                                partition,
                                at_us,
                                gave_us - at_us,
                                granted[partition] - gave_us,
                                time_us - granted[partition],
                            )
                        )
                    revoked.pop(partition, None)
                    granted.pop(partition, None)
    return found
