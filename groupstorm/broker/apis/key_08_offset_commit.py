"""OffsetCommit (key 8), versions 2-10.

* v6: leader epoch. v7: group.instance.id. v10: topic ids instead of names (KIP-848).
* Partitions that do not exist are answered here, UNKNOWN_TOPIC_OR_PARTITION or UNKNOWN_TOPIC_ID, and
  the others go on; the coordinator is not asked if nothing is left (KafkaApis.handleOffsetCommitRequest).
* v2-4 may say how long the offsets are kept (KIP-211).
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
    milliseconds,
)
from groupstorm.broker.apis.lookup import find_topic, partition_error, read_offset, same_topic
from groupstorm.broker.apis.rights import READ_GROUP
from groupstorm.broker.authorization.acls import Operation
from groupstorm.coordinator import messages
from groupstorm.coordinator.errors import Error
from groupstorm.turns import Turns

_NO_RETENTION = -1


def handle(state: BrokerState, call: Call) -> Turns[AskCoordinator | Done]:
    message = call.message
    names: list[str | None] = []
    refused: dict[tuple[int, int], Error] = {}
    offsets: dict[str, dict[int, messages.CommittedOffset]] = {}
    for index, asked in enumerate(message.topics):
        found = find_topic(state, call, asked)
        topic, _ = found
        names.append(None if topic is None else topic.name)
        yield 1
        for partition in asked.partitions:
            yield 2
            number = partition.partition_index
            error = partition_error(found, number)
            if topic is None or error is not Error.NONE:
                refused[index, number] = error
            else:
                offsets.setdefault(topic.name, {})[number] = read_offset(partition)

    def finish(answers: Sequence[messages.OffsetCommitResponse]) -> Turns[Any]:
        decided: dict[tuple[str | None, int], Error] = {
            (name, partition): error for answer in answers for name, partition, error in answer.partitions
        }
        return (yield from _response(call, names, refused, decided))

    if not offsets:
        return Done((yield from finish(())))
    request = messages.OffsetCommit(
        group=message.group_id,
        member_id=message.member_id,
        group_instance_id=getattr(message, "group_instance_id", None),
        generation=message.generation_id_or_member_epoch,
        offsets=offsets,
        version=call.version,
        client_id=call.client_id,
        retention_ms=_retention_ms(message),
    )
    return AskCoordinator((request,), finish)


API = CoordinatorsApi(
    8, "OffsetCommit", 2, 10, handle, older=(8, 9), needs=(READ_GROUP,), on_topics=Operation.READ,
    errors=EACH_PARTITION,
)  # fmt: skip


def _retention_ms(message: Any) -> int:
    retention = getattr(message, "retention_time", None)
    return _NO_RETENTION if retention is None else milliseconds(retention)


def _response(
    call: Call,
    names: Sequence[str | None],
    refused: dict[tuple[int, int], Error],
    decided: dict[tuple[str | None, int], Error],
) -> Turns[Any]:
    make = call.types.make
    topics = []
    for index, (asked, name) in enumerate(zip(call.message.topics, names, strict=True)):
        partitions = []
        for partition in asked.partitions:
            number = partition.partition_index
            error = refused.get((index, number)) or decided.get((name, number), Error.UNKNOWN_SERVER_ERROR)
            partitions.append(make("OffsetCommitResponsePartition", partition_index=number, error_code=error))
            yield 1
        topics.append(make("OffsetCommitResponseTopic", partitions=tuple(partitions), **same_topic(asked)))
        yield 1
    return call.types.response(topics=tuple(topics))
