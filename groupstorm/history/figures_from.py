"""The scenario that the first row of a storm's trace tells of, and from when on it wants its figures."""

from __future__ import annotations

import json
from typing import Any

from groupstorm.trace.events.scenario import ScenarioStarted
from groupstorm.trace.rows import TracedEvent


def scenario_of(first: TracedEvent) -> dict[str, Any]:
    """The scenario that the first row of a storm's trace holds as JSON; empty of any other row."""
    try:
        scenario = json.loads(first.detail) if isinstance(first, ScenarioStarted) else None
    except ValueError:
        return {}
    return scenario if isinstance(scenario, dict) else {}


def settings_of(first: TracedEvent) -> dict[str, Any]:
    """The settings of that scenario; empty if it has none."""
    settings = scenario_of(first).get("settings")
    return settings if isinstance(settings, dict) else {}


def figures_from_us(first: TracedEvent) -> int | None:
    """By the first row of a trace; None: from there on."""
    from_ms = scenario_of(first).get("figures_from")
    return from_ms * 1000 if isinstance(from_ms, int) and from_ms > 0 else None
