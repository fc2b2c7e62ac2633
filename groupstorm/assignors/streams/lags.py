"""A client's state and lags as the leader computes them (ClientState), and clients by lag.

Most clients know nothing of most tasks and lag by the whole changelog, so only known lags are stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from groupstorm.assignors.streams.model import UNBOUNDED_LAG, StreamsClient, StreamsConsumer, StreamsGroup
from groupstorm.assignors.userdata.streams_subscription import LATEST_OFFSET, UNKNOWN_OFFSET_SUM


def task_lag(offset_sum: int, end_offset_sum: int) -> int:
    """ClientState.computeTaskLags: sentinels stay; a client that claims too much has all to restore."""
    if offset_sum in {LATEST_OFFSET, UNKNOWN_OFFSET_SUM}:
        return offset_sum
    return end_offset_sum if end_offset_sum < offset_sum else end_offset_sum - offset_sum


def client_of(
    process: UUID,
    consumers: Sequence[StreamsConsumer],
    end_offset_sums: Mapping[int, int],
    rack: str | None = None,
    tags: Mapping[str, str] | None = None,
) -> StreamsClient:
    """A client from its consumers, each of which is one thread; of two with one task the later one counts.

    The owner of a task's partitions ran it. Of other tasks with state those at the latest offset were
    running, and the rest were standbys (initializePrevTasks).
    """
    offset_sums: dict[int, int] = {}
    for consumer in consumers:
        offset_sums.update(consumer.offset_sums)
    owned = frozenset(task for consumer in consumers for task in consumer.owned)
    running = {task for task, offset_sum in offset_sums.items() if offset_sum == LATEST_OFFSET}
    return StreamsClient(
        id=process,
        capacity=len(consumers),
        rack=rack,
        tags=tags or {},
        prev_active=owned | running,
        prev_standby=frozenset(offset_sums) - owned - running,
        lags={
            task: task_lag(offset_sum, end_offset_sums[task])
            for task, offset_sum in offset_sums.items()
            if task in end_offset_sums
        },
        fresh_elsewhere=True,
        consumers=tuple(consumers),
    )


class Lags:
    """The lags of stateful tasks on all clients (HighAvailabilityTaskAssignor)."""

    def __init__(self, group: StreamsGroup, acceptable: int) -> None:
        self._group = group
        self._acceptable = acceptable
        self._fresh = [number for number, client in enumerate(group.clients) if client.fresh_elsewhere]
        self._known: dict[int, dict[int, int]] = {task: {} for task in group.stateful}
        self._caught_up: dict[int, list[int]] = {}
        for number, client in enumerate(group.clients):
            if not client.fresh_elsewhere:
                for task in group.stateful:
                    self._known[task][number] = group.lag(number, task)
            else:
                for task, lag in client.lags.items():
                    if task in self._known:
                        self._known[task][number] = lag

    def of(self, client: int, task: int) -> int:
        lag = self._known[task].get(client)
        return self._group.lag(client, task) if lag is None else lag

    def acceptable(self, lag: int) -> bool:
        """A running active, no limit, or at most `acceptable.recovery.lag` behind."""
        return lag == LATEST_OFFSET or self._acceptable == UNBOUNDED_LAG or 0 <= lag <= self._acceptable

    def caught_up(self, task: int) -> list[int]:
        """The clients that could run the task at once, ascending."""
        found = self._caught_up.get(task)
        if found is None:
            found = [client for client in self._candidates(task) if self.acceptable(self.of(client, task))]
            self._caught_up[task] = found
        return found

    def _candidates(self, task: int) -> list[int]:
        """All clients, or only those that know the task if no other one can qualify."""
        if self._fresh and self.acceptable(self._group.lag(self._fresh[0], task)):
            return list(range(len(self._group.clients)))
        return sorted(self._known[task])

    def lowest(self, task: int) -> int:
        """The lowest lag of a client; sentinels are below all others, as numbers are."""
        lags = list(self._known[task].values())
        if len(lags) < len(self._group.clients):
            lags.append(self._group.lag(self._fresh[0], task))
        return min(lags)

    def by_lag(self, task: int) -> list[int]:
        """All clients by lag, then by ProcessId."""
        return sorted(range(len(self._group.clients)), key=lambda client: (self.of(client, task), client))
