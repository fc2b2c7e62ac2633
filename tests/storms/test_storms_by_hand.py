"""A storm as a whole: how it treats the garbage collector, what it counts, offsets that are 0."""

from __future__ import annotations

import gc
from typing import Any

import pytest

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.storms.run import chosen_assignors
from groupstorm.storms.world.simulation import simulate
from tests.storms.storms_in_memory import START, MemorySink, Storm, scenario, storm
from tests.storms.test_positions_by_hand import ALONE
from tests.storms.test_world import begun, until
from tests.storms.transcript import WORLD

TP = TopicPartition("topic-0", 0)


def test_a_storm_looks_for_cycles_rarely_and_leaves_the_collector_as_it_was() -> None:
    before = gc.get_threshold()
    seen: list[tuple[bool, bool]] = []
    resolved = scenario([START], **WORLD).resolve(None, 1, {})

    def progress(_time_us: int, _phase: str) -> None:
        seen.append((gc.get_threshold()[0] > 1_000_000, gc.get_freeze_count() > 0))

    simulate(resolved, chosen_assignors(resolved), MemorySink(), progress=progress)
    assert set(seen) == {(True, True)}
    assert (gc.get_threshold(), gc.get_freeze_count()) == (before, 0)


def test_an_offset_of_0_is_an_offset() -> None:
    """Without records: the member commits 0 every 5 s, and does not lag."""
    world = until(begun(START, record_rate=0), 20_000)
    assert world.committed == {TP: 0}
    assert world.group_lags() == [0]
    assert world.committed_records() == 0


def counted(result: Storm) -> dict[str, int]:
    return {
        f"{event.api} {event.error or ''}".strip(): event.count
        for _, event in result.events("requests_counted")
    }


ALONE_S = {"JoinGroup MEMBER_ID_REQUIRED": 1, "JoinGroup": 1, "SyncGroup": 1, "OffsetFetch": 1}


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize(
    ("step", "at_ms", "more"),
    [
        # heartbeats leave at 6006, 9006 ... 60006, commits at 8008, 13008 ... 58008, and one from close()
        (
            {"do": "stop"},
            61_000,
            {"Heartbeat": 19, "OffsetCommit": 12, "LeaveGroup": 1, "FindCoordinator": 1},
        ),
        # the last heartbeat and the last commit are under way
        ({"do": "crash"}, 60_006, {"Heartbeat": 18, "OffsetCommit": 11, "FindCoordinator": 1}),
        ({"do": "crash"}, 60_007, {"Heartbeat": 19, "OffsetCommit": 11, "FindCoordinator": 1}),
        ({"do": "crash"}, 58_008, {"Heartbeat": 18, "OffsetCommit": 10, "FindCoordinator": 1}),
        # a heartbeat at the end, at 71000; the next commit would come 5 s later
        (
            {"do": "pause", "for_ms": 10_000},
            61_000,
            {"Heartbeat": 20, "OffsetCommit": 11, "FindCoordinator": 1},
        ),
        (
            {"do": "disconnect", "for_ms": 10_000},
            61_000,
            {"Heartbeat": 20, "OffsetCommit": 11, "FindCoordinator": 1},
        ),
    ],
)
def test_requests_of_a_member_that_is_alone_are_counted(
    step: dict[str, Any], at_ms: int, more: dict[str, int], exact: bool
) -> None:
    settings = WORLD | ALONE | {"record_rate": 0}
    result = storm(scenario([START, {"at_ms": at_ms, "members": [0], **step}], **settings), exact=exact)
    assert counted(result) == ALONE_S | more
