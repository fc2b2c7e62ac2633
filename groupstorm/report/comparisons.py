"""`comparison.json`: the figures of each variant, their spread over seeds, and the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from groupstorm.report.tables import spread
from groupstorm.storms.runs.run import Run
from groupstorm.storms.runs.several import recommended, sentences


def comparison_content(
    name: str, runs: Mapping[str, Sequence[Run]], weights: Mapping[str, float] | None
) -> dict[str, Any]:
    """The content of `comparison.json`: figures of the first seed; of several seeds also their spread.

    ``weights``: how the variants are ranked (`groupstorm.verdicts.ranking`); of --rank or the scenario.
    """
    first_seed = next(iter(runs.values()))[0].scenario.seed
    content: dict[str, Any] = {
        "preset": name,
        "seed": first_seed,
        "variants": {variant: each[0].figures.to_json() for variant, each in runs.items()},
        "answer": " ".join([*sentences(runs, weights), *recommended(runs, weights)]),
    }
    if weights is not None:
        content["rank"] = dict(weights)
    if max(map(len, runs.values())) > 1:
        content["spread"] = {variant: spread([run.figures for run in each]) for variant, each in runs.items()}
    return content
