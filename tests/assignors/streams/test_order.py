"""TaskId and PriorityQueue as in Java: what no case of Kafka's recorded answers shows."""

from __future__ import annotations

import pytest

from groupstorm.assignors.streams.javaheap import JavaPriorityQueue
from groupstorm.assignors.streams.model import parse_task_id, task_hash
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


def test_the_heap_lies_as_javas_does() -> None:
    """By hand on JDK 17: new PriorityQueue(List.of(5, 4, 3, 2, 1)) prints [1, 2, 3, 5, 4]."""
    queue = JavaPriorityQueue((number, number) for number in (5, 4, 3, 2, 1))
    assert list(queue) == [1, 2, 3, 5, 4]
    queue.offer(0, 0)
    assert list(queue) == [0, 2, 1, 5, 4, 3]
    queue.remove(2)
    assert list(queue) == [0, 3, 1, 5, 4]
