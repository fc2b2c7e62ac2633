"""A share group (ShareGroup): its members, epochs, targets, subscriptions and assignable partitions."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any
from uuid import UUID

from groupstorm.assignors.server import Target
from groupstorm.coordinator.config import Compatibility
from groupstorm.coordinator.groups import GroupType
from groupstorm.coordinator.modern.group import put
from groupstorm.coordinator.modern.subscribed import (
    SubscribedGroup,
    count_names,
    names_alone_are_equal,
)
from groupstorm.coordinator.records import WingTypes
from groupstorm.coordinator.share.member import (
    ShareAssignment,
    ShareCurrentRecord,
    ShareEpochRecord,
    ShareMember,
    ShareMemberRecord,
    ShareRecord,
    ShareStatePartitionsRecord,
    ShareSubscription,
    ShareTargetEpochRecord,
    ShareTargetRecord,
    StatePartitions,
)
from groupstorm.coordinator.share.persister import Initialization
from groupstorm.coordinator.topics import Topics


class ShareGroupState(StrEnum):
    """A group's state, under the names that ShareGroupDescribe uses. It follows from the members."""

    EMPTY = "Empty"
    STABLE = "Stable"


class ShareGroup(SubscribedGroup[ShareMember]):
    """The state of one group, and what can be read from it directly."""

    kind = GroupType.SHARE
    keeps_offsets = False
    types = WingTypes(
        ShareMember,
        ShareSubscription,
        ShareAssignment,
        ShareMemberRecord,
        ShareCurrentRecord,
        ShareTargetRecord,
        ShareTargetEpochRecord,
        ShareEpochRecord,
    )

    def __init__(self, name: str) -> None:
        super().__init__(name)
        #: None until the persister was asked for a partition.
        self.state_partitions: StatePartitions | None = None
        #: When their last record was taken in: the wait for the persister counts from then on.
        self.asked_at_ms = 0
        #: No records: the persister is asked for these as soon as the present request has its answer.
        self.to_initialize: list[Initialization] = []
        #: The partitions of all targets; None: a target has changed since they were asked for.
        self._assigned: dict[UUID, set[int]] | None = None

    @classmethod
    def new(cls, name: str, compatibility: Compatibility) -> ShareGroup:
        del compatibility
        return cls(name)

    # to read

    @property
    def state(self) -> ShareGroupState:
        return ShareGroupState.STABLE if self.members else ShareGroupState.EMPTY

    @property
    def is_homogeneous(self) -> bool:
        """Whether all members subscribe to the same topics."""
        return names_alone_are_equal(self.subscribed, len(self.members))

    def has_unassigned(self, topics: Topics) -> bool:
        """Whether the initialised partitions of subscribed topics are not exactly those of the targets
        (GroupMetadataManager.initializedAssignmentPending)."""
        initialized = (self.state_partitions or StatePartitions()).initialized
        if not self.subscribed or not initialized:
            return False
        assigned = self._assigned
        if assigned is None:
            assigned = self._assigned = {}
            for target in self.targets.values():
                for topic, numbers in target.items():
                    assigned.setdefault(topic, set()).update(numbers)
        return any(
            topics.name(topic) in self.subscribed and assigned.get(topic, set()) != set(numbers)
            for topic, numbers in initialized.items()
        )

    def assigned_at(self, member: ShareMember, topics: Topics, topic: str, number: int) -> None:
        """The epochs of partitions count for committed offsets alone, of which a share group has none."""

    # to change

    def take_own(self, record: Any, now_ms: int) -> None:
        match record:
            case ShareEpochRecord(_, int(epoch), metadata_hash):
                self.set_epoch(epoch, metadata_hash)
            case ShareStatePartitionsRecord(_, partitions):
                self.set_fields(state_partitions=partitions, asked_at_ms=now_ms)

    def _put_target(self, member_id: str, target: Target | None) -> None:
        super()._put_target(member_id, target)
        self._assigned = None

    def set_member(self, member_id: str, member: ShareMember | None) -> None:
        """Add, replace or remove (None) a member, and count its topics."""
        before = self.members.get(member_id)

        def back() -> None:
            self.members.remove(member_id)
            self._put_member(member_id, member, before)

        self.undo.append(back)
        self._put_member(member_id, before, member)

    def _put_member(self, member_id: str, old: ShareMember | None, new: ShareMember | None) -> None:
        put(self.members, member_id, new)
        if old is None or new is None or old.topics != new.topics:
            count_names(self.subscribed, () if old is None else old.topics, -1)
            count_names(self.subscribed, () if new is None else new.topics, 1)

    def bump_without(self, members: Sequence[ShareMember], topics: Topics) -> list[ShareRecord]:
        left = self.subscribed_without(*(member.topics for member in members))
        return [ShareEpochRecord(self.name, self.epoch + 1, topics.hash_of(left))]

    def tombstones(self) -> list[ShareRecord]:
        ends = [ShareStatePartitionsRecord(self.name, None), ShareEpochRecord(self.name, None)]
        return [*self.tombstones_of_members(self.members), *ends]

    def __repr__(self) -> str:
        partitions = self.state_partitions or StatePartitions()
        return (
            f"<ShareGroup {self.name!r} {self.state} epoch={self.epoch} target={self.assignment_epoch} "
            f"members={len(self.members)} initialized={sum(map(len, partitions.initialized.values()))}>"
        )
