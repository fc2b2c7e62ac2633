"""The first rows of a run: its scenario with partitions and rate, then the rates that differ."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.storms.scenario.settings import Settings
from groupstorm.storms.start_and_end import emit_run_start
from groupstorm.trace.events.scenario import ScenarioStarted
from groupstorm.trace.schema import Source


def test_a_run_begins_with_its_scenario_and_then_looks_at_the_rates_of_its_partitions() -> None:
    """How fast an owner processes is said by other rows: 0 here."""
    rows: list[Any] = []
    host: Any = SimpleNamespace(
        group="g",
        scenario=SimpleNamespace(as_json=lambda: '{"seed": 1}'),
        partitions=(TopicPartition("t", 0), TopicPartition("u", 3)),
        settings=Settings(("", {"record_rate": 20})),
        trace=lambda source, event: rows.append((source, event)),
        rate_rows=SimpleNamespace(look=lambda: rows.append("rates")),
    )
    emit_run_start(host)
    started = ScenarioStarted(
        group="g", detail='{"seed": 1}', partitions=("t-0", "u-3"), record_rate=20, process_rate=0
    )
    assert rows == [(Source.WORLD, started), "rates"]
