"""Everything that a consumer group knows, as plain values that two groups can be compared by."""

from __future__ import annotations

import dataclasses
from typing import Any
from uuid import UUID

from groupstorm.coordinator.consumer.group import ConsumerGroup


def group_state(group: ConsumerGroup) -> dict[str, Any]:
    """The group without the times at which it looks at its topics again, which are not written."""
    return {
        "epoch": group.epoch,
        "hash": group.metadata_hash,
        "assignment": (group.assignment_epoch, group.assignment_ms),
        "members": {one.member_id: dataclasses.astuple(one) for one in group.members.values()},
        "targets": {
            name: {topic: sorted(numbers) for topic, numbers in target.items()}
            for name, target in group.targets.items()
        },
        "static": dict(group.static_members),
        "held": held_partitions(group),
        "subscribed": dict(group.subscribed),
        "regexes": dict(group.regexes),
        "resolved": dict(group.resolved.items()),
        "classic": group.classic_members,
        "state": group.state,
    }


def held_partitions(group: ConsumerGroup) -> dict[tuple[UUID, int], int]:
    """The epoch at which each partition is held."""
    epochs = group.partition_epochs
    return {(topic, number): held for topic in epochs for number, held in epochs[topic].items()}
