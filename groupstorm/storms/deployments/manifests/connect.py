"""Strimzi's clusters of Kafka Connect: their groups are not emulated; a restart's cost is known."""

from __future__ import annotations

import re

from groupstorm.storms.deployments.manifests.objects import KubernetesObject
from groupstorm.wording import counted, seconds

#: The kinds, with the group.id that Strimzi gives their workers.
CONNECT_KINDS = {"KafkaConnect": "connect-cluster", "KafkaMirrorMaker2": "mirrormaker2-cluster"}
#: The default of scheduled.rebalance.max.delay.ms, in seconds.
_DELAY_S = 300


def connect_sentence(found: KubernetesObject) -> str:
    """The sentence on what the restart of a worker costs, and on why there are no figures."""
    spec = found.fields.at("spec")
    place = spec.at("target") if "target" in spec else spec
    for cluster in spec.objects("clusters"):
        if cluster.text("alias") == spec.text("connectCluster"):
            place = cluster
    config = place.at("config")
    group = config.scalar("group.id") or place.text("groupId") or CONNECT_KINDS[found.kind]
    written = config.scalar("scheduled.rebalance.max.delay.ms") or ""
    delay = seconds(int(written) / 1000 if re.fullmatch(r"[0-9]{1,9}", written) else _DELAY_S)
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
