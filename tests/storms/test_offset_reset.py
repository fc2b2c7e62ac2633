"""auto.offset.reset: where an owner begins that finds no committed offset.

100 records a second arrive in each partition, and nothing is ever committed.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.storms.storms_in_memory import FIXED, START, Storm, scenario, storm

WORLD: dict[str, Any] = {
    **FIXED, "members": 1, "partitions": 1, "record_rate": 100, "poll_interval_ms": 1_000, "commits": "never",
    "metadata.max.age.ms": 20_000, "if_never_settled": "report",
}  # fmt: skip
GROW: dict[str, Any] = {"at_ms": 30_000, "do": "add-partitions", "topic": "topic-0", "partitions": 2}


def ran(reset: str, protocol: str = "classic", **settings: Any) -> Storm:
    return storm(
        scenario(
            [START, GROW], **WORLD, **settings, **{"auto.offset.reset": reset, "group.protocol": protocol}
        )
    )


def begins(found: Storm, partition: str) -> tuple[int, int]:
    """When the first owner of a partition begins, and at which offset."""
    return next(
        (time_us, dict(zip(row.partitions, row.positions, strict=True))[partition])
        for time_us, row in found.events("partitions_assigned")
        if partition in row.partitions
    )


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_latest_begins_at_the_end_and_earliest_at_the_beginning(protocol: str) -> None:
    latest, earliest = ran("latest", protocol), ran("earliest", protocol)
    for partition, created_us in (("topic-0-0", 0), ("topic-0-1", 30_000_000)):
        begun_us, position = begins(latest, partition)
        assert position == (begun_us - created_us) // 10_000 > 0
        assert begins(earliest, partition)[1] == 0


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_without_reset_the_consumer_dies(protocol: str) -> None:
    found = ran("none", protocol)
    [(_, failed)] = found.events("member_failed")
    assert failed.error == "NoOffsetForPartitionException"
    assert found.figures.records_processed == 0


def test_without_reset_a_committed_offset_is_enough() -> None:
    """Member 0 reads from the beginning and commits when it closes, which member 1 finds."""
    rules = [{"members": [0], "settings": {"auto.offset.reset": "earliest", "commits": "batch"}}]
    steps: list[dict[str, Any]] = [START, {"at_ms": 20_000, "do": "stop", "members": [0]}]
    found = storm(
        scenario(steps, **WORLD | {"members": 2}, member_settings=rules, **{"auto.offset.reset": "none"})
    )
    assert not found.events("member_failed")
    assert (found.figures.records_duplicated, found.figures.records_skipped) == (0, 0)
