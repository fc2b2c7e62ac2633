"""The bytes inside JoinGroup and SyncGroup: ConsumerProtocol and the user data of assignors.

Every length is checked before it is used. Unreadable bytes raise `UserDataError`, and nothing else;
`SchemaError` is the part of it that Kafka's own callers expect.

The module-level caches in here map equal input to equal, immutable values, so threads may share them.
"""

from __future__ import annotations

from groupstorm.assignors.userdata.consumer_protocol import (
    Assignment,
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from groupstorm.assignors.userdata.sticky import (
    NO_GENERATION,
    decode_generation,
    decode_sticky,
    encode_generation,
    encode_sticky,
)
from groupstorm.assignors.userdata.wire import SchemaError, TopicPartition, UserDataError, java_sorted

__all__ = [
    "NO_GENERATION",
    "Assignment",
    "SchemaError",
    "Subscription",
    "TopicPartition",
    "UserDataError",
    "decode_assignment",
    "decode_generation",
    "decode_sticky",
    "decode_subscription",
    "encode_assignment",
    "encode_generation",
    "encode_sticky",
    "encode_subscription",
    "java_sorted",
]
