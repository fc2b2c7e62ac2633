"""`groupstorm rollout`: the cost of a consumer's next rollout and of its alternatives, from manifests.

With --against it compares two versions of a manifest or a scenario: the cost of the change.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import yaml

from groupstorm.cli.failed_runs import check_all_meet, require_invariants, requirements_of
from groupstorm.cli.options import overrides
from groupstorm.cli.printing import command_line, print_json, print_made
from groupstorm.cli.rollout_text import Answer, print_rollout, rollout_content
from groupstorm.cli.run import print_assignor_failures
from groupstorm.problems import CheckFailed, InputError, writing
from groupstorm.report.comparisons import Version, change_answer, change_comment, changed
from groupstorm.report.progress import runs_progress
from groupstorm.report.rollout import Rollouts, rollout_answer
from groupstorm.storms.deployments.alternatives import (
    ROLLING,
    alternatives_to,
    read_outcome,
    remedies_for,
    scenarios_of,
)
from groupstorm.storms.deployments.manifests.choice import choose_consumer
from groupstorm.storms.deployments.manifests.objects import MANIFEST_BYTES_MAX, read_objects
from groupstorm.storms.deployments.manifests.plan import Plan, plan_rollout
from groupstorm.storms.runs.choices import cautions_of_change
from groupstorm.storms.runs.contradictions import outlasts_polls
from groupstorm.storms.runs.run_folder import free_folder
from groupstorm.storms.runs.several import SEEDS_DEFAULT, Order, orders_of, run_order, run_variants
from groupstorm.storms.scenario.files import parse
from groupstorm.storms.scenario.member_rules import STRATEGY, named_code
from groupstorm.storms.scenario.setting_names import NO_TRACE, Measured
from groupstorm.storms.scenario.settings import read
from groupstorm.verdicts.alternatives import AS_IT_IS
from groupstorm.verdicts.requirements import Requirement
from groupstorm.whatif.measuring import measure
from groupstorm.yaml_documents import parse_yaml_stream, read_text, text_of

#: The scenario of the rollout, beside its runs; alternatives of another kind of step have a file of its name.
SCENARIO_FILE = "rollout.yaml"


def rollout(
    manifest: str,
    workload: str | None = None,
    settings: list[str] | None = None,
    trace: Path | None = None,
    group: str | None = None,
    against: str | None = None,
    alone: bool = False,
    seeds: int = SEEDS_DEFAULT,
    seed: int | None = None,
    require: list[str] | None = None,
    as_json: bool = False,
    everything: bool = False,
    out: Path | None = None,
) -> None:
    """Say what the next rollout of a consumer costs, from its Kubernetes manifests, and what would cost less.

    Reads Deployment, StatefulSet, ConfigMap, HorizontalPodAutoscaler, ScaledObject, PodDisruptionBudget and
    KafkaTopic, and asks for what no manifest says: partitions, record_rate, start_ms. Runs what could be
    changed beside it: assignor, static members, protocol, surge, readiness probe. Exit code 1 if the
    rollout never completes. What no manifest says, --from takes from a trace of the group, as far as that
    says it.

    Example: groupstorm rollout orders.yaml --set partitions=240 --set record_rate=50 --set start_ms=25s
    """
    required = requirements_of(require)
    given = overrides(settings)
    if group is not None and trace is None:
        raise InputError("--group: means something only with --from")
    measured = NO_TRACE if trace is None else measure(trace, group)
    if against is not None:
        unused = {"--alone": alone, "--all": everything, "--out": out is not None}
        for option in (name for name, is_given in unused.items() if is_given):
            raise InputError(f"{option}: means nothing with --against, which runs both versions as they are")
        _compare_versions(
            manifest,
            against,
            lambda version: _plan_of(version.text, version.source, workload, given, measured),
            given,
            range(seed or 0, (seed or 0) + seeds),
            required,
            command_line(*sys.argv[1:]),
            as_json,
        )
        return
    plan = _plan(manifest, workload, given, measured)
    code = _code_of(given)
    as_it_is = parse(_as_yaml(plan.scenario()), "yaml", SCENARIO_FILE).resolve(None, None, code).settings
    alternatives = [] if alone or outlasts_polls(as_it_is) else [*alternatives_to(plan, as_it_is)]
    scenarios = scenarios_of(plan, alternatives)
    files = {
        SCENARIO_FILE if step == plan.step else f"{step}.yaml": _as_yaml(content)
        for step, content in scenarios.items()
    }
    folder = out or free_folder(plan.name, files)
    _write(folder, files)
    first_seed = seed or 0
    numbers = range(first_seed, first_seed + seeds)
    [plain, *others] = [
        orders_of(str(folder / file), [name], numbers, code, folder)
        for file, content in zip(files, scenarios.values(), strict=True)
        for name in content["variants"]
    ]
    with runs_progress() as progress:
        total, done = len(plain) * (1 + len(others)), count(1)
        rollouts = _run(plain, plan.step, lambda: progress(next(done), total))
        stuck = rollouts[AS_IT_IS].stuck
        if stuck is None and others:
            every_other = [order for orders in others for order in orders]
            rollouts |= _run(every_other, ROLLING, lambda: progress(next(done), total))
    if stuck is None:
        answer = rollout_answer(plan, as_it_is, rollouts[AS_IT_IS])
    else:
        answer = _never(plan, stuck, folder, first_seed, code)
    found = Answer(plan, as_it_is, alternatives, rollouts, answer, folder)
    if as_json:
        print_json(rollout_content(found))
    else:
        print_rollout(found, everything)
    every = [run for one in rollouts.values() for run in one.runs]
    print_assignor_failures(every)
    require_invariants(every)
    if stuck is not None:
        raise CheckFailed(f"{plan.consumer.workload}: this rollout never completes: {stuck}")
    check_all_meet({f"seed {run.scenario.seed}": run.figures for run in rollouts[AS_IT_IS].runs}, required)


def _plan(manifest: str, workload: str | None, given: Mapping[str, Any], measured: Measured) -> Plan:
    """The plan of the rollout that the manifests describe. Raises InputError."""
    source = "standard input" if manifest == "-" else manifest
    if manifest == "-":
        text = text_of(sys.stdin.buffer, source, MANIFEST_BYTES_MAX)
    else:
        text = read_text(Path(manifest), MANIFEST_BYTES_MAX)
    return _plan_of(text, source, workload, given, measured)


def _plan_of(
    text: str, source: str, workload: str | None, given: Mapping[str, Any], measured: Measured
) -> Plan:
    """The plan of the manifests in ``text``. Raises InputError."""
    consumer = choose_consumer(read_objects(text, source), source, workload)
    for name, value in given.items():
        read(name, value, "--set ")
    return plan_rollout(consumer, given, measured)


def _code_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """The assignors of the user's own, which go with each run: a file must not name code."""
    return {STRATEGY: given[STRATEGY]} if named_code(given) is not None else {}


