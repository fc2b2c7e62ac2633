"""The first and the last rows of a run: what is played, the sums, the verdicts."""

from __future__ import annotations

from groupstorm.storms.events import InvariantChecked, RequestsCounted, ScenarioEnded, ScenarioStarted
from groupstorm.storms.stage import Stage
from groupstorm.trace.schema import Source


def tell_beginning(stage: Stage) -> None:
    partitions = tuple(map(str, stage.partitions))
    records = stage.records
    stage.trace(
        Source.WORLD,
        ScenarioStarted(
            stage.group, stage.scenario.as_json(), partitions, records.record_rate, records.process_rate
        ),
    )


def tell_end(stage: Stage) -> None:
    """Behind the last event of the group."""
    for (api, error), count in sorted(
        stage.requests.items(), key=lambda item: (item[0][0], item[0][1] or "")
    ):
        stage.trace(Source.WORLD, RequestsCounted(stage.group, api, error, count))
    for invariant, verdict in stage.checkers.verdicts.items():
        stage.trace(Source.WORLD, InvariantChecked(stage.group, invariant, verdict))
    stage.trace(Source.WORLD, ScenarioEnded(stage.group))
