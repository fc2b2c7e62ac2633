"""Java's orders: TaskId, ProcessId, PriorityQueue; and lags as the leader computes them."""

from __future__ import annotations

import random
from uuid import UUID

import pytest

from groupstorm.assignors.contract import uuid_order
from groupstorm.assignors.streams.javaheap import JavaPriorityQueue
from groupstorm.assignors.streams.model import (
    StreamsConsumer,
    client_of,
    parse_process_id,
    parse_task_id,
    task_hash,
    task_lag,
)
from groupstorm.assignors.userdata.streams import TaskId


def test_task_ids_sort_by_topology_sub_topology_partition() -> None:
    assert parse_task_id("2_10") > parse_task_id("2_9")
    assert str(parse_task_id("a__b__0_1")) == "a__b__0_1"
    assert parse_task_id("a__b__0_1").topology == "a__b"
    assert task_hash(TaskId("", 0, 0)) == 31 * 31 * 31


@pytest.mark.parametrize("text", ["", "0", "0_", "_1", "0_1_2x", "1_-1", "0_2147483648"])
def test_what_is_no_task_id(text: str) -> None:
    with pytest.raises(ValueError, match="no task id"):
        parse_task_id(text)


def test_process_ids_with_the_top_bit_set_sort_first() -> None:
    low, high = parse_process_id("7"), UUID("80000000-0000-0000-0000-000000000000")
    assert low == UUID(int=7)
    assert uuid_order(high) < uuid_order(low)
    assert uuid_order(UUID(int=1 << 63)) < uuid_order(UUID(int=0))


def test_the_heap_lies_as_javas_does() -> None:
    """By hand on JDK 17: new PriorityQueue(List.of(5, 4, 3, 2, 1)) prints [1, 2, 3, 5, 4]."""
    queue = JavaPriorityQueue((number, number) for number in (5, 4, 3, 2, 1))
    assert list(queue) == [1, 2, 3, 5, 4]
    queue.offer(0, 0)
    assert list(queue) == [0, 2, 1, 5, 4, 3]
    queue.remove(2)
    assert list(queue) == [0, 3, 1, 5, 4]


def test_what_leaves_the_heap_is_sorted() -> None:
    generator = random.Random("heap")
    for _ in range(100):
        numbers = [generator.randrange(9) for _ in range(generator.randrange(30))]
        queue = JavaPriorityQueue((number, number) for number in numbers)
        assert [queue.poll() for _ in range(len(queue))] == sorted(numbers)


@pytest.mark.parametrize(
    ("offset_sum", "end", "lag"),
    [(-2, 100, -2), (-3, 100, -3), (40, 100, 60), (100, 100, 0), (101, 100, 100), (0, 100, 100)],
)
def test_a_lag_from_offset_sums(offset_sum: int, end: int, lag: int) -> None:
    """Sentinels stay; who claims more than there is restores everything."""
    assert task_lag(offset_sum, end) == lag


def test_a_clients_state_from_its_consumers() -> None:
    """Owned or at the latest offset: it ran. Anything else that it has state of: a standby."""
    consumers = [
        StreamsConsumer("a", frozenset({0}), {0: -2, 1: -2, 2: 50}),
        StreamsConsumer("b", frozenset({4}), {3: -3}),
    ]
    state = client_of(UUID(int=1), consumers, {0: 100, 1: 100, 2: 100, 3: 100})
    assert state.capacity == 2
    assert state.prev_active == {0, 1, 4}
    assert state.prev_standby == {2, 3}
    assert state.lags == {0: -2, 1: -2, 2: 50, 3: -3}
