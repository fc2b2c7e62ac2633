"""The steps and settings of the world give the same trace in exact and in computed storms."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.soaking import in_soak
from tests.storms.storms_in_memory import storm

ALL_OF_THE_WORLD = str(Path(__file__).parent / "all-of-the-world.yaml")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variant", "seed", "protocol"),
    [
        ("cooperative", 3, "classic"),
        ("cooperative", 3, "consumer"),  # a commit of an earlier epoch is refused
        *in_soak(
            ("eager-clients", 3, "classic"),
            ("cooperative", 4, "consumer"),  # a heartbeat is due in the millisecond in which a poll is late
        ),
    ],
)
def test_exact_and_computed_traces_are_equal(variant: str, seed: int, protocol: str) -> None:
    settings = {"group.protocol": protocol}
    computed, simulated = (storm(ALL_OF_THE_WORLD, seed, variant, exact, settings) for exact in (False, True))
    assert computed.rows == simulated.rows
    assert len(computed.events("member_paused")) > 10
    assert computed.events("group_created", cause="loaded")
