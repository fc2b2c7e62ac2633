"""The figures of several runs side by side, as people read them, and as points of a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from groupstorm.figures import Figures
from groupstorm.verdicts.measures import MEASURES, NOTICED_SHARE, Measure
from groupstorm.verdicts.spread import spread_of

#: Run name -> its figures, one of each seed.
Runs = Mapping[str, Sequence[Figures]]


def facts(runs: Runs) -> list[dict[str, Any]]:
    """A row per measure that says something of some run: medians, the range over seeds, and which is least.

    ``best``: the runs that are within what a person would notice of the least one, if not all are.
    """
    every = [figures for each in runs.values() for figures in each]
    rows = []
    for measure in MEASURES:
        if not any(measure.read(figures) for figures in every):
            continue
        spreads = [spread_of(map(measure.read, each)) for each in runs.values()]
        medians = [None if one is None else one.median for one in spreads]
        rows.append(
            {
                "figure": measure.figure,
                "phrase": measure.phrase,
                "values": ["-" if median is None else measure.show(median) for median in medians],
                "ranges": [
                    ""
                    if one is None or one.least == one.most
                    else f"{measure.show(one.least)} to {measure.show(one.most)}"
                    for one in spreads
                ],
                "best": _best(measure, medians, every),
            }
        )
    return rows


def _best(measure: Measure, medians: Sequence[float | None], every: Sequence[Figures]) -> list[int]:
    known = [median for median in medians if median is not None]
    if len(known) < 2:
        return []
    least, most = min(known), max(known)
    enough = max(measure.noticed_among(every), NOTICED_SHARE * most)
    near = [n for n, median in enumerate(medians) if median is not None and median - least < enough]
    return [] if len(near) == len(known) else near


def points(runs: Runs) -> list[dict[str, Any]]:
    """One point per run and seed: the numbers that `measures` has."""
    return [{"run": name, "values": values_of(figures)} for name, each in runs.items() for figures in each]


def values_of(figures: Figures | Mapping[str, Any]) -> dict[str, float]:
    """The figures that people compare runs by, as far as the run has them."""
    found = figures if isinstance(figures, Mapping) else figures.to_json()
    values = {measure.figure: found.get(measure.figure) for measure in MEASURES}
    return {name: value for name, value in values.items() if isinstance(value, int | float)}


def measures_of(all_points: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """The measures of which some point has a value that is not 0: name, words, unit."""
    return [
        {"figure": one.figure, "phrase": one.phrase, "unit": str(one.unit)}
        for one in MEASURES
        if any(point["values"].get(one.figure) for point in all_points)
    ]
