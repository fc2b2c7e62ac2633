"""Assignments of a consumer group's member, and the one that it reconciles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple
from uuid import UUID

from groupstorm.assignors.userdata import TopicPartition

#: Topic id -> its partitions, in order.
Partitions = Mapping[UUID, tuple[int, ...]]


class LocalAssignment(NamedTuple):
    """Partitions, and how often the member's target has changed (AbstractMembershipManager.LocalAssignment).

    The count makes the member acknowledge an assignment that has changed and changed back.
    """

    local_epoch: int
    partitions: Partitions

    def updated_with(self, partitions: Partitions) -> LocalAssignment:
        """The next target: the same if the partitions have not changed."""
        if self is not NO_ASSIGNMENT and partitions == self.partitions:
            return self
        return LocalAssignment(self.local_epoch + 1, partitions)


#: What a member has that is not in a group, or that has reconciled nothing yet.
NO_ASSIGNMENT: Final = LocalAssignment(-1, {})


class Reconciliation(NamedTuple):
    """The way from what the member owns to ``assigned``: commit, revoke, assign."""

    target: LocalAssignment
    assigned: tuple[TopicPartition, ...]
    added: tuple[TopicPartition, ...]
    revoked: tuple[TopicPartition, ...]


def reconciliation(
    target: LocalAssignment, names: Mapping[UUID, str], owned: tuple[TopicPartition, ...]
) -> Reconciliation:
    """``names``: of every topic of ``target``."""
    assigned = sorted(
        TopicPartition(names[topic], number)
        for topic, numbers in target.partitions.items()
        for number in numbers
    )
    before, after = set(owned), set(assigned)
    return Reconciliation(
        target,
        tuple(assigned),
        tuple([partition for partition in assigned if partition not in before]),
        tuple([partition for partition in owned if partition not in after]),
    )
