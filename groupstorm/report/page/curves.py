"""A sweep as curves: one per combination of the other settings, over the first setting that has numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from groupstorm.report.page.facts import measures_of, values_of
from groupstorm.units import microseconds


def sweep_page(content: Mapping[str, Any]) -> dict[str, Any]:
    """What the page draws of a `sweep.json`."""
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
        "labels": list(over[axis]),
        "figure": content["figure"],
        "goals": content.get("goals", []),
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
