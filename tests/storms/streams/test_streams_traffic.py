"""Traffic between racks, counted by hand."""

from __future__ import annotations

import pytest

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.storms.streams.application import CHANGELOG, INPUT, RESTORE, STANDBY, Traffic
from tests.storms.storms_in_memory import START, scenario, storm
from tests.storms.streams.applications import SMALL, after, require_invariants, small

PART = TopicPartition("t", 0)
RACKS = {PART: ("a", "b")}


@pytest.mark.parametrize(
    ("from_follower", "rack", "crossing"),
    [(True, "a", 0), (True, "b", 0), (True, "c", 500), (False, "a", 0), (False, "b", 500), (True, None, 500)],
)
def test_readers_take_the_replica_in_their_rack(from_follower: bool, rack: str, crossing: int) -> None:
    """KIP-392; without it everybody reads from the leader, the first."""
    traffic = Traffic(RACKS, 100, from_follower)
    traffic.read(INPUT, PART, rack, 5)
    assert next(traffic.sums()) == (INPUT, 500, crossing)


def test_writers_write_to_the_leader() -> None:
    traffic = Traffic(RACKS, 100, True)
    traffic.write(CHANGELOG, PART, "b", 5)
    traffic.write(CHANGELOG, PART, "a", 1)
    assert [*traffic.sums()][1] == (CHANGELOG, 600, 500)


def test_without_racks_there_are_no_sums() -> None:
    traffic = Traffic({}, 100, True)
    traffic.read(INPUT, PART, None, 5)
    assert [*traffic.sums()] == []


def counted(found: object) -> dict[str, tuple[int, int]]:
    events = found.events("traffic_counted")  # type: ignore[attr-defined]  # a Storm
    return {event.cause: (event.bytes, event.cross_rack_bytes) for _, event in events}


def test_an_application_reads_writes_restores_and_follows() -> None:
    """Two racks, each with a replica of everything: reading never crosses; leaders go round as tasks do."""
    settings = {**SMALL, "racks": 2, "num.standby.replicas": 1, "least_duration_ms": 600_000}
    found = require_invariants(storm(scenario([START], **settings)))
    read = counted(found)
    processed = found.figures.records_processed
    assert processed is not None
    # the figure takes a member that keeps up to be at the end of the log: what has come since its last poll()
    assert read[INPUT][0] == pytest.approx(processed * 1_000, abs=10_000)
    assert read[INPUT][1] == 0
    assert read[CHANGELOG][0] == read[INPUT][0]
    assert read[CHANGELOG][1] in (0, read[CHANGELOG][0]), "all leaders are near, or none is"
    assert read[RESTORE] == (4 * 10**9, 0)
    behind = 4 * 1 * 1_000  # one record of each task
    assert read[STANDBY][0] == pytest.approx(4 * 10**9 + processed * 1_000 - behind, abs=4_000)
    assert found.figures.cross_rack_bytes == read[CHANGELOG][1]
    assert found.figures.cross_rack_usd == pytest.approx(read[CHANGELOG][1] / 1e9 * 0.02, abs=1e-6)


def test_rack_aware_assignment_saves_traffic() -> None:
    """One replica each: an instance in the replica's rack reads for nothing."""
    settings = {"members": 3, "racks": 3, "partitions": 6, "replication__factor": 1, "record_rate": 100}
    bills = {}
    for strategy in ("none", "min_traffic"):
        found = require_invariants(
            storm(small(**settings, rack__aware__assignment__strategy=strategy, replica_placement="random"))
        )
        bills[strategy] = counted(found)[INPUT][1]
    assert bills["min_traffic"] < bills["none"]


def test_the_price_of_traffic_can_be_set() -> None:
    settings = {"members": 2, "racks": 2, "replication__factor": 1, "usd_per_gb_each_way": 0.05}
    found = storm(small(after("restart", members=[0]), **settings))
    prices = {event.price for _, event in found.events("traffic_counted")}
    assert prices == {100_000}
    figures = found.figures
    assert figures.cross_rack_bytes
    assert figures.cross_rack_usd == pytest.approx(figures.cross_rack_bytes / 1e9 * 0.1, abs=1e-6)
