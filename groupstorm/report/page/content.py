"""The content of a page: the question, the answer, and per run all that is drawn, as one JSON value."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from groupstorm.explain.explanation import Explanation, explain
from groupstorm.explain.findings import Finding, pattern_of
from groupstorm.figures import Figures
from groupstorm.figures.accumulator import WHOLE, Window
from groupstorm.figures.reasons import reasons_sentences
from groupstorm.history.gaps import ClosedGap
from groupstorm.problems import InputError
from groupstorm.report.comparisons import circumstances
from groupstorm.report.page.history import ABSENT, ACTIVITIES, GONE, JOINS, UNOWNED, GroupHistory
from groupstorm.report.page.sources import Sources
from groupstorm.report.page.steps import SHARES, Steps, cells, packed, packed_times
from groupstorm.verdicts.comparison import compare_sentences
from groupstorm.verdicts.lost_and_won import is_shared
from groupstorm.visible import escaped
from groupstorm.wording import listed, seconds

#: So many runs have lanes of their own: the first ones. The table of figures has all of them.
DRAWN_MAX: Final = 8
#: So many changes of owners and activities are drawn exactly, in all runs together; beyond it cells are.
CHANGES_MAX: Final = 600_000
CELLS_MAX: Final = 1_200_000
#: So many partitions, those with the longest gaps, are drawn exactly beside the cells.
EXACT_PARTITIONS: Final = 100
REBALANCES_MAX: Final = 20_000
PATTERNS_SHOWN: Final = 3
_NOT_KNOWN: Final = "It is not known how long the partitions of {} had no owner."


@dataclass(frozen=True, slots=True)
class RunView:
    """One group of one run: what it did (`explanation`), what is drawn of it (`history`), and the scenario
    beside its trace; empty without one."""

    name: str
    trace: Path
    explanation: Explanation
    history: GroupHistory
    scenario: Mapping[str, Any]

    @property
    def question(self) -> str:
        return str(self.scenario.get("question", ""))

    @property
    def figures(self) -> Figures:
        figures = self.explanation.history.figures
        assert figures is not None  # it has them from the end of the pass on
        return figures

    @property
    def span_us(self) -> tuple[int, int]:
        """From when to when it is drawn."""
        from_us = self.history.from_us
        return from_us, max(self.explanation.history.to_us, from_us + 1)

    @property
    def gaps(self) -> list[ClosedGap]:
        """The longest times without an owner, as far as the trace knows who owned what."""
        if self.figures.unowned_partition_seconds is None:
            return []
        unknown = [(a, self.span_us[1] if b is None else b) for a, b in self.history.unknown]
        return [
            gap for gap in self.history.gaps if not any(gap.from_us < b and a < gap.to_us for a, b in unknown)
        ]

    @property
    def partitions(self) -> list[str]:
        """All partitions, those of one topic by number."""
        return sorted(self.history.owners.numbers, key=natural)


def read_views(
    traces: Mapping[str, Path], groups: Sequence[str] = (), window: Window = WHOLE
) -> list[RunView]:
    """Read every trace once. A run goes by its name; a group of a trace with several by run:group.

    Raises InputError for a trace that is none, or for a group that no trace has.
    """
    views: list[RunView] = []
    there: dict[str, None] = {}
    for name, trace in traces.items():
        histories: dict[str, GroupHistory] = {}

        def reader(group: str, from_us: int, made: dict[str, GroupHistory] = histories) -> GroupHistory:
            made[group] = GroupHistory(from_us)
            return made[group]

        explanations = explain(trace, window=window, reader=reader)
        there |= dict.fromkeys(one.history.group for one in explanations)
        scenario = _scenario(trace)
        for one in explanations:
            group = one.history.group
            histories[group].finish(one.history.to_us)
            if not groups or group in groups:
                shown = name if len(explanations) == 1 else f"{name}:{group}"
                views.append(RunView(shown, trace, one, histories[group], scenario))
    for group in groups:
        if group not in there:
            raise InputError(f"--group {group}: not in the traces; there are: {', '.join(there)}")
    return views


def natural(name: str) -> tuple[tuple[int, int | str], ...]:
    """A key that sorts topic-9 before topic-10."""
    return tuple((0, int(part)) if part.isdigit() else (1, part) for part in re.split(r"(\d+)", name) if part)


def _scenario(trace: Path) -> Mapping[str, Any]:
    """The scenario beside the trace; empty without one."""
    file = (trace if trace.is_dir() else trace.parent) / "scenario.yaml"
    if not file.is_file():
        return {}
    from groupstorm.yaml_documents import read_document

    content = read_document(file)
    return content if isinstance(content, dict) else {}


def question_of(views: Sequence[RunView], sources: Sources) -> str:
    """The question that the report answers."""
    for content in sources.sweeps.values():
        return _question_of_sweep(content)
    asked = list(dict.fromkeys(view.question for view in views if view.question))
    if asked:
        return asked[0] if len(asked) == 1 else f"What happened in {listed([view.name for view in views])}?"
    groups = list(dict.fromkeys(view.explanation.history.group for view in views))
    named = f"group {groups[0]}" if len(groups) == 1 else f"{len(groups)} groups"
    return f"What happened to {named}, and why?"


def _question_of_sweep(content: Mapping[str, Any]) -> str:
    """The scenario's own question if it is about a swept setting: that of a comparison is about variants."""
    asked, over = str(content.get("question") or ""), [*content["over"]]
    if asked and ("variant" in over or any(name in asked for name in over)):
        return asked
    variant = content.get("variant")
    return f"Which {listed(over)} for {content['preset']}{f' ({variant})' if variant else ''}?"


