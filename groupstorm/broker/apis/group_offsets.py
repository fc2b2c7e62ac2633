"""OffsetCommit, OffsetFetch and OffsetDelete: the committed offsets of a group."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

from groupstorm.broker.apis.api import (
    EACH_PARTITION,
    AskCoordinator,
    AskingApi,
    Call,
    CoordinatorsApi,
    Done,
    Right,
    read,
)
from groupstorm.broker.apis.resources import (
    READ_GROUP,
    answer_named,
    group_error,
    named_partitions,
    topic_error,
)
from groupstorm.broker.authorization import Operation, ResourceType
from groupstorm.broker.state import BrokerState
from groupstorm.coordinator import messages
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.failures import error_response
from groupstorm.protocol.codec.plain_values import fields_of
from groupstorm.turns import Turns, in_turns


def offset_commit(state: BrokerState, call: Call) -> Turns[AskCoordinator | Done]:
    """OffsetCommit (key 8), versions 2-10.

    * v6: leader epoch. v7: group.instance.id. v10: topic ids instead of names (KIP-848).
    * Partitions that do not exist are answered here, UNKNOWN_TOPIC_OR_PARTITION or UNKNOWN_TOPIC_ID, and
      the others go on; the coordinator is not asked if nothing is left (KafkaApis.handleOffsetCommitRequest).
    * v2-4 may say how long the offsets are kept (KIP-211).
    """
    named = yield from named_partitions(state, call)
    finish = partial(answer_named, call, "OffsetCommit", named)
    if not named.known:
        return Done((yield from finish(())))
    own = {"offsets": named.offsets}
    return AskCoordinator(
        (read(messages.OffsetCommit, call.message, call.version, call.client_id, **own),), finish
    )


_FIRST_WITH_GROUP_ERROR = 2
_FIRST_BATCHED_VERSION = 8
_FIRST_WITH_TOPIC_IDS = 10
_NO_OFFSET = messages.CommittedOffset(-1)


class _Partition(NamedTuple):
    """One partition of the answer."""

    number: int
    offset: messages.CommittedOffset
    error: Error


class _Topic(NamedTuple):
    name: str
    topic_id: Any
    partitions: tuple[_Partition, ...]


class _Question(NamedTuple):
    """One group of the request, and what is answered without the coordinator: the whole group with
    ``error``, or some of its topics."""

    group: str
    topics: Sequence[Any] | None
    request: messages.OffsetFetch
    refused: tuple[_Topic, ...]
    error: Error = Error.NONE


def offset_fetch(state: BrokerState, call: Call) -> Turns[AskCoordinator]:
    """OffsetFetch (key 9), versions 1-10.

    * v2: null topics ask for all offsets of the group, and errors of the group have a field of their own;
      in v1 every partition carries them. v5: leader epoch. v7: require_stable: UNSTABLE_OFFSET_COMMIT if an
      offset waits for its transaction (KIP-447). v8: several groups (KIP-709). v9: member id and epoch. v10:
      topic ids instead of names.
    * Partitions that do not exist are asked for like others: they have no offset, -1. An unknown topic id
      is UNKNOWN_TOPIC_ID.
    * A client needs DESCRIBE on the group and on each topic. Topics that it may not describe are left out of
      all offsets of a group.
    """
    groups = call.message.groups if call.version >= _FIRST_BATCHED_VERSION else (call.message,)
    questions = []
    for group in groups:
        questions.append((yield from _question(state, call, group)))

    def finish(answers: Sequence[messages.OffsetFetchResponse]) -> Turns[Any]:
        given = iter(answers)
        answered = yield from in_turns(
            (one, next(given) if one.error is Error.NONE else _denied(one)) for one in questions
        )
        return (yield from _fetch_response(state, call, answered))

    return AskCoordinator([one.request for one in questions if one.error is Error.NONE], finish)


def _question(state: BrokerState, call: Call, group: Any) -> Turns[_Question]:
    refused: list[_Topic] = []
    wanted: dict[str, list[int]] | None = None
    yield 1
    if group.topics is not None:
        wanted = {}
        for asked in group.topics:
            name = _name(state, call, asked)
            error = Error.UNKNOWN_TOPIC_ID if name is None else topic_error(state, call, name)
            if name is None or error is not Error.NONE:
                partitions = yield from _all(asked.partition_indexes, error)
                refused.append(_Topic(name or "", getattr(asked, "topic_id", None), partitions))
            else:
                wanted.setdefault(name, []).extend(asked.partition_indexes)
                yield 1
    request = messages.OffsetFetch(
        group=group.group_id,
        topics=None if wanted is None else {name: tuple(indexes) for name, indexes in wanted.items()},
        version=call.version,
        member_id=getattr(group, "member_id", None),
        member_epoch=getattr(group, "member_epoch", messages.NO_GENERATION),
        require_stable=getattr(call.message, "require_stable", False),
    )
    error = group_error(state, call, group.group_id)
    return _Question(group.group_id, group.topics, request, tuple(refused), error)


def _denied(question: _Question) -> messages.OffsetFetchResponse:
    response = error_response(question.request, question.error)
    assert isinstance(response, messages.OffsetFetchResponse)
    return response


def _name(state: BrokerState, call: Call, asked: Any) -> str | None:
    if call.version < _FIRST_WITH_TOPIC_IDS:
        name: str = asked.name
        return name
    topic = state.topics.get_by_id(asked.topic_id)
    return None if topic is None else topic.name


def _all(indexes: Iterable[int], error: Error) -> Turns[tuple[_Partition, ...]]:
    return (yield from in_turns(_Partition(index, _NO_OFFSET, error) for index in indexes))


def _topics(
    state: BrokerState, call: Call, partitions: Iterable[tuple[str, _Partition]]
) -> Turns[tuple[_Topic, ...]]:
    """Partitions by topic. With topic ids, a topic that has been deleted cannot be named and is left out."""
    by_name: dict[str, list[_Partition]] = {}
    for name, partition in partitions:
        by_name.setdefault(name, []).append(partition)
        yield 1
    topics = []
    for name, of_topic in by_name.items():
        topic = state.topics.get(name)
        if topic is None and call.version >= _FIRST_WITH_TOPIC_IDS:
            continue
        topics.append(_Topic(name, None if topic is None else topic.topic_id, tuple(of_topic)))
    return tuple(topics)


def _fetch_response(
    state: BrokerState, call: Call, answered: Iterable[tuple[_Question, messages.OffsetFetchResponse]]
) -> Turns[Any]:
    if call.version >= _FIRST_BATCHED_VERSION:
        groups = []
        for one in answered:
            groups.append((yield from _group(state, call, *one)))
        return call.types.response(groups=tuple(groups))
    ((question, answer),) = answered
    if answer.error is not Error.NONE and call.version < _FIRST_WITH_GROUP_ERROR:
        topics = []
        for asked in question.topics or ():
            topics.append(_Topic(asked.name, None, (yield from _all(asked.partition_indexes, answer.error))))
    else:
        topics = list((yield from _all_topics(state, call, question, answer)))
    structures = yield from _structures(call, topics, "OffsetFetchResponseTopic")
    return call.types.response(error_code=answer.error, topics=structures)


def _all_topics(
    state: BrokerState, call: Call, question: _Question, answer: messages.OffsetFetchResponse
) -> Turns[tuple[_Topic, ...]]:
    """The coordinator's answer and the refused topics; of all offsets only those that the client may see."""
    if answer.error is not Error.NONE:
        return ()
    partitions = (
        (name, _Partition(index, offset, error)) for name, index, offset, error in answer.partitions
    )
    topics = yield from _topics(state, call, partitions)
    if question.topics is None:
        return tuple(one for one in topics if topic_error(state, call, one.name) is Error.NONE)
    return (*topics, *question.refused)


