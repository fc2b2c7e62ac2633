"""``java.util.PriorityQueue``, step by step as in JDK 17: equal elements leave it in the order of its heap.

Kafka polls movements whose keys can be equal, and even iterates over a queue without polling it (over the
heap's array, which is not sorted).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

K = TypeVar("K", int, float, tuple[int, int])
V = TypeVar("V")


class JavaPriorityQueue(Generic[K, V]):
    """A heap of values by key, the smallest first."""

    def __init__(self, entries: Iterable[tuple[K, V]] = ()) -> None:
        """``new PriorityQueue<>(collection)``: takes the elements as they come, then heapifies."""
        self._heap: list[tuple[K, V]] = list(entries)
        for at in range(len(self._heap) // 2 - 1, -1, -1):
            self._sift_down(at, self._heap[at])

    def offer(self, key: K, value: V) -> None:
        self._heap.append((key, value))
        self._sift_up(len(self._heap) - 1, (key, value))

    def poll(self) -> V:
        """The first value; IndexError if there is none."""
        heap = self._heap
        first, last = heap[0], heap.pop()
        if heap:
            self._sift_down(0, last)
        return first[1]

    def remove(self, value: V) -> None:
        """``remove(Object)``; ValueError if it is not present."""
        at = [held for _, held in self._heap].index(value)
        last = self._heap.pop()
        if at == len(self._heap):
            return
        self._sift_down(at, last)
        if self._heap[at] is last:
            self._sift_up(at, last)

    def _sift_up(self, at: int, entry: tuple[K, V]) -> None:
        heap = self._heap
        while at > 0:
            parent = (at - 1) >> 1
            if not entry[0] < heap[parent][0]:
                break
            heap[at] = heap[parent]
            at = parent
        heap[at] = entry

    def _sift_down(self, at: int, entry: tuple[K, V]) -> None:
        heap = self._heap
        size = len(heap)
        while at < size >> 1:
            child = 2 * at + 1
            if child + 1 < size and heap[child + 1][0] < heap[child][0]:
                child += 1
            if not heap[child][0] < entry[0]:
                break
            heap[at] = heap[child]
            at = child
        heap[at] = entry

    def __len__(self) -> int:
        return len(self._heap)

    def __iter__(self) -> Iterator[V]:
        """The values in the order of the heap's array."""
        return iter([value for _, value in self._heap])
