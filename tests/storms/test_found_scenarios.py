"""Scenarios that `./dev fuzz` has found and made smaller. Each failed once: its question says how."""

from __future__ import annotations

from pathlib import Path

import pytest

from groupstorm.storms.scenario.files import load
from tests.storms.storms_in_memory import storm

_FILES = sorted((Path(__file__).parent / "found").glob("*.yaml"))


@pytest.mark.parametrize("file", _FILES, ids=lambda file: file.stem)
def test_what_failed_once_holds_in_exact_and_computed_storms(file: Path) -> None:
    seed = load(str(file)).seed or 0
    computed, exact = (storm(str(file), seed, exact=exact) for exact in (False, True))
    assert computed.rows == exact.rows
    assert {name: said for name, said in (computed.figures.invariants or {}).items() if said != "held"} == {}
