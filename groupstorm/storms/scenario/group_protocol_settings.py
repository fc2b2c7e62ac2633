"""The settings of groups whose broker assigns (KIP-848, KIP-1071), and those that their members lack."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from groupstorm.problems import InputError
from groupstorm.storms.scenario.setting_names import SHARE_HEARTBEAT, SHARE_SESSION_TIMEOUT

CLASSIC: Final = "classic"
CONSUMER: Final = "consumer"
STREAMS_PROTOCOL: Final = "streams"
SHARE: Final = "share"
GROUP_PROTOCOL: Final = "group.protocol"
CONSUMER_SESSION_TIMEOUT: Final = "group.consumer.session.timeout.ms"
STREAMS_SESSION_TIMEOUT: Final = "group.streams.session.timeout.ms"
STREAMS_HEARTBEAT: Final = "group.streams.heartbeat.interval.ms"

#: Settings that Kafka's consumer refuses with a group.protocol, and what takes their place (ConsumerConfig:
#: CLASSIC_PROTOCOL_UNSUPPORTED_CONFIGS, CONSUMER_PROTOCOL_UNSUPPORTED_CONFIGS).
UNSUPPORTED: Final[Mapping[str, Mapping[str, str]]] = {
    CLASSIC: {"group.remote.assignor": "partition.assignment.strategy"},
    CONSUMER: {
        "partition.assignment.strategy": "group.remote.assignor",
        "session.timeout.ms": CONSUMER_SESSION_TIMEOUT,
        "heartbeat.interval.ms": "group.consumer.heartbeat.interval.ms",
    },
    STREAMS_PROTOCOL: {
        "session.timeout.ms": STREAMS_SESSION_TIMEOUT,
        "heartbeat.interval.ms": STREAMS_HEARTBEAT,
    },
    SHARE: {
        "session.timeout.ms": SHARE_SESSION_TIMEOUT,
        "heartbeat.interval.ms": SHARE_HEARTBEAT,
    },
}

_LEADERS: Final = f"{GROUP_PROTOCOL} {CLASSIC}, in which the leader's task assignor has it"
_STATE: Final = "num.standby.replicas, as Kafka 4.4.0 places no warm-ups in streams groups"
#: Settings that have no effect on a streams group, whose tasks the broker places -> what to use.
IDLE_IN_STREAMS_GROUPS: Final[Mapping[str, str]] = {
    **UNSUPPORTED[STREAMS_PROTOCOL],
    "group.initial.rebalance.delay.ms": "group.streams.initial.rebalance.delay.ms",
    **dict.fromkeys(
        ("max.warmup.replicas", "acceptable.recovery.lag", "probing.rebalance.interval.ms"), _STATE
    ),
    **dict.fromkeys(
        (
            "task.assignor",
            "trade_off",
            "near_zero_gap",
            "watch_list",
            "metadata_version",
            "rack.aware.assignment.strategy",
            "rack.aware.assignment.traffic_cost",
            "rack.aware.assignment.non_overlap_cost",
            "rack.aware.assignment.tags",
            "standby_placement",
            "reliable_standbys",
            "tags_or_racks",
        ),
        _LEADERS,
    ),
}


def refuse_unsupported(where: str, overlay: Mapping[str, Any]) -> None:
    """A group.protocol and settings that are given with it but that its members do not have.

    Raises InputError. The settings of a whole file may have both, for variants of either protocol.
    """
    protocol = overlay.get(GROUP_PROTOCOL)
    for name, instead in UNSUPPORTED.get(protocol, {}).items() if isinstance(protocol, str) else ():
        if name in overlay:
            raise InputError(
                f"{where}{name}: {overlay[name]!r}: members with {GROUP_PROTOCOL} {protocol} do not have it "
                f"(Kafka's consumer refuses it), use {instead}"
            )
