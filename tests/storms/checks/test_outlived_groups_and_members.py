"""Timers and writes that outlive their group or member: Kafka's coordinator throws there, too."""

from __future__ import annotations

from typing import Any

import pytest

from groupstorm.storms.checks.settling import kafkas_own
from groupstorm.storms.checks.verdicts import HELD, NO_OPERATION_FAILED
from tests.storms.storms_in_memory import START, scenario, storm

#: The second process finds no group, creates it, and meets the timer that the first one's group has left: its
#: first record could not be written.
OF_A_GROUP = [
    {"at_ms": 0, "do": "start", "over_ms": 4_273},
    {"at_ms": 552, "do": "failing-appends", "for_ms": 5_000},
]
#: The write of 20 s outlasts offsets.commit.timeout.ms: the static member joins again, and dies.
OF_A_MEMBER = [
    START,
    {"at_ms": 30_000, "do": "slow-appends", "for_ms": 1_000, "append_ms": 20_000},
    {"at_ms": 30_000, "do": "crash-restart", "members": [0]},
    {"at_ms": 40_000, "do": "crash-restart", "members": [0]},
]


@pytest.mark.parametrize(
    ("steps", "seed", "settings", "sentence"),
    [
        (OF_A_GROUP, 125_287_291, {"members": 2, "group.initial.rebalance.delay.ms": 100},
         "a timer outlived its group: "),
        (OF_A_MEMBER, 1, {"members": 1, "start_ms": {"exactly": 100}, "group.instance.id": "ordinal"},
         "a write outlived its member: "),
    ],
)  # fmt: skip
def test_a_timer_or_a_write_that_outlives_its_own_is_kafkas_own(
    steps: list[dict[str, Any]], seed: int, settings: dict[str, Any], sentence: str
) -> None:
    said = storm(scenario(steps, partitions=1, **settings), seed=seed).figures.invariants or {}
    assert kafkas_own(said) == said[NO_OPERATION_FAILED]
    assert said[NO_OPERATION_FAILED].startswith(sentence)
    assert {verdict for name, verdict in said.items() if name != NO_OPERATION_FAILED} == {HELD}
