"""OffsetFetch (key 9), versions 1-10.

* v2: null topics ask for all offsets of the group, and errors of the group have a field of their own;
  in v1 every partition carries them. v5: leader epoch. v7: require_stable: UNSTABLE_OFFSET_COMMIT if an
  offset waits for its transaction (KIP-447). v8: several groups (KIP-709). v9: member id and epoch. v10:
  topic ids instead of names.
* Partitions that do not exist are asked for like others: they have no offset, -1. An unknown topic id
  is UNKNOWN_TOPIC_ID.
* A client needs DESCRIBE on the group and on each topic. Topics that it may not describe are left out of all
  offsets of a group.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from groupstorm.broker.apis.api import Api, AskCoordinator, BrokerState, Call
from groupstorm.broker.apis.rights import group_error, topic_error
from groupstorm.coordinator import messages
from groupstorm.coordinator.error_responses import error_response
from groupstorm.coordinator.errors import Error

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


def handle(state: BrokerState, call: Call) -> AskCoordinator:
    groups = call.message.groups if call.version >= _FIRST_BATCHED_VERSION else (call.message,)
    questions = [_question(state, call, group) for group in groups]

    def finish(answers: Sequence[messages.OffsetFetchResponse]) -> Any:
        given = iter(answers)
        answered = [(one, next(given) if one.error is Error.NONE else _denied(one)) for one in questions]
        return _response(state, call, answered)

    return AskCoordinator([one.request for one in questions if one.error is Error.NONE], finish)


API = Api(9, "OffsetFetch", 1, 10, handle)


def _question(state: BrokerState, call: Call, group: Any) -> _Question:
    refused: list[_Topic] = []
    wanted: dict[str, tuple[int, ...]] | None = None
    if group.topics is not None:
        wanted = {}
        for asked in group.topics:
            name = _name(state, call, asked)
            error = Error.UNKNOWN_TOPIC_ID if name is None else topic_error(state, call, name)
            if name is None or error is not Error.NONE:
                partitions = _all(asked.partition_indexes, error)
                refused.append(_Topic(name or "", getattr(asked, "topic_id", None), partitions))
            else:
                wanted[name] = (*wanted.get(name, ()), *asked.partition_indexes)
    request = messages.OffsetFetch(
        group=group.group_id,
        topics=wanted,
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


def _all(indexes: Iterable[int], error: Error) -> tuple[_Partition, ...]:
    return tuple(_Partition(index, _NO_OFFSET, error) for index in indexes)


def _topics(
    state: BrokerState, call: Call, partitions: Iterable[tuple[str, _Partition]]
) -> tuple[_Topic, ...]:
    """Partitions by topic. With topic ids, a topic that has been deleted cannot be named and is left out."""
    by_name: dict[str, list[_Partition]] = {}
    for name, partition in partitions:
        by_name.setdefault(name, []).append(partition)
    topics = []
    for name, of_topic in by_name.items():
        topic = state.topics.get(name)
        if topic is None and call.version >= _FIRST_WITH_TOPIC_IDS:
            continue
        topics.append(_Topic(name, None if topic is None else topic.topic_id, tuple(of_topic)))
    return tuple(topics)


def _response(
    state: BrokerState, call: Call, answered: list[tuple[_Question, messages.OffsetFetchResponse]]
) -> Any:
    if call.version >= _FIRST_BATCHED_VERSION:
        return call.types.response(groups=tuple(_group(state, call, *one) for one in answered))
    question, answer = answered[0]
    if answer.error is not Error.NONE and call.version < _FIRST_WITH_GROUP_ERROR:
        topics = tuple(
            _Topic(asked.name, None, _all(asked.partition_indexes, answer.error))
            for asked in question.topics or ()
        )
    else:
        topics = _all_topics(state, call, question, answer)
    return call.types.response(
        error_code=answer.error, topics=_structures(call, topics, "OffsetFetchResponseTopic")
    )


def _all_topics(
    state: BrokerState, call: Call, question: _Question, answer: messages.OffsetFetchResponse
) -> tuple[_Topic, ...]:
    """The coordinator's answer and the refused topics; of all offsets only those that the client may see."""
    if answer.error is not Error.NONE:
        return ()
    topics = _topics(state, call, _of_answer(answer))
    if question.topics is None:
        return tuple(one for one in topics if topic_error(state, call, one.name) is Error.NONE)
    return (*topics, *question.refused)


def _group(state: BrokerState, call: Call, question: _Question, answer: messages.OffsetFetchResponse) -> Any:
    topics = _all_topics(state, call, question, answer)
    return call.types.make(
        "OffsetFetchResponseGroup",
        group_id=question.group,
        topics=_structures(call, topics, "OffsetFetchResponseTopics"),
        error_code=answer.error,
    )


def _of_answer(answer: messages.OffsetFetchResponse) -> Iterable[tuple[str, _Partition]]:
    return ((name, _Partition(index, offset, error)) for name, index, offset, error in answer.partitions)


def _structures(call: Call, topics: Iterable[_Topic], topic_structure: str) -> tuple[Any, ...]:
    """kio's structures; those of a batched response have a plural name: ...Topics, ...Partitions."""
    partition_structure = topic_structure.replace("Topic", "Partition")
    make = call.types.make
    return tuple(
        make(
            topic_structure,
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=tuple(
                make(
                    partition_structure,
                    partition_index=partition.number,
                    committed_offset=partition.offset.offset,
                    committed_leader_epoch=partition.offset.leader_epoch,
                    metadata=partition.offset.metadata,
                    error_code=partition.error,
                )
                for partition in topic.partitions
            ),
        )
        for topic in topics
    )