def answer_of(
    views: Sequence[RunView], runs: Mapping[str, Sequence[Figures]], sweeps: Sequence[str], compared: str
) -> list[str]:
    """The answer in sentences; what to do comes first.

    ``runs``: the figures of the views. ``sweeps``: the answers of sweeps. ``compared``: that of a comparison;
    "" if there is none, or if the views are a part of its runs, of which it does not speak.
    """
    found = [*sweeps]
    if compared:
        found.append(compared)
    elif len(views) == 1:
        found.append(sentence_case(views[0].figures.answer))
    elif _differ_by_seed(views):
        found.append("Only the seeds of these runs differ: none is better, all of it is chance.")
        found += reasons_sentences({"all seeds": [view.explanation.reasons for view in views]})
    elif _are_groups_of_one_trace(views):
        found += [*_longest_unowned(views), *(f"{view.name}: {view.figures.answer}" for view in views)]
    elif views:
        known = [view for view in views if view.figures.unowned_partition_seconds is not None]
        unknown = [view.name for view in views if view not in known and view.explanation.history.missing]
        found += [_NOT_KNOWN.format(listed(unknown))] if unknown else []
        runs = {name: each for name, each in runs.items() if name not in unknown}
        reasons = {view.name: [view.explanation.reasons] for view in known}
        apart = circumstances({view.name: view.scenario for view in views})
        found += compare_sentences(runs, None, reasons, apart) if runs else []
    sentences = [part for text in found for part in re.split(r"(?<=[.]) (?=[A-Z])", text) if part]
    first = next((n for n, one in enumerate(sentences) if one.startswith("Recommendation:")), 0)
    return sentences[first:] + sentences[:first]


def _differ_by_seed(views: Sequence[RunView]) -> bool:
    """Whether the runs are of one configuration, each with its seed."""
    seeds = {view.scenario.get("seed") for view in views}
    configured = [{**view.scenario, "seed": None} for view in views]
    return 1 < len(seeds) == len(views) and all(one == configured[0] for one in configured)


def _are_groups_of_one_trace(views: Sequence[RunView]) -> bool:
    """Groups of one trace are no variants: nothing says which of them is better."""
    return len({view.trace for view in views}) < len(views)


def _longest_unowned(views: Sequence[RunView]) -> Iterator[str]:
    """Where to look first. Nothing if all partitions had owners all the time."""
    costs = {view.name: view.figures.unowned_partition_seconds for view in views}
    known = {name: cost for name, cost in costs.items() if cost is not None}
    unknown = [name for name in costs if name not in known]
    if unknown:
        yield _NOT_KNOWN.format(listed(unknown))
    elif any(known.values()):
        first = max(known, key=lambda name: known[name])
        by_coordinator = not all(view.history.by_members for view in views)
        yield f"Most un-owned time{', as far as the coordinator knows' if by_coordinator else ''}: {first}."


