"""docs/simulation.md: its example runs, and it names the kinds of failures."""

from __future__ import annotations

import re

import pytest

from examples.orders.test_totals import check_totals
from examples.orders.totals import FirstTotalsService
from groupstorm.simulation import Kind, ScheduleFailed, simulate
from tests.generated_pages import DOCS

PAGE = (DOCS / "simulation.md").read_text("utf-8")


@pytest.mark.slow
def test_the_example_runs() -> None:
    (example, *_) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, object] = {"__name__": "example"}
    exec(compile(example, "docs/simulation.md", "exec"), names)  # our own page
    assert "simulate(test" in example


def test_every_kind_of_failure_is_named() -> None:
    assert [kind for kind in Kind if f"`{kind}`" not in PAGE] == []


@pytest.mark.slow
def test_the_story_is_that_of_the_example() -> None:
    with pytest.raises(ScheduleFailed) as failed:
        simulate(lambda world: check_totals(world, FirstTotalsService), seed=4, topics={"orders": 3})
    first, *story = str(failed.value).partition("the shortest schedule")
    assert "".join(story) in PAGE
    assert first.partition("\n")[0] in PAGE
