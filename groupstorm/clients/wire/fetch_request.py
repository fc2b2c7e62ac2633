"""A Fetch request of a consumer, without a fetch session."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, NamedTuple

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.wire.cluster import ClusterClient
from groupstorm.clients.wire.connection import Build, ClientApi, RequestTypes
from groupstorm.clients.wire.positions import Position

#: Topics by name: from version 13 on they are asked for by id (KIP-516).
FETCH = ClientApi(1, "Fetch", 4, 12)

_CONSUMER = -1  # the replica id of a client that is no broker
#: No fetch session (KIP-227): every request names all of its partitions.
_NO_SESSION, _FINAL_EPOCH = 0, -1


class FetchSizes(NamedTuple):
    """How much a broker answers, and how long it waits for ``min_bytes``."""

    min_bytes: int
    max_bytes: int
    max_wait_ms: int
    max_partition_bytes: int


def fetch_request(
    cluster: ClusterClient,
    plan: Mapping[TopicPartition, Position],
    sizes: FetchSizes,
    read_committed: bool,
) -> Build:
    """A request for these partitions, each from its position on."""
    by_topic: dict[str, dict[int, Position]] = {}
    for (topic, number), position in plan.items():
        by_topic.setdefault(topic, {})[number] = position

    def partitions(types: RequestTypes, topic: str, positions: Mapping[int, Position]) -> tuple[Any, ...]:
        made = []
        for number, position in positions.items():
            leader = cluster.leader(TopicPartition(topic, number))
            made.append(
                types.make(
                    "FetchPartition",
                    partition=number,
                    current_leader_epoch=-1 if leader is None else leader.epoch,
                    fetch_offset=position.offset,
                    last_fetched_epoch=-1,
                    log_start_offset=-1,
                    partition_max_bytes=sizes.max_partition_bytes,
                )
            )
        return tuple(made)

    def build(types: RequestTypes) -> Any:
        topics = tuple(
            types.make("FetchTopic", topic=topic, partitions=partitions(types, topic, positions))
            for topic, positions in by_topic.items()
        )
        return types.make(
            types.root.__name__,
            cluster_id=None,
            replica_id=_CONSUMER,
            max_wait=datetime.timedelta(milliseconds=sizes.max_wait_ms),
            min_bytes=sizes.min_bytes,
            max_bytes=sizes.max_bytes,
            isolation_level=int(read_committed),
            session_id=_NO_SESSION,
            session_epoch=_FINAL_EPOCH,
            topics=topics,
            forgotten_topics_data=(),
            rack_id="",
        )

    return build
