"""The lines that a coordinator would log of consumer groups (KIP-848), assignments at DEBUG.

Kafka prints topic ids in assignments. A trace has names, and so have these lines.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from tools.log_printing import Row

_LEFT: Final = -2
#: The value of group.remote.assignor that lets the broker choose.
_NONE: Final = "none"
#: The server's assignor and the consumer's rebalance timeout, if the trace does not name others.
_DEFAULTS: Final[Mapping[str, object]] = {"group.remote.assignor": "uniform", "max.poll.interval.ms": 300_000}


class PrintedConsumerGroups:
    """Remembers what lines repeat of earlier rows: epochs, settings."""

    def __init__(self) -> None:
        #: The last epoch of the group that a line says.
        self.group_epoch = -1
        self._settings = dict(_DEFAULTS)
        self._epochs: dict[str, int] = {}
        self._instances: dict[str, str] = {}

    def see(self, row: Row) -> None:
        """A row that is not the coordinator's: the scenario has the settings."""
        if row["event"] == "scenario_started":
            settings = json.loads(row["detail"]).get("settings", {})
            chosen = {name: settings.get(name, _NONE) for name in _DEFAULTS}
            self._settings |= {name: value for name, value in chosen.items() if value != _NONE}

    def message(self, row: Row) -> tuple[str, str]:
        """The level and the text."""
        level, write = _LINES[row["event"]]
        if row["event"] == "member_reconciled" and row["generation"] == _LEFT:
            level, write = "INFO", PrintedConsumerGroups.away
        return level, f"[GroupId {row['group']}] {write(self, row)}"

    def added(self, row: Row) -> str:
        member_id, instance = row["member_id"], row.get("instance")
        how = f"joins the consumer group using the {_protocol(row)} protocol."
        if instance is None:
            return f"Member {member_id} {how}"
        self._instances[member_id] = instance
        return f"Static member {member_id} with instance id {instance} {how}"

    def replaced(self, row: Row) -> str:
        self._instances[row["member_id"]] = row["instance"]
        return (
            f"Static member with instance id {row['instance']} re-joins the consumer group using the "
            f"{_protocol(row)} protocol. Created a new member {row['member_id']} to replace the existing "
            f"member {row['previous_member_id']}."
        )

    def removed(self, row: Row) -> str:
        member_id, cause = row["member_id"], row["cause"]
        instance = self._instances.get(member_id)
        if cause == "left":
            who = f"Member {member_id}"
            if instance is not None:
                who = f"Static member {member_id} with instance id {instance}"
            return f"{who} left the consumer group."
        if cause == "rebalance-timeout":
            return (
                f"Member {member_id} fenced from the group because it failed to transition from epoch "
                f"{self._epochs.get(member_id, 0)} within {self._settings['max.poll.interval.ms']}ms."
            )
        reason = {
            "join-timeout": "the classic member didn't join within the rebalance timeout",
            "session-expired": "the member session expired",
        }.get(cause, cause)
        return f"Member {member_id} fenced from the group because {reason}."

    def bumped(self, row: Row) -> str:
        self.group_epoch = row["generation"]
        return f"Bumped group epoch to {row['generation']} with metadata hash 0."

    def targets(self, row: Row) -> str:
        epoch, assignor = row["generation"], self._settings["group.remote.assignor"]
        return f"Computed a new target assignment for epoch {epoch} with '{assignor}' assignor in 0ms."

    def away(self, row: Row) -> str:
        member_id = row["member_id"]
        instance = self._instances.get(member_id, row["member"])
        return f"Static member {member_id} with instance id {instance} temporarily left the consumer group."

    def reconciled(self, row: Row) -> str:
        member_id, epoch = row["member_id"], row["generation"]
        previous = self._epochs.get(member_id, 0)
        self._epochs[member_id] = epoch
        return (
            f"Member {member_id} new assignment state: epoch={epoch}, previousEpoch={previous}, "
            f"state={row['state']}, assignedPartitions={_listed(row['partitions'])} and "
            f"revokedPartitions={_listed(row['revoking'])}."
        )

    def converted(self, row: Row) -> str:
        if row["cause"] == "upgraded":
            return "Converted the classic group to a consumer group."
        return "Converted the consumer group to a classic group."


_Write = Callable[[PrintedConsumerGroups, Row], str]
_LINES: Final[Mapping[str, tuple[str, _Write]]] = {
    "member_added": ("INFO", PrintedConsumerGroups.added),
    "member_replaced": ("INFO", PrintedConsumerGroups.replaced),
    "member_removed": ("INFO", PrintedConsumerGroups.removed),
    "group_epoch_bumped": ("INFO", PrintedConsumerGroups.bumped),
    "target_assigned": ("INFO", PrintedConsumerGroups.targets),
    "member_reconciled": ("DEBUG", PrintedConsumerGroups.reconciled),
    "group_converted": ("INFO", PrintedConsumerGroups.converted),
}


def _protocol(row: Row) -> str:
    """A coordinator makes the ids of classic members from their client ids, others make their own."""
    return "classic" if row["member_id"].startswith(f"{row['member']}-") else "consumer"


def _listed(partitions: Sequence[str]) -> str:
    return f"[{', '.join(partitions)}]"
