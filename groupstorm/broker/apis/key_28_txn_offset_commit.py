"""TxnOffsetCommit (key 28), versions 0-6: offsets that count when the transaction is committed (KIP-98).

* v2: leader epoch. v3: member, instance and generation (KIP-447). v4: TRANSACTION_ABORTABLE. v5: the group is
  added to the transaction by this request (KIP-890). v6: topic ids instead of names (KIP-1319).
* Partitions that do not exist are answered here, as for OffsetCommit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from groupstorm.broker.apis.api import (
    EACH_PARTITION,
    AskCoordinator,
    BrokerState,
    Call,
    CoordinatorsApi,
    Done,
)
from groupstorm.broker.apis.lookup import (
    TopicKey,
    find_topic,
    partition_error,
    read_offset,
    topic_key,
    topics_with_errors,
)
from groupstorm.broker.apis.rights import READ_GROUP, WRITE_TRANSACTIONAL_ID
from groupstorm.broker.authorization.acls import Operation
from groupstorm.coordinator import messages
from groupstorm.coordinator.errors import Error
from groupstorm.turns import Turns

_FIRST_SAYING_ABORTABLE = 4
_FIRST_ADDING_THE_GROUP = 5


def handle(state: BrokerState, call: Call) -> Turns[AskCoordinator | Done]:
    message = call.message
    errors: dict[tuple[TopicKey, int], Error] = {}
    keys: dict[str, TopicKey] = {}
    offsets: dict[str, dict[int, messages.CommittedOffset]] = {}
    for topic in message.topics:
        found = known, _ = find_topic(state, call, topic)
        name, key = "" if known is None else known.name, topic_key(topic)
        keys[name] = key
        for partition in topic.partitions:
            yield 2
            number = partition.partition_index
            error = errors[key, number] = partition_error(found, number)
            if error is Error.NONE:
                offsets.setdefault(name, {})[number] = read_offset(partition)

    def finish(answers: Sequence[messages.OffsetCommitResponse]) -> Turns[Any]:
        for answer in answers:
            errors.update({(keys[name], number): error for name, number, error in answer.partitions})
        return (yield from _response(call, errors))

    if not offsets:
        return Done((yield from finish(())))
    error = _check(state, call)
    if error is not Error.NONE:
        partitions = [(topic, number, error) for topic, numbers in offsets.items() for number in numbers]
        return Done((yield from finish([messages.OffsetCommitResponse(tuple(partitions))])))
    request = messages.TxnOffsetCommit(
        group=message.group_id,
        producer_id=message.producer_id,
        member_id=getattr(message, "member_id", messages.NO_MEMBER_ID),
        group_instance_id=getattr(message, "group_instance_id", None),
        generation=getattr(message, "generation_id", messages.NO_GENERATION),
        offsets=offsets,
        version=call.version,
        client_id=call.client_id,
    )
    return AskCoordinator((request,), finish)


API = CoordinatorsApi(
    28, "TxnOffsetCommit", 0, 6, handle, older=(3, 4), needs=(WRITE_TRANSACTIONAL_ID, READ_GROUP),
    on_topics=Operation.READ, errors=EACH_PARTITION,
)  # fmt: skip


def _check(state: BrokerState, call: Call) -> Error:
    message = call.message
    if not message.group_id:
        return Error.INVALID_GROUP_ID
    if not state.coordinates_group(call, message.group_id):
        return Error.NOT_COORDINATOR
    who = (message.transactional_id, message.producer_id, message.producer_epoch)
    partition = state.offsets_partition(message.group_id)
    if call.version >= _FIRST_ADDING_THE_GROUP:
        error = state.transactions.add_partitions(*who, (partition,), call.now_ms)
        return Error.INVALID_PRODUCER_EPOCH if error is Error.PRODUCER_FENCED else error
    error = state.transactions.verify(*who, partition)
    if error is Error.INVALID_TXN_STATE and call.version >= _FIRST_SAYING_ABORTABLE:
        return Error.TRANSACTION_ABORTABLE
    return error


def _response(call: Call, errors: dict[tuple[TopicKey, int], Error]) -> Turns[Any]:
    topics = yield from topics_with_errors(call, "TxnOffsetCommit", errors)
    return call.types.response(topics=topics)
