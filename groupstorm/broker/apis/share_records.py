"""ShareFetch and ShareAcknowledge."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Any
from uuid import UUID

from groupstorm.broker.apis.api import Api, AskShareBroker, Call, Done
from groupstorm.broker.apis.fetch import BYTES_PER_WORK, count_bytes
from groupstorm.broker.apis.resources import READ_GROUP, topic_error
from groupstorm.broker.authorization import Operation
from groupstorm.broker.log.partition import LEADER_EPOCH
from groupstorm.broker.log.topics import COORDINATORS_TOPICS
from groupstorm.broker.quotas import CONSUMER_BYTE_RATE
from groupstorm.broker.share_logs import id_of, key_of, topic_of
from groupstorm.broker.state import BrokerState
from groupstorm.coordinator.errors import Error
from groupstorm.protocol.codec.plain_values import milliseconds
from groupstorm.protocol.codec.shape import MILLISECOND
from groupstorm.share_records.acknowledgement import AcknowledgementBatch, is_valid
from groupstorm.share_records.messages import (
    Acknowledgements,
    FetchedPartition,
    Request,
    Response,
    ShareAcknowledge,
    ShareAcknowledgeResponse,
    ShareFetch,
    ShareFetchResponse,
)
from groupstorm.share_records.ports import TopicPartition
from groupstorm.turns import Turns

#: So many ranges of acknowledgements are read in the time of a unit of work.
_RANGES_PER_WORK = 10
_FIRST_WITH_RENEWAL = 2
#: Errors with which a client is told who leads the partition.
_MOVED = (Error.NOT_LEADER_OR_FOLLOWER, Error.FENCED_LEADER_EPOCH)


def _ask(
    state: BrokerState,
    call: Call,
    kind: Callable[..., Request],
    own: dict[str, Any],
    respond: Callable[[Any], Turns[Any]],
) -> Turns[AskShareBroker | Done]:
    """Ask with a request of this kind; ``own``: the fields that only this kind has."""
    message = call.message
    if message.group_id is None:
        return Done(_response(call, Error.INVALID_REQUEST))
    partitions, malformed = yield from _read_partitions(call)
    request = kind(
        message.group_id,
        message.member_id or "",
        message.share_session_epoch,
        partitions,
        is_renewal=getattr(message, "is_renew_ack", False),
        denied=_denied_topics(state, call, partitions),
        malformed=malformed,
        **own,
    )

    def finish(answer: Response) -> Any:
        return respond(answer) if answer.error is Error.NONE else _response(call, answer.error)

    return AskShareBroker(request, finish)


def _response(call: Call, error: Error = Error.NONE, lock_ms: int = 0, **fields: Any) -> Any:
    return call.types.response(
        error_code=error,
        error_message=None,
        acquisition_lock_timeout=lock_ms * MILLISECOND,
        **{"responses": (), "node_endpoints": (), **fields},
    )


def _read_partitions(call: Call) -> Turns[tuple[Acknowledgements, Collection[TopicPartition]]]:
    """The partitions of a request, each with its acknowledgements, and those whose ranges are malformed; of a
    partition that stands twice the last hold."""
    renewal = {
        "knows_renewal": call.version >= _FIRST_WITH_RENEWAL,
        "is_renewal": call.version >= _FIRST_WITH_RENEWAL and call.message.is_renew_ack,
    }
    partitions: dict[TopicPartition, list[AcknowledgementBatch]] = {}
    malformed: set[TopicPartition] = set()
    for topic in call.message.topics:
        key = key_of(topic.topic_id)
        for partition in topic.partitions:
            where = TopicPartition(key, partition.partition_index)
            ranges = partitions[where] = []
            before, is_wrong = -1, False
            for number, one in enumerate(partition.acknowledgement_batches, 1):
                batch = AcknowledgementBatch(one.first_offset, one.last_offset, one.acknowledge_types)
                is_wrong = is_wrong or not is_valid(batch, before, **renewal)
                before = batch.last_offset
                ranges.append(batch)
                if number % _RANGES_PER_WORK == 0:
                    yield 1
            (malformed.add if is_wrong else malformed.discard)(where)
            yield 1
    return partitions, malformed


def _denied_topics(state: BrokerState, call: Call, partitions: Iterable[TopicPartition]) -> frozenset[str]:
    """The topics that the client may not read; nobody reads those of coordinators."""
    denied = set()
    for key in {one.topic for one in partitions}:
        topic = topic_of(state.topics, key)
        if topic is not None and (
            topic.name in COORDINATORS_TOPICS or topic_error(state, call, topic.name) is not Error.NONE
        ):
            denied.add(key)
    return frozenset(denied)


class _AnswerTopics:
    """The partitions of an answer by topic, and the brokers that lead those that the asked one does not."""

    def __init__(self, state: BrokerState, call: Call) -> None:
        self._state = state
        self._call = call
        self._topics: dict[UUID, list[Any]] = {}
        self._leaders: set[int] = set()

    def add(self, one: TopicPartition, error: Error, **fields: Any) -> None:
        leader, epoch = 0, 0
        topic = topic_of(self._state.topics, one.topic)
        if error in _MOVED and topic is not None:
            leader, epoch = topic.replicas[one.partition][0], LEADER_EPOCH
            self._leaders.add(leader)
        make = self._call.types.make
        data = make(
            "PartitionData",
            partition_index=one.partition,
            error_code=error,
            current_leader=make("LeaderIdAndEpoch", leader_id=leader, leader_epoch=epoch),
            **{"error_message": None, **fields},
        )
        self._topics.setdefault(id_of(one.topic), []).append(data)

    def fields(self, structure: str) -> dict[str, Any]:
        """The fields of the response. ``structure``: of a topic in it."""
        state, make = self._state, self._call.types.make
        return {
            "responses": tuple(
                make(structure, topic_id=topic_id, partitions=tuple(partitions))
                for topic_id, partitions in self._topics.items()
            ),
            "node_endpoints": tuple(
                make(
                    "NodeEndpoint",
                    **self._call.types.fitting(state.address(node, self._call.reached_at), "NodeEndpoint"),
                )
                for node in sorted(self._leaders)
            ),
        }


_BATCH_OPTIMIZED, _RECORD_LIMIT = 0, 1


def share_fetch(state: BrokerState, call: Call) -> Turns[AskShareBroker | Done]:
    """ShareFetch (key 78), versions 1-2 (KIP-932): a member of a share group gets records.

    * v2: the mode that gives exactly so many records (KIP-1206), renewal of locks (KIP-1222).
    * A client needs READ on the group and on each topic.
    * `groupstorm.share_records` decides. Above its quota a client gets an empty response, and what it has
      acquired stays its own (KafkaApis.processShareFetchResponse).
    """
    message = call.message
    forgotten = [
        TopicPartition(key_of(topic.topic_id), number)
        for topic in message.forgotten_topics_data
        for number in topic.partitions
    ]
    mode = getattr(message, "share_acquire_mode", _BATCH_OPTIMIZED)
    most = state.quotas.most_at_once(CONSUMER_BYTE_RATE, call.client)
    max_bytes = message.max_bytes if most is None else min(message.max_bytes, int(most))
    own = {
        "forgotten": forgotten,
        "max_wait_ms": milliseconds(message.max_wait),
        "min_bytes": message.min_bytes,
        "max_bytes": max_bytes,
        "max_records": message.max_records,
        "batch_size": message.batch_size,
        "has_record_limit": mode == _RECORD_LIMIT,
        "is_mode_known": mode in (_BATCH_OPTIMIZED, _RECORD_LIMIT),
        "connection": call.connection,
    }
    return _ask(state, call, ShareFetch, own, partial(_fetch_respond, state, call))


def _fetch_respond(state: BrokerState, call: Call, answer: ShareFetchResponse) -> Turns[Any]:
    topics = _AnswerTopics(state, call)
    for one, found in answer.partitions.items():
        records, error = _records(state, one, found)
        topics.add(
            one,
            error,
            acknowledge_error_code=found.acknowledge_error,
            acknowledge_error_message=found.acknowledge_sentence,
            records=records,
            acquired_records=tuple(
                call.types.make("AcquiredRecords", first_offset=first, last_offset=last, delivery_count=count)
                for first, last, count in found.acquired
            ),
        )
        yield 2 + len(found.acquired) + len(records) // BYTES_PER_WORK
    whole = _response(call, lock_ms=answer.lock_ms, **topics.fields("ShareFetchableTopicResponse"))
    has_quota = state.quotas.most_at_once(CONSUMER_BYTE_RATE, call.client) is not None
    throttle_ms = (yield from count_bytes(state, call, whole)) if has_quota else 0
    if throttle_ms:
        return _response(call, lock_ms=answer.lock_ms, throttle_time=throttle_ms * MILLISECOND)
    return whole


def _records(state: BrokerState, one: TopicPartition, found: FetchedPartition) -> tuple[bytes, Error]:
    """The record batches of a partition. Another client's request may have removed some meanwhile."""
    topic = topic_of(state.topics, one.topic)
    log = None if topic is None else topic.partition(one.partition)
    if log is None or not found.batches:
        return b"", found.error
    first, last = found.batches[0].base_offset, found.batches[-1].base_offset
    indices = range(log.batches.from_base(first), log.batches.from_base(last + 1))
    try:
        return b"".join(map(log.batches.data, indices)), found.error
    except OSError:
        return b"", Error.KAFKA_STORAGE_ERROR


def share_acknowledge(state: BrokerState, call: Call) -> Turns[AskShareBroker | Done]:
    """ShareAcknowledge (key 79), versions 1-2 (KIP-932): a member of a share group is done with records.

    * v2: renewal of locks (KIP-1222); the response says for how long records are locked.
    * A client needs READ on the group and on each topic.
    """
    return _ask(state, call, ShareAcknowledge, {}, partial(_acknowledge_respond, state, call))


def _acknowledge_respond(state: BrokerState, call: Call, answer: ShareAcknowledgeResponse) -> Turns[Any]:
    topics = _AnswerTopics(state, call)
    for one, (error, sentence) in answer.partitions.items():
        topics.add(one, error, error_message=sentence)
        yield 2
    return _response(call, lock_ms=answer.lock_ms, **topics.fields("ShareAcknowledgeTopicResponse"))


APIS = (
    Api(78, "ShareFetch", 1, 2, share_fetch, older=(), needs=(READ_GROUP,), on_topics=Operation.READ),
    Api(
        79, "ShareAcknowledge", 1, 2, share_acknowledge, older=(), needs=(READ_GROUP,),
        on_topics=Operation.READ,
    ),
)  # fmt: skip
