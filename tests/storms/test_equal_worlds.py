"""The steps and settings of the world give the same trace in exact and in computed storms."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.storms.storms_in_memory import storm

ALL_OF_THE_WORLD = str(Path(__file__).parent / "all-of-the-world.yaml")


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["cooperative", "eager-clients"])
def test_exact_and_computed_traces_are_equal(variant: str) -> None:
    computed, simulated = (storm(ALL_OF_THE_WORLD, 3, variant, exact) for exact in (False, True))
    assert computed.rows == simulated.rows
    assert len(computed.events("member_paused")) > 10
    assert computed.events("group_created", cause="loaded")
