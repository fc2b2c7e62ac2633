"""DescribeShareGroupOffsets, AlterShareGroupOffsets and DeleteShareGroupOffsets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from groupstorm.broker.apis.api import AskCoordinator, AskingApi, Call, CoordinatorsApi, Right
from groupstorm.broker.apis.resources import READ_GROUP, SENTENCES, group_error, topic_error
from groupstorm.broker.authorization import Operation, ResourceType
from groupstorm.broker.log.partition import PartitionLog
from groupstorm.broker.log.topics import Topic
from groupstorm.broker.share_logs import share_key
from groupstorm.broker.state import BrokerState
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.share.messages import (
    AlterShareGroupOffsets,
    AlterShareGroupOffsetsResponse,
    DeleteShareGroupOffsets,
    DeleteShareGroupOffsetsResponse,
    ListSharePartitions,
    ListSharePartitionsResponse,
)
from groupstorm.protocol.codec.plain_values import fields_of
from groupstorm.turns import Turns, in_turns

_UNKNOWN = -1
_BROKEN_OFF = "The server experienced an unexpected error when processing the request."


def describe_share_group_offsets(state: BrokerState, call: Call) -> Turns[AskCoordinator]:
    """DescribeShareGroupOffsets (key 90), versions 0-1 (KIP-932): from where share groups go on.

    * v1: the lag (KIP-1226).
    * A client needs DESCRIBE on each group and each topic. Topics that it may not see are left out of all
      topics of a group.
    * The offsets are the share coordinator's: a leader writes the start that it has at an acknowledgement,
      before that moves it.
    """
    asked = call.message.groups
    errors = yield from in_turns(group_error(state, call, group.group_id) for group in asked)
    is_open = [
        error is Error.NONE and group.topics is None for group, error in zip(asked, errors, strict=True)
    ]
    requests = [
        ListSharePartitions(group.group_id) for group, wants in zip(asked, is_open, strict=True) if wants
    ]

    def finish(answers: Sequence[ListSharePartitionsResponse]) -> Turns[Any]:
        left = iter(answers)
        groups = []
        for group, error, wants in zip(asked, errors, is_open, strict=True):
            if error is not Error.NONE:
                groups.append(_group(call, group.group_id, error, ()))
            elif wants:
                answer = next(left)
                topics = yield from _of_all(state, call, group.group_id, answer.partitions)
                groups.append(_group(call, group.group_id, answer.error, topics))
            elif _names_none(state, group):
                groups.append(_group(call, group.group_id, Error.UNKNOWN_SERVER_ERROR, (), _BROKEN_OFF))
            else:
                topics = yield from _of_some(state, call, group)
                groups.append(_group(call, group.group_id, Error.NONE, topics))
            yield 1
        return call.types.response(groups=tuple(groups))

    return AskCoordinator(requests, finish)


def _names_none(state: BrokerState, group: Any) -> bool:
    """Whether a number is no partition's. Kafka's share coordinator breaks off at it."""
    known = [topic for topic in group.topics if state.topics.get(topic.topic_name) is not None]
    return any(number < 0 for topic in known for number in topic.partitions)


def _group(call: Call, name: str, error: Error, topics: Sequence[Any], sentence: str | None = None) -> Any:
    return call.types.make(
        "DescribeShareGroupOffsetsResponseGroup",
        group_id=name,
        topics=tuple(topics),
        error_code=error,
        error_message=sentence,
    )


def _of_all(
    state: BrokerState, call: Call, group: str, partitions: Mapping[UUID, Iterable[int]]
) -> Turns[list[Any]]:
    found = []
    for topic_id, numbers in partitions.items():
        topic = state.topics.get_by_id(topic_id)
        if topic is not None and topic_error(state, call, topic.name) is Error.NONE:
            rows = yield from in_turns(
                (_described(state, call, group, topic, number) for number in numbers), work=2
            )
            found.append(_topic(call, topic.name, topic_id, rows))
        yield 1
    return found


def _of_some(state: BrokerState, call: Call, group: Any) -> Turns[list[Any]]:
    """The topics that there are, then the others, then those that the client may not see."""
    found: tuple[list[Any], list[Any], list[Any]] = [], [], []
    for asked in group.topics:
        name, topic = asked.topic_name, state.topics.get(asked.topic_name)
        denied = topic_error(state, call, name)
        if denied is not Error.NONE:
            rows = yield from in_turns(
                _partition(call, number, 0, error=denied, sentence=SENTENCES[denied])
                for number in asked.partitions
            )
            found[2].append(_topic(call, name, None, rows))
        elif topic is None:
            rows = yield from in_turns(_partition(call, number) for number in asked.partitions)
            found[1].append(_topic(call, name, None, rows))
        else:
            rows = yield from in_turns(
                (_described(state, call, group.group_id, topic, number) for number in asked.partitions),
                work=2,
            )
            found[0].append(_topic(call, name, topic.topic_id, rows))
    return [topic for some in found for topic in some]


def _topic(call: Call, name: str, topic_id: UUID | None, rows: Sequence[Any]) -> Any:
    structure = "DescribeShareGroupOffsetsResponseTopic"
    return call.types.make(structure, topic_name=name, topic_id=topic_id, partitions=tuple(rows))


def _described(state: BrokerState, call: Call, group: str, topic: Topic, number: int) -> Any:
    error, summary = state.share_states.summary(share_key(group, topic.topic_id, number))
    log = topic.partition(number)
    if error is not Error.NONE or log is None:
        return _partition(call, number)
    lag = _lag(log, summary.start, summary.complete)
    return _partition(call, number, summary.start, summary.leader_epoch, lag)


def _lag(log: PartitionLog, start: int, complete: int) -> int:
    """The records behind the start that the group is not done with."""
    return _UNKNOWN if _UNKNOWN in (start, complete) else log.end_offset - start - complete


def _partition(
    call: Call,
    number: int,
    start: int = _UNKNOWN,
    leader_epoch: int = 0,
    lag: int = _UNKNOWN,
    error: Error = Error.NONE,
    sentence: str | None = None,
) -> Any:
    return call.types.make(
        "DescribeShareGroupOffsetsResponsePartition",
        partition_index=number,
        start_offset=start,
        leader_epoch=leader_epoch,
        lag=lag,
        error_code=error,
        error_message=sentence,
    )


_SENTENCES = {
    **SENTENCES,
    Error.UNKNOWN_TOPIC_OR_PARTITION: "This server does not host this topic-partition.",
}


def alter_share_group_offsets(state: BrokerState, call: Call) -> Turns[AskCoordinator]:
    """AlterShareGroupOffsets (key 91), version 0 (KIP-932): a share group without members begins elsewhere.

    * A client needs READ on the group and on each topic.
    """
    refused: list[tuple[str, int, Error]] = []
    wanted: dict[str, dict[int, int]] = {}
    for topic in call.message.topics:
        name = topic.topic_name
        error = topic_error(state, call, name)
        if error is Error.NONE and state.topics.get(name) is None:
            error = Error.UNKNOWN_TOPIC_OR_PARTITION
        for one in topic.partitions:
            if error is Error.NONE:
                wanted.setdefault(name, {})[one.partition_index] = one.start_offset
            else:
                refused.append((name, one.partition_index, error))
            yield 2

    def finish(answers: Sequence[AlterShareGroupOffsetsResponse]) -> Turns[Any]:
        (answer,) = answers
        if answer.error is not Error.NONE:
            return call.types.response(**call.types.fitting(fields_of(answer)), responses=())
        topics: dict[str, list[Any]] = {}
        for name, number, error in (*refused, *answer.partitions):
            partition = call.types.make(
                "AlterShareGroupOffsetsResponsePartition",
                partition_index=number,
                error_code=error,
                error_message=_SENTENCES.get(error),
            )
            topics.setdefault(name, []).append(partition)
            yield 1
        return call.types.response(
            error_code=Error.NONE,
            error_message=None,
            responses=tuple(
                call.types.make(
                    "AlterShareGroupOffsetsResponseTopic",
                    topic_name=name,
                    topic_id=None if (topic := state.topics.get(name)) is None else topic.topic_id,
                    partitions=tuple(partitions),
                )
                for name, partitions in topics.items()
            ),
        )

    return AskCoordinator((AlterShareGroupOffsets(call.message.group_id, wanted),), finish)


_DENIED = SENTENCES[Error.GROUP_AUTHORIZATION_FAILED]


def delete_share_group_offsets(state: BrokerState, call: Call) -> Turns[AskCoordinator]:
    """DeleteShareGroupOffsets (key 92), version 0 (KIP-932): a share group without members forgets topics.

    * A client needs DELETE on the group and READ on each topic.
    """
    names = [topic.topic_name for topic in call.message.topics]
    errors = yield from in_turns((topic_error(state, call, name) for name in names), work=2)
    denied = [
        (name, error, SENTENCES[error])
        for name, error in zip(names, errors, strict=True)
        if error is not Error.NONE
    ]
    allowed = [name for name, error in zip(names, errors, strict=True) if error is Error.NONE]

    def finish(answers: Sequence[DeleteShareGroupOffsetsResponse]) -> Turns[Any]:
        (answer,) = answers
        shown = (*denied, *answer.topics) if answer.error is Error.NONE else ()
        responses = yield from in_turns(
            call.types.make(
                "DeleteShareGroupOffsetsResponseTopic",
                topic_name=name,
                topic_id=None if (topic := state.topics.get(name)) is None or error else topic.topic_id,
                error_code=error,
                error_message=sentence,
            )
            for name, error, sentence in shown
        )
        return call.types.response(**call.types.fitting(fields_of(answer)), responses=responses)

    return AskCoordinator((DeleteShareGroupOffsets(call.message.group_id, tuple(allowed)),), finish)


APIS = (
    AskingApi(
        90, "DescribeShareGroupOffsets", 0, 1, describe_share_group_offsets, older=(),
        on_topics=Operation.DESCRIBE, on_groups=Operation.DESCRIBE,
    ),
    CoordinatorsApi(
        91, "AlterShareGroupOffsets", 0, 0, alter_share_group_offsets, older=(),
        needs=(READ_GROUP._replace(sentence=SENTENCES[Error.GROUP_AUTHORIZATION_FAILED]),),
        on_topics=Operation.READ,
    ),
    CoordinatorsApi(
        92, "DeleteShareGroupOffsets", 0, 0, delete_share_group_offsets, older=(),
        needs=(Right(Operation.DELETE, ResourceType.GROUP, "group_id", _DENIED),), on_topics=Operation.READ,
    ),
)  # fmt: skip
