"""A client's state as the leader computes it from its members' subscriptions (ClientState)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from groupstorm.assignors.streams.lags import task_lags
from groupstorm.assignors.streams.model import LATEST_OFFSET, StreamsClient, StreamsConsumer


def client_of(
    process: UUID,
    consumers: Sequence[StreamsConsumer],
    end_offset_sums: Mapping[int, int],
    rack: str | None = None,
    tags: Mapping[str, str] | None = None,
) -> StreamsClient:
    """Capacity one for each consumer; previous tasks from owned partitions, then from offset sums.

    The consumer that owns a task's partitions ran the task. Of the other tasks with state, those at the
    latest offset were running, too, and the rest were standbys (initializePrevTasks). If two consumers name
    the same task, the later one counts (addPreviousTasksAndOffsetSums).
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
        lags=task_lags(offset_sums, end_offset_sums),
        fresh_elsewhere=True,
        consumers=tuple(consumers),
    )
