"""DescribeLogDirs (key 35), versions 1-5: the sizes of a broker's partitions (KIP-113, KIP-827).

Needs DESCRIBE on the cluster. A broker has one folder, which it calls by the default of Kafka's ``log.dir``.
v3: an error for the whole. v4: the bytes of the disk, which are not known (-1). v5: cordoned folders.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from groupstorm.broker.apis.api import Api, BrokerState, Call, Done
from groupstorm.broker.apis.rights import on_cluster
from groupstorm.broker.authorization.acls import Operation
from groupstorm.broker.kafka_configs import kafka_configs
from groupstorm.broker.log.topics import Topic
from groupstorm.coordinator.errors import Error
from groupstorm.turns import Turns, in_turns

_UNKNOWN_BYTES = -1


def handle(state: BrokerState, call: Call) -> Turns[Done]:
    make, topics = call.types.make, []
    for topic, wanted in _asked(state, call):
        partitions = yield from in_turns(
            make(
                "DescribeLogDirsPartition",
                partition_index=index,
                partition_size=topic.partitions[index].size_bytes,
                offset_lag=0,
                is_future_key=False,
            )
            for index in wanted
            if topic.partition(index) is not None and call.node in topic.replicas[index]
        )
        if partitions:
            topics.append(make("DescribeLogDirsTopic", name=topic.name, partitions=partitions))
    folder = make(
        "DescribeLogDirsResult",
        error_code=Error.NONE,
        log_dir=kafka_configs("broker")["log.dir"].default,
        topics=tuple(topics),
        total_bytes=_UNKNOWN_BYTES,
        usable_bytes=_UNKNOWN_BYTES,
        is_cordoned=False,
    )
    return Done(call.types.response(error_code=Error.NONE, results=(folder,)))


API = Api(
    35, "DescribeLogDirs", 1, 5, handle, older=(2, 4), needs=(on_cluster(Operation.DESCRIBE, None),)
)  # fmt: skip


def _asked(state: BrokerState, call: Call) -> Iterable[tuple[Topic, Iterable[int]]]:
    """Topics with the partitions that the request is about; null: all."""
    if call.message.topics is None:
        return [(topic, range(len(topic.partitions))) for topic in state.topics]
    found: list[tuple[Topic, Any]] = []
    for asked in call.message.topics:
        topic = state.topics.get(asked.topic)
        if topic is not None:
            found.append((topic, asked.partitions))
    return found