def _write(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        with writing(folder / name):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, "utf-8")


def _run(orders: Sequence[Order], step: str, finished: Callable[[], None]) -> dict[str, Rollouts]:
    """Run the rollouts of several variants. ``step``: their kind. ``finished``: called after each run."""
    runs = run_variants(orders, lambda _: finished())
    return {name: Rollouts.of(each, step) for name, each in runs.items()}


def _as_yaml(scenario: Mapping[str, Any]) -> str:
    return yaml.safe_dump(dict(scenario), sort_keys=False, allow_unicode=True)


def _never(plan: Plan, stuck: str, folder: Path, seed: int, code: Mapping[str, Any]) -> str:
    """The answer for a rollout that is stuck, with the changes that were tried and end it."""
    tried = []
    for remedy in remedies_for(plan):
        below = folder / "remedies" / remedy.name
        _write(below, {SCENARIO_FILE: _as_yaml(remedy.scenario)})
        run = run_order(Order(str(below / SCENARIO_FILE), None, seed, code, below / f"seed-{seed}"))
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


class Text(NamedTuple):
    """A version of a file. ``source`` names it in messages."""

    source: str
    text: str


class Asked(NamedTuple):
    """One version as it will be run.

    ``step``: the kind of step that is a rollout; None in a scenario of one's own. ``changed``: settings that
    are not in the scenario's text. ``group``: the group.id, if a manifest names it.
    """

    scenario: str
    step: str | None
    findings: Sequence[str]
    changed: Mapping[str, Any]
    alarms: int = 0
    group: str | None = None


