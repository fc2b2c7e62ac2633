"""A consumer's next rollout as a scenario: from its manifest, a trace, answers and assumptions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from groupstorm.clients.profiles import PROFILES
from groupstorm.problems import InputError
from groupstorm.storms.deployments.manifests.autoscalers import Scaling, pods_at_rollout, read_autoscaler
from groupstorm.storms.deployments.manifests.choice import (
    STATIC_STREAMS,
    Consumer,
    consumers_per_pod,
    is_streams,
    measured_in_streams,
    not_used,
    take_application,
)
from groupstorm.storms.deployments.manifests.kafka_environment import (
    Found,
    milliseconds,
    setting_value,
    shared_instance,
)
from groupstorm.storms.deployments.manifests.missing_settings import ask, take_measured, written
from groupstorm.storms.deployments.manifests.objects import (
    ON_DELETE,
    RECREATE,
    read_budget,
)
from groupstorm.storms.deployments.manifests.property_names import (
    ACK_MODE,
    ACK_TIME,
    APPLICATION_ID,
    COMMIT_STRATEGY,
    CONSUMER_THREADS,
    LEAVE_GROUP,
    LISTENER_CONCURRENCY,
    OF_SHARES,
    SETTINGS_OF_CLIENTS,
    SETTINGS_OF_STREAMS,
    is_of_dotnet,
    relaxed,
)
from groupstorm.storms.deployments.rolling_update import limits_of
from groupstorm.storms.runs.contradictions import contradictions
from groupstorm.storms.scenario.consistency import KEDA_SEES_NO_LAG, check_consistency, is_shared
from groupstorm.storms.scenario.randomness import DRAW_SPAN, parse_distribution
from groupstorm.storms.scenario.setting_names import (
    ASSIGNED,
    BATCH,
    CLASSIC,
    DEPLOYMENT,
    KEDA,
    NO_AUTOSCALER,
    NO_TRACE,
    POLLS,
    RECORD,
    RUNS,
    SHARE,
    STATEFUL_SET,
    STREAMS,
    UNSUPPORTED,
    Measured,
)
from groupstorm.storms.scenario.settings import BY_NAME, Settings
from groupstorm.storms.scenario.topics import topic_partitions
from groupstorm.wording import counted

_NO_NAME = re.compile(r"[^A-Za-z0-9_.-]")

#: From a pod's creation until its container runs, image and all, if nothing says otherwise.
CONTAINER_MS = 2_000

AUTO_COMMIT = "enable.auto.commit"
#: ackTime of a Spring container, and auto.commit.interval.ms of SmallRye, if nobody sets them.
_ACK_TIME_MS = 5_000

#: Settings whose defaults are the client library's: said if nobody gives them.
_CLIENT_DEFAULTS = ("partition.assignment.strategy", "session.timeout.ms", "max.poll.interval.ms")


@dataclass(frozen=True, slots=True)
class Plan:
    """The scenario of a rollout.

    Sentences for people: ``read``, ``measured`` (in ``trace``), ``assumed``, ``unknown`` (what the manifests
    keep elsewhere), ``unused`` (fields, each with the reason), ``findings``, and those that stand before all
    others: ``warnings``, and ``alarms``, below which stand the lines that mend them.
    """

    name: str
    consumer: Consumer
    settings: dict[str, Any]
    step: str
    trace: str = ""
    read: list[str] = field(default_factory=list)
    measured: list[str] = field(default_factory=list)
    assumed: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)
    alarms: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)

    @property
    def may_be_full(self) -> bool:
        """Whether the group has a limit (group.max.size ...), at which the broker refuses members."""
        return any(name.endswith(".max.size") for name in self.settings)

    @property
    def group(self) -> str | None:
        """The group.id that the manifests name, or the application.id of Kafka Streams."""
        found = {one.property: one.value for one in self.consumer.properties}
        return found.get("group.id") or found.get(APPLICATION_ID)

    def scenario(self) -> dict[str, Any]:
        """The scenario as a file has it."""
        return {
            "name": self.name,
            "question": f"What does the next rollout of {self.consumer.workload} cost?",
            "figures_from": "warm_up_ms",
            "settings": self.settings,
            "steps": [{"at_ms": 0, "do": "start"}, {"at_ms": "warm_up_ms", "do": self.step}],
        }


def plan_rollout(consumer: Consumer, given: Mapping[str, Any], measured: Measured = NO_TRACE) -> Plan:
    """The rollout that the manifest describes; ``given``: the settings of the command line, which go first;
    ``measured``: those of a trace, which go last.

    Raises InputError that asks for all settings that are missing, in one line.
    """
    workload = consumer.workload
    if workload.strategy == ON_DELETE:
        raise InputError(
            f"{workload}: updateStrategy OnDelete: Kubernetes replaces no pod by itself: no rollout"
        )
    scaling = None if consumer.autoscaler is None else read_autoscaler(consumer.autoscaler)
    partitions = 0 if consumer.topic is None else consumer.topic.fields.at("spec").whole("partitions", 0)
    known = {"partitions": partitions} if partitions and "partitions" not in given else {}
    of_streams = is_streams(consumer.properties, given)
    each, number = (1, None) if of_streams else consumers_per_pod(consumer, given)
    stated = {*known, *given}
    if not stated.isdisjoint({"partitions", "topics"}):
        stated.add("topic_partitions")
    settings = measured_in_streams(measured.settings) if of_streams else measured.settings
    of_trace = {name: one for name, one in settings.items() if name not in stated}
    answers = {**{name: one.value for name, one in of_trace.items()}, **known, **given}
    replicas = workload.replicas or 0
    if scaling is not None:
        replicas = max(1, scaling.least, min(replicas, scaling.most))
    ask(workload, of_streams, replicas, each, answers, measured)
    step = "recreate" if workload.strategy == RECREATE else "rolling-restart"
    name = f"rollout-{_NO_NAME.sub('-', workload.name)}"[:100]
    plan = Plan(name, consumer, {}, step, measured.source)
    plan.unknown.extend(f"{name} ({why})" for name, why in measured.unknown.items() if name not in given)
    plan.unused.extend([*workload.unused, *consumer.unused_properties])
    if each > 1:
        plan.settings["members_per_pod"] = each
    _take_workload(plan, replicas * each, answers)
    if each > 1 and number is not None and number.property == CONSUMER_THREADS:
        plan.assumed.append(
            f"members_per_pod={each} ({number.where}; if these serve one consumer, --set members_per_pod=1)"
        )
    if consumer.budget is not None:
        plan.settings["disruption_budget"] = budget = read_budget(consumer.budget, replicas).as_written
        plan.read.append(f"{consumer.budget}: {budget} may be missing (node drains only, not rollouts)")
    if known:
        plan.settings.update(known)
        plan.read.append(f"partitions={partitions} ({consumer.topic})")
    _take_properties(plan, given, of_streams)
    if of_streams:
        take_application(plan.settings, given, consumer, plan.assumed, plan.findings)
    elif "commits" not in given and AUTO_COMMIT not in given:
        _take_commits(plan, {**answers, **plan.settings, **given}.get("group.protocol", CLASSIC))
    plan.settings.update(given)
    take_measured(plan.settings, of_trace, measured.source, plan.measured, plan.findings)
    _drop_what_the_protocol_refuses(plan, given)
    _check_ids(plan, each, number)
    if scaling is not None:
        _take_autoscaler(plan, scaling, given)
    if workload.kind == "StatefulSet":
        _check_stateful_set(plan)
    _say_defaults(plan)
    _check_settings(plan)
    return plan


def _check_settings(plan: Plan) -> None:
    fixed = Settings(("", {**plan.settings, "autoscaler": NO_AUTOSCALER}))
    try:
        check_consistency(fixed)
    except InputError as error:
        places = [one for one in plan.read if one.partition("=")[0] in str(error)]
        raise InputError("; ".join([f"{plan.consumer.workload}: {error}", *places])) from None
    plan.findings.extend(one[0].upper() + one[1:] for one in contradictions({"": fixed}))


def _take_autoscaler(plan: Plan, scaling: Scaling, given: Mapping[str, Any]) -> None:
    """The autoscaler's settings, the pods that a rollout begins with, and consumers that may own nothing."""
    plan.settings.update({name: value for name, value in scaling.settings.items() if name not in given})
    plan.unused.extend(scaling.unused)
    plan.read.append(scaling.sentence)
    # the rollout's own steps let no autoscaler work
    fixed = Settings(("", {**plan.settings, "autoscaler": NO_AUTOSCALER}))
    if is_shared(fixed) and plan.settings["autoscaler"] == KEDA:
        plan.settings["autoscaler"] = NO_AUTOSCALER
        plan.findings.append(f"{plan.consumer.autoscaler}: {KEDA_SEES_NO_LAG}.")
        return
    plan.findings.append(
        f"{plan.consumer.autoscaler} is not part of the run: no pods are added or removed, however large the "
        "lag gets during the rollout."
    )
    each = fixed.integer("members_per_pod")
    if "members" not in given and "member_settings" not in plan.settings:
        pods, why = pods_at_rollout(fixed, scaling.most)
        plan.settings["members"] = pods * each
        plan.assumed.append(f"{counted(pods, 'pod')} when the rollout begins ({why}; else --set members=N)")
    if is_shared(fixed):
        return
    most, partitions = scaling.most, sum(topic_partitions(fixed).values())
    # KEDA starts no more pods than there are partitions, but does not know how many consumers a pod has
    if plan.settings["autoscaler"] == KEDA and not plan.settings.get("allow_idle_consumers"):
        most = min(most, partitions)
    threads = fixed.integer("num.stream.threads") if fixed.choice("application") == STREAMS else None
    owners = most * each * (threads or 1)
    if owners > partitions:
        plan.findings.append(
            f"With {most} pods ({plan.consumer.autoscaler}) {owners} {'threads' if threads else 'members'} "
            f"share {partitions} partitions: {owners - partitions} own nothing."
        )


