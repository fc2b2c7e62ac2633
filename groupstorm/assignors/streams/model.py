"""The input of a task assignor and the placement that it works on.

A `StreamsGroup` is fixed: its tasks and clients stand in Kafka's order, and code refers to them by their
number there. A `Placement` is what assignors change: which client has which task as active or as standby
(ClientState's assigned tasks).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple
from uuid import UUID

from groupstorm.assignors.contract import AssignmentRefused, uuid_order
from groupstorm.assignors.userdata.streams import LATEST_OFFSET, UNKNOWN_OFFSET_SUM, TaskId
from groupstorm.javahash import JavaHashMap, hash_order, string_hash, uuid_hash

_TASK_ID = re.compile(r"(?:(.+)__)?(\d{1,10})_(\d{1,10})", re.DOTALL)
_INT32_MAX = (1 << 31) - 1
_MASK_32 = 0xFFFFFFFF
#: `acceptable.recovery.lag` at this value: every client counts as caught up.
UNBOUNDED_LAG = (1 << 63) - 1


def parse_task_id(text: str) -> TaskId:
    """TaskId.parse. ``ValueError`` if the text is none."""
    found = _TASK_ID.fullmatch(text)
    if found is None or max(int(found[2]), int(found[3])) > _INT32_MAX:
        raise ValueError(f"{text!r} is no task id")
    return TaskId(found[1] or "", int(found[2]), int(found[3]))


def task_hash(task: TaskId) -> int:
    """``TaskId.hashCode``: Objects.hash(subtopology, partition, topologyName), unsigned."""
    name = string_hash(task.topology) if task.topology else 0
    return (((31 + task.subtopology) * 31 + task.partition) * 31 + name) & _MASK_32


def parse_process_id(text: str) -> UUID:
    """A UUID, or a number for the UUID of that number as in Kafka's tests. `ValueError` for others."""
    if text.isascii() and text.isdigit():
        number = int(text)
        if number >> 63:
            raise ValueError(f"{text} does not fit into a signed long")
        return UUID(int=number)
    if not re.fullmatch(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", text):
        raise ValueError(f"{text!r} is no UUID")
    return UUID(text)


class TaskPartition(NamedTuple):
    """A partition that a task reads or writes; ``racks`` of its replicas, None if one is not known."""

    topic: str
    partition: int
    racks: frozenset[str] | None = None

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class Task(NamedTuple):
    """``inputs``: source partitions; ``changelogs``: the partitions that keep its state."""

    id: TaskId
    stateful: bool
    inputs: tuple[TaskPartition, ...] = ()
    changelogs: tuple[TaskPartition, ...] = ()


class StreamsConsumer(NamedTuple):
    """A thread of a client: the tasks whose partitions it owns, and its offset sums per task."""

    id: str
    owned: frozenset[int] = frozenset()
    offset_sums: Mapping[int, int] = {}


class StreamsClient(NamedTuple):
    """An instance of the application (ClientState); ``capacity``: threads.

    A task without an entry in ``lags`` lags by the group's ``end_offset_sums`` if ``fresh_elsewhere``;
    otherwise its lag is unknown. ``consumers``: only if the state was made from subscriptions.
    """

    id: UUID
    capacity: int
    rack: str | None = None
    tags: Mapping[str, str] = {}
    prev_active: frozenset[int] = frozenset()
    prev_standby: frozenset[int] = frozenset()
    lags: Mapping[int, int] = {}
    fresh_elsewhere: bool = False
    consumers: tuple[StreamsConsumer, ...] = ()


@dataclass(frozen=True)
class StreamsGroup:
    """Tasks by TaskId, clients by ProcessId.

    ``filled``: clients as the leader met them; ``end_offset_sums``: records in a task's changelogs.
    """

    tasks: Sequence[Task]
    clients: Sequence[StreamsClient]
    filled: Sequence[int]
    end_offset_sums: Mapping[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, tasks: Sequence[Task], met: Sequence[StreamsClient], ends: Mapping[int, int]) -> StreamsGroup:
        """A group whose clients the leader met in this order."""
        order = sorted(range(len(met)), key=lambda at: uuid_order(met[at].id))
        filled = sorted(range(len(met)), key=order.__getitem__)
        return cls(tasks, [met[at] for at in order], filled, ends)

    @cached_property
    def stateful(self) -> list[int]:
        return [number for number, task in enumerate(self.tasks) if task.stateful]

    @cached_property
    def stateless(self) -> list[int]:
        return [number for number, task in enumerate(self.tasks) if not task.stateful]

    @cached_property
    def clients_as_hashed(self) -> list[int]:
        """The clients as the leader's HashMap by ProcessId yields them."""
        return hash_order(self.filled, self.client_hash)

    @cached_property
    def subtopologies(self) -> list[list[int]]:
        """The tasks by sub-topology, as a TreeMap by Subtopology: by number, then by named topology."""
        found: dict[tuple[int, str], list[int]] = {}
        for number, task in enumerate(self.tasks):
            found.setdefault((task.id.subtopology, task.id.topology), []).append(number)
        return [found[key] for key in sorted(found)]

    @cached_property
    def task_hash(self) -> Callable[[int], int]:
        """``TaskId.hashCode``."""
        return [task_hash(task.id) for task in self.tasks].__getitem__

    @cached_property
    def client_hash(self) -> Callable[[int], int]:
        """``ProcessId.hashCode``."""
        return [uuid_hash(client.id) for client in self.clients].__getitem__

    def lag(self, client: int, task: int) -> int:
        """ClientState.lagFor; refuses as Kafka does if the lag is unknown."""
        state = self.clients[client]
        lag = state.lags.get(task)
        if lag is None and state.fresh_elsewhere:
            lag = self.end_offset_sums.get(task)
        if lag is None:
            name = self.tasks[task].id
            raise AssignmentRefused("IllegalStateException", f"Tried to lookup lag for unknown task {name}")
        return lag


class Strategy(StrEnum):
    """``rack.aware.assignment.strategy``."""

    NONE = "none"
    MIN_TRAFFIC = "min_traffic"
    BALANCE_SUBTOPOLOGY = "balance_subtopology"


class StandbyPlacement(StrEnum):
    """Kafka's flows between pairs of clients, or options I and II of KIP-925's fourth version."""

    SHIPPED = "shipped"
    GREEDY = "greedy"
    RELIABLE_FIRST = "reliable-first"


class TradeOff(StrEnum):
    """KIP-441's draft: a full client with the smallest gap gets the task (LATENCY), or the next one does."""

    LATENCY = "latency"
    BALANCE = "balance"


class TagsOrRacks(StrEnum):
    """Places standbys by the configured client tags, as Kafka does, or by every client's rack."""

    TAGS = "tags"
    RACKS = "racks"


class Solver(StrEnum):
    """AUTO: Kafka's own choice among the optima on small graphs, the fast solver on large ones."""

    AUTO = "auto"
    CYCLE_CANCELING = "cycle-canceling"
    SHORTEST_PATHS = "shortest-paths"


class Config(NamedTuple):
    """Kafka's settings with Kafka's defaults, then ours. Costs None: the assignor's own."""

    acceptable_recovery_lag: int = 10_000
    max_warmup_replicas: int = 2
    num_standby_replicas: int = 0
    probing_rebalance_interval_ms: int = 600_000
    rack_aware_tags: tuple[str, ...] = ()
    strategy: Strategy = Strategy.NONE
    traffic_cost: int | None = None
    non_overlap_cost: int | None = None
    standby_placement: StandbyPlacement = StandbyPlacement.SHIPPED
    reliable_standbys: int = 1
    trade_off: TradeOff = TradeOff.LATENCY
    tags_or_racks: TagsOrRacks = TagsOrRacks.TAGS
    near_zero_gap: int | None = None
    solver: Solver = Solver.AUTO
    must_preserve_active: bool = False


class Costs(NamedTuple):
    """The price of one partition that crosses racks, and of a task that changes its client."""

    traffic: int
    non_overlap: int

    def configured(self, config: Config) -> Costs:
        """These costs, unless the configuration has others."""
        return Costs(
            self.traffic if config.traffic_cost is None else config.traffic_cost,
            self.non_overlap if config.non_overlap_cost is None else config.non_overlap_cost,
        )


#: The defaults of HighAvailabilityTaskAssignor, of the sticky assignors, and of every assignor for
#: stateless tasks.
HIGH_AVAILABILITY_COSTS = Costs(10, 1)
STICKY_COSTS = Costs(1, 10)
STATELESS_COSTS = Costs(1, 0)


class Placement:
    """Per client its active tasks and its standbys."""

    def __init__(self, group: StreamsGroup) -> None:
        self.capacities = [client.capacity for client in group.clients]
        self.active: list[set[int]] = [set() for _ in self.capacities]
        self.standby: list[set[int]] = [set() for _ in self.capacities]

    @property
    def clients(self) -> range:
        return range(len(self.capacities))

    def has(self, client: int, task: int) -> bool:
        return task in self.active[client] or task in self.standby[client]

    def count(self, client: int) -> int:
        return len(self.active[client]) + len(self.standby[client])

    def load(self, client: int) -> float:
        """ClientState.assignedTaskLoad: tasks per thread."""
        return self.count(client) / self.capacities[client]

    def active_load(self, client: int) -> float:
        return len(self.active[client]) / self.capacities[client]

    def owners(self) -> dict[int, int]:
        return {task: client for client, tasks in enumerate(self.active) for task in tasks}


class Decision(NamedTuple):
    """The result of an assignor.

    ``probing``: another rebalance is needed later; None if the assignor does not say. ``warmups`` and
    ``standby_warmups``: per client the standbys that a movement left to build up state (None: the assignor
    has no movements). ``imbalanced``, of KIP-441's draft: tasks that stay with their state although that
    client has its share already. ``optimized_cost``: the cost that an optimisation reached. ``tables``: per
    client all its tasks, if the result is a hash table whose order counts (KIP-924).
    """

    placement: Placement
    probing: bool | None = None
    warmups: Sequence[set[int]] | None = None
    standby_warmups: Sequence[set[int]] | None = None
    imbalanced: tuple[int, ...] | None = None
    optimized_cost: int | None = None
    tables: Sequence[JavaHashMap[int, None]] | None = None


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
