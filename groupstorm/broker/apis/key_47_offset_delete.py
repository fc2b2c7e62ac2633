"""OffsetDelete (key 47), version 0: a group forgets what it has committed for partitions (KIP-496).

Partitions that do not exist are answered here, UNKNOWN_TOPIC_OR_PARTITION
(KafkaApis.handleOffsetDeleteRequest).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from groupstorm.broker.apis.api import AskCoordinator, AskingApi, BrokerState, Call, Done, Right
from groupstorm.broker.apis.lookup import TopicKey, find_topic, partition_error, topics_with_errors
from groupstorm.broker.authorization.acls import Operation, ResourceType
from groupstorm.coordinator import messages
from groupstorm.coordinator.errors import Error
from groupstorm.turns import Turns


def handle(state: BrokerState, call: Call) -> Turns[AskCoordinator | Done]:
    errors: dict[tuple[TopicKey, int], Error] = {}
    wanted: dict[str, list[int]] = {}
    for topic in call.message.topics:
        found = find_topic(state, call, topic)
        for one in topic.partitions:
            error = errors[topic.name, one.partition_index] = partition_error(found, one.partition_index)
            if error is Error.NONE:
                wanted.setdefault(topic.name, []).append(one.partition_index)
            yield 2

    def finish(answers: Sequence[messages.OffsetDeleteResponse]) -> Turns[Any]:
        (answer,) = answers
        if answer.error is not Error.NONE:
            return call.types.response(error_code=answer.error, topics=())
        errors.update({(name, number): error for name, number, error in answer.partitions})
        return (yield from _response(call, errors))

    partitions = {name: tuple(numbers) for name, numbers in wanted.items()}
    return AskCoordinator((messages.OffsetDelete(call.message.group_id, partitions, call.client_id),), finish)


API = AskingApi(
    47, "OffsetDelete", 0, 0, handle, needs=(Right(Operation.DELETE, ResourceType.GROUP, "group_id"),),
    on_topics=Operation.READ,
)  # fmt: skip


def _response(call: Call, errors: dict[tuple[TopicKey, int], Error]) -> Turns[Any]:
    topics = yield from topics_with_errors(call, "OffsetDelete", errors)
    return call.types.response(error_code=Error.NONE, topics=topics)
