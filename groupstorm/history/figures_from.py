"""From when on a scenario wants its figures, as the first row of its trace says (`figures_from`)."""

from __future__ import annotations

import json

from groupstorm.trace.events.scenario import ScenarioStarted
from groupstorm.trace.rows import TracedEvent


def figures_from_us(first: TracedEvent) -> int | None:
    """By the first row of a trace; None: from there on."""
    if not isinstance(first, ScenarioStarted):
        return None
    try:
        scenario = json.loads(first.detail)
    except ValueError:
        return None
    from_ms = scenario.get("figures_from") if isinstance(scenario, dict) else None
    return from_ms * 1000 if isinstance(from_ms, int) and from_ms > 0 else None
