"""The lines to paste for an alternative to a rollout: of the manifest, of the clients, of the broker.

Properties of clients are spelled as their library spells them: Spring's if the manifests have any of Spring,
else those of the client profile.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from groupstorm.storms.deployments.alternatives import (
    COOPERATIVE,
    INSTANCE,
    ROLLING,
    is_mixed_first,
)
from groupstorm.storms.deployments.manifests.kafka_environment import Found
from groupstorm.storms.deployments.manifests.plan import Plan
from groupstorm.storms.deployments.manifests.property_names import (
    LISTENER_CONCURRENCY,
    OF_STREAMS,
    SETTINGS_OF_STREAMS,
    SPRING_STREAMS,
    relaxed,
)
from groupstorm.storms.scenario.member_rules import STRATEGY
from groupstorm.storms.scenario.setting_names import (
    CONSUMER_SESSION_TIMEOUT,
    GROUP_PROTOCOL,
    LEAVE,
    OUTLASTS,
    STANDBYS,
    UNSUPPORTED,
)
from groupstorm.storms.scenario.settings import Settings
from groupstorm.whatif.client_settings import KAFKA_STREAMS, library_of

_SPRING: Final = "spring.kafka.consumer.properties."
#: Properties of Kafka Streams in a framework, by the beginning of all its names; the last that fits counts.
_STREAMS: Final = {
    "spring": f"{SPRING_STREAMS}properties.",
    "springcloudstream": "spring.cloud.stream.kafka.streams.binder.configuration.",
    "quarkus": "kafka-streams.",
    "ksql": "ksql.streams.",
    "ksqlksql": "KSQL_KSQL_STREAMS_",
}
_LIMITS: Final = {"max_surge": "maxSurge", "max_unavailable": "maxUnavailable"}


def lines_to_paste(own: Mapping[str, Any], plan: Plan, settings: Settings) -> list[str]:
    """The lines of the alternative with the settings ``own``. ``settings``: those of the rollout as it is."""
    needs_id = own.get(INSTANCE, "none") != "none" and settings.choice(INSTANCE) == "none"
    return [*_of_manifest(own, plan, needs_id), *_of_clients(own, plan, settings, needs_id)]


def _of_manifest(own: Mapping[str, Any], plan: Plan, needs_id: bool) -> Iterator[str]:
    workload = plan.consumer.workload
    becomes_stateful, needs_volume = "deployment" in own, OUTLASTS in own
    if becomes_stateful:
        yield "apiVersion: apps/v1"
        yield "kind: StatefulSet  # in place of the Deployment"
        yield f"metadata: {{name: {workload.name}}}"
    changed = plan.settings if plan.step != ROLLING else own
    limits = [f"{limit}: {changed[name]}" for name, limit in _LIMITS.items() if name in changed]
    container = [f"name: {workload.container}"]
    if needs_id:
        container.append("env: [{name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]")
    if needs_volume:
        container.append("volumeMounts: [{name: state, mountPath: STATE_DIR}]  # state.dir")
    if "ready_when" in own:
        container.append(
            f"readinessProbe: {{httpGet: {{path: /ready, port: 8080}}, "
            f"periodSeconds: {own['ready_ms']['uniform'][1] // 1000}}}  # succeeds once the consumer polls"
        )
    grace_ms = own.get("termination_grace_ms")
    has_lines = len(container) > 1
    if limits or has_lines or grace_ms is not None:
        yield "spec:"
    if becomes_stateful:
        yield f"  serviceName: {workload.name}  # a headless Service"
    if needs_volume:
        yield "  volumeClaimTemplates:"
        yield "    - metadata: {name: state}"
        yield "      spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: SIZE}}}"
    if limits and not becomes_stateful:
        yield "  updateStrategy:" if workload.kind == "StatefulSet" else "  strategy:"
        yield "    type: RollingUpdate"
        yield f"    rollingUpdate: {{{', '.join(limits)}}}"
    if has_lines or grace_ms is not None:
        yield from ("  template:", "    spec:")
    if grace_ms is not None:
        yield f"      terminationGracePeriodSeconds: {grace_ms // 1000}"
    if has_lines:
        yield from ("      containers:", f"        - {container[0]}")
        yield from (f"          {line}" for line in container[1:])


def _of_clients(own: Mapping[str, Any], plan: Plan, settings: Settings, needs_id: bool) -> Iterator[str]:
    found = {one.property: one for one in plan.consumer.properties}
    where = {name: f" ({one.where})" for name, one in found.items()}
    library = library_of(settings)
    is_spring = LISTENER_CONCURRENCY in found or any("spring" in text.lower() for text in where.values())
    prefix = _SPRING if is_spring else ""
    if library is KAFKA_STREAMS:
        prefix = _streams_prefix(plan.consumer.properties)
    # an application that takes short names has a word of its own for each class
    written = found[STRATEGY].value if STRATEGY in found else None
    assignors = library.assignors if not written or "." in written else {}

    def line(name: str, value: Any) -> str:
        spelled = library.names.get(name)
        if spelled is None:
            return f"# no {name}: {library.name} has no such setting"
        if name == STRATEGY:
            value = library.between.join(assignors.get(one, one) for one in value)
        pasted = library.line(spelled, value)
        if not prefix.isupper():
            return f"{prefix}{pasted}"
        own_name, _, text = pasted.partition("=")
        return f'- {{name: {prefix}{own_name.replace(".", "_").upper()}, value: "{text}"}}'

    if STRATEGY in own and is_mixed_first(settings):
        yield f"# first deployment{where.get(STRATEGY, '')}"
        yield line(STRATEGY, [COOPERATIVE, *settings.names(STRATEGY)])
        yield "# second deployment, once the first is complete"
    if needs_id:
        pod_name = "$(POD_NAME)" if prefix.isupper() else "${POD_NAME}"
        yield f"# {pod_name}: the pod's name, from its environment"
        yield line(INSTANCE, pod_name)
    for name in (STRATEGY, GROUP_PROTOCOL, "session.timeout.ms", STANDBYS, LEAVE):
        if name in own:
            yield line(name, own[name])
    gone = [INSTANCE] if own.get(INSTANCE) == "none" else UNSUPPORTED.get(own.get(GROUP_PROTOCOL, ""), {})
    yield from (f"# remove {name}{where[name]}" for name in gone if name in found)
    if CONSUMER_SESSION_TIMEOUT in own:
        group = (found["group.id"].value if "group.id" in found else None) or "GROUP"
        yield "kafka-configs.sh --bootstrap-server BROKER --alter --entity-type groups \\"
        timeout_ms = own[CONSUMER_SESSION_TIMEOUT]
        yield f"  --entity-name {group} --add-config consumer.session.timeout.ms={timeout_ms}"


def _streams_prefix(properties: Sequence[Found]) -> str:
    """The words before a property of Kafka Streams: its framework's, or a variable's, in capitals."""
    for one in properties:
        fitting = [prefix for word, prefix in _STREAMS.items() if relaxed(one.name).startswith(word)]
        if fitting and one.property in OF_STREAMS:
            return fitting[-1]
    for one in properties:
        ending = one.property.replace(".", "_").upper() if one.name.isupper() else one.property
        if one.property in SETTINGS_OF_STREAMS and one.name.endswith(ending):
            return one.name.removesuffix(ending)
    return ""
