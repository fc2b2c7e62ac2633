"""`groupstorm rollout`: what the next rollout of a consumer costs, from its Kubernetes manifests."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from groupstorm.cli.failed_runs import check_all_meet, require_invariants, requirements_of
from groupstorm.cli.options import OutOption, RequireOption, SeedOption, SetOption, overrides
from groupstorm.cli.output_options import AllOption, JsonOption
from groupstorm.cli.printing import (
    print_command,
    print_grid,
    print_json,
    print_line,
    print_paragraph,
    print_paragraphs,
)
from groupstorm.figures.reasons import reasons_sentences
from groupstorm.problems import CheckFailed, writing
from groupstorm.report.rollout_answer import pods_of, rollout_answer
from groupstorm.report.tables import figures_grid, seeds_named
from groupstorm.storms.deployments.manifests.choice import choose_consumer
from groupstorm.storms.deployments.manifests.objects import MANIFEST_BYTES_MAX, read_objects
from groupstorm.storms.deployments.manifests.plan import (
    Outcome,
    Plan,
    plan_rollout,
    read_outcome,
    remedies_for,
)
from groupstorm.storms.runs.run import Run
from groupstorm.storms.runs.run_folder import free_folder
from groupstorm.storms.runs.several import Order, run_all
from groupstorm.storms.scenario.files import load
from groupstorm.storms.scenario.member_rules import STRATEGY
from groupstorm.storms.scenario.settings import read
from groupstorm.yaml_documents import read_text, text_of

#: Why objects of some kinds are not used, and those of all others.
_WHY_UNUSED = {
    "ConfigMap": "no Kafka setting in it",
    "Deployment": "not the consumer",
    "HorizontalPodAutoscaler": "scales another workload",
    "KafkaTopic": "the settings name another topic, or none",
    "PodDisruptionBudget": "of other pods",
    "ScaledObject": "scales another workload",
    "Secret": "not read",
    "StatefulSet": "not the consumer",
}
_NO_PART = "no part in a rollout"

#: The scenario of the rollout, beside its runs.
SCENARIO_FILE = "rollout.yaml"


def rollout(
    manifest: Annotated[
        str,
        typer.Argument(
            metavar="MANIFEST.yaml", help="Kubernetes manifests, or the output of `helm template`; -: stdin."
        ),
    ],
    workload: Annotated[
        str | None,
        typer.Option("--workload", metavar="NAME", help="Which Deployment or StatefulSet consumes."),
    ] = None,
    settings: SetOption = None,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Run this many seeds, from --seed on.")] = 1,
    seed: SeedOption = None,
    require: RequireOption = None,
    as_json: JsonOption = False,
    everything: AllOption = False,
    out: OutOption = None,
) -> None:
    """Say what the next rollout of a consumer costs, from its Kubernetes manifests.

    Reads Deployment, StatefulSet, ConfigMap, HorizontalPodAutoscaler, ScaledObject and PodDisruptionBudget,
    and asks for what no manifest says: partitions, record_rate, start_ms. Exit code 1 if the rollout never
    completes.

    Example: groupstorm rollout orders.yaml --set partitions=240 --set record_rate=50 --set start_ms=25s
    """
    required = requirements_of(require)
    source = "standard input" if manifest == "-" else manifest
    if manifest == "-":
        text = text_of(sys.stdin.buffer, source, MANIFEST_BYTES_MAX)
    else:
        text = read_text(Path(manifest), MANIFEST_BYTES_MAX)
    consumer = choose_consumer(read_objects(text, source), source, workload)
    given = overrides(settings)
    for name, value in given.items():
        read(name, value, "--set ")
    plan = plan_rollout(consumer, given)
    folder = out or free_folder(plan.name, {SCENARIO_FILE: _as_yaml(plan.scenario())})
    first_seed = seed or 0
    code = {STRATEGY: given[STRATEGY]} if STRATEGY in given else {}
    runs = _run(plan.scenario(), folder, range(first_seed, first_seed + seeds), code)
    outcomes = [read_outcome(run.trace, plan.step) for run in runs]
    stuck = next((outcome.stuck for outcome in outcomes if outcome.stuck is not None), None)
    if stuck is None:
        answer = rollout_answer(plan, runs[0].scenario.settings, outcomes, [run.figures for run in runs])
    else:
        answer = _never(plan, stuck, folder, first_seed, code)
    if as_json:
        _print_json(plan, runs, outcomes, answer)
    else:
        _print(plan, runs, answer, everything, folder)
    require_invariants(runs)
    if stuck is not None:
        raise CheckFailed(f"{consumer.workload}: this rollout never completes: {stuck}")
    check_all_meet({f"seed {run.scenario.seed}": run.figures for run in runs}, required)


def _run(scenario: Mapping[str, Any], folder: Path, seeds: range, code: Mapping[str, Any]) -> list[Run]:
    """Write the scenario into ``folder`` and run it there.

    ``code``: assignors of the command line, which may be the user's own: a file must not name these.
    Raises InputError.
    """
    path = folder / SCENARIO_FILE
    with writing(path):
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(_as_yaml(scenario), "utf-8")
    load(str(path)).resolve(None, None, code)
    orders = [Order(str(path), None, number, code, folder / f"seed-{number}") for number in seeds]
    return list(run_all(orders))


def _as_yaml(scenario: Mapping[str, Any]) -> str:
    return yaml.safe_dump(dict(scenario), sort_keys=False, allow_unicode=True)


def _never(plan: Plan, stuck: str, folder: Path, seed: int, code: Mapping[str, Any]) -> str:
    """The answer for a rollout that is stuck, with the changes that were tried and end it."""
    tried = []
    for remedy in remedies_for(plan):
        [run] = _run(remedy.scenario, folder / "remedies" / remedy.name, range(seed, seed + 1), code)
        outcome = read_outcome(run.trace, remedy.step)
        if outcome.seconds is not None:
            gap = run.figures.unowned_max_seconds or 0
            tried.append(f"{remedy.change} (after {outcome.seconds:,.0f} s, longest gap {gap:,.0f} s)")
    deadline_s = plan.settings["progress_deadline_ms"] // 1000
    reported = (
        f"Kubernetes reports it after progressDeadlineSeconds ({deadline_s:,} s) and waits on."
        if plan.consumer.workload.kind == "Deployment"
        else "A StatefulSet has no progressDeadlineSeconds: Kubernetes never reports it."
    )
    cure = f" Tried and complete: {'; '.join(tried)}." if tried else ""
    return f"This rollout never completes: {stuck}. {reported}{cure}"


def _print(plan: Plan, runs: Sequence[Run], answer: str, everything: bool, folder: Path) -> None:
    consumer = plan.consumer
    print_paragraph(f"{consumer.workload}: {_described(plan, runs[0])}", emphasized=True)
    for alarm in plan.alarms:
        said, *mend = alarm.splitlines()
        print_paragraph(said)
        for line in mend:
            print_line(line)
    for heading, sentences in (("Read", plan.read), ("Assumed", plan.assumed)):
        if sentences:
            print_paragraph(f"{heading}: {'; '.join(sentences)}.")
    if plan.unknown:
        print_paragraph(f"Not known: {'; '.join(plan.unknown)}: give them with --set; defaults are taken.")
    kinds = (f"{count} {kind} ({_WHY_UNUSED.get(kind, _NO_PART)})" for kind, count in consumer.unused.items())
    if unused := [*plan.unused, *kinds]:
        print_paragraph(f"Not used: {'; '.join(unused)}.")
    print()
    title = f"{plan.name}, {seeds_named([run.scenario.seed for run in runs])}"
    print_grid(figures_grid(title, {"rollout": [run.figures for run in runs]}, everything))
    print_paragraphs(plan.findings)
    print_paragraph(answer)
    print_paragraphs(reasons_sentences({"rollout": [run.reasons for run in runs]}))
    print()
    print_paragraph(f"The scenario: {folder / SCENARIO_FILE}; files in {folder}")
    print_command("The story of it:", "trace", str(runs[0].folder))


def _described(plan: Plan, run: Run) -> str:
    settings = run.scenario.settings
    surge, missing = settings.pods("max_surge").as_written, settings.pods("max_unavailable").as_written
    strategy = "Recreate" if plan.step == "recreate" else f"maxSurge {surge}, maxUnavailable {missing}"
    grace_s = (settings.optional_integer("termination_grace_ms") or 0) // 1000
    partition = settings.integer("update_partition")
    kept = f"partition {partition}, " if partition else ""
    return (
        f"{pods_of(settings)}, {kept}{strategy}, "
        f"terminationGracePeriodSeconds {grace_s}, ready_when {settings.choice('ready_when')}"
    )


def _print_json(plan: Plan, runs: Sequence[Run], outcomes: Sequence[Outcome], answer: str) -> None:
    workload = plan.consumer.workload
    content = {
        "workload": {"kind": workload.kind, "name": workload.name, "namespace": workload.namespace},
        "settings": plan.settings,
        "read": plan.read,
        "assumed": plan.assumed,
        "unknown": plan.unknown,
        "findings": [*plan.alarms, *plan.findings],
        "unused": dict(plan.consumer.unused),
        "unused_fields": plan.unused,
        "seeds": {
            str(run.scenario.seed): {"rollout": outcome._asdict(), "figures": run.figures.to_json()}
            for run, outcome in zip(runs, outcomes, strict=True)
        },
        "answer": answer,
    }
    print_json(content)
