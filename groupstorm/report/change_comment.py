"""The cost of a change of manifests or scenarios, as Markdown for a pull request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from groupstorm.figures import Figures
from groupstorm.report.comparisons import changed
from groupstorm.verdicts.measures import MEASURES, spread_of, with_range
from groupstorm.verdicts.recommendation import changes, changes_sentence, differ
from groupstorm.visible import visible_markdown
from groupstorm.wording import seconds


class Version(NamedTuple):
    """One of the two versions: its runs over the seeds, and what to say of it beside its figures.

    ``takes_s``: seconds until its rollout is complete, with each seed. ``stuck``: why it never completes.
    ``findings``: faults that are told before any run. ``unmet``: limits that it does not meet.
    """

    name: str
    settings: Mapping[str, Any]
    figures: Sequence[Figures]
    takes_s: Sequence[float | None] = ()
    stuck: str | None = None
    findings: Sequence[str] = ()
    unmet: Sequence[str] = ()


def changed_settings(before: Version, after: Version) -> dict[str, list[Any]]:
    """Return the settings that differ, each as it was and as it is; None where a version has none."""
    return changed(before.settings, after.settings)


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
    if after.unmet:
        lines += ["", f"**Refused: {visible_markdown('; '.join(after.unmet))}.**"]
    table = [*_duration(before, after), *_figures(before, after)]
    if table:
        seeds = len(after.figures)
        basis = f"medians of {seeds} seeds" if seeds > 1 else "one seed"
        lines += ["", f"| {basis} | before | after | |", "|---|---|---|---|", *table]
    new = [one for one in after.findings if one not in before.findings]
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
