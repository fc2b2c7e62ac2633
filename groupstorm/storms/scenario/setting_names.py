"""The settings of a scenario: the table of all, the names that the code asks for, and what protocols lack.

Settings that Kafka has are spelled as Kafka spells them. A row in a file has the name, kind and default (as
Python writes it), the bounds, the values allowed, "unwritten" if it is not `Setting.in_files`, and the
meaning.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, NamedTuple

from groupstorm.problems import InputError
from groupstorm.tables import rows

MAX_MEMBERS = 100_000
MAX_PARTITIONS = 1_000_000
INT_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of the table. ``kind`` chooses the function that reads its value (`settings._READERS`).

    ``in_files``: False if a resolved scenario names it only when it differs from its default: so the files of
    runs that do not use the setting stay as they were before there was such a setting.
    """

    name: str
    kind: str
    default: Any
    meaning: str
    least: int = 0
    most: int = INT_MAX
    allowed: tuple[str, ...] = ()
    in_files: bool = True


def settings_of(table: str) -> tuple[Setting, ...]:
    """The settings of one of the tables."""
    return tuple(_setting(row) for row in rows(__package__, f"tables/{table}"))


def _setting(row: list[str]) -> Setting:
    name, kind, default, bounds, allowed, unwritten, meaning = row
    least, _, most = bounds.partition("..")
    values = tuple(allowed.split(",")) if allowed else ()
    of_default = ast.literal_eval(default)
    return Setting(
        name, kind, of_default, meaning, int(least or 0), int(most or INT_MAX), values, not unwritten
    )


#: The settings of Kafka Streams applications (`application: streams`).
STREAMS_SETTINGS: tuple[Setting, ...] = settings_of("streams")

SETTINGS: tuple[Setting, ...] = (
    *settings_of("group"),
    *settings_of("consumer"),
    *settings_of("application"),
    *settings_of("consumer_groups"),
    *settings_of("share_groups"),
    *settings_of("world"),
    *settings_of("deployments"),
    *STREAMS_SETTINGS,
    *settings_of("steps"),
)

#: Values of `application`, and consumer of `group.protocol`, too.
CONSUMER, STREAMS = "consumer", "streams"

# who replaces processes, and how many run: a HorizontalPodAutoscaler on the group's lag, or KEDA

#: Values of `deployment`.
PROCESSES, DEPLOYMENT, STATEFUL_SET = "processes", "deployment", "statefulset"
#: Values of `ready_when`.
POLLS, ASSIGNED, RUNS = "polls", "assigned", "runs"
#: Values of `autoscaler`.
NO_AUTOSCALER, HPA, KEDA = "none", "hpa", "keda"

#: Values of `commits`.
BACKGROUND: Final = "background"
BATCH: Final = "batch"
RECORD: Final = "record"
INTERVAL: Final = "interval"
NEVER: Final = "never"
#: Values of `auto.offset.reset`.
EARLIEST: Final = "earliest"
NONE: Final = "none"

#: Values of `share.acquire.mode` and `share.acknowledgement.mode`.
RECORD_LIMIT: Final = "record_limit"
IMPLICIT, EXPLICIT = "implicit", "explicit"
#: group.share.max.size of a broker is this at most.
LARGEST_GROUP: Final = 1_000

#: Values of `group.protocol`, beside CONSUMER.
CLASSIC, STREAMS_PROTOCOL, SHARE = "classic", "streams", "share"

#: Settings that Kafka's consumer refuses with a group.protocol, and what takes their place (ConsumerConfig:
#: CLASSIC_PROTOCOL_UNSUPPORTED_CONFIGS, CONSUMER_PROTOCOL_UNSUPPORTED_CONFIGS).
UNSUPPORTED: Final[Mapping[str, Mapping[str, str]]] = {
    CLASSIC: {"group.remote.assignor": "partition.assignment.strategy"},
    CONSUMER: {
        "partition.assignment.strategy": "group.remote.assignor",
        "session.timeout.ms": "group.consumer.session.timeout.ms",
        "heartbeat.interval.ms": "group.consumer.heartbeat.interval.ms",
    },
    STREAMS_PROTOCOL: {
        "session.timeout.ms": "group.streams.session.timeout.ms",
        "heartbeat.interval.ms": "group.streams.heartbeat.interval.ms",
    },
    SHARE: {
        "session.timeout.ms": "group.share.session.timeout.ms",
        "heartbeat.interval.ms": "group.share.heartbeat.interval.ms",
    },
}

#: Settings that a broker has for classic groups alone, and what it has for a consumer or share group.
OF_CLASSIC_GROUPS: Final = {
    "group.max.size": "group.{}.max.size",
    "group.initial.rebalance.delay.ms": "group.{}.assignment.interval.ms",
}

_LEADERS: Final = f"group.protocol {CLASSIC}, in which the leader's task assignor has it"
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
    protocol = overlay.get("group.protocol")
    for name, instead in UNSUPPORTED.get(protocol, {}).items() if isinstance(protocol, str) else ():
        if name in overlay:
            raise InputError(
                f"{where}{name}: {overlay[name]!r}: members with group.protocol {protocol} do not have it "
                f"(Kafka's consumer refuses it), use {instead}"
            )


class How(StrEnum):
    """observed: a row of the trace says it. inferred: a rule says it. assumed: nothing says it."""

    OBSERVED = "observed"
    INFERRED = "inferred"
    ASSUMED = "assumed"
    GIVEN = "given"


class Known(NamedTuple):
    """A value with its reason: the row behind it, the rule, or what would say it."""

    value: Any
    how: How
    why: str

    @property
    def comment(self) -> str:
        return f"{self.how}: {self.why}"


def observed(value: Any, why: str) -> Known:
    return Known(value, How.OBSERVED, why)


def inferred(value: Any, why: str) -> Known:
    return Known(value, How.INFERRED, why)


def assumed(value: Any, why: str) -> Known:
    return Known(value, How.ASSUMED, why)


class Measured(NamedTuple):
    """Settings that a trace says. ``source``: the trace. ``unknown``: settings that it does not say, with the
    reasons."""

    source: str
    settings: Mapping[str, Known]
    unknown: Mapping[str, str]


NO_TRACE: Final = Measured("", {}, {})
