"""Scenarios that `./dev fuzz` has found and made smaller. Each failed once: its question says how."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from groupstorm.storms.scenario.files import load
from tests.soaking import one_in
from tests.storms.storms_in_memory import storm

#: The circumstances in which they were found, unless a scenario has others.
AS_FOUND: dict[str, Any] = {
    "phases": "aligned",
    "stop_grace_ms": {"exactly": 500},
    "ready_ms": {"exactly": 10_000},
}
_FILES = sorted((Path(__file__).parent / "found").glob("*.yaml"))


@pytest.mark.parametrize("file", one_in(6, _FILES), ids=lambda file: file.stem)
def test_what_failed_once_holds_in_exact_and_computed_storms(file: Path) -> None:
    scenario = load(str(file))
    settings = {name: value for name, value in AS_FOUND.items() if name not in scenario.settings}
    computed, exact = (
        storm(scenario, scenario.seed or 0, exact=exact, settings=settings) for exact in (False, True)
    )
    assert computed.rows == exact.rows
    assert computed.broken == {}
