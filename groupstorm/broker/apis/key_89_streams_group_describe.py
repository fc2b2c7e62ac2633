"""StreamsGroupDescribe (key 89), versions 0-1 (KIP-1071).

* v1: the assignor, and the description of the topology, which nobody keeps here.
* A client needs DESCRIBE on the group and on each topic of its topology.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from groupstorm.assignors.streams.groups import Task
from groupstorm.broker.apis.api import AskCoordinator, AskingApi, BrokerState, Call
from groupstorm.broker.apis.group_descriptions import Description, describe, epochs
from groupstorm.broker.apis.key_88_streams_group_heartbeat import task_ids
from groupstorm.broker.authorization.acls import Operation
from groupstorm.coordinator.streams.member import Tasks, listed
from groupstorm.coordinator.streams.messages import (
    DescribedStreamsMember,
    DescribeStreamsGroup,
    DescribeStreamsGroupResponse,
)
from groupstorm.coordinator.streams.topology import Subtopology, TopicInfo, Topology
from groupstorm.turns import Turns

_HIDDEN_TOPICS = "The described group uses topics that the client is not authorized to describe."


def handle(state: BrokerState, call: Call) -> Turns[AskCoordinator]:
    with_description = getattr(call.message, "include_topology_description", False)
    requests = (
        DescribeStreamsGroup(group, with_description, call.version) for group in call.message.group_ids
    )
    return describe(state, call, requests, _DESCRIPTION)


API = AskingApi(
    89, "StreamsGroupDescribe", 0, 1, handle, older=(), on_topics=Operation.DESCRIBE,
    on_groups=Operation.DESCRIBE,
)  # fmt: skip


def _topics(answer: DescribeStreamsGroupResponse) -> set[str]:
    return {
        topic
        for one in (() if answer.topology is None else answer.topology.subtopologies)
        for topic in (*one.inputs, *one.sinks, *(changelog.name for changelog in one.changelogs))
    }


def _fields(call: Call, answer: DescribeStreamsGroupResponse) -> dict[str, Any]:
    return epochs(call, answer) | {
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


def _member(_: BrokerState, call: Call, described: DescribedStreamsMember) -> Any:
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


_DESCRIPTION = Description(_member, _fields, _topics, _HIDDEN_TOPICS)
