"""Runs as people compare them: `comparison.json` of variants, what differs between two runs, and the cost
of a change of manifests or scenarios, as Markdown for a pull request."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from groupstorm.figures import Figures
from groupstorm.report.grid import Grid, Row
from groupstorm.report.tables import ALIKE, ALIKE_NOTE, LEADING, brief, figure_names, spread
from groupstorm.storms.runs.choices import BEFALLS
from groupstorm.storms.runs.run import Run
from groupstorm.storms.runs.several import recommended, sentences
from groupstorm.verdicts.measures import MEASURES, spread_of, with_range, within_spread
from groupstorm.verdicts.recommendation import changes, changes_sentence, differ
from groupstorm.visible import visible_markdown
from groupstorm.wording import counted, seconds


def comparison_content(
    name: str, runs: Mapping[str, Sequence[Run]], weights: Mapping[str, float] | None
) -> dict[str, Any]:
    """The content of `comparison.json`: figures of the first seed; of several seeds also their spread.

    ``weights``: how the variants are ranked (`groupstorm.verdicts.ranking`); of --rank or the scenario.
    """
    first_seed = next(iter(runs.values()))[0].scenario.seed
    content: dict[str, Any] = {
        "preset": name,
        "seed": first_seed,
        "variants": {variant: each[0].figures.to_json() for variant, each in runs.items()},
        "answer": " ".join([*recommended(runs, weights), *sentences(runs, weights)]),
    }
    if weights is not None:
        content["rank"] = dict(weights)
    if max(map(len, runs.values())) > 1:
        content["spread"] = {variant: spread([run.figures for run in each]) for variant, each in runs.items()}
    return content


#: Fields of a scenario that may differ, beside its settings.
_FIELDS = ("name", "variant", "seed", "figures_from", "steps")


def changed_settings(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Setting -> its two values, by two scenario.yaml. None: the run did not know the setting."""
    fields = ({name: one.get(name) for name in _FIELDS} for one in (first, second))
    return changed(*fields) | changed(first.get("settings") or {}, second.get("settings") or {})


def changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, list[Any]]:
    """The names whose values differ, each as it was and as it is; None where one has none."""
    pairs = {name: [before.get(name), after.get(name)] for name in dict.fromkeys([*before, *after])}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def circumstances(scenarios: Mapping[str, Mapping[str, Any]]) -> dict[str, list[str]] | None:
    """Each run alone, if they differ in what happens to the group, which nobody chooses; else None."""
    fields = [[one.get("steps"), one.get("figures_from")] for one in scenarios.values()]
    settings = [one.get("settings") or {} for one in scenarios.values()]
    befallen = [[*both, *map(own.get, BEFALLS)] for both, own in zip(fields, settings, strict=True)]
    return {name: [name] for name in scenarios} if any(one != befallen[0] for one in befallen) else None


def settings_grid(changed: Mapping[str, Sequence[Any]], names: tuple[str, str]) -> Grid:
    rows = []
    for name, values in changed.items():
        if name == "steps":
            cells = [f"{counted(len(steps or ()), 'step')}, in its scenario.yaml" for steps in values]
        else:
            texts = (one if isinstance(one, str) else json.dumps(one, ensure_ascii=False) for one in values)
            cells = ["-" if text == "null" else text for text in texts]
        rows.append(Row(name, cells))
    return Grid(("setting", *names), rows)


def changed_figures(first: Sequence[Figures], second: Sequence[Figures]) -> dict[str, dict[str, Any]]:
    """Figure -> its two medians, their difference and ratio, and whether seeds alone may explain it."""
    found: dict[str, dict[str, Any]] = {}
    for name in figure_names():
        values = [[getattr(run, name) for run in runs] for runs in (first, second)]
        if any(isinstance(value, str) for each in values for value in each):
            before, after = (each[0] if len(each) == 1 else None for each in values)
            if before != after and len(first) == len(second) == 1:
                found[name] = {"first": before, "second": after, "difference": None, "ratio": None}
            continue
        one, other = map(spread_of, values)
        before, after = (None if spread is None else spread.median for spread in (one, other))
        if before == after:
            continue
        found[name] = {
            "first": before,
            "second": after,
            "difference": None if before is None or after is None else _exact(after - before),
            "ratio": None if not before or after is None else round(after / before, 3),
        }
        if max(len(first), len(second)) > 1 and one is not None and other is not None:
            found[name]["within_spread"] = within_spread(one, other)
    return found


def _exact(value: float) -> float:
    return value if isinstance(value, int) else round(value, 6)


