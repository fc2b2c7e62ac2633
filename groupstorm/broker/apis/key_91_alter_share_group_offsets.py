"""AlterShareGroupOffsets (key 91), version 0 (KIP-932): a share group without members begins elsewhere.

* A client needs READ on the group and on each topic.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from groupstorm.broker.apis.api import AskCoordinator, BrokerState, Call, CoordinatorsApi
from groupstorm.broker.apis.rights import READ_GROUP, SENTENCES, topic_error
from groupstorm.broker.authorization.acls import Operation
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.share.messages import AlterShareGroupOffsets, AlterShareGroupOffsetsResponse
from groupstorm.turns import Turns

_SENTENCES = {
    **SENTENCES,
    Error.UNKNOWN_TOPIC_OR_PARTITION: "This server does not host this topic-partition.",
}


def handle(state: BrokerState, call: Call) -> Turns[AskCoordinator]:
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
            return call.types.response(
                error_code=answer.error, error_message=answer.error_message, responses=()
            )
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


API = CoordinatorsApi(
    91, "AlterShareGroupOffsets", 0, 0, handle, older=(),
    needs=(READ_GROUP._replace(sentence=SENTENCES[Error.GROUP_AUTHORIZATION_FAILED]),),
    on_topics=Operation.READ,
)  # fmt: skip
