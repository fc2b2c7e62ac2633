"""ListGroups, DeleteGroups, and descriptions of groups of all kinds: DescribeGroups, ConsumerGroupDescribe,
ShareGroupDescribe and StreamsGroupDescribe.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from groupstorm.assignors.streams.groups import Task
from groupstorm.broker.apis.api import AskCoordinator, AskingApi, Call, CoordinatorsApi
from groupstorm.broker.apis.resources import authorized_operations, group_error, may_on_cluster, topic_error
from groupstorm.broker.apis.streams_groups import task_ids
from groupstorm.broker.authorization import Operation, ResourceType
from groupstorm.broker.state import BrokerState
from groupstorm.coordinator import messages
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.failures import error_response
from groupstorm.coordinator.messages import DescribeConsumerGroup, DescribeGroup, Response
from groupstorm.coordinator.share.messages import DescribedShareMember, DescribeShareGroup
from groupstorm.coordinator.streams.member import Tasks, listed
from groupstorm.coordinator.streams.messages import (
    DescribedStreamsMember,
    DescribeStreamsGroup,
    DescribeStreamsGroupResponse,
)
from groupstorm.coordinator.streams.topology import Subtopology, TopicInfo, Topology
from groupstorm.protocol.codec.plain_values import fields_of
from groupstorm.turns import Turns, in_turns


def list_groups(state: BrokerState, call: Call) -> AskCoordinator:
    """ListGroups (key 16), versions 0-5. v4: filter by state (KIP-518). v5: filter by type (KIP-848).

    Each broker lists the groups that it coordinates and that the client may describe, all to a client that
    may describe the cluster.
    """
    request = messages.ListGroups(
        states=tuple(getattr(call.message, "states_filter", ())),
        types=tuple(getattr(call.message, "types_filter", ())),
        version=call.version,
    )

    sees_all = may_on_cluster(state, call, Operation.DESCRIBE)

    def finish(answers: Sequence[messages.ListGroupsResponse]) -> Turns[Any]:
        answer = answers[0]
        groups = []
        for one in answer.groups:
            yield 2
            if state.cluster.groups.node_of(one.group) != call.node:
                continue
            if not sees_all and group_error(state, call, one.group) is not Error.NONE:
                continue
            groups.append(call.types.make("ListedGroup", **call.types.fitting(fields_of(one), "ListedGroup")))
        return call.types.response(error_code=answer.error, groups=tuple(groups))

    return AskCoordinator((request,), finish)


def delete_groups(state: BrokerState, call: Call) -> Turns[AskCoordinator]:
    """DeleteGroups (key 42), versions 0-3: empty groups go, with their offsets (KIP-229).

    v3: a sentence about each error.
    """
    names = tuple(dict.fromkeys(call.message.groups_names))
    errors = dict((yield from in_turns((name, group_error(state, call, name)) for name in names)))
    allowed = [name for name, error in errors.items() if error is Error.NONE]
    requests = [messages.DeleteGroup(name, call.client_id) for name in allowed]

    def finish(answers: Sequence[messages.DeleteGroupResponse]) -> Turns[Any]:
        decided = {name: answer.error for name, answer in zip(allowed, answers, strict=True)}
        results = yield from in_turns(
            call.types.make("DeletableGroupResult", group_id=name, error_code=decided.get(name, error))
            for name, error in errors.items()
        )
        return call.types.response(results=results)

    return AskCoordinator(requests, finish)


_Request = DescribeGroup | DescribeConsumerGroup | DescribeStreamsGroup | DescribeShareGroup


class _Description(NamedTuple):
    """The parts in which descriptions differ. ``own``: the fields of an answer that need more than a name.

    ``topics``: those that the client must be allowed to describe, or it is told ``hidden`` alone.
    """

    member: Callable[[BrokerState, Call, Any], Any]
    topics: Callable[[Any], Iterable[str]] = lambda answer: ()
    hidden: str = ""
    own: Callable[[Call, Any], Mapping[str, Any]] = lambda call, answer: {}


def _describe(
    state: BrokerState, call: Call, requests: Iterable[_Request], description: _Description
) -> Turns[AskCoordinator]:
    """Ask for the groups that the client may describe, and answer with one description each."""
    allowed: list[_Request] = []
    denied: list[Response] = []
    for request in requests:
        error = group_error(state, call, request.group)
        if error is Error.NONE:
            allowed.append(request)
        else:
            denied.append(error_response(request, error))
        yield 1

    def finish(answers: Sequence[Any]) -> Turns[Any]:
        groups = []
        for answer in (*denied, *answers):
            shown = answer
            if any(topic_error(state, call, topic) is not Error.NONE for topic in description.topics(answer)):
                error = Error.TOPIC_AUTHORIZATION_FAILED
                shown = type(answer)(error, answer.group, error_message=description.hidden)
            groups.append((yield from _group(state, call, shown, description)))
            yield 1
        return call.types.response(groups=tuple(groups))

    return AskCoordinator(allowed, finish)


def _group(state: BrokerState, call: Call, answer: Any, description: _Description) -> Turns[Any]:
    asked = getattr(call.message, "include_authorized_operations", False) and answer.error is Error.NONE
    members = yield from in_turns(
        (description.member(state, call, member) for member in answer.members), work=10
    )
    yield 2
    values = {
        **call.types.fitting(fields_of(answer), "DescribedGroup"),
        **description.own(call, answer),
        "members": members,
        "authorized_operations": authorized_operations(state, call, asked, ResourceType.GROUP, answer.group),
    }
    return call.types.make("DescribedGroup", **values)


def _topics_of_members(answer: Any) -> set[str]:
    """The topics of which members have, or are to have, partitions."""
    return {
        topic for member in answer.members for topic in (*member.assignment, *getattr(member, "target", ()))
    }


def assignment(state: BrokerState, call: Call, partitions: Mapping[str, tuple[int, ...]]) -> Any:
    """An assignment by topics."""
    topics = tuple(
        call.types.make("TopicPartitions", topic_id=topic.topic_id, topic_name=name, partitions=numbers)
        for name, numbers in partitions.items()
        if (topic := state.topics.get(name)) is not None
    )
    return call.types.make("Assignment", topic_partitions=topics)


def describe_groups(state: BrokerState, call: Call) -> Turns[AskCoordinator]:
    """DescribeGroups (key 15), versions 0-6.

    * v3: authorized operations when asked for, else INT32_MIN. v4: group.instance.id.
    * v6: an unknown group is GROUP_ID_NOT_FOUND with a message (KIP-1043); before, state Dead and no error,
      which is the coordinator's to decide.
    """
    requests = (messages.DescribeGroup(group, call.version) for group in call.message.groups)
    return _describe(state, call, requests, _CLASSIC_DESCRIPTION)


def _classic_member(_: BrokerState, call: Call, member: messages.DescribedMember) -> Any:
    data = {"member_metadata": member.metadata, "member_assignment": member.assignment}
    return call.types.make(
        "DescribedGroupMember", **call.types.fitting(fields_of(member), "DescribedGroupMember"), **data
    )


_CLASSIC_DESCRIPTION = _Description(_classic_member)


_CLASSIC, _CONSUMER = 0, 1
#: Why a description holds nothing.
HIDDEN_TOPICS = "The group has described topic(s) that the client is not authorized to describe."


def consumer_group_describe(state: BrokerState, call: Call) -> Turns[AskCoordinator]:
    """ConsumerGroupDescribe (key 69), versions 0-1 (KIP-848).

    * v1: which protocol each member speaks.
    * A client needs DESCRIBE on the group and on each topic of which a member has partitions.
    """
    requests = (messages.DescribeConsumerGroup(group, call.version) for group in call.message.group_ids)
    return _describe(state, call, requests, _CONSUMER_DESCRIPTION)


def _consumer_member(state: BrokerState, call: Call, member: messages.DescribedConsumerMember) -> Any:
    own = {
        "assignment": assignment(state, call, member.assignment),
        "target_assignment": assignment(state, call, member.target),
        "member_type": _CLASSIC if member.is_classic else _CONSUMER,
    }
    return call.types.make("Member", **call.types.fitting(fields_of(member), "Member") | own)


_CONSUMER_DESCRIPTION = _Description(_consumer_member, _topics_of_members, HIDDEN_TOPICS)


def share_group_describe(state: BrokerState, call: Call) -> Turns[AskCoordinator]:
    """ShareGroupDescribe (key 77), version 1 (KIP-932).

    * A client needs DESCRIBE on the group and on each topic of which a member has partitions.
    """
    requests = (DescribeShareGroup(group, call.version) for group in call.message.group_ids)
    return _describe(state, call, requests, _SHARE_DESCRIPTION)


def _share_member(state: BrokerState, call: Call, member: DescribedShareMember) -> Any:
    own = {"assignment": assignment(state, call, member.assignment)}
    return call.types.make("Member", **call.types.fitting(fields_of(member), "Member") | own)


_SHARE_DESCRIPTION = _Description(_share_member, _topics_of_members, HIDDEN_TOPICS)


_HIDDEN_TOPICS = "The described group uses topics that the client is not authorized to describe."


def streams_group_describe(state: BrokerState, call: Call) -> Turns[AskCoordinator]:
    """StreamsGroupDescribe (key 89), versions 0-1 (KIP-1071).

    * v1: the assignor, and the description of the topology, which nobody keeps here.
    * A client needs DESCRIBE on the group and on each topic of its topology.
    """
    with_description = getattr(call.message, "include_topology_description", False)
    requests = (
        DescribeStreamsGroup(group, with_description, call.version) for group in call.message.group_ids
    )
    return _describe(state, call, requests, _STREAMS_DESCRIPTION)


def _topics(answer: DescribeStreamsGroupResponse) -> set[str]:
    return {
        topic
        for one in (() if answer.topology is None else answer.topology.subtopologies)
        for topic in (*one.inputs, *one.sinks, *(changelog.name for changelog in one.changelogs))
    }


def _streams_fields(call: Call, answer: DescribeStreamsGroupResponse) -> dict[str, Any]:
    return {
        "topology": None if answer.topology is None else _topology(call, answer.topology),
        "topology_description": None,
        "topology_description_status": answer.description_status,
    }


def _topology(call: Call, topology: Topology) -> Any:
    subtopologies = tuple(_subtopology(call, one) for one in topology.subtopologies)
    return call.types.make("Topology", epoch=topology.epoch, subtopologies=subtopologies)


def _subtopology(call: Call, one: Subtopology) -> Any:
    return call.types.make(
        "Subtopology",
        subtopology_id=one.id,
        source_topics=one.sources,
        repartition_sink_topics=one.sinks,
        state_changelog_topics=tuple(_topic(call, topic) for topic in one.changelogs),
        repartition_source_topics=tuple(_topic(call, topic) for topic in one.repartition),
    )


def _topic(call: Call, topic: TopicInfo) -> Any:
    return call.types.make(
        "TopicInfo",
        name=topic.name,
        partitions=topic.partitions,
        replication_factor=topic.replication,
        topic_configs=_pairs(call, topic.configs),
    )


def _pairs(call: Call, pairs: Sequence[tuple[str, str]]) -> tuple[Any, ...]:
    return tuple(call.types.make("KeyValue", key=key, value=value) for key, value in pairs)


def _streams_member(_: BrokerState, call: Call, described: DescribedStreamsMember) -> Any:
    member, make = described.member, call.types.make
    endpoint = member.endpoint
    return make(
        "Member",
        member_id=member.member_id,
        member_epoch=member.epoch,
        instance_id=member.instance,
        rack_id=member.rack,
        client_id=member.client_id,
        client_host=member.client_host,
        topology_epoch=member.topology_epoch,
        process_id=member.process,
        user_endpoint=None if endpoint is None else make("Endpoint", host=endpoint[0], port=endpoint[1]),
        client_tags=_pairs(call, member.tags),
        task_offsets=_offsets(call, described.task_offsets),
        task_end_offsets=_offsets(call, described.task_end_offsets),
        assignment=_assignment(call, member.assigned.without_epochs()),
        target_assignment=_assignment(call, described.target),
        is_classic=False,
    )


def _offsets(call: Call, offsets: Mapping[Task, int]) -> tuple[Any, ...]:
    return tuple(
        call.types.make("TaskOffset", subtopology_id=name, partition=number, offset=offset)
        for (name, number), offset in offsets.items()
    )


def _assignment(call: Call, tasks: Tasks) -> Any:
    active, standby, warmup = (task_ids(call, listed(kind)) for kind in tasks)
    return call.types.make("Assignment", active_tasks=active, standby_tasks=standby, warmup_tasks=warmup)


_STREAMS_DESCRIPTION = _Description(_streams_member, _topics, _HIDDEN_TOPICS, _streams_fields)


APIS = (
    CoordinatorsApi(16, "ListGroups", 0, 5, list_groups, older=(4, 5), on_groups=Operation.DESCRIBE),
    AskingApi(42, "DeleteGroups", 0, 3, delete_groups, older=(2, 2), on_groups=Operation.DELETE),
    AskingApi(15, "DescribeGroups", 0, 6, describe_groups, older=(5, 5), on_groups=Operation.DESCRIBE),
    AskingApi(
        69, "ConsumerGroupDescribe", 0, 1, consumer_group_describe, older=(), on_topics=Operation.DESCRIBE,
        on_groups=Operation.DESCRIBE,
    ),
    AskingApi(
        77, "ShareGroupDescribe", 1, 1, share_group_describe, older=(), on_topics=Operation.DESCRIBE,
        on_groups=Operation.DESCRIBE,
    ),
    AskingApi(
        89, "StreamsGroupDescribe", 0, 1, streams_group_describe, older=(), on_topics=Operation.DESCRIBE,
        on_groups=Operation.DESCRIBE,
    ),
)  # fmt: skip
