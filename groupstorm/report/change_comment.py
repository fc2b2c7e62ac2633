"""The cost of a change of manifests or scenarios, as Markdown for a pull request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from groupstorm.figures import Figures
from groupstorm.verdicts.measures import MEASURES
from groupstorm.verdicts.recommendation import changes, changes_sentence
from groupstorm.verdicts.spread import spread_of, within_spread
from groupstorm.visible import visible_markdown


class Version(NamedTuple):
    """One of the two versions: its runs over the seeds, and what to say of it beside its figures.

    ``stuck``: why its rollout never completes. ``findings``: faults that are told before any run.
    """

    name: str
    settings: Mapping[str, Any]
    figures: Sequence[Figures]
    stuck: str | None = None
    findings: Sequence[str] = ()


def changed_settings(before: Version, after: Version) -> dict[str, tuple[Any, Any]]:
    """Return the settings that differ, each as it was and as it is; None where a version has none."""
    names = dict.fromkeys([*before.settings, *after.settings])
    pairs = {name: (before.settings.get(name), after.settings.get(name)) for name in names}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def change_answer(before: Version, after: Version) -> str:
    """Return the first line: what the change buys and costs, or why there is nothing to compare."""
    if after.stuck is not None:
        return f"The rollout of the new version never completes: {after.stuck}."
    if before.stuck is not None:
        return f"The rollout of the old version never completes ({before.stuck}); that of the new one does."
    found = changes(before.figures, after.figures, [*before.figures, *after.figures])
    if not found:
        return "Nothing changes that a person would notice."
    sentence = changes_sentence(found)
    return sentence[0].upper() + sentence[1:]


def change_comment(title: str, before: Version, after: Version, commands: Sequence[str]) -> str:
    """Return Markdown: the answer, changed settings, the figures of both, new faults, how to run it again."""
    lines = [f"### {visible_markdown(title)}", "", f"**{visible_markdown(change_answer(before, after))}**"]
    settings = changed_settings(before, after)
    if settings:
        lines += ["", "| setting | before | after |", "|---|---|---|"]
        lines += [
            f"| {visible_markdown(name)} | {_value(old)} | {_value(new)} |"
            for name, (old, new) in settings.items()
        ]
    else:
        lines += ["", "No setting that a rollout depends on differs."]
    table = [*_figures(before, after)]
    if table:
        seeds = len(after.figures)
        basis = f"medians of {seeds} seeds" if seeds > 1 else "one seed"
        lines += ["", f"| {basis} | before | after | |", "|---|---|---|---|", *table]
    new = [one for one in after.findings if one not in before.findings]
    lines += ["", *(f"* {visible_markdown(one)}" for one in new)] if new else []
    lines += ["", "<details><summary>Run it again</summary>", "", "```sh", *commands, "```", "</details>"]
    return "\n".join(lines) + "\n"


def _figures(before: Version, after: Version) -> Iterator[str]:
    """Rows of the figures of both, with a verdict where seeds alone do not explain the difference."""
    told = set()
    for measure in MEASURES:
        old, new = (spread_of(map(measure.read, one.figures)) for one in (before, after))
        if old is None or new is None or not (old.most or new.most) or (measure.family, old, new) in told:
            continue
        told.add((measure.family, old, new))
        verdict = "" if within_spread(old, new) else ("better" if new.median < old.median else "worse")
        cells = (measure.phrase, measure.show_range(old), measure.show_range(new), verdict)
        yield f"| {' | '.join(map(visible_markdown, cells))} |"


def _value(value: Any) -> str:
    if value is None:
        return ""
    return visible_markdown(", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value))
