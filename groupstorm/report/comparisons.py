"""What a comparison of several seeds leaves behind: `comparison.json` with the spread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from groupstorm.report.tables import spread
from groupstorm.storms.runs.run import Run
from groupstorm.storms.runs.several import comparison


def comparison_content(
    name: str, first_seed: int, runs: Mapping[str, Sequence[Run]], weights: Mapping[str, float] | None
) -> dict[str, Any]:
    """The content of `comparison.json`; with several seeds also the spread of every figure."""
    content = comparison(name, first_seed, runs, weights)
    if max(map(len, runs.values())) > 1:
        content["spread"] = {variant: spread([run.figures for run in each]) for variant, each in runs.items()}
    return content
