"""HighAvailabilityTaskAssignor.balanceTasksOverThreads, and a queue of clients by their load."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heappop, heappush

from groupstorm.assignors.streams.model import Placement


def balance_over_threads(
    placement: Placement,
    held: list[set[int]],
    may_move: Callable[[int, int], bool] = lambda source, destination: True,
) -> None:
    """Move tasks in order, of active ones or standbys, as long as that makes loads more even."""
    moved = True
    while moved:
        moved = False
        lowest = _lowest_load_with_one_more(placement)
        for source in placement.clients:
            if _one_less(placement, source) < lowest:
                continue  # whichever client took a task, this one would then have less
            for destination in placement.clients:
                if source != destination and _move(placement, held, source, destination, may_move):
                    moved = True
                    lowest = _lowest_load_with_one_more(placement)


def _move(
    placement: Placement,
    held: list[set[int]],
    source: int,
    destination: int,
    may_move: Callable[[int, int], bool],
) -> bool:
    if not _should_move(placement, source, destination) or not may_move(source, destination):
        return False
    moved = False
    for task in sorted(held[source]):
        if not _should_move(placement, source, destination):
            break
        if not placement.has(destination, task):
            held[source].remove(task)
            held[destination].add(task)
            moved = True
    return moved


def _one_less(placement: Placement, client: int) -> float:
    return (placement.count(client) - 1.0) / placement.capacities[client]


def _one_more(placement: Placement, client: int) -> float:
    return (placement.count(client) + 1.0) / placement.capacities[client]


def _lowest_load_with_one_more(placement: Placement) -> float:
    return min(_one_more(placement, client) for client in placement.clients)


def _should_move(placement: Placement, source: int, destination: int) -> bool:
    """shouldMoveATask: the skew gets smaller and does not change its sign."""
    skew = placement.load(source) - placement.load(destination)
    if skew <= 0:
        return False
    proposed = _one_less(placement, source) - _one_more(placement, destination)
    return 0 <= proposed < skew


class LeastLoaded:
    """ConstrainedPrioritySet: the client with the lowest load that meets a condition, ties by ProcessId.

    A client's load must not change while it is queued: poll it, assign, `offer` it again.
    """

    __slots__ = ("_heap", "_load", "_queued")

    def __init__(self, load: Callable[[int], float], clients: Iterable[int] = ()) -> None:
        self._load = load
        self._heap: list[tuple[float, int]] = []
        self._queued: dict[int, float] = {}
        for client in clients:
            self.offer(client)

    def offer(self, client: int) -> None:
        """Queue a client, or queue it anew if it is queued already."""
        load = self._load(client)
        if self._queued.get(client) != load:
            self._queued[client] = load
            heappush(self._heap, (load, client))

    def poll(self, valid: Callable[[int], bool] = lambda client: True) -> int | None:
        """Remove and return the first valid client, None if there is none. The others stay queued."""
        passed_over = []
        found = None
        while self._heap:
            entry = heappop(self._heap)
            load, client = entry
            if self._queued.get(client) != load:
                continue  # the client was offered again with another load, or removed
            if valid(client):
                found = client
                del self._queued[client]
                break
            passed_over.append(entry)
        for entry in passed_over:
            heappush(self._heap, entry)
        return found
