"""The figures of several runs side by side, as points of a picture, and as the curves of a sweep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from groupstorm.figures import Figures
from groupstorm.units import microseconds
from groupstorm.verdicts.measures import MEASURES, NOTICED_SHARE, Measure, spread_of

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


def sweep_page(content: Mapping[str, Any]) -> dict[str, Any]:
    """The curves of a `sweep.json` for the page's scripts, over the first setting that has numbers."""
    over: Mapping[str, Sequence[str]] = content["over"]
    axis = next((name for name, labels in over.items() if len(labels) > 1 and all_numbers(labels)), None)
    axis = axis or next(iter(over))
    numbers = all_numbers(over[axis])
    curves: dict[str, list[dict[str, Any]]] = {}
    points = []
    for point in content["points"]:
        label = point["settings"][axis]
        others = ", ".join(f"{name}={value}" for name, value in point["settings"].items() if name != axis)
        if "refused" in point:
            continue
        curves.setdefault(others, []).append(
            {
                "x": _number(label) if numbers else over[axis].index(label),
                "label": label,
                "spread": {
                    name: point["spread"].get(name) for name in values_of(point["runs"][0]["figures"])
                },
                "goalMet": point.get("goal_met"),
                "command": point["runs"][0]["command"],
            }
        )
        whole = ", ".join(f"{name}={value}" for name, value in point["settings"].items())
        points += [{"run": whole, "values": values_of(run["figures"])} for run in point["runs"]]
    knees = [knee for knee in content["knees"] if knee["setting"] == axis]
    return {
        "preset": content["preset"],
        "variant": content.get("variant"),
        "seeds": content.get("seeds", []),
        "axis": axis,
        "isNumeric": numbers,
        "figure": content["figure"],
        "curves": [{"others": others, "points": curve} for others, curve in curves.items()],
        "knees": {knee["others"]: knee["value"] for knee in knees},
        "points": points,
        "measures": measures_of(points),
        "refused": [
            {"settings": one["settings"], "why": one["refused"]}
            for one in content["points"]
            if "refused" in one
        ],
    }


def all_numbers(labels: Sequence[str]) -> bool:
    """Whether all values are numbers or durations."""
    return all(_number(label) is not None for label in labels)


def _number(label: str) -> float | None:
    """A number, or a duration in seconds; None if it is neither."""
    try:
        return float(label)
    except ValueError:
        found = microseconds(label)
        return None if found is None else float(found) / 1e6
