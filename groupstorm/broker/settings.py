"""The settings of `groupstorm serve --set`: every setting of Kafka's that does something here, and no other.

A setting of Kafka's that would do nothing is refused with the reason: somebody who sets it expects an effect.
"""

from __future__ import annotations

from collections.abc import Mapping

from groupstorm.broker.config import OPTIONS as BROKER_OPTIONS
from groupstorm.broker.config import STANDARD_AUTHORIZER, BrokerConfig
from groupstorm.coordinator.config import COMPATIBILITY, CoordinatorConfig
from groupstorm.coordinator.config import OPTIONS as COORDINATOR_OPTIONS
from groupstorm.problems import InputError, did_you_mean

#: Why a setting of Kafka's would do nothing, by the beginning of its name.
REFUSED: Mapping[str, str] = {
    "offsets.commit.timeout.ms": "a commit is written at once and cannot time out",
    "offsets.load.buffer.size": "the offsets topic has no files",
    "offsets.topic.segment.bytes": "the offsets topic has no files",
    "offsets.topic.compression.codec": "the offsets topic has no files",
    "offsets.topic.replication.factor": "the offsets topic has no replicas",
    "group.coordinator.rebalance.protocols": "all kinds of group are served, always",
    "group.coordinator.": "the coordinator has no threads and no buffers",
    "group.consumer.assignor.offload.enable": "assignors have no thread of their own",
    "group.streams.assignor.offload.enable": "assignors have no thread of their own",
    "group.streams.assignors": "there is one assignor, sticky",
    "group.share.assignor.offload.enable": "assignors have no thread of their own",
    "group.share.assignors": "there is one assignor, simple",
    "group.streams.topology.description.plugin.class": "plugins are Java classes",
    "errors.deadletterqueue.": "dead letter topics are named dlq.*, and nobody creates them",
}

#: The settings of the group coordinator.
COORDINATOR_SETTINGS = (
    "group.initial.rebalance.delay.ms",
    "group.min.session.timeout.ms",
    "group.max.session.timeout.ms",
    "group.max.size",
    *(
        name
        for name in COORDINATOR_OPTIONS
        if name.startswith(("group.consumer.", "group.share.", "group.streams.")) and name not in REFUSED
    ),
    "offset.metadata.max.bytes",
    "offsets.retention.minutes",
    "offsets.retention.check.interval.ms",
    COMPATIBILITY,
)

#: All of them, sorted.
SETTINGS = tuple(sorted({*BROKER_OPTIONS, *COORDINATOR_SETTINGS}))

_OF_AUTHORIZER = ("super.users", "allow.everyone.if.no.acl.found")


def read_settings(settings: Mapping[str, str]) -> tuple[BrokerConfig, CoordinatorConfig]:
    """The broker's configuration and its group coordinator's. Raises InputError, which names the setting."""
    for name in settings:
        if name not in SETTINGS:
            raise InputError(f"option {name}: {_reason(name)}")
    broker = BrokerConfig.from_mapping(_only(settings, BROKER_OPTIONS))
    coordinator = CoordinatorConfig.from_mapping(_only(settings, COORDINATOR_OPTIONS))
    if broker.authorizer_class_name is None:
        for name in _OF_AUTHORIZER:
            if name in settings:
                raise InputError(
                    f"option {name}: does nothing without authorizer.class.name={STANDARD_AUTHORIZER}"
                )
    return broker, coordinator


def _only(settings: Mapping[str, str], known: Mapping[str, object]) -> dict[str, str]:
    return {name: value for name, value in settings.items() if name in known}


def _reason(name: str) -> str:
    if name in COORDINATOR_OPTIONS:
        why = next(why for beginning, why in REFUSED.items() if name.startswith(beginning))
        return f"a setting of Kafka's that would do nothing here: {why}; leave it out"
    return f"not known here{did_you_mean(name, SETTINGS)}; accepted are {', '.join(SETTINGS)}"
