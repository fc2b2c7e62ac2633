"""The cost of a rollout in a person's words, and the lines to paste for an alternative to it: of the
manifest, of the clients, of the broker.

Properties of clients are spelled as their library spells them: Spring's if the manifests have any of Spring,
else those of the client profile.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any, Final, NamedTuple

from groupstorm.figures import Figures
from groupstorm.figures.answer import skipped_words
from groupstorm.report.deployment_notes import static_membership_note
from groupstorm.report.grid import Grid, Row
from groupstorm.report.tables import RANGE, brief, range_shown
from groupstorm.storms.deployments.alternatives import (
    COOPERATIVE,
    INSTANCE,
    ROLLING,
    Outcome,
    is_mixed_first,
    read_outcome,
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
from groupstorm.storms.deployments.rolling_update import limits_of
from groupstorm.storms.runs.contradictions import closing_us, price_of_kill
from groupstorm.storms.runs.run import Run
from groupstorm.storms.scenario.consistency import stopping_ms
from groupstorm.storms.scenario.member_rules import STRATEGY
from groupstorm.storms.scenario.setting_names import DEPLOYMENT, RUNS, STREAMS_PROTOCOL, UNSUPPORTED
from groupstorm.storms.scenario.settings import Settings
from groupstorm.verdicts.measures import spread_of, with_range
from groupstorm.verdicts.ranking import consumers_ended
from groupstorm.whatif.client_settings import KAFKA_STREAMS, library_of
from groupstorm.wording import counted, seconds, size


class Rollouts(NamedTuple):
    """One rollout with several seeds: a run and an outcome of each."""

    runs: Sequence[Run]
    outcomes: Sequence[Outcome]

    @classmethod
    def of(cls, runs: Sequence[Run], step: str) -> Rollouts:
        """``step``: the kind of the step that is the rollout."""
        return cls(runs, [read_outcome(run.trace, step) for run in runs])

    @property
    def figures(self) -> list[Figures]:
        return [run.figures for run in self.runs]

    def stands(self, least: int = 1) -> str | None:
        """Why it never completes with ``least`` or more of the seeds; None if it does with all others."""
        found = [one.stuck for one in self.outcomes if one.stuck is not None]
        if len(found) < least:
            return None
        return f"{found[0]} ({len(found)} of {len(self.outcomes)} seeds)" if len(self.runs) > 1 else found[0]

    @property
    def stuck(self) -> str | None:
        """Why it never completes with most of the seeds; None if it does with half of them."""
        why = self.stands(len(self.outcomes) // 2 + 1)
        stuck = [run.figures for run, one in zip(self.runs, self.outcomes, strict=True) if one.stuck]
        ended = None if why is None else next(filter(None, map(consumers_ended, stuck)), None)
        return why if ended is None else f"{why}; {ended}"


def rollout_answer(plan: Plan, settings: Settings, rollouts: Rollouts) -> str:
    """The paragraph: how long the rollout takes, what it costs, and why."""
    outcomes, runs = rollouts.outcomes, rollouts.figures
    how_long = [_takes(plan, settings, outcomes), *_late(settings, rollouts)]
    parts = [*how_long, _costs(outcomes, runs), *_tasks(runs), *_lag(runs)]
    killed = max(outcome.killed for outcome in outcomes)
    if killed:
        grace_s = (settings.optional_integer("termination_grace_ms") or 0) / 1000
        hook_ms, left_ms = stopping_ms(settings)
        closing_s, left_s = closing_us(settings) / 1e6, (left_ms or 0) / 1000
        kill = f", SIGKILL {seconds(left_s)} after the preStop hook" if hook_ms else ""
        held_up = "a rebalance or a batch holds them up, else " if closing_s < left_s else ""
        parts.append(
            f"Up to {counted(killed, 'pod')} did not close within terminationGracePeriodSeconds "
            f"({seconds(grace_s)}{kill}; {held_up}they may need {seconds(closing_s)}): a pod that is killed "
            f"{price_of_kill(settings)}."
        )
    return " ".join([*parts, *_membership(settings)])


def pods_of(settings: Settings) -> str:
    """4 pods; or: 4 pods with 3 consumers each: 12 members."""
    each = settings.integer("members_per_pod")
    several = f" with {each} consumers each: {settings.integer('members')} members" if each > 1 else ""
    return counted(settings.processes, "pod") + several


def _takes(plan: Plan, settings: Settings, outcomes: Sequence[Outcome]) -> str:
    members = settings.processes
    workload = plan.consumer.workload
    took = with_range([outcome.seconds for outcome in outcomes if outcome.seconds is not None], seconds)
    if plan.step == "recreate":
        stop = "stops" if members == 1 else "stop"
        how = f"{counted(members, 'pod')} of {workload} {stop} before the first new one starts"
    else:
        limits = limits_of(settings, members)
        surge = f"{limits.surge} more at most" if limits.surge else "none more"
        missing = f"{limits.unavailable} missing at most" if limits.unavailable else "none missing"
        partition = settings.integer("update_partition")
        replaced = counted(members, "pod") if not partition else f"{members - partition} of {members} pods"
        kept = f" (partition {partition} keeps the lower ordinals)" if partition else ""
        are = "is" if members == 1 else "are"
        how = f"{replaced} of {workload} {are} replaced{kept}, {surge} and {missing}"
    if settings.choice("ready_when") == RUNS:
        return f"{how}: for Kubernetes that is done after {took}, whether the consumers poll or not."
    return f"{how}: that takes {took}."


def _late(settings: Settings, rollouts: Rollouts) -> Iterator[str]:
    """The sentences on seeds with which it never completes, or its progress deadline passes."""
    stands = rollouts.stands()
    if stands is not None:
        yield f"With some seeds it never completes: {stands}."
    late = [one.late_s for one in rollouts.outcomes if one.late_s is not None]
    if late and settings.choice("deployment") == DEPLOYMENT:
        deadline = seconds(settings.integer("progress_deadline_ms") / 1000)
        yield (
            f"progressDeadlineSeconds ({deadline}) pass without progress with {len(late)} of "
            f"{counted(len(rollouts.outcomes), 'seed')}, first after {seconds(min(late))}: from then on "
            "`kubectl rollout status` reports a failure, but the rollout goes on."
        )


def _costs(outcomes: Sequence[Outcome], runs: Sequence[Figures]) -> str:
    if all(run.unowned_partition_seconds is None for run in runs):
        return "Nobody owns partitions in a share group: the consumers that run get all records."
    rebalances = _rebalances([outcome.rebalances for outcome in outcomes])
    total = with_range([run.unowned_partition_seconds or 0 for run in runs], seconds)
    longest = with_range([run.unowned_max_seconds or 0 for run in runs], seconds)
    text = (
        f"The group {rebalances}; partitions are un-owned for {total} in all, "
        f"one of them for {longest} at the longest"
    )
    nobody = [run.nobody_consuming_seconds or 0 for run in runs]
    if any(nobody) and not median(nobody):
        return f"{text}; with some seeds nobody consumes anything for up to {seconds(max(nobody))}."
    return (
        f"{text}; for {with_range(nobody, seconds)} nobody consumes anything." if any(nobody) else f"{text}."
    )


def _tasks(runs: Sequence[Figures]) -> list[str]:
    """Tasks of Kafka Streams are down, too, while their partition is owned and their state is restored."""
    down = [run.task_downtime_seconds for run in runs if run.task_downtime_seconds is not None]
    longest = [run.task_downtime_max_seconds for run in runs if run.task_downtime_max_seconds is not None]
    if not down or not longest:
        return []
    in_all, at_most = with_range(down, seconds), with_range(longest, seconds)
    text = f"Tasks are down for {in_all} in all, one of them for {at_most}"
    restored = [run.restored_bytes or 0 for run in runs]
    if median(restored):
        text += f"; {with_range(restored, size)} of state are restored before tasks run"
    return [f"{text}."]


def _rebalances(counts: Sequence[float]) -> str:
    if not any(counts):
        return "does not rebalance"
    return f"rebalances {with_range(counts, lambda count: 'once' if count == 1 else f'{count:g} times')}"


def _lag(runs: Sequence[Figures]) -> list[str]:
    parts = []
    lag = [run.lag_peak for run in runs if run.lag_peak is not None]
    if lag:
        text = f"The lag rises to {with_range(lag, lambda value: f'{value:,.0f}')} records"
        recovery = [run.lag_recovery_seconds for run in runs if run.lag_recovery_seconds is not None]
        if recovery:
            text += f" and is back where it was {with_range(recovery, seconds)} after the first rebalance"
        parts.append(text + ".")
    again = [run.records_duplicated or 0 for run in runs]
    if any(again):
        parts.append(f"{_records(again)} processed twice.")
    skipped = [run.records_skipped or 0 for run in runs]
    if any(skipped):
        worst = max(runs, key=lambda run: run.records_skipped or 0)
        parts.append(f"{_records(skipped)} skipped{skipped_words(worst)}.")
    return parts


def _records(counts: Sequence[float]) -> str:
    """The beginning of a sentence: "112 (54 to 134) records are", or that most seeds have none."""
    if not median(counts):
        return f"With most seeds none, with others up to {counted(round(max(counts)), 'record')} are"
    are = "record is" if min(counts) == max(counts) == 1 else "records are"
    return f"{with_range(counts, lambda value: f'{value:,.0f}')} {are}"


def _membership(settings: Settings) -> list[str]:
    note = static_membership_note(settings)
    parts = [] if note is None else [note]
    if settings.choice("ready_when") == RUNS:
        parts.append("A readiness probe that waits for the consumer would make the rollout wait for it, too.")
    return parts


def alternatives_grid(title: str, rollouts: Mapping[str, Rollouts], chosen: str | None) -> Grid:
    """Medians of the rollouts of each alternative, and below them the range over several seeds.

    Tasks of Kafka Streams are down while nobody owns their partition, and while their state is restored.
    """
    rows = []
    total, longest = "unowned_partition_seconds", "unowned_max_seconds"
    headings, note = ["un-owned s", "longest gap s"], "un-owned: partition-seconds"
    if any(_tasks(each.figures) for each in rollouts.values()):
        total, longest = "task_downtime_seconds", "task_downtime_max_seconds"
        headings, note = ["down s", "longest s"], "down: tasks, also while their state is restored"
    for name, each in rollouts.items():
        columns = [
            (
                getattr(figures, total),
                getattr(figures, longest),
                outcome.seconds,
                outcome.rebalances,
                figures.moves,
                figures.records_duplicated,
            )
            for outcome, figures in zip(each.outcomes, each.figures, strict=True)
        ]
        spreads = [spread_of(column) for column in zip(*columns, strict=True)]
        cells = ["-" if one is None else brief("", one.median) for one in spreads]
        below = ["" if one is None or one.least == one.most else range_shown("", one) for one in spreads]
        rows.append(Row(name, cells, below if any(below) else (), RANGE, "*" if name == chosen else ""))
    headings = ["", *headings, "takes s", "rebalances", "moved", "twice"]
    notes = [
        f"{note}; takes: until the last pod is available; moved: partitions that changed "
        "their owner; twice: records that were processed again"
    ]
    if chosen is not None:
        notes.append("* recommended")
    return Grid(headings, rows, title, notes)


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
    becomes_stateful, needs_volume = "deployment" in own, "state_outlasts_process" in own
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
        each = 1 if LISTENER_CONCURRENCY in found else settings.integer("members_per_pod")
        numbered = f", and in code a number for each of its {each} consumers" if each > 1 else ""
        yield f"# {pod_name}: the pod's name, from its environment{numbered}"
        yield line(INSTANCE, pod_name)
    is_streams_group = own.get("group.protocol", settings.choice("group.protocol")) == STREAMS_PROTOCOL
    for name in (STRATEGY, "group.protocol", "session.timeout.ms", "num.standby.replicas", "leave_on_close"):
        if name in own and not (name == "num.standby.replicas" and is_streams_group):
            is_told = name == STRATEGY and is_mixed_first(settings)
            if is_spring and name in found and not is_told and _goes_before_files(found[name]):
                yield f"# in place of {found[name].where}, which goes before it"
            yield line(name, own[name])
    gone = [INSTANCE] if own.get(INSTANCE) == "none" else UNSUPPORTED.get(own.get("group.protocol", ""), {})
    yield from (f"# remove {name}{where[name]}" for name in gone if name in found)
    configs = {"consumer.session.timeout.ms": own.get("group.consumer.session.timeout.ms")}
    if is_streams_group and {"group.protocol", "num.standby.replicas"} & own.keys():
        configs["streams.num.standby.replicas"] = own.get(
            "num.standby.replicas", settings.integer("num.standby.replicas")
        )
    yield from _of_group(configs, plan.group or "GROUP")


def _goes_before_files(found: Found) -> bool:
    """Spring takes variables, SPRING_APPLICATION_JSON, -D and arguments before its files."""
    return found.name.isupper() or not found.where.startswith("ConfigMap ")


def _of_group(configs: Mapping[str, int | None], group: str) -> Iterator[str]:
    """Configurations of the group; of a streams group Kafka Streams ignores its own number of standbys."""
    for name, value in configs.items():
        if value:
            yield "kafka-configs.sh --bootstrap-server BROKER --alter --entity-type groups \\"
            yield f"  --entity-name {group} --add-config {name}={value}"


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
