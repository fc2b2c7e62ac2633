"""docs/simulation.md: its example runs, and it names the kinds of failures."""

from __future__ import annotations

import re

from groupstorm.simulation import Kind
from tests.generated_pages import DOCS

PAGE = (DOCS / "simulation.md").read_text("utf-8")


def test_the_example_runs() -> None:
    (example, *_) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, object] = {"__name__": "example"}
    exec(compile(example, "docs/simulation.md", "exec"), names)  # our own page
    assert "simulate(test" in example


def test_every_kind_of_failure_is_named() -> None:
    assert [kind for kind in Kind if f"`{kind}`" not in PAGE] == []
