"""A static member comes back twice, and the write of its first new id ends in between, as in Kafka."""

from __future__ import annotations

from groupstorm.storms.checks.settling import kafkas_own
from groupstorm.storms.checks.verdicts import HELD, NO_OPERATION_FAILED
from tests.storms.storms_in_memory import START, scenario, storm

#: The write of 20 s outlasts offsets.commit.timeout.ms: the second process joins again, and dies.
STEPS = [
    START,
    {"at_ms": 30_000, "do": "slow-appends", "for_ms": 1_000, "append_ms": 20_000},
    {"at_ms": 30_000, "do": "crash-restart", "members": [0]},
    {"at_ms": 40_000, "do": "crash-restart", "members": [0]},
]


def test_a_write_that_outlives_its_member_is_kafkas_own() -> None:
    result = storm(
        scenario(
            STEPS, members=1, partitions=1, start_ms={"exactly": 100}, **{"group.instance.id": "ordinal"}
        )
    )
    said = result.figures.invariants or {}
    assert kafkas_own(said) == said[NO_OPERATION_FAILED]
    assert said[NO_OPERATION_FAILED].startswith("a write outlived its member: ")
    assert {verdict for name, verdict in said.items() if name != NO_OPERATION_FAILED} == {HELD}
