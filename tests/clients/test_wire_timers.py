"""A wire consumer's decisions without sockets: times of heartbeats, positions."""

from __future__ import annotations

import pytest

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.wire.heartbeats import Due, HeartbeatTimers
from groupstorm.clients.wire.positions import Position, Positions, by_topic
from groupstorm.coordinator.messages import CommittedOffset

MS = 1000
T0, T1, T2, T3 = (TopicPartition("t", partition) for partition in range(4))
U0 = TopicPartition("u", 0)


@pytest.fixture
def timers() -> HeartbeatTimers:
    config = ConsumerConfig(
        "g",
        "c",
        ("t",),
        heartbeat_interval_ms=3_000,
        session_timeout_ms=10_000,
        max_poll_interval_ms=60_000,
        retry_backoff_ms=100,
    )
    running = HeartbeatTimers(config)
    running.enabled(0)
    return running


def test_heartbeat_is_due_an_interval_after_the_last_one_left(timers: HeartbeatTimers) -> None:
    assert timers.due(3_000 * MS - 1) is None
    assert timers.next_us() == 3_000 * MS
    assert timers.due(3_000 * MS) is Due.HEARTBEAT
    timers.sent(3_200 * MS)  # late
    timers.answered(3_210 * MS)
    assert timers.next_us() == 6_200 * MS


def test_failed_heartbeat_is_repeated_after_a_growing_pause(timers: HeartbeatTimers) -> None:
    pauses = []
    for _ in range(6):
        timers.failed(0)
        pauses.append(timers.next_us() // MS)
    assert pauses == [100, 200, 400, 800, 1_000, 1_000]
    timers.answered(0)
    timers.failed(0)
    assert timers.next_us() == 100 * MS, "an answer makes the next pause short again"


def test_session_expires_without_a_response(timers: HeartbeatTimers) -> None:
    for second in (3, 6, 9):
        timers.sent(second * 1_000 * MS)
    assert timers.due(10_000 * MS) is Due.SESSION_EXPIRED
    timers.coordinator_found(10_000 * MS)
    assert timers.due(10_000 * MS) is None


def test_poll_expires_only_away_from_poll(timers: HeartbeatTimers) -> None:
    timers.left_poll(1_000 * MS)
    timers.sent(60_000 * MS)
    timers.answered(60_000 * MS)
    assert timers.next_us() == 61_000 * MS
    assert timers.due(61_000 * MS) is Due.POLL_EXPIRED
    timers.entered_poll()
    assert timers.due(61_000 * MS) is None


def test_round_that_ends_while_the_application_is_away_gives_it_the_whole_interval(
    timers: HeartbeatTimers,
) -> None:
    timers.left_poll(0)
    timers.enabled(50_000 * MS)
    assert timers.due(109_000 * MS) is Due.SESSION_EXPIRED
    timers.answered(109_000 * MS)
    assert timers.due(110_000 * MS) is Due.POLL_EXPIRED


def test_positions_are_missing_until_they_are_set() -> None:
    positions = Positions()
    positions.own([T0, T1])
    assert set(positions.missing()) == {T0, T1}
    positions.move_to(T0, Position(7, 2))
    assert positions.missing() == [T1]
    assert positions.to_commit() == {"t": {0: CommittedOffset(7, 2)}}
    positions.move_to(T3, Position(1))
    assert positions.offsets_of([T3]).positions == (-1,), "not owned"


def test_kept_partitions_keep_their_position() -> None:
    positions = Positions()
    positions.own([T0, T1])
    positions.move_to(T0, Position(7))
    positions.committed(T0, 5)
    positions.own([T0, T2])
    assert positions.missing() == [T2]
    stood = positions.drop([T0, T2])
    assert stood.positions == (7, -1)
    assert stood.committed == (5, -1)
    assert positions.offsets_of([T0]).committed == (-1,), "what comes back is looked up again"


def test_only_owned_and_running_partitions_can_be_processed() -> None:
    positions = Positions()
    positions.own([T0, T1])
    assert not positions.processed(T0, Position(1)), "its position is not known yet"
    positions.move_to(T0, Position(0))
    assert positions.processed(T0, Position(10))
    positions.stop([T0])
    assert not positions.processed(T0, Position(20))
    assert positions.offsets_of([T0]).positions == (10,)
    positions.own([])
    positions.own([T0])
    positions.move_to(T0, Position(10))
    assert positions.processed(T0, Position(11)), "owned anew"


def test_requests_name_partitions_in_the_order_of_kafkas_tables() -> None:
    """As recorded from Kafka's consumer: HashMap puts t-2 before t-1 before t-0."""
    positions = Positions()
    positions.own([T0, T1, T2, U0])
    missing = positions.missing()
    assert [tp for tp in missing if tp.topic == "t"] == [T2, T1, T0]
    assert list(by_topic(missing)) == ["t", "u"]
    for partition in (T0, T1, T2, U0):
        positions.move_to(partition, Position(0))
    assert [list(offsets) for offsets in positions.to_commit().values()] == [[2, 1, 0], [0]]
