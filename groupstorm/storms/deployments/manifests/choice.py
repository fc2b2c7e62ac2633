"""The choice of the workload of a manifest file that is the consumer, and what its rollout assumes if it is a
Kafka Streams application.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from groupstorm.problems import InputError
from groupstorm.storms.deployments.manifests.autoscalers import KAFKA_TRIGGERS, is_autoscaler, target_of
from groupstorm.storms.deployments.manifests.kafka_environment import Application, Found, kafka_properties
from groupstorm.storms.deployments.manifests.objects import (
    WORKLOADS,
    Fields,
    KubernetesObject,
    Workload,
    read_workload,
)
from groupstorm.storms.deployments.manifests.property_names import (
    CONSUMER_THREADS,
    LISTENER_CONCURRENCY,
    OF_LISTENERS,
    OF_STREAMS,
    PROCESSING_GUARANTEE,
    ConfigMaps,
    relaxed,
)
from groupstorm.storms.scenario.consistency import OF_PLAIN_CONSUMERS
from groupstorm.storms.scenario.setting_names import STATEFUL_SET, STREAMS, Known
from groupstorm.storms.scenario.settings import BY_NAME
from groupstorm.wording import counted, listed, seconds

_BUDGET = "PodDisruptionBudget"
#: Strimzi's object for a topic.
_TOPIC, _TOPIC_GROUP = "KafkaTopic", "kafka.strimzi.io"
#: Kinds that no rolling update of ours replaces, and what to ask instead.
_OTHER_WORKLOADS = {
    "DeploymentConfig": "give its spec.template as a Deployment with its replicas, and rollingParams as the "
    "rollingUpdate of its strategy",
    "ScaledJob": "each of its jobs is a consumer that comes and goes, with two rebalances, and no rollout "
    "replaces it: write a scenario with the steps add and stop",
    "Kustomization": "build it first, `kubectl kustomize DIR | groupstorm rollout -`",
    "HelmRelease": "render its chart first, `helm template CHART | groupstorm rollout -`",
    "FlinkDeployment": "Flink assigns partitions to its tasks itself: a rollout of it rebalances no consumer "
    "group",
    "KafkaSource": "its consumers run in the pods of Knative's StatefulSet kafka-source-dispatcher: give "
    "that, with its spec.consumers as --set members=N",
    "Rollout": "Argo Rollouts' steps are not read: give its spec.template as a Deployment with its maxSurge "
    "and maxUnavailable, or write a scenario with the step canary or blue-green",
    "DaemonSet": "give its spec.template as a Deployment with as many replicas as it has nodes, maxSurge 0 "
    "and its maxUnavailable (1, if it has none)",
}


@dataclass(frozen=True, slots=True)
class Consumer:
    """The workload, the Kafka properties of its containers, and the objects that belong to it.

    ``unseen``: what may hold more properties but cannot be read; ``unused``: how many objects of each kind
    say nothing about it; ``unused_properties``: Kafka's that no setting has; ``warnings``: sentences
    on what else may consume in its pods.
    """

    workload: Workload
    properties: tuple[Found, ...]
    unseen: tuple[str, ...]
    autoscaler: KubernetesObject | None
    budget: KubernetesObject | None
    topic: KubernetesObject | None
    unused: Mapping[str, int]
    unused_properties: tuple[str, ...]
    warnings: tuple[str, ...]


def choose_consumer(objects: Sequence[KubernetesObject], source: str, wanted: str | None) -> Consumer:
    """The workload of that name, or the only one, or the only one with Kafka settings. Raises InputError."""
    config_maps = {one.name: _data(one) for one in objects if one.kind == "ConfigMap"}
    workloads = [one for one in objects if one.kind in WORKLOADS]
    if not workloads:
        raise InputError(f"{source}: {_instead_of_a_workload(objects)}")
    scaled = {target_of(one)[1] for one in objects if _scales_kafka(one)}
    chosen = _chosen(workloads, scaled, config_maps, source, wanted)
    application, consuming = _application(chosen, config_maps)
    workload = read_workload(chosen, consuming[:1])
    containers = [*chosen.fields.at("spec", "template", "spec").objects("containers")]
    others = [containers[number].text("name") or "" for number in consuming[1:]]
    alone = f"The figures are of container {workload.container} alone"
    warnings = [f"{alone}: beside it {listed(others)} with Kafka settings, too."] if others else []
    properties = application.properties
    autoscaler = next((one for one in objects if _targets(one, workload)), None)
    budget = next((one for one in objects if one.kind == _BUDGET and _selects(one, workload)), None)
    topic = _topic(objects, properties)
    used = [chosen, autoscaler, budget, topic]
    maps = application.config_maps
    unused = Counter(
        one.kind
        for one in objects
        if not any(one is each for each in used) and not (one.kind == "ConfigMap" and one.name in maps)
    )
    return Consumer(
        workload, tuple(properties), tuple(application.unseen), autoscaler, budget, topic,
        dict(sorted(unused.items())), tuple(application.unused), tuple(warnings),
    )  # fmt: skip


def _instead_of_a_workload(objects: Sequence[KubernetesObject]) -> str:
    """The sentence on a file without a Deployment and a StatefulSet: what it has, and what to add."""
    for one in objects:
        if one.kind in CONNECT_KINDS:
            return connect_sentence(one)
    for one in objects:
        if is_autoscaler(one):
            kind, name = target_of(one)
            if kind in _OTHER_WORKLOADS:
                return f"{one} scales {kind} {name}: {_OTHER_WORKLOADS[kind]}"
            namespace = f" -n {one.namespace}" if one.namespace else ""
            both = f"{kind.lower()}/{name} {one.kind.lower()}/{one.name}"
            return (
                f"{one} scales {kind} {name}, which is not in it: add that, for example with `kubectl get "
                f"{both}{namespace} -o yaml | groupstorm rollout -`"
            )
    kinds = ", ".join(sorted({one.kind for one in objects}))
    for one in objects:
        if one.kind in _OTHER_WORKLOADS:
            return f"no Deployment and no StatefulSet in it, only {kinds}: {_OTHER_WORKLOADS[one.kind]}"
    return f"no Deployment and no StatefulSet in it, only {kinds}"


def _chosen(
    workloads: Sequence[KubernetesObject],
    scaled: set[str],
    config_maps: ConfigMaps,
    source: str,
    wanted: str | None,
) -> KubernetesObject:
    names = ", ".join(_named(one, workloads) for one in workloads)
    if wanted is not None:
        named = [one for one in workloads if wanted in (one.name, f"{one.kind}/{one.name}")]
        if len(named) == 1:
            return named[0]
        found = "two workloads have this name: name it as KIND/NAME" if named else "no such workload"
        raise InputError(f"--workload {wanted}: {found}: {source} has {names}")
    if len(workloads) == 1:
        return workloads[0]
    consumers = [one for one in workloads if one.name in scaled or _application(one, config_maps)[1]]
    if len(consumers) == 1:
        return consumers[0]
    several = ", ".join(_named(one, workloads) for one in consumers) or names
    raise InputError(f"{source}: several workloads ({several}): say which consumes with --workload NAME")


def _named(one: KubernetesObject, among: Sequence[KubernetesObject]) -> str:
    """Its name, with its kind if another one has the same name."""
    alike = sum(other.name == one.name for other in among)
    return one.name if alike == 1 else f"{one.kind}/{one.name}"


def _application(one: KubernetesObject, config_maps: ConfigMaps) -> tuple[Application, list[int]]:
    """The Kafka settings of its pods' consumer, and the numbers of the containers that have any.

    The consumer is the first of these, or the one that has the workload's name.
    """
    pod = one.fields.at("spec", "template", "spec")
    containers = [*pod.objects("containers")]
    read = [kafka_properties(pod, container, config_maps) for container in containers]
    consuming = [number for number, each in enumerate(read) if each.properties]
    consuming.sort(key=lambda number: containers[number].text("name") != one.name)
    read = [each for number, each in enumerate(read) if number not in consuming[1:]]
    application = Application(
        [found for each in read for found in each.properties],
        [text for each in read for text in each.unseen],
        [text for each in read for text in each.unused],
        {name for each in read for name in each.config_maps},
    )
    return application, consuming


def _data(config_map: KubernetesObject) -> dict[str, str]:
    data = config_map.fields.at("data")
    return {name: value for name in data.names() if (value := data.scalar(name)) is not None}


def _topic(objects: Sequence[KubernetesObject], properties: Sequence[Found]) -> KubernetesObject | None:
    """The object of the topic that the properties name, if they name one."""
    names = {
        found.value.strip() for found in properties if found.property in ("topic", "topics") and found.value
    }
    found = [
        one
        for one in objects
        if one.kind == _TOPIC
        and one.group == _TOPIC_GROUP
        and (one.fields.at("spec").text("topicName") or one.name) in names
    ]
    return found[0] if len(names) == len(found) == 1 else None


def _scales_kafka(one: KubernetesObject) -> bool:
    if one.kind != "ScaledObject":
        return False
    triggers = one.fields.at("spec").objects("triggers")
    return any(trigger.text("type") in KAFKA_TRIGGERS for trigger in triggers)


def _targets(one: KubernetesObject, workload: Workload) -> bool:
    """Whether it is an autoscaler of the workload."""
    return is_autoscaler(one) and target_of(one) == (workload.kind, workload.name)


def _selects(budget: KubernetesObject, workload: Workload) -> bool:
    """Whether the budget's selector matches the workload's pods; an empty one matches all (policy/v1)."""
    spec = budget.fields.at("spec")
    labels, expressions = spec.at("selector", "matchLabels"), spec.at("selector").objects("matchExpressions")
    return (
        "selector" in spec
        and all(workload.labels.get(name) == labels.scalar(name) for name in labels.names())
        and all(_matches(one, workload.labels) for one in expressions)
    )


def _matches(expression: Fields, labels: Mapping[str, str]) -> bool:
    """Whether pods with these labels meet a requirement of a selector."""
    value, values = labels.get(expression.scalar("key") or ""), expression.texts("values")
    match expression.scalar("operator"):
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case operator:
            return operator == "DoesNotExist" and value is None


def consumers_per_pod(consumer: Consumer, given: Mapping[str, Any]) -> tuple[int, Found | None]:
    """The number of consumers in each pod, and the property that says so."""
    found = {one.property: one for one in consumer.properties}
    number = found.get(LISTENER_CONCURRENCY, found.get(CONSUMER_THREADS))
    written = "" if number is None else (number.value or "").strip()
    each = given.get("members_per_pod", int(written) if re.fullmatch(r"[1-9]\d{0,2}", written) else 1)
    members = given.get("members", each)
    if members % each:
        raise InputError(
            f"--set members={members}: each pod runs {each} consumers, and members counts these: "
            f"--set members={members * each} says {members} pods"
        )
    return each, number


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


#: StreamsConfig of 4.3.1 refuses group.instance.id with group.protocol=streams, that of 4.4.0 takes it.
STATIC_STREAMS: Final = "it needs Kafka Streams 4.4, as older ones do not start with both (ConfigException)"
#: Properties of consumers that Kafka Streams sets itself (StreamsConfig), or that its threads do not have.
_SET_BY_STREAMS: Final = frozenset(
    {
        "partition.assignment.strategy",
        "group.remote.assignor",
        "enable.auto.commit",
        "auto.commit.interval.ms",
        "auto.offset.reset",
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
        one.property in OF_STREAMS or (one.property == "group.protocol" and one.value == STREAMS)
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
    if found.property == "auto.offset.reset":
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
    elif has_state and "state_outlasts_process" not in given:
        settings["state_outlasts_process"] = False
        findings.append(
            "The StatefulSet has no volumeClaimTemplates: each new pod restores its state. If that lies on a "
            "disk that outlasts the pod, --set state_outlasts_process=true."
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
