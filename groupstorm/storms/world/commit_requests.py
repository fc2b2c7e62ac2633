"""Positions as the request that commits them."""

from __future__ import annotations

from collections.abc import Mapping

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.member_session import Generation
from groupstorm.clients.requests import offset_commit
from groupstorm.coordinator.messages import CommittedOffset, OffsetCommit


def commit_request(
    config: ConsumerConfig, positions: Mapping[TopicPartition, int], sent: Generation
) -> OffsetCommit:
    """A commit of these positions, sent in that generation."""
    offsets: dict[str, dict[int, CommittedOffset]] = {}
    for (topic, partition), position in positions.items():
        offsets.setdefault(topic, {})[partition] = CommittedOffset(position)
    return offset_commit(config, sent, offsets)