def figures_difference_grid(
    changed: Mapping[str, Mapping[str, Any]], names: tuple[str, str], everything: bool
) -> Grid:
    """The leading figures that differ; ``everything``: all that differ."""
    rows = []
    for name, values in changed.items():
        if name not in LEADING and not everything:
            continue
        difference = values["difference"]
        shown = _shown(name, difference)
        ratio = values["ratio"]
        cells = [
            _shown(name, values["first"]),
            _shown(name, values["second"]),
            f"+{shown}" if difference is not None and difference > 0 else shown,
            _relative(ratio),
        ]
        rows.append(Row(name, cells, mark=ALIKE if values.get("within_spread") else ""))
    notes = [ALIKE_NOTE] if any(row.mark for row in rows) else []
    more = len(changed) - len(rows)
    if more:
        notes.append(f"{more} more figures differ: --all")
    if not changed:
        notes.append("No figure differs.")
    return Grid(("figure", *names, "difference", "relative"), rows, notes=notes)


def _shown(name: str, value: float | str | None) -> str:
    return value if isinstance(value, str) else brief(name, value)


def _relative(ratio: float | None) -> str:
    """In per cent; if it is ten times as much or more, how many times."""
    if ratio is None:
        return "-"
    return f"{(ratio - 1) * 100:+,.0f} %" if ratio < 10 else f"{ratio:,.0f} times"


class Version(NamedTuple):
    """One of the two versions: its runs over the seeds, and what to say of it beside its figures.

    ``takes_s``: seconds until its rollout is complete, with each seed. ``stuck``: why it never completes.
    ``findings``: faults that are told before any run, the first ``alarms`` of them before all others.
    ``unmet``: limits that it does not meet. ``cautions``: on the change to it, which no figure shows.
    """

    name: str
    settings: Mapping[str, Any]
    figures: Sequence[Figures]
    takes_s: Sequence[float | None] = ()
    stuck: str | None = None
    findings: Sequence[str] = ()
    unmet: Sequence[str] = ()
    alarms: int = 0
    cautions: str = ""


def change_answer(before: Version, after: Version) -> str:
    """Return the first line: what the change buys and costs, or why there is nothing to compare."""
    if after.stuck is not None:
        return f"The rollout of the new version never completes: {after.stuck}."
    if before.stuck is not None:
        return f"The rollout of the old version never completes ({before.stuck}); that of the new one does."
    found = changes(before.figures, after.figures, [*before.figures, *after.figures])
    sentence = changes_sentence(found) if found else "nothing changes that a person would notice."
    return f"{sentence[0].upper()}{sentence[1:]} {after.cautions}".rstrip()


def change_comment(title: str, before: Version, after: Version, commands: Sequence[str]) -> str:
    """Return Markdown: the answer, changed settings, the figures of both, new faults, how to run it again."""
    new = [one for one in after.findings if one not in before.findings]
    alarms = [one for one in after.findings[: after.alarms] if one in new]
    lines = [f"### {visible_markdown(title)}", ""]
    lines += [*(f"* {visible_markdown(one)}" for one in alarms), ""] if alarms else []
    lines += [f"**{visible_markdown(change_answer(before, after))}**"]
    settings = changed(before.settings, after.settings)
    if settings:
        lines += ["", "| setting | before | after |", "|---|---|---|"]
        lines += [
            f"| {visible_markdown(name)} | {_value(old)} | {_value(new)} |"
            for name, (old, new) in settings.items()
        ]
    else:
        lines += ["", "No setting that a rollout depends on differs."]
    if after.unmet:
        lines += ["", f"**Refused: {visible_markdown('; '.join(after.unmet))}.**"]
    table = [*_duration(before, after), *_figures(before, after)]
    if table:
        seeds = len(after.figures)
        basis = f"medians of {seeds} seeds" if seeds > 1 else "one seed"
        lines += ["", f"| {basis} | before | after | |", "|---|---|---|---|", *table]
    new = [one for one in new if one not in alarms]
    lines += ["", *(f"* {visible_markdown(one)}" for one in new)] if new else []
    lines += ["", "<details><summary>Run it again</summary>", "", "```sh", *commands, "```", "</details>"]
    return "\n".join(lines) + "\n"


def _duration(before: Version, after: Version) -> Iterator[str]:
    old, new = spread_of(before.takes_s), spread_of(after.takes_s)
    if old is not None and new is not None:
        shown = f"{with_range(old, seconds)} | {with_range(new, seconds)}"
        yield f"| until the last pod is available | {shown} | |"


def _figures(before: Version, after: Version) -> Iterator[str]:
    """Rows of the figures of both, with a verdict where a person would notice the difference."""
    told = set()
    every = [*before.figures, *after.figures]
    for measure in MEASURES:
        old, new = (spread_of(map(measure.read, one.figures)) for one in (before, after))
        if old is None or new is None or not (old.most or new.most) or (measure.family, old, new) in told:
            continue
        told.add((measure.family, old, new))
        word = "better" if new.median < old.median else "worse"
        verdict = word if measure.is_told and differ(measure, old, new, every) else ""
        cells = (measure.phrase, measure.show_range(old), measure.show_range(new), verdict)
        yield f"| {' | '.join(map(visible_markdown, cells))} |"


def _value(value: Any) -> str:
    if value is None:
        return ""
    return visible_markdown(", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value))
