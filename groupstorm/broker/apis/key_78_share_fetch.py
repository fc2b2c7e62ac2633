"""ShareFetch (key 78), versions 1-2 (KIP-932): a member of a share group gets records.

* v2: the mode that gives exactly so many records (KIP-1206), renewal of locks (KIP-1222).
* A client needs READ on the group and on each topic.
* `groupstorm.share_records` decides. Above its quota a client gets an empty response, and what it has
  acquired stays its own (KafkaApis.processShareFetchResponse).
"""

from __future__ import annotations

from functools import partial
from typing import Any

from groupstorm.broker.apis.api import Api, AskShareBroker, BrokerState, Call, Done, milliseconds
from groupstorm.broker.apis.rights import READ_GROUP
from groupstorm.broker.apis.share_requests import AnswerTopics, ask, response
from groupstorm.broker.authorization.acls import Operation
from groupstorm.broker.quotas.entities import CONSUMER_BYTE_RATE
from groupstorm.broker.share.logs import key_of, topic_of
from groupstorm.coordinator.errors import Error
from groupstorm.protocol.codec import encode_in_turns
from groupstorm.protocol.codec.shape import MILLISECOND
from groupstorm.share_records.messages import FetchedPartition, ShareFetch, ShareFetchResponse
from groupstorm.share_records.ports import TopicPartition
from groupstorm.turns import Turns

_BATCH_OPTIMIZED, _RECORD_LIMIT = 0, 1
#: In front of a response; its size counts with it.
_LENGTH_BYTES = 4
#: So many bytes of records are copied in the time of a unit of work.
_BYTES_PER_WORK = 20_000


def handle(state: BrokerState, call: Call) -> Turns[AskShareBroker | Done]:
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
    return ask(state, call, ShareFetch, own, partial(_respond, state, call))


API = Api(78, "ShareFetch", 1, 2, handle, older=(), needs=(READ_GROUP,), on_topics=Operation.READ)


def _respond(state: BrokerState, call: Call, answer: ShareFetchResponse) -> Turns[Any]:
    topics = AnswerTopics(state, call)
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
        yield 2 + len(found.acquired) + len(records) // _BYTES_PER_WORK
    whole = response(call, lock_ms=answer.lock_ms, **topics.fields("ShareFetchableTopicResponse"))
    throttle_ms = yield from _throttle_ms(state, call, whole)
    if throttle_ms:
        return response(call, lock_ms=answer.lock_ms, throttle_time=throttle_ms * MILLISECOND)
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


def _throttle_ms(state: BrokerState, call: Call, response: Any) -> Turns[int]:
    """For how long the client's quota wants nothing to be sent; the bytes of the response count otherwise."""
    if state.quotas.most_at_once(CONSUMER_BYTE_RATE, call.client) is None:
        return 0
    size_bytes = _LENGTH_BYTES + sum(map(len, (yield from encode_in_turns(response))))
    row = (CONSUMER_BYTE_RATE, call.client, size_bytes, state.now_ms)
    throttle_ms = state.quotas.record(*row)
    if throttle_ms:
        state.quotas.take_back(*row)
    return throttle_ms
