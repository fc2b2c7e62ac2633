"""The protocols of groups, and the settings that a consumer leaves to another protocol."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from groupstorm.problems import InputError


class GroupProtocol(StrEnum):
    """group.protocol of a client: who assigns partitions or tasks."""

    #: A member of the group does (JoinGroup, SyncGroup, Heartbeat).
    CLASSIC = "classic"
    #: The broker does (ConsumerGroupHeartbeat, KIP-848).
    CONSUMER = "consumer"
    #: The broker does, to threads of Kafka Streams (StreamsGroupHeartbeat, KIP-1071).
    STREAMS = "streams"
    #: The broker does, each partition to several consumers (ShareGroupHeartbeat, KIP-932).
    SHARE = "share"


#: The protocols of plain consumers.
OF_CONSUMERS = (GroupProtocol.CLASSIC, GroupProtocol.CONSUMER)


#: The settings that a consumer refuses if they are given (ConsumerConfig.checkUnsupportedConfigsPostProcess,
#: 4.3.1), by protocol, and what to do instead.
_REFUSED: Mapping[GroupProtocol, Mapping[str, str]] = {
    GroupProtocol.CLASSIC: {
        "group.remote.assignor": "leave it out, and set partition.assignment.strategy",
    },
    GroupProtocol.CONSUMER: {
        "partition.assignment.strategy": "leave it out, and set group.remote.assignor",
        "heartbeat.interval.ms": "leave it out: the broker has group.consumer.heartbeat.interval.ms",
        "session.timeout.ms": "leave it out: the broker has group.consumer.session.timeout.ms",
    },
}


def refuse_settings(protocol: GroupProtocol, given: Mapping[str, object]) -> None:
    """Raise InputError if a consumer that speaks ``protocol`` refuses one of the settings that are given.

    ``given``: Kafka's names -> values, without defaults.
    """
    for name, remedy in _REFUSED[protocol].items():
        if name in given:
            raise InputError(f"{name}: {given[name]} cannot be set with group.protocol={protocol}: {remedy}")