def _group(
    state: BrokerState, call: Call, question: _Question, answer: messages.OffsetFetchResponse
) -> Turns[Any]:
    topics = yield from _all_topics(state, call, question, answer)
    structures = yield from _structures(call, topics, "OffsetFetchResponseTopics")
    yield 1
    return call.types.make(
        "OffsetFetchResponseGroup",
        group_id=question.group,
        topics=structures,
        error_code=answer.error,
    )


def _structures(call: Call, topics: Iterable[_Topic], topic_structure: str) -> Turns[tuple[Any, ...]]:
    """kio's structures; those of a batched response have a plural name: ...Topics, ...Partitions."""
    partition_structure = topic_structure.replace("Topic", "Partition")
    make = call.types.make
    structures = []
    for topic in topics:
        partitions = yield from in_turns(
            make(
                partition_structure,
                partition_index=number,
                error_code=error,
                **call.types.fitting(fields_of(offset), partition_structure),
            )
            for number, offset, error in topic.partitions
        )
        structures.append(
            make(topic_structure, name=topic.name, topic_id=topic.topic_id, partitions=partitions)
        )
        yield 1
    return tuple(structures)


def offset_delete(state: BrokerState, call: Call) -> Turns[AskCoordinator | Done]:
    """OffsetDelete (key 47), version 0: a group forgets what it has committed for partitions (KIP-496).

    Partitions that do not exist are answered here, UNKNOWN_TOPIC_OR_PARTITION
    (KafkaApis.handleOffsetDeleteRequest).
    """
    named = yield from named_partitions(state, call)

    def finish(answers: Sequence[messages.OffsetDeleteResponse]) -> Any:
        (answer,) = answers
        if answer.error is not Error.NONE:
            return call.types.response(error_code=answer.error, topics=())
        return answer_named(call, "OffsetDelete", named, answers)

    partitions = {name: tuple(asked) for name, asked in named.known.items()}
    return AskCoordinator((messages.OffsetDelete(call.message.group_id, partitions, call.client_id),), finish)


APIS = (
    CoordinatorsApi(
        8, "OffsetCommit", 2, 10, offset_commit, older=(8, 9), needs=(READ_GROUP,), on_topics=Operation.READ,
        errors=EACH_PARTITION,
    ),
    AskingApi(
        9, "OffsetFetch", 1, 10, offset_fetch, older=(7, 9), on_topics=Operation.DESCRIBE,
        on_groups=Operation.DESCRIBE,
    ),
    AskingApi(
        47, "OffsetDelete", 0, 0, offset_delete,
        needs=(Right(Operation.DELETE, ResourceType.GROUP, "group_id"),), on_topics=Operation.READ,
    ),
)  # fmt: skip