def _compare_versions(
    file: str,
    against: str,
    plan: Callable[[Text], Plan],
    changed: Mapping[str, Any],
    seeds: range,
    required: Sequence[Requirement],
    command: str,
    as_json: bool,
) -> None:
    """Run both versions over the same seeds and print Markdown. Writes no file.

    ``against``: a file, or a revision of git that has ``file``. ``changed``: settings of --set. ``command``
    does it again.
    Raises InputError; CheckFailed if ``required`` is not met by the new version, or its rollout never ends.
    """
    if file == "-":
        raise InputError("-: --against compares files: name the manifest or the scenario")
    path = Path(file)
    new = Text(file, read_text(path, MANIFEST_BYTES_MAX))
    texts = [_version(path, against), new]
    with TemporaryDirectory(prefix="groupstorm-against-") as temporary, runs_progress() as progress:
        done = count(1)
        versions, scenarios, groups = [], [], list[str | None]()
        for number, text in enumerate(texts):
            asked = _asked(text, plan, changed)
            folder = Path(temporary) / str(number)
            folder.mkdir()
            scenario = folder / "scenario.yaml"
            scenario.write_text(asked.scenario, "utf-8")
            parsed = parse(asked.scenario, "yaml", text.source)
            orders = orders_of(str(scenario), [next(iter(parsed.variants))], seeds, asked.changed, folder)
            (runs,) = run_variants(orders, lambda _: progress(next(done), 2 * len(seeds))).values()
            require_invariants(runs)
            rollouts = None if asked.step is None else Rollouts.of(runs, asked.step)
            stuck = None if rollouts is None else rollouts.stuck
            takes_s = [] if rollouts is None else [one.seconds for one in rollouts.outcomes]
            scenarios.append(runs[0].scenario)
            groups.append(asked.group)
            settings = dict(runs[0].scenario.settings.written())
            figures = [run.figures for run in runs]
            told = asked.findings, (), asked.alarms
            versions.append(Version(text.source, settings, figures, takes_s, stuck, *told))
    before, after = versions
    by_seed = {f"seed {seed}": figures for seed, figures in zip(seeds, after.figures, strict=True)}
    unmet = [sentence for one in required for sentence in one.unmet_by(by_seed)]
    cautions = cautions_of_change(*scenarios)
    if all(groups) and groups[0] != groups[1]:
        other = f"{groups[1]} is another group than {groups[0]}: it begins where auto.offset.reset says, and"
        cautions = f"{other} both process records until the last old pod has gone. {cautions}"
    after = after._replace(unmet=unmet, cautions=cautions)
    if as_json:
        print_json(_content(before, after))
    else:
        print_made(change_comment(f"{before.name} -> {after.name}", before, after, [command]))
    if after.stuck is not None:
        raise CheckFailed(f"{after.name}: this rollout never completes: {after.stuck}")
    if after.unmet:
        raise CheckFailed("; ".join(after.unmet))


def _version(path: Path, against: str) -> Text:
    """The old version: a file, or the same file in a revision. Raises InputError."""
    if Path(against).is_file():
        return Text(against, read_text(Path(against), MANIFEST_BYTES_MAX))
    if against.startswith("-"):
        raise InputError(f"--against {against}: expected a file or a revision of git")
    asked = ["git", "-C", str(path.parent), "show", f"{against}:./{path.name}"]
    try:
        shown = subprocess.run(asked, capture_output=True, check=False)
    except FileNotFoundError:
        raise InputError(f"--against {against}: no such file, and git is not on the path") from None
    if shown.returncode:
        said = shown.stderr.decode("utf-8", "replace").strip().splitlines()
        raise InputError(
            f"--against {against}: no such file, and git says: {said[-1] if said else 'nothing'}"
        )
    if len(shown.stdout) > MANIFEST_BYTES_MAX:
        raise InputError(f"--against {against}: {path.name} is larger than {MANIFEST_BYTES_MAX:,} bytes")
    try:
        return Text(f"{against}:{path}", shown.stdout.decode("utf-8"))
    except UnicodeDecodeError:
        raise InputError(f"--against {against}: {path.name} is no UTF-8 there") from None


def _asked(text: Text, plan: Callable[[Text], Plan], changed: Mapping[str, Any]) -> Asked:
    documents = parse_yaml_stream(text.text, text.source)
    if len(documents) == 1 and isinstance(documents[0], Mapping) and "steps" in documents[0]:
        return Asked(text.text, None, (), changed)
    planned = plan(text)
    alarms = [*planned.warnings, *planned.alarms]
    findings = [*alarms, *planned.findings]
    told = findings, _code_of(changed), len(alarms)
    return Asked(_as_yaml(planned.scenario()), planned.step, *told, planned.group)


def _content(before: Version, after: Version) -> dict[str, Any]:
    return {
        "answer": change_answer(before, after),
        "unmet": list(after.unmet),
        "settings": {
            name: {"before": old, "after": new}
            for name, (old, new) in changed(before.settings, after.settings).items()
        },
        **{
            when: {
                "version": one.name,
                "never_completes": one.stuck,
                "takes_seconds": list(one.takes_s),
                "findings": list(one.findings),
                "figures": [figures.to_json() for figures in one.figures],
            }
            for when, one in (("before", before), ("after", after))
        },
    }
