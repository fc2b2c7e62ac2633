"""Groups as tests see them, made from what an emulated coordinator holds or a real one describes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any
from uuid import UUID

from groupstorm.coordinator.classic.group import ClassicGroup, Member
from groupstorm.coordinator.classic.states import DEAD
from groupstorm.coordinator.classic.subscriptions import assigned_partitions
from groupstorm.coordinator.consumer.group import ConsumerGroup, ConsumerGroupState
from groupstorm.coordinator.messages import DescribedMember, DescribeGroupResponse
from groupstorm.coordinator.share.group import ShareGroup
from groupstorm.share_records.partition import SharePartition
from groupstorm.testing.groups import CLASSIC, CONSUMER, NO_GROUP, SHARE, GroupView, LockedRecords, MemberView

#: ConsumerGroupDescribeResponse.Member.memberType of a member that speaks the classic protocol.
_CLASSIC_MEMBER = 0

TopicName = Callable[[UUID], str | None]


def classic_group(group: ClassicGroup) -> GroupView:
    """A classic group of the emulator."""
    members = _classic_members(group.members.values())
    return GroupView(group.state, group.generation, members, not group.pending_sync, CLASSIC)


def _classic_members(members: Iterable[Member | DescribedMember]) -> tuple[MemberView, ...]:
    return tuple(
        [
            MemberView(
                member.client_id,
                member.member_id,
                member.group_instance_id,
                member.client_host,
                assigned_partitions(member.assignment) or (),
                CLASSIC,
            )
            for member in members
        ]
    )


def consumer_group(group: ConsumerGroup, topic_name: TopicName) -> GroupView:
    """A consumer group of the emulator."""
    return _consumer_view(group.state, group.epoch, _modern_members(group, topic_name))


def share_group(group: ShareGroup, topic_name: TopicName) -> GroupView:
    """A share group of the emulator."""
    members = _modern_members(group, topic_name)
    return _share_view(group.state, group.epoch, group.assignment_epoch, members)


def _modern_members(group: ConsumerGroup | ShareGroup, topic_name: TopicName) -> tuple[MemberView, ...]:
    """A partition that a member has to give up counts as its own."""
    protocol = SHARE if isinstance(group, ShareGroup) else CONSUMER
    return tuple(
        [
            MemberView(
                member.client_id,
                member.member_id,
                member.instance,
                member.client_host,
                _named([*member.assigned.items(), *member.revoking.items()], topic_name),
                CLASSIC if member.speaks_classic else protocol,
                member.epoch,
                _named(group.target(member.member_id).items(), topic_name),
            )
            for member in group.members.values()
        ]
    )


def locked_records(
    partition: SharePartition, clients: Mapping[str, str], now_ms: int
) -> tuple[LockedRecords, ...]:
    """The locked records of a partition; ``clients``: client ids by member. Equal neighbours are joined."""
    found: list[LockedRecords] = []
    for first, last, state in (
        part for batch in partition.batches for part in batch.parts(batch.first_offset, batch.last_offset)
    ):
        if state.lock is None or not state.is_held(by=None):
            continue
        member, left_ms = state.member_id, state.lock.deadline_ms - now_ms
        one = LockedRecords(first, last, member, clients.get(member), state.delivery_count, left_ms)
        if found and found[-1].last_offset == first - 1 and found[-1][2:] == one[2:]:
            one = one._replace(first_offset=found.pop().first_offset)
        found.append(one)
    return tuple(found)


def _share_view(state: str, epoch: int, target_epoch: int, members: tuple[MemberView, ...]) -> GroupView:
    """Such a group is Stable as soon as it has members: it has settled when each has the newest target."""
    settled = epoch == target_epoch and all(member.epoch == epoch for member in members)
    return GroupView(str(state), epoch, members, settled, SHARE)


def _named(partitions: Iterable[tuple[UUID, Iterable[int]]], topic_name: TopicName) -> tuple[str, ...]:
    """As Kafka prints them; topics that no longer exist are left out."""
    known = [(name, numbers) for topic, numbers in partitions if (name := topic_name(topic)) is not None]
    return _printed(known)


def _printed(partitions: Iterable[tuple[str, Iterable[int]]]) -> tuple[str, ...]:
    pairs = sorted((name, number) for name, numbers in partitions for number in numbers)
    return tuple(f"{name}-{number}" for name, number in pairs)


def _consumer_view(state: str, epoch: int, members: tuple[MemberView, ...]) -> GroupView:
    """Such a group is Stable exactly if every member has reached its target."""
    settled = state in (ConsumerGroupState.STABLE, ConsumerGroupState.EMPTY)
    return GroupView(str(state), epoch, members, settled, CONSUMER)


def described_classic_group(described: DescribeGroupResponse) -> GroupView:
    """A classic group of a real broker, which tells no generation, and assignments in Stable alone."""
    if described.state == DEAD:
        return NO_GROUP
    members = _classic_members(described.members)
    return GroupView(described.state, None, members, is_settled=True, type=CLASSIC)


def described_consumer_group(described: Any) -> GroupView:
    """A consumer group of a real broker; ``described``: kio's, of ConsumerGroupDescribe."""
    return _consumer_view(described.group_state, described.group_epoch, _described(described, CONSUMER))


def described_share_group(described: Any) -> GroupView:
    """A share group of a real broker, which tells no targets; ``described``: kio's, of ShareGroupDescribe."""
    members = _described(described, SHARE)
    return _share_view(described.group_state, described.group_epoch, described.assignment_epoch, members)


def _described(group: Any, protocol: str) -> tuple[MemberView, ...]:
    return tuple(
        MemberView(
            member.client_id,
            member.member_id,
            getattr(member, "instance_id", None),
            member.client_host,
            _assigned(member.assignment),
            CLASSIC if getattr(member, "member_type", None) == _CLASSIC_MEMBER else protocol,
            member.member_epoch,
            _assigned(getattr(member, "target_assignment", member.assignment)),
        )
        for member in group.members
    )


def _assigned(assignment: Any) -> tuple[str, ...]:
    return _printed((topic.topic_name, topic.partitions) for topic in assignment.topic_partitions)