def _take_workload(plan: Plan, members: int, given: Mapping[str, Any]) -> None:
    workload = plan.consumer.workload
    settings = plan.settings
    stateful = workload.kind == "StatefulSet"
    if members:
        settings["members"] = members
    settings["deployment"] = STATEFUL_SET if stateful else DEPLOYMENT
    settings["max_surge"] = workload.max_surge.as_written
    settings["max_unavailable"] = workload.max_unavailable.as_written
    settings["update_partition"] = workload.partition
    settings["min_ready_ms"] = workload.min_ready_s * 1000
    settings["progress_deadline_ms"] = workload.progress_deadline_s * 1000
    settings["termination_grace_ms"] = workload.grace_s * 1000
    if workload.pre_stop_s and "pre_stop_ms" not in given:
        settings["pre_stop_ms"] = workload.pre_stop_s * 1000
        why = f"lifecycle.preStop sleeps for {workload.pre_stop_s} s"
        if workload.pre_stop_s > workload.grace_s:
            why += f", and ends with the grace of {workload.grace_s} s"
        plan.read.append(f"pre_stop_ms={settings['pre_stop_ms']} ({why})")
    _take_probe(plan, given)


def _check_ids(plan: Plan, each: int, number: Found | None) -> None:
    """Frameworks number the ids of consumers that they start; an application of its own may not."""
    is_static = plan.settings.get("group.instance.id", "none") != "none"
    if each > 1 and is_static and (number is None or number.property == CONSUMER_THREADS):
        plan.findings.append(
            f"The {each} consumers of a pod are taken to have ids of their own, a number behind the pod's "
            "name: those with one group.instance.id fence each other (FENCED_INSTANCE_ID)."
        )


