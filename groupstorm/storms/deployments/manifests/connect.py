"""Strimzi's clusters of Kafka Connect: their groups are not emulated; a restart's cost is known."""

from __future__ import annotations

from groupstorm.storms.deployments.manifests.objects import Fields, KubernetesObject
from groupstorm.wording import counted, seconds

#: The kinds, with the group.id that Strimzi gives their workers.
CONNECT_KINDS = {"KafkaConnect": "connect-cluster", "KafkaMirrorMaker2": "mirrormaker2-cluster"}
#: The default of scheduled.rebalance.max.delay.ms.
_DELAY_MS = 300_000


def connect_sentence(found: KubernetesObject) -> str:
    """The sentence on what the restart of a worker costs, and on why there are no figures."""
    spec = found.fields.at("spec")
    config, group = _config(spec)
    group = config.scalar("group.id") or group or CONNECT_KINDS[found.kind]
    delay_ms = config.scalar("scheduled.rebalance.max.delay.ms") or ""
    delay = seconds((int(delay_ms) if delay_ms.isascii() and delay_ms.isdigit() else _DELAY_MS) / 1000)
    cost = f"leaves its tasks idle for up to scheduled.rebalance.max.delay.ms ({delay})"
    if config.scalar("connect.protocol") == "eager":
        cost = "stops the tasks of all workers when it goes, and when it comes back (connect.protocol=eager)"
    workers = counted(spec.whole("replicas", 1), "worker")
    return (
        f"{found}: {workers} of Kafka Connect, group.id {group}: Connect's groups have a protocol of their "
        "own, which is not emulated, so there are no figures. The restart of a worker "
        f"{cost}, and Strimzi restarts one after the other. Consumers of sink connectors are in groups of "
        "their own. For a consumer give a file with its Deployment or StatefulSet"
    )


def _config(spec: Fields) -> tuple[Fields, str]:
    """The workers' configuration, and the group that the object names beside it."""
    alias = spec.text("connectCluster")
    for cluster in spec.objects("clusters"):
        if cluster.text("alias") == alias:
            return cluster.at("config"), ""
    target = spec.at("target") if "target" in spec else spec
    return target.at("config"), target.text("groupId")
