"""`groupstorm diff`: two runs of one's own, what was set differently and what came of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from groupstorm.cli.printing import (
    Shape,
    print_grid,
    print_json,
    print_made,
    print_paragraph,
    print_paragraphs,
    shape,
)
from groupstorm.report.comparisons import (
    changed_figures,
    changed_settings,
    circumstances,
    figures_difference_grid,
    settings_grid,
)
from groupstorm.report.grid import csv_text
from groupstorm.storms.runs.several import pair, read_runs
from groupstorm.verdicts.comparison import compare_sentences
from groupstorm.verdicts.ranking import parse_ranking

_BY_CHANCE = "Only the seed differs: neither run is better, their figures show what chance does."


def diff(
    first: Path,
    second: Path,
    ranked_by: str | None = None,
    as_json: bool = False,
    as_csv: bool = False,
    as_markdown: bool = False,
    everything: bool = False,
) -> None:
    """Compare two finished runs: settings that differ, figures that differ, and which run is better.

    RUN is a folder that run or compare has written. Of several seeds the medians are compared. Of two
    comparisons the variants of the same name are.

    Example: groupstorm diff runs/rolling-deploy-0 runs/rolling-deploy-static-seed0
    """
    chosen_shape = shape(as_json, as_csv, as_markdown)
    weights = None if ranked_by is None else parse_ranking(ranked_by)
    one, other = read_runs(first), read_runs(second)
    names = _names(first, second)
    pairs = []
    for mine, theirs in pair(one, other):
        runs = (one[mine], other[theirs])
        figures = [[run.figures for run in each] for each in runs]
        reasons = {name: [run.reasons() for run in each] for name, each in zip(names, runs, strict=True)}
        settings = changed_settings(*(each[0].scenario for each in runs))
        apart = circumstances({name: each[0].scenario for name, each in zip(names, runs, strict=True)})
        answer = compare_sentences(dict(zip(names, figures, strict=True)), weights, reasons, apart)
        pairs.append(
            {
                "variants": [mine, theirs],
                "settings": settings,
                "figures": changed_figures(*figures),
                "answer": [_BY_CHANCE] if settings.keys() == {"seed"} else answer,
            }
        )
    if chosen_shape is Shape.JSON:
        shown = [found | {"answer": " ".join(found["answer"])} for found in pairs]
        print_json({"runs": [str(first), str(second)], "pairs": shown})
    elif chosen_shape is Shape.CSV:
        print_made(csv_text(("variant", "figure", *names, "difference", "ratio"), list(_csv_rows(pairs))))
    else:
        for found in pairs:
            _print(found, names, len(pairs) > 1, chosen_shape, everything)


def _names(first: Path, second: Path) -> tuple[str, str]:
    """The folders' own names; their paths if those are the same."""
    one, other = first.resolve().name, second.resolve().name
    return (one, other) if one != other else (str(first), str(second))


def _csv_rows(pairs: Iterable[Mapping[str, Any]]) -> Iterable[Sequence[object]]:
    for found in pairs:
        for figure, values in found["figures"].items():
            yield found["variants"][0], figure, *values.values()


def _print(
    found: Mapping[str, Any], names: tuple[str, str], several: bool, chosen_shape: Shape, everything: bool
) -> None:
    if several:
        print_paragraph(found["variants"][0], emphasized=True)
    if found["settings"]:
        print_grid(settings_grid(found["settings"], names), chosen_shape)
    else:
        print_paragraph("No setting differs.")
    print_grid(figures_difference_grid(found["figures"], names, everything), chosen_shape)
    print_paragraphs(found["answer"])
    if several:
        print()
