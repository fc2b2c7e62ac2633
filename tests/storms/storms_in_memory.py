"""Runs in memory, for tests: the rows and figures of a scenario without files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from groupstorm.figures import Figures
from groupstorm.storms.checks.verdicts import HELD
from groupstorm.storms.runs.run import chosen_assignors
from groupstorm.storms.scenario.files import Scenario, load, parse
from groupstorm.storms.world.simulation import simulate
from groupstorm.trace.rows import TracedEvent, TraceSink, event_name
from groupstorm.trace.schema import Source


class MemorySink(TraceSink):
    """A trace sink that keeps everything."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, str, TracedEvent]] = []

    def add(self, time_us: int, source: Source, event: TracedEvent) -> None:
        self.rows.append((time_us, str(source), event))

    def close(self) -> None:
        pass


@dataclass(frozen=True)
class Storm:
    rows: list[tuple[int, str, Any]]
    figures: Figures

    @property
    def broken(self) -> dict[str, str]:
        """The invariants that do not hold, and what is said of them."""
        assert self.figures.invariants, "they were looked at"
        return {name: said for name, said in self.figures.invariants.items() if said != HELD}

    def events(self, name: str, **fields: object) -> list[tuple[int, Any]]:
        """Times and events of one kind whose fields have these values."""
        return [
            (time_us, event)
            for time_us, _, event in self.rows
            if event_name(event.__class__) == name
            and all(getattr(event, field) == value for field, value in fields.items())
        ]


def scenario(steps: list[dict[str, Any]], **settings: Any) -> Scenario:
    """A scenario of these steps; settings with underscores for Kafka's dots."""
    return parse(yaml.safe_dump({"name": "test", "steps": steps, "settings": settings}), "yaml", "test")


def storm(
    what: str | Scenario,
    seed: int = 1,
    variant: str | None = None,
    exact: bool = False,
    settings: Mapping[str, Any] | None = None,
) -> Storm:
    loaded = load(what) if isinstance(what, str) else what
    resolved = loaded.resolve(variant, seed, settings or {})
    sink = MemorySink()
    figures = simulate(resolved, chosen_assignors(resolved), sink, exact)
    return Storm(sink.rows, figures)


START = {"at_ms": 0, "do": "start"}
FIXED = {
    "phases": "aligned", "net_latency_ms": 1, "heartbeat_lateness_ms": 0, "poll_interval_ms": 0,
    "coordinator_service_us": 0, "append_latency_ms": 0,
}  # fmt: skip
"""Settings under which times can be computed by hand."""
