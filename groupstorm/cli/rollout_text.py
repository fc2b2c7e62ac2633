"""The output of `groupstorm rollout`: the answer, its alternatives, lines to paste, and assumptions."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from groupstorm.cli.printing import print_command, print_grid, print_line, print_paragraph, print_paragraphs
from groupstorm.figures.reasons import reasons_sentences
from groupstorm.report.rollout import Rollouts, alternatives_grid, lines_to_paste, pods_of
from groupstorm.report.tables import figures_grid, seeds_named
from groupstorm.storms.deployments.manifests.plan import Plan
from groupstorm.storms.runs.contradictions import contradictions, growing_lag, outlasts_polls
from groupstorm.storms.scenario.settings import Settings
from groupstorm.verdicts.alternatives import AS_IT_IS, Advice, Alternative, advise_alternative
from groupstorm.verdicts.measures import NOTICED_SHARE, spread_of
from groupstorm.verdicts.ranking import unfit_variants
from groupstorm.wording import seconds

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
#: A person notices a rollout that is shorter by so much.
SHORTER_S = 60


@dataclass(frozen=True, slots=True)
class Answer:
    """``rollouts``: those that were run, by the names of the alternatives. ``as_it_is``: the paragraph on the
    rollout without a change; ``settings``: its settings."""

    plan: Plan
    settings: Settings
    alternatives: Sequence[Alternative]
    rollouts: dict[str, Rollouts]
    as_it_is: str
    folder: Path

    def advice(self) -> Advice | None:
        """None if no alternative was run. Nothing is recommended if settings contradict each other."""
        if outlasts_polls(self.settings):
            against = " ".join(contradictions({AS_IT_IS: self.settings}))
            return Advice(None, [f"No recommendation, as settings contradict each other: {against}"])
        if len(self.rollouts) == 1:
            return None
        figures = {name: one.figures for name, one in self.rollouts.items()}
        # one seed is enough not to recommend a change, but not to give up the rollout in use
        never = {
            name: why for name, one in self.rollouts.items() if (why := one.stands()) and name != AS_IT_IS
        }
        overload = growing_lag(self.settings)
        advice = advise_alternative(figures, self.alternatives, never, " ".join(overload))
        shorter = self._shorter(advice.chosen or AS_IT_IS, unfit_variants(figures))
        return Advice(advice.chosen, [*advice.sentences, *shorter])

    def _shorter(self, chosen: str, unfit: Collection[str]) -> Iterator[str]:
        """Name those that take much less time than ``chosen``, which is no figure of the group."""
        spreads = {
            name: spread_of(each.seconds for each in one.outcomes) for name, one in self.rollouts.items()
        }
        took = spreads.pop(chosen)
        for name, one in spreads.items():
            if one is None or took is None or name in unfit or self.rollouts[name].stands():
                continue
            if took.median - one.median >= max(SHORTER_S, NOTICED_SHARE * took.median):
                yield (
                    f"The rollout itself takes {seconds(one.median)} with {name}, and {seconds(took.median)} "
                    f"with {chosen}."
                )


def print_rollout(answer: Answer, everything: bool) -> None:
    """Print the answer first, then the figures, then the lines to paste, then what was read and assumed."""
    plan, advice, rollouts = answer.plan, answer.advice(), answer.rollouts
    plain = rollouts[AS_IT_IS]
    print_paragraph(f"{plan.consumer.workload}: {_described(answer)}", emphasized=True)
    _print_alarms(plan)
    if advice is not None:
        print_paragraph(" ".join(advice.sentences))
        print()
    print_paragraph(f"As it is: {answer.as_it_is}")
    print_paragraphs(reasons_sentences({"rollout": [run.reasons for run in plain.runs]}))
    print()
    title = f"{plan.name}, {seeds_named([run.scenario.seed for run in plain.runs])}"
    print_grid(alternatives_grid(title, rollouts, None if advice is None else advice.chosen))
    if everything:
        print_grid(figures_grid(title, {name: one.figures for name, one in rollouts.items()}, True))
    if advice is not None and answer.alternatives:
        _print_alternatives(answer, advice, everything)
    _print_told(plan, () if advice is None else advice.sentences)
    print()
    print_paragraph(f"The scenarios and their runs: {answer.folder}")
    print_command("The story of it:", "trace", str(plain.runs[0].folder))


def _print_alternatives(answer: Answer, advice: Advice, everything: bool) -> None:
    """The price of each, and the lines of the recommended one."""
    for one in answer.alternatives:
        print_paragraph(f"{one.name}: {one.price}.")
    print()
    for one in answer.alternatives:
        if everything or one.name == advice.chosen:
            print_paragraph(f"To paste for {one.name}:", emphasized=True)
            for line in lines_to_paste(one.settings, answer.plan, answer.settings):
                print_line(line)
            print()
    if not everything:
        print_paragraph("--all prints the lines of every alternative.")
        print()


def _print_alarms(plan: Plan) -> None:
    """Faults of the manifest that no figure outweighs, each with the lines that mend it."""
    print_paragraphs(plan.warnings)
    for alarm in plan.alarms:
        said, *mend = alarm.splitlines()
        print_paragraph(said)
        for line in mend:
            print_line(line)


def _print_told(plan: Plan, answer: Sequence[str]) -> None:
    """Print what was read and assumed, and the findings that the answer has not said."""
    measured = f"Measured in {plan.trace}"
    for heading, sentences in (("Read", plan.read), (measured, plan.measured), ("Assumed", plan.assumed)):
        if sentences:
            print_paragraph(f"{heading}: {'; '.join(sentences)}.")
    if plan.unknown:
        print_paragraph(f"Not known: {'; '.join(plan.unknown)}: give them with --set; defaults are taken.")
    unused = plan.consumer.unused.items()
    kinds = [f"{count} {kind} ({_WHY_UNUSED.get(kind, _NO_PART)})" for kind, count in unused]
    if plan.unused or kinds:
        print_paragraph(f"Not used: {'; '.join([*plan.unused, *kinds])}.")
    said = " ".join(answer).lower()
    print_paragraphs([finding for finding in plan.findings if finding.lower() not in said])


def _described(answer: Answer) -> str:
    settings, plan = answer.settings, answer.plan
    surge, missing = settings.pods("max_surge").as_written, settings.pods("max_unavailable").as_written
    strategy = "Recreate" if plan.step == "recreate" else f"maxSurge {surge}, maxUnavailable {missing}"
    grace_s = (settings.optional_integer("termination_grace_ms") or 0) // 1000
    partition = settings.integer("update_partition")
    kept = f"partition {partition}, " if partition else ""
    min_ready_s = settings.integer("min_ready_ms") // 1000
    ready = f"minReadySeconds {min_ready_s}, " if min_ready_s else ""
    return (
        f"{pods_of(settings)}, {kept}{strategy}, {ready}"
        f"terminationGracePeriodSeconds {grace_s}, ready_when {settings.choice('ready_when')}"
    )


def rollout_content(answer: Answer) -> dict[str, Any]:
    """The content of --json."""
    plan, advice = answer.plan, answer.advice()
    workload = plan.consumer.workload
    return {
        "workload": {"kind": workload.kind, "name": workload.name, "namespace": workload.namespace},
        "settings": plan.settings,
        "read": plan.read,
        "measured": plan.measured,
        "assumed": plan.assumed,
        "unknown": plan.unknown,
        "findings": [*plan.warnings, *plan.alarms, *plan.findings],
        "unused": dict(plan.consumer.unused),
        "unused_fields": plan.unused,
        "seeds": dict(_seeds(answer.rollouts[AS_IT_IS])),
        "alternatives": {
            one.name: {
                "settings": one.settings,
                "price": one.price,
                "lines": lines_to_paste(one.settings, plan, answer.settings),
                "seeds": dict(_seeds(answer.rollouts[one.name])),
            }
            for one in answer.alternatives
            if one.name in answer.rollouts
        },
        "recommended": None if advice is None else advice.chosen,
        "answer": " ".join([*(() if advice is None else advice.sentences), answer.as_it_is]),
    }


def _seeds(rollouts: Rollouts) -> Iterator[tuple[str, dict[str, Any]]]:
    for run, outcome in zip(rollouts.runs, rollouts.outcomes, strict=True):
        yield str(run.scenario.seed), {"rollout": outcome._asdict(), "figures": run.figures.to_json()}