def sentence_case(text: str) -> str:
    return text[:1].upper() + text[1:]


def run_content(view: RunView, budget: int) -> dict[str, Any]:
    """The content of one run for the page's scripts. ``budget``: so many changes are drawn exactly."""
    history, of_group = view.history, view.explanation.history
    span_us = view.span_us
    unit_us = max(1000, -(-(span_us[1] - span_us[0]) // (2**31 - 2)))
    partitions = view.partitions
    members = sorted(history.activities.numbers, key=natural)
    numbers = {name: number for number, name in enumerate(members)}
    renumbered = {old: numbers[name] for name, old in history.numbers.items()}
    exact = history.owners.changes + history.activities.changes <= budget
    packer = _Packer(span_us, unit_us, exact)
    worst = list(dict.fromkeys(gap.partition for gap in view.gaps))[:EXACT_PARTITIONS]
    states = [one for one in history.states if one.time_us <= span_us[1]]
    state_names = list(dict.fromkeys(one.state for one in states))
    return {
        "name": view.name,
        "group": of_group.group,
        "kind": history.kind,
        "fromSeconds": span_us[0] / 1e6,
        "toSeconds": span_us[1] / 1e6,
        "unitSeconds": unit_us / 1e6,
        "began": of_group.began,
        "answer": sentence_case(view.figures.answer),
        "byMembers": history.by_members,
        "partitions": partitions,
        "members": [history.label(member) for member in members],
        "owners": packer.steps(history.owners, partitions, UNOWNED, ABSENT, renumbered),
        "worst": {}
        if exact
        else {
            "partitions": [partitions.index(name) for name in worst],
            **_Packer(span_us, unit_us, True).steps(history.owners, worst, UNOWNED, ABSENT, renumbered),
        },
        "phases": packer.steps(history.activities, members, JOINS, GONE, {})
        | {"members": [*range(len(members))]},
        "phaseWords": [str(activity) for activity in ACTIVITIES],
        "states": {
            "names": state_names,
            "times": packed(packer.unit(one.time_us) for one in states),
            "values": packed(state_names.index(one.state) for one in states),
            "generations": packed(-1 if one.generation is None else one.generation for one in states),
        },
        "samples": _samples(view),
        "rebalances": _rebalances(view, packer),
        "rebalancesLeftOut": max(0, len(of_group.rebalances) - REBALANCES_MAX),
        "steps": [
            [packer.unit(step.time_us), step.cause, step.member, step.detail]
            for step in history.scenario_steps
            if span_us[0] <= step.time_us <= span_us[1]
        ],
        "gaps": [
            [
                gap.partition,
                packer.unit(gap.from_us),
                packer.unit(gap.to_us),
                gap.gap_us / 1e6,
                None if gap.old_owner is None else history.label(gap.old_owner),
                None if gap.new_owner is None else history.label(gap.new_owner),
            ]
            for gap in view.gaps
        ],
        "patterns": [_pattern(one, of_group.unowned_us is not None) for one in view.explanation.findings],
        "unknown": [
            [packer.unit(from_us), packer.unit(span_us[1] if to_us is None else to_us)]
            for from_us, to_us in history.unknown
        ],
        "missing": list(of_group.missing.values()),
        "ownershipKnown": of_group.unowned_us is not None
        or (not of_group.missing and not is_shared([view.figures])),
    }


class _Packer:
    """Packs steps of one span: all of them, or cells if they are too many."""

    def __init__(self, span_us: tuple[int, int], unit_us: int, exact: bool) -> None:
        self._span_us, self._unit_us, self._exact = span_us, unit_us, exact

    def unit(self, time_us: int) -> int:
        """A time of the trace in units from the beginning of the span on."""
        clipped = min(max(time_us, self._span_us[0]), self._span_us[1])
        return (clipped - self._span_us[0]) // self._unit_us

    def steps(
        self, steps: Steps, names: Sequence[str], special: int, before: int, renumbered: Mapping[int, int]
    ) -> dict[str, Any]:
        """``renumbered``: old value -> new value; others stay."""
        lasted = (steps.lasted_us(name, special, self._span_us, before) / 1000 for name in names)
        totals = {"specialMs": packed(min(round(one), 2**31 - 1) for one in lasted)}
        if not self._exact:
            count = max(60, min(1200, CELLS_MAX // max(1, len(names))))
            found = cells(steps, names, self._span_us, count, special, before)
            values = (
                renumbered.get(value // SHARES, value // SHARES) * SHARES + value % SHARES
                for value in found.values
            )
            return totals | {
                "bucketSeconds": found.bucket_us / 1e6,
                "counts": packed(found.counts),
                "times": packed_times(found.counts, found.buckets),
                "values": packed(values),
            }
        counts, times, changed = [], [], []
        for name in names:
            of_name = [*steps.of(name, *self._span_us, before)]
            counts.append(len(of_name))
            times += [self.unit(step.from_us) for step in of_name]
            changed += [renumbered.get(step.value, step.value) for step in of_name]
        return totals | {
            "bucketSeconds": 0,
            "counts": packed(counts),
            "times": packed_times(counts, times),
            "values": packed(changed),
        }


def _samples(view: RunView) -> dict[str, Any]:
    samples = view.history.samples
    buckets = samples.buckets
    has_lag = any(bucket.lag is not None for bucket in buckets)
    return {
        "bucketSeconds": samples.bucket_us / 1e6,
        "unowned": [round(bucket.unowned_us / samples.bucket_us, 3) for bucket in buckets],
        "lag": [None if one.lag is None else round(one.lag) for one in buckets] if has_lag else None,
        "ageSeconds": [None if one.age_us is None else round(one.age_us / 1e6, 3) for one in buckets]
        if has_lag
        else None,
    }


def _rebalances(view: RunView, packer: _Packer) -> list[list[Any]]:
    """Begin, end (null: not before the end), cause, who began it, rounds, un-owned seconds, pattern."""
    of_group = view.explanation.history
    patterns = pattern_of(view.explanation.findings)
    known = of_group.unowned_us is not None
    return [
        [
            packer.unit(one.begun_us),
            None if one.ended_us is None else packer.unit(one.ended_us),
            one.cause,
            view.history.label(one.culprit) if one.culprit else None,
            len(one.rounds),
            one.unowned_us / 1e6 if known else None,
            patterns.get(one.number),
        ]
        for one in of_group.rebalances[:REBALANCES_MAX]
    ]


def _pattern(finding: Finding, known: bool) -> dict[str, Any]:
    return {
        "title": finding.pattern.title,
        "kind": finding.pattern.kind.name.lower(),
        "sentence": finding.match.sentence,
        "advice": finding.pattern.advice,
        "unowned": seconds(finding.unowned_us / 1e6) if known else None,
        "unknown": finding.match.unknown or None,
    }


def patterns_told(views: Sequence[RunView]) -> list[str]:
    """Why it rebalanced, in sentences: the costliest patterns of a single run, or the costliest one of each
    group of a trace. The variants of a comparison have theirs beside their lanes."""
    if len(views) == 1:
        return [_told(one) for one in views[0].explanation.findings[:PATTERNS_SHOWN]]
    if not _are_groups_of_one_trace(views):
        return []
    return [f"{view.name}: {_told(one)}" for view in views for one in view.explanation.findings[:1]]


def _told(finding: Finding) -> str:
    return f"{finding.pattern.title}: {finding.match.sentence}"


def json_for_html(content: Mapping[str, Any]) -> str:
    """JSON that no HTML parser takes for the end of a script."""
    text = json.dumps(_shown(content), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c")


def _shown(content: Any, name: str = "") -> Any:
    """``content`` with all its texts made visible, but for commands, which a shell reads back."""
    if isinstance(content, str):
        return content if name == "command" else escaped(content)
    if isinstance(content, Mapping):
        return {escaped(key): _shown(value, key) for key, value in content.items()}
    return [*map(_shown, content)] if isinstance(content, list | tuple) else content
