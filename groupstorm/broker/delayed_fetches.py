"""Fetches that wait for data or for their deadline (Kafka: DelayedFetch in its purgatory)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from groupstorm.broker.apis.api import Done, Encoded, Wait
from groupstorm.broker.log.partition import PartitionLog
from groupstorm.turns import Turns

#: Deadlines of answered fetches that are kept beyond one for each waiting fetch.
_OUTDATED_KEPT = 1_000


class FetchAnswer(NamedTuple):
    connection: int
    response: Done | Encoded | Turns[Done]


class DelayedFetches:
    """At most one fetch per connection: connections are served one request at a time."""

    def __init__(self) -> None:
        self._waiting: dict[int, Wait] = {}
        self._by_log: defaultdict[PartitionLog, set[int]] = defaultdict(set)
        self._deadlines: list[tuple[int, int]] = []

    def __len__(self) -> int:
        return len(self._waiting)

    def park(self, connection: int, wait: Wait) -> None:
        self._waiting[connection] = wait
        for log in wait.logs:
            self._by_log[log].add(connection)
        heappush(self._deadlines, (wait.deadline_ms, connection))
        if len(self._deadlines) > 2 * len(self._waiting) + _OUTDATED_KEPT:
            # a client may ask to wait for 24 days, be answered at once and ask again
            self._deadlines = list({one for one in self._deadlines if self._is_current(*one)})
            heapify(self._deadlines)

    def forget(self, connection: int) -> None:
        """Forget the fetch of a closed connection."""
        wait = self._waiting.pop(connection, None)
        for log in wait.logs if wait is not None else ():
            watchers = self._by_log[log]
            watchers.discard(connection)
            if not watchers:
                del self._by_log[log]

    def appended(self, logs: Iterable[PartitionLog]) -> list[FetchAnswer]:
        """Take the fetches that have enough now that these logs have grown, in the order of their arrival."""
        watching = {connection for log in logs for connection in self._by_log.get(log, ())}
        ready = sorted(connection for connection in watching if self._waiting[connection].is_ready())
        return [self._finish(connection) for connection in ready]

    def finish_all(self) -> list[FetchAnswer]:
        """Take all fetches."""
        return [self._finish(connection) for connection in sorted(self._waiting)]

    def expire(self, now_ms: int) -> list[FetchAnswer]:
        """Take the fetches whose deadline has passed."""
        answers = []
        while self._deadlines and self._deadlines[0][0] <= now_ms:
            deadline_ms, connection = heappop(self._deadlines)
            if self._is_current(deadline_ms, connection):
                answers.append(self._finish(connection))
        return answers

    def next_deadline(self) -> int | None:
        while self._deadlines and not self._is_current(*self._deadlines[0]):
            heappop(self._deadlines)
        return self._deadlines[0][0] if self._deadlines else None

    def _is_current(self, deadline_ms: int, connection: int) -> bool:
        """Whether the fetch of this entry still waits; the entry may be of an earlier fetch of its
        connection."""
        wait = self._waiting.get(connection)
        return wait is not None and wait.deadline_ms == deadline_ms

    def _finish(self, connection: int) -> FetchAnswer:
        wait = self._waiting[connection]
        self.forget(connection)
        return FetchAnswer(connection, wait.finish())
