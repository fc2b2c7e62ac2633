"""Kafka Streams applications in manifests: how they are known, and what their rollout assumes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from groupstorm.storms.deployments.manifests.choice import Consumer
from groupstorm.storms.deployments.manifests.kafka_environment import Found
from groupstorm.storms.deployments.manifests.property_names import (
    OF_LISTENERS,
    OF_STREAMS,
    PROCESSING_GUARANTEE,
    relaxed,
)
from groupstorm.storms.scenario.consistency import OF_PLAIN_CONSUMERS
from groupstorm.storms.scenario.setting_names import (
    GROUP_PROTOCOL,
    OFFSET_RESET,
    OUTLASTS,
    STATEFUL_SET,
    STREAMS,
    Known,
)
from groupstorm.storms.scenario.settings import BY_NAME

#: StreamsConfig of 4.3.1 refuses group.instance.id with group.protocol=streams, that of 4.4.0 takes it.
STATIC_STREAMS: Final = "it needs Kafka Streams 4.4, as older ones do not start with both (ConfigException)"
#: Properties of consumers that Kafka Streams sets itself (StreamsConfig), or that its threads do not have.
_SET_BY_STREAMS: Final = frozenset(
    {
        "partition.assignment.strategy",
        "group.remote.assignor",
        "enable.auto.commit",
        "auto.commit.interval.ms",
        OFFSET_RESET,
    }
)
#: The application has run so long before the rollout, with its state on the disks of its pods.
_SETTLED: Final[Mapping[str, Any]] = {
    "first_hosts_have_state": True,
    "warm_up_ms": 3_600_000,
    "settle_timeout_ms": 21_600_000,
}


def is_streams(properties: Sequence[Found], given: Mapping[str, Any]) -> bool:
    """Whether the application is one of Kafka Streams: as --set says, or by properties that others lack."""
    if "application" in given:
        return bool(given["application"] == STREAMS)
    return any(
        one.property in OF_STREAMS or (one.property == GROUP_PROTOCOL and one.value == STREAMS)
        for one in properties
    )


def not_used(found: Found, of_streams: bool) -> str | None:
    """The reason why the application does not have a property, which the consumers beside it may have."""
    name = relaxed(found.name)
    if not of_streams:
        is_others = found.property in OF_STREAMS or name.startswith("springkafkastreams")
        return "of Kafka Streams, and application is consumer" if is_others else None
    of_consumer = name.startswith("springkafkaconsumer") and found.property != "group.id"
    if of_consumer or found.property in OF_LISTENERS:
        return "of consumers beside the Kafka Streams application"
    if found.property == OFFSET_RESET:
        return "without effect, as all positions are committed"
    return "Kafka Streams sets it itself" if found.property in _SET_BY_STREAMS else None


def measured_in_streams(of_trace: Mapping[str, Known]) -> dict[str, Known]:
    """The settings of a trace that Kafka Streams has; of several topics the one with most partitions."""
    found = {name: one for name, one in of_trace.items() if name not in OF_PLAIN_CONSUMERS | _SET_BY_STREAMS}
    if topics := of_trace.get("topic_partitions"):
        found["partitions"] = topics._replace(value=max(topics.value.values()))
    return found


def take_application(
    settings: dict[str, Any],
    given: Mapping[str, Any],
    consumer: Consumer,
    assumed: list[str],
    findings: list[str],
) -> None:
    """Add the settings of an application whose state has been in place for long, and sentences on its disks.

    ``given``: the settings of the command line; state_bytes 0 says that it keeps no state.
    """
    settings |= {"application": STREAMS, **_SETTLED}
    has_state = bool(given["state_bytes"])
    if not has_state:
        settings["stateless_topics"] = given.get("topics", 1)
    assumed.append("application=streams (its settings are Kafka Streams'; else --set application=consumer)")
    assumed.append("one sub-topology, whose tasks all have as much state")
    if any(relaxed(one.name).startswith("ksql") for one in consumer.properties):
        assumed.append("one query of ksqlDB, as each is an application and a group of its own")
    beside = [one for one in consumer.properties if one.property == "group.id"]
    if beside:
        findings.append(
            f"{beside[0].name}={beside[0].value}: the figures are of the Kafka Streams application alone. "
            "--set application=consumer asks about the consumers of that group, which restart with it."
        )
    if has_state and settings["deployment"] != STATEFUL_SET:
        assumed.append("a new pod begins without state, as the disk of the old one goes with it")
    elif has_state and consumer.workload.keeps_disk:
        assumed.append("a pod finds the state of the one before it (volumeClaimTemplates)")
    elif has_state and OUTLASTS not in given:
        settings[OUTLASTS] = False
        findings.append(
            "The StatefulSet has no volumeClaimTemplates: each new pod restores its state. If that lies on a "
            f"disk that outlasts the pod, --set {OUTLASTS}=true."
        )
    if has_state and "restore_mb_s" not in given:
        assumed.append(f"restore_mb_s={BY_NAME['restore_mb_s'].default} (what a thread restores a second)")
    guarantees = [one.value or "" for one in consumer.properties if one.property == PROCESSING_GUARANTEE]
    if any(one.startswith("exactly_once") for one in guarantees):
        findings.append(
            f"{PROCESSING_GUARANTEE}={guarantees[0]}: the figures are those of at_least_once. Under "
            "exactly-once nothing is processed twice, and an instance that is killed loses the state of its "
            "active tasks."
        )
