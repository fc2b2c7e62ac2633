"""Answers and states as JSON values, before an answer is cut to the request's version."""

from __future__ import annotations

import base64
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, cast
from uuid import UUID

from groupstorm.coordinator import messages
from groupstorm.coordinator.classic.group import ClassicGroup
from groupstorm.coordinator.consumer.group import ConsumerGroup
from groupstorm.coordinator.consumer.member import ConsumerMember
from groupstorm.coordinator.groups import Group, GroupType
from groupstorm.coordinator.script.clients import Names
from groupstorm.coordinator.script.streams_printing import (
    head,
    head_of_member,
    in_order,
    print_described,
    print_heartbeat,
    print_streams_group,
)
from groupstorm.coordinator.share.group import ShareGroup
from groupstorm.coordinator.share.member import ShareMember, StatePartitions
from groupstorm.coordinator.share.messages import DescribeShareGroupResponse, ShareGroupHeartbeatResponse
from groupstorm.coordinator.share.persister import Initialization
from groupstorm.coordinator.streams.group import StreamsGroup
from groupstorm.coordinator.streams.messages import (
    DescribeStreamsGroupResponse,
    StreamsGroupHeartbeatResponse,
    UpdateTopologyDescriptionResponse,
)

#: topic id -> name, of every topic that a script has had
TopicNames = Mapping[UUID, str]


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def ids_in_response(response: messages.Response) -> Iterator[str]:
    """The member ids in an answer."""
    match response:
        case messages.JoinGroupResponse():
            yield response.member_id
            yield response.leader
            yield from (member.member_id for member in response.members)
        case messages.LeaveGroupResponse() | messages.DescribeGroupResponse():
            yield from (member.member_id for member in response.members)
        case messages.ConsumerGroupHeartbeatResponse(member_id=str() as member_id):
            yield member_id


def ids_in_groups(groups: Iterable[Group]) -> Iterator[str]:
    """The member ids in the state of groups."""
    for group in groups:
        yield from group.members
        if not isinstance(group, ClassicGroup):
            continue
        yield from group.pending_members
        yield from group.static_members.values()
        if group.leader is not None:
            yield group.leader


def print_response(
    response: messages.Response, names: Names, topics: TopicNames, *, is_4_4: bool
) -> dict[str, Any]:
    """The fields of an answer that follow t, step, kind and as; ``topics``: topic id -> name."""
    match response:
        case messages.ConsumerGroupHeartbeatResponse() | ShareGroupHeartbeatResponse():
            return _heartbeat(response, names, topics)
        case DescribeShareGroupResponse():
            return _described_share_group(response, names)
        case StreamsGroupHeartbeatResponse():
            return print_heartbeat(response, is_4_4=is_4_4)
        case DescribeStreamsGroupResponse():
            return print_described(response, names, is_4_4=is_4_4)
        case UpdateTopologyDescriptionResponse():
            return {"error": response.error.name, "message": response.error_message}
        case _:
            return _print_response(response, names)


def _print_response(response: messages.Response, names: Names) -> dict[str, Any]:
    match response:
        case messages.JoinGroupResponse():
            return _join(response, names)
        case messages.SyncGroupResponse():
            return {
                "error": response.error.name,
                "protocol_type": response.protocol_type,
                "protocol": response.protocol,
                "assignment": _base64(response.assignment),
            }
        case messages.LeaveGroupResponse():
            members = [
                [names.name(member.member_id), member.group_instance_id, member.error.name]
                for member in response.members
            ]
            return {"error": response.error.name, "members": members}
        case messages.DescribeGroupResponse():
            return _describe(response, names)
        case (
            messages.OffsetCommitResponse() | messages.OffsetFetchResponse() | messages.OffsetDeleteResponse()
        ):
            return _offsets(response)
        case _:
            return {"error": response.error.name}


def _heartbeat(
    response: messages.ConsumerGroupHeartbeatResponse | ShareGroupHeartbeatResponse,
    names: Names,
    topics: TopicNames,
) -> dict[str, Any]:
    member, assignment = response.member_id, response.assignment
    return {
        "error": response.error.name,
        "member": None if member is None else names.name(member),
        "epoch": response.member_epoch,
        "heartbeat_ms": response.heartbeat_interval_ms,
        "assignment": None if assignment is None else _partitions(assignment, topics),
    }


def _partitions(partitions: Mapping[UUID, Iterable[int]], topics: TopicNames) -> dict[str, list[int]]:
    listed = {topics[topic]: sorted(numbers) for topic, numbers in partitions.items()}
    return {topic: listed[topic] for topic in sorted(listed)}


def _offsets(
    response: messages.OffsetCommitResponse | messages.OffsetFetchResponse | messages.OffsetDeleteResponse,
) -> dict[str, Any]:
    if not isinstance(response, messages.OffsetFetchResponse):
        found = {"partitions": [[*place, error.name] for *place, error in response.partitions]}
        return (
            found
            if isinstance(response, messages.OffsetCommitResponse)
            else {"error": response.error.name, **found}
        )
    partitions = [
        [topic, number, committed.offset, error.name]
        for topic, number, committed, error in response.partitions
    ]
    return {"error": response.error.name, "partitions": partitions}


