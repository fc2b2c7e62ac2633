"""The one table of the kinds of group: what the modules that serve every kind get from the wings."""

from __future__ import annotations

from typing import get_args

from groupstorm.coordinator.classic.changes import rescue
from groupstorm.coordinator.consumer.group import ConsumerGroup
from groupstorm.coordinator.consumer.records import ConsumerRecord
from groupstorm.coordinator.shard import Wings
from groupstorm.coordinator.share.group import ShareGroup
from groupstorm.coordinator.share.records import ShareRecord
from groupstorm.coordinator.streams.group import StreamsGroup
from groupstorm.coordinator.streams.records import StreamsRecord

WINGS = Wings(
    {
        **dict.fromkeys(get_args(ConsumerRecord), ConsumerGroup),
        **dict.fromkeys(get_args(StreamsRecord), StreamsGroup),
        **dict.fromkeys(get_args(ShareRecord), ShareGroup),
    },
    rescue,
)
