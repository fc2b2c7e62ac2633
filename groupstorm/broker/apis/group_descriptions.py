"""Descriptions of groups of all kinds (keys 15, 69, 77, 89): rights, turns, and the fields that all have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from groupstorm.broker.apis.api import AskCoordinator, BrokerState, Call
from groupstorm.broker.apis.rights import authorized_operations, group_error, topic_error
from groupstorm.broker.authorization.acls import ResourceType
from groupstorm.coordinator.error_responses import error_response
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import DescribeConsumerGroup, DescribeGroup, Response
from groupstorm.coordinator.share.messages import DescribeShareGroup
from groupstorm.coordinator.streams.messages import DescribeStreamsGroup
from groupstorm.turns import Turns, in_turns

Request = DescribeGroup | DescribeConsumerGroup | DescribeStreamsGroup | DescribeShareGroup


class Description(NamedTuple):
    """The parts in which descriptions differ. ``fields``: the fields of an answer beside those of all kinds.

    ``topics``: those that the client must be allowed to describe, or it is told ``hidden`` alone.
    """

    member: Callable[[BrokerState, Call, Any], Any]
    fields: Callable[[Call, Any], Mapping[str, Any]]
    topics: Callable[[Any], Iterable[str]] = lambda answer: ()
    hidden: str = ""


def describe(
    state: BrokerState, call: Call, requests: Iterable[Request], description: Description
) -> Turns[AskCoordinator]:
    """Ask for the groups that the client may describe, and answer with one description each."""
    allowed: list[Request] = []
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


def _group(state: BrokerState, call: Call, answer: Any, description: Description) -> Turns[Any]:
    asked = getattr(call.message, "include_authorized_operations", False) and answer.error is Error.NONE
    members = yield from in_turns(
        (description.member(state, call, member) for member in answer.members), work=10
    )
    yield 2
    return call.types.make(
        "DescribedGroup",
        error_code=answer.error,
        error_message=answer.error_message,
        group_id=answer.group,
        group_state=answer.state,
        members=members,
        authorized_operations=authorized_operations(state, call, asked, ResourceType.GROUP, answer.group),
        **description.fields(call, answer),
    )


def epochs(_: Call, answer: Any) -> dict[str, Any]:
    """The fields of groups whose broker assigns."""
    return {
        "group_epoch": answer.epoch,
        "assignment_epoch": answer.assignment_epoch,
        "assignor_name": answer.assignor,
    }


def topics_of_members(answer: Any) -> set[str]:
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