def _check_stateful_set(plan: Plan) -> None:
    """Check the pods that a StatefulSet replaces, and whether several may be missing."""
    workload, settings = plan.consumer.workload, plan.settings
    partition, pods = settings["update_partition"], settings["members"] // settings.get("members_per_pod", 1)
    if isinstance(partition, int) and partition >= pods:
        raise InputError(
            f"{workload}: updateStrategy.rollingUpdate.partition {partition}: none of {pods} pods has "
            "such an ordinal, so Kubernetes replaces none: no rollout (--set update_partition=0 says what "
            "one costs)"
        )
    if limits_of(Settings(("", settings)), pods).unavailable > 1:
        plan.findings.append(
            f"maxUnavailable {settings['max_unavailable']} of a StatefulSet counts only if the cluster's "
            "feature gate MaxUnavailableStatefulSet is on (from Kubernetes 1.35 on by default, before off). "
            "Else pods are replaced one at a time: --set max_unavailable=1 says what that costs."
        )


def _take_probe(plan: Plan, given: Mapping[str, Any]) -> None:
    """Readiness: what the probe waits for, and how long it takes to notice."""
    probe = plan.consumer.workload.probe
    settings = plan.settings
    if probe is None:
        settings["ready_when"], settings["ready_ms"] = RUNS, CONTAINER_MS
        if "ready_ms" not in given:
            plan.assumed.append(f"ready_ms={CONTAINER_MS} (a pod is scheduled and its container created)")
        if "ready_when" not in given:
            plan.findings.append(
                "No readiness probe: Kubernetes takes each new pod for ready as soon as its container runs, "
                "before it polls, and goes on to the next one."
            )
        return
    start_us = parse_distribution("--set start_ms", given["start_ms"]).at(DRAW_SPAN // 2)
    later_ms = max(0, probe.initial_delay_s * 1000 - start_us // 1000)
    period_ms = probe.period_s * 1000
    settings["ready_ms"] = {
        "uniform": [later_ms + (probe.successes - 1) * period_ms, later_ms + probe.successes * period_ms]
    }
    settings["ready_when"], why = POLLS, "succeeds once the consumer polls"
    if probe.file is not None:
        settings["ready_when"] = ASSIGNED
        why = (
            f"looks for {probe.file}, which a consumer that owns partitions writes; if yours writes it "
            "before, --set ready_when=polls"
        )
    if "ready_when" not in given:
        plan.assumed.append(f"ready_when={settings['ready_when']} (its {probe.kind} {why})")


def _take_properties(plan: Plan, given: Mapping[str, Any], of_streams: bool) -> None:
    """The Kafka properties of the containers, and what they mean for this workload."""
    settings = SETTINGS_OF_CLIENTS | SETTINGS_OF_STREAMS if of_streams else SETTINGS_OF_CLIENTS
    plan.unknown.extend(plan.consumer.unseen)
    plan.warnings.extend(plan.consumer.warnings)
    for found in plan.consumer.properties:
        setting = "leave_on_close" if found.property == LEAVE_GROUP else found.property
        is_setting = found.property in settings
        if (reason := not_used(found, of_streams)) is not None:
            plan.unused.append(f"{found.property} ({found.where}: {reason})")
            continue
        if found.value is None:
            if (is_setting or setting == LISTENER_CONCURRENCY) and setting not in given:
                plan.unknown.append(f"{found.property} ({found.where})")
            continue
        if not is_setting:
            name = "members_per_pod" if setting == LISTENER_CONCURRENCY else setting
            plan.read.append(f"{name}={found.value} ({found.where})")
            continue
        if setting in given:
            continue
        value = setting_value(found)
        if value is not None:
            plan.settings[setting] = value
            plan.read.append(f"{setting}={written(value)} ({found.where})")
        elif (instance := shared_instance(found)) is not None:
            _share_instance(plan, found, instance, given)
        else:
            plan.read.append(f"{found.property}={found.value} ({found.where}): not understood, so not used")
    if not OF_SHARES.isdisjoint(plan.settings) and "group.protocol" not in {**plan.settings, **given}:
        plan.settings["group.protocol"] = SHARE
        plan.assumed.append(f"group.protocol={SHARE} (as nobody else has share.acknowledgement.mode)")


def _share_instance(plan: Plan, found: Found, instance: str, given: Mapping[str, Any]) -> None:
    """All pods are one static member: each that joins takes the place of the one before it."""
    members = given.get("members", plan.settings["members"])
    each = plan.settings.get("members_per_pod", 1)
    plan.settings["member_settings"] = [
        {
            "members": list(range(number, members, each)),
            "instance": instance if each == 1 else f"{instance}-{number + 1}",  # as Spring names them
        }
        for number in range(each)
    ]
    _assume_restarts(plan, "fenced")
    why = (
        " Kubernetes fills $(NAME) in env[].value, command and args, if the variable is defined before; what "
        "a ConfigMap holds stays as it is written (kubernetes#69113)."
    )
    mend = f'  - {{name: {found.name}, value: "$(POD_NAME)"}}'
    if "." in found.name:  # of a file, which Spring reads, or of an argument
        mend = f"# and {'${POD_NAME}' if found.config_map else '$(POD_NAME)'} in {found.where}"
    instead = (
        f"Instead:\nenv:  # of container {plan.consumer.workload.container}\n"
        f"  - {{name: POD_NAME, valueFrom: {{fieldRef: {{fieldPath: metadata.name}}}}}}\n{mend}"
    )
    if given.get("deployment", plan.settings["deployment"]) == DEPLOYMENT:
        instead = (
            "Names of pods are no such ids in a Deployment, in which each new pod has a new name: the "
            f"partitions of the old one wait until its session ends. Instead:\n# remove {found.where}"
        )
    plan.alarms.append(
        f"All pods have the same group.instance.id: {instance} ({found.where})."
        f"{why if '$(' in instance else ''} Each pod that joins fences the one before it "
        f"(FENCED_INSTANCE_ID), and only one of them consumes. {instead}"
    )


def _assume_restarts(plan: Plan, why: str) -> None:
    plan.settings["restart_failed"] = True
    plan.assumed.append(f"restart_failed=true (a process whose consumer is {why} ends, and starts again)")


def _take_commits(plan: Plan, protocol: str) -> None:
    """Who commits, if it is not the client: a Spring listener's container, SmallRye, or the application."""
    properties = {one.property: one.value or "" for one in plan.consumer.properties}
    mode = properties.get(ACK_MODE, "").strip().upper().replace("-", "_")
    # Spring's containers switch auto-commit off unless somebody sets it
    is_springs = any(relaxed(one.name).startswith("spring") for one in plan.consumer.properties)
    is_default = is_springs and AUTO_COMMIT not in properties
    which, interval = f"ack-mode {mode}", properties.get(ACK_TIME, "")
    if any(relaxed(one.name).startswith("mpmessagingincoming") for one in plan.consumer.properties):
        if plan.settings.get(AUTO_COMMIT):
            return
        strategy = properties.get(COMMIT_STRATEGY, "throttled")
        which, interval = f"commit-strategy {strategy}", properties.get("auto.commit.interval.ms", "")
        mode = "TIME" if strategy == "throttled" else which
    if protocol == SHARE or plan.settings.get(AUTO_COMMIT, not (mode or is_default)):
        return
    if mode == "TIME":
        # the container commits before partitions go, too, as the client does in the background
        plan.settings.pop(AUTO_COMMIT, None)
        interval_ms = milliseconds(interval) or _ACK_TIME_MS
        plan.settings["auto.commit.interval.ms"] = interval_ms
        plan.assumed.append(f"auto.commit.interval.ms={interval_ms} ({which} commits so often)")
        return
    plan.settings["commits"] = commits = RECORD if mode == "RECORD" else BATCH
    why = which if mode else "Spring's default" if is_default else "enable.auto.commit=false"
    if mode.startswith("MANUAL"):
        why += ", if the listener acknowledges all that it has processed"
    plan.assumed.append(f"commits={commits} ({why}: by hand after each {commits}, with a round trip)")


def _drop_what_the_protocol_refuses(plan: Plan, given: Mapping[str, Any]) -> None:
    """Leave out settings of the manifest with which Kafka's consumer does not start, and say so."""
    protocol = plan.settings.get("group.protocol", CLASSIC)
    for name, instead in UNSUPPORTED.get(protocol, {}).items():
        if name in plan.settings and name not in given:
            value, said, outcome = plan.settings.pop(name), plan.warnings, "does not start (ConfigException)"
            if protocol == STREAMS:
                said, outcome = plan.findings, "starts, and the first has no effect"
            said.append(
                f"{name}={written(value)} and group.protocol={protocol}: with both, Kafka's consumer "
                f"{outcome}. The figures are without it; {instead} takes its place."
            )
    if protocol == STREAMS and plan.settings.get("group.instance.id", "none") != "none":
        plan.warnings.append(f"group.instance.id and group.protocol={protocol}: {STATIC_STREAMS}.")


def _say_defaults(plan: Plan) -> None:
    if plan.may_be_full and "restart_failed" not in plan.settings:
        _assume_restarts(plan, "refused (GROUP_MAX_SIZE_REACHED)")
    has_assignor = (
        plan.settings.get("application") != STREAMS and plan.settings.get("group.protocol") != SHARE
    )
    found = plan.consumer.properties if has_assignor else ()
    own = [one.name for one in found if is_of_dotnet(one.name, one.property)]
    names = plan.settings.get("client_profile", ["librdkafka" if own else "java"])
    profile = names if isinstance(names, str) else names[0]
    if "client_profile" not in plan.settings:
        why = f" ({own[0]} is a name of .NET's client, which wraps it)" if own else ""
        plan.assumed.append(f"client_profile={profile}{why}")
        plan.settings.update({"client_profile": names} if own else {})
    instead = UNSUPPORTED.get(plan.settings.get("group.protocol", CLASSIC), {})
    known = PROFILES.get(profile)
    for of_client in _CLIENT_DEFAULTS if has_assignor else _CLIENT_DEFAULTS[1:]:
        name = instead.get(of_client, of_client)
        if name not in plan.settings:
            default = known.defaults.get(name, BY_NAME[name].default) if known else BY_NAME[name].default
            whose = "broker" if name.startswith("group.") else "client"
            plan.assumed.append(f"{name}={written(default)} (the {whose}'s default)")
    for name in ("process_ms", "drain_ms"):
        if name not in plan.settings:
            plan.assumed.append(f"{name}={written(BY_NAME[name].default)}")
