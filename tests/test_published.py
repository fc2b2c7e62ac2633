"""Figures that others have published, beside ours: `examples/published`, and the table of docs/truth.md."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from groupstorm.verdicts.measures import Spread, spread_of
from tests.generated_pages import check_section
from tests.storms.storms_in_memory import storm

FOLDER = Path(__file__).parent.parent / "examples" / "published"
ENTRIES: list[dict[str, Any]] = yaml.safe_load((FOLDER / "figures.yaml").read_text("utf-8"))
SEEDS = range(5)
#: A published figure is one run, or what somebody wrote: it may lie beyond five seeds by so much.
TOLERANCE = 0.1
#: Those whose storms take over a second, two of them minutes.
LONG = frozenset({"eager-8", "rolling-deploy-40", "share-instances", "slow-batches", "topic-grows"})


@cache
def figures(scenario: str, variant: str | None) -> list[Mapping[str, Any]]:
    path = str(FOLDER / f"{scenario}.yaml")
    return [storm(path, seed, variant).figures.to_json() for seed in SEEDS]


def ours(entry: Mapping[str, Any]) -> Spread:
    found = spread_of(one[entry["figure"]] for one in figures(entry["scenario"], entry.get("variant")))
    assert found is not None
    return found


def is_met(entry: Mapping[str, Any], spread: Spread) -> bool:
    if "at_least" in entry:
        return spread.least >= entry["at_least"]
    slack = TOLERANCE * entry["published"]
    return spread.least - slack <= entry["published"] <= spread.most + slack


def name_of(entry: Mapping[str, Any]) -> str:
    return f"{entry['scenario']}-{entry.get('variant', '')}-{entry['figure']}"


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param(entry, id=name_of(entry), marks=[pytest.mark.slow] if entry["scenario"] in LONG else [])
        for entry in ENTRIES
    ],
)
def test_ours_have_the_published_figure_or_the_reason_is_said(entry: Mapping[str, Any]) -> None:
    """A reason for a difference that is none any more is out of date, too."""
    assert is_met(entry, ours(entry)) == ("because" not in entry)


@pytest.mark.slow
def test_the_table() -> None:
    lines = ["| published | they | we | source |", "|---|---|---|---|"]
    for entry in ENTRIES:
        least, median, most = map(shown, ours(entry))
        range_shown = "" if least == most else f" ({least} to {most})"
        because = f" {entry['because'].strip()}" if "because" in entry else ""
        what = f"{entry['what']}: `{entry['figure']}`"
        lines.append(
            f"| {what} | {entry['published']} | {median}{range_shown}{because} | {entry['source']} |"
        )
    check_section("truth.md", "published", "\n".join(lines))


def shown(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 or value == round(value) else f"{value:.3g}"