def _join(response: messages.JoinGroupResponse, names: Names) -> dict[str, Any]:
    order = [names.name(member.member_id) for member in response.members]
    members = {
        name: [name, member.group_instance_id, _base64(member.metadata)]
        for name, member in zip(order, response.members, strict=True)
    }
    return {
        "error": response.error.name,
        "generation": response.generation,
        "member": names.name(response.member_id),
        "leader": names.name(response.leader),
        "protocol_type": response.protocol_type,
        "protocol": response.protocol,
        "skip_assignment": response.skip_assignment,
        "members": [members[name] for name in sorted(members, key=names.key)],
        "order": order,
    }


def _describe(response: messages.DescribeGroupResponse, names: Names) -> dict[str, Any]:
    members = [
        [
            names.name(member.member_id),
            member.group_instance_id,
            member.client_id,
            _base64(member.metadata),
            _base64(member.assignment),
        ]
        for member in response.members
    ]
    members.sort(key=lambda member: names.key(str(member[0])))
    return {
        "error": response.error.name,
        "state": response.state,
        "protocol_type": response.protocol_type,
        "protocol": response.protocol,
        "members": members,
    }


def print_group(group: Group, names: Names, topics: TopicNames) -> dict[str, Any]:
    """A group's state; ``topics``: topic id -> name."""
    if isinstance(group, ConsumerGroup):
        return _consumer_group(group, names, topics)
    if isinstance(group, StreamsGroup):
        return print_streams_group(group, names)
    if isinstance(group, ShareGroup):
        return _share_group(group, names, topics)
    return _classic_group(cast("ClassicGroup", group), names)


def _consumer_group(group: ConsumerGroup, names: Names, topics: TopicNames) -> dict[str, Any]:
    members = [_consumer_member(group, member, names, topics) for member in in_order(group, names)]
    return {**head(group), "members": members}


def _consumer_member(
    group: ConsumerGroup, member: ConsumerMember, names: Names, topics: TopicNames
) -> dict[str, Any]:
    return {
        **head_of_member(member, names),
        **({} if member.instance is None else {"instance": member.instance}),
        **({} if member.classic is None else {"classic": True}),
        "assigned": _partitions(member.assigned, topics),
        "revoking": _partitions(member.revoking, topics),
        "target": _partitions(group.target(member.member_id), topics),
    }


def _classic_group(group: ClassicGroup, names: Names) -> dict[str, Any]:

    def sorted_names(ids: Iterable[str]) -> list[str]:
        return sorted(map(names.name, ids), key=names.key)

    members = group.members.values()
    return {
        "type": GroupType.CLASSIC,
        "state": group.state.value,
        "generation": group.generation,
        "protocol_type": group.protocol_type,
        "protocol": group.protocol,
        "leader": None if group.leader is None else names.name(group.leader),
        "members": sorted_names(member.member_id for member in members),
        "joining": sorted_names(member.member_id for member in members if member.join is not None),
        "syncing": sorted_names(member.member_id for member in members if member.sync is not None),
        "pending": sorted_names(group.pending_members),
        "static": {instance: names.name(member) for instance, member in sorted(group.static_members.items())},
    }


def _share_group(group: ShareGroup, names: Names, topics: TopicNames) -> dict[str, Any]:
    partitions = group.state_partitions or StatePartitions()
    return {
        **head(group),
        "initializing": _partitions(partitions.initializing, topics),
        "initialized": _partitions(partitions.initialized, topics),
        "members": [_share_member(group, member, names, topics) for member in in_order(group, names)],
    }


def _share_member(group: ShareGroup, member: ShareMember, names: Names, topics: TopicNames) -> dict[str, Any]:
    return {
        **head_of_member(member, names),
        **({} if member.rack is None else {"rack": member.rack}),
        "topics": sorted(member.topics),
        "assigned": _not_empty(member.assigned, topics),
        "target": _not_empty(group.target(member.member_id), topics),
    }


def _not_empty(partitions: Mapping[UUID, Collection[int]], topics: TopicNames) -> dict[str, list[int]]:
    """Without the topics of which everything was taken away, which Kafka keeps and answers."""
    return _partitions({topic: numbers for topic, numbers in partitions.items() if numbers}, topics)


def _described_share_group(response: DescribeShareGroupResponse, names: Names) -> dict[str, Any]:
    members = [
        {
            "member": names.name(member.member_id),
            "epoch": member.epoch,
            "rack": member.rack,
            "client_id": member.client_id,
            "topics": list(member.topics),
            "assigned": {topic: list(numbers) for topic, numbers in member.assignment.items()},
        }
        for member in response.members
    ]
    members.sort(key=lambda member: names.key(str(member["member"])))
    return {
        "error": response.error.name,
        "state": response.state,
        "epoch": response.epoch,
        "assignment_epoch": response.assignment_epoch,
        "assignor": response.assignor,
        "members": members,
    }


def print_initialization(group: str, asked: Initialization, topics: TopicNames) -> dict[str, Any]:
    """The partitions that the persister of share groups was asked for, with their start offsets."""
    starts = {
        topics[topic]: {str(number): start for number, start in partitions.items()}
        for topic, partitions in asked.starts.items()
    }
    return {"group": group, "epoch": asked.epoch, "topics": starts}
