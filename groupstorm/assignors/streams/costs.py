"""The cost of a task on a client: partitions that cross racks, and moving (KIP-925, RackAwareTaskAssignor).

The price of an active task counts its inputs, that of a standby its changelogs. KIP-924's public assignors
count both for an active task (TaskAssignmentUtils). Non-overlap is measured against the placement just
before the optimisation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from groupstorm.assignors.contract import AssignmentRefused
from groupstorm.assignors.streams.model import Config, Strategy, StreamsGroup, Task, TaskPartition
from groupstorm.javahash import hash_order, topic_partition_hash

PartitionsOf = Callable[[Task], Iterable[TaskPartition]]


def inputs(task: Task) -> Iterable[TaskPartition]:
    """The partitions that an active task reads."""
    return task.inputs


def changelogs(task: Task) -> Iterable[TaskPartition]:
    """The partitions that a standby reads."""
    return task.changelogs


def all_partitions(task: Task) -> Iterable[TaskPartition]:
    """The partitions that KIP-924 counts for an active task, each once."""
    return {(each.topic, each.partition): each for each in (*task.inputs, *task.changelogs)}.values()


@dataclass(frozen=True)
class TaskRacks:
    """The racks of a group's clients, as far as RackAwareTaskAssignor knew them when it gave up."""

    group: StreamsGroup

    @cached_property
    def of_client(self) -> list[str | None]:
        """validateClientRack walks its hash table and ends at the first client without a rack."""
        known: list[str | None] = [None] * len(self.group.clients)
        for client in self.group.clients_as_hashed:
            rack = self.group.clients[client].rack
            if rack is None:
                break
            known[client] = rack
        return known

    @cached_property
    def known(self) -> bool:
        return all(client.rack is not None for client in self.group.clients)

    @cached_property
    def names(self) -> list[str]:
        """The racks that have clients, sorted."""
        return sorted({rack for rack in self.of_client if rack is not None})

    @cached_property
    def numbers(self) -> list[int]:
        """Per client the number of its rack in ``names``; -1 if it is not known."""
        number = {rack: at for at, rack in enumerate(self.names)}
        return [-1 if rack is None else number[rack] for rack in self.of_client]

    def topics_known(self, partitions: PartitionsOf) -> bool:
        """Every partition has replicas, all of them on nodes with a rack."""
        return all(each.racks for task in self.group.tasks for each in partitions(task))

    @cached_property
    def _read(self) -> frozenset[tuple[str, int]] | None:
        """The partitions whose racks Kafka read before it gave up; None: it did not give up.

        Kafka reads none if a client's rack is missing. It stops at the first partition, in the order of its
        hash tables, with a replica on a node without a rack; changelogs come after all inputs.
        """
        if self.known and self.topics_known(inputs) and self.topics_known(changelogs):
            return None
        read: set[tuple[str, int]] = set()
        if self.known:
            tasks = hash_order(range(len(self.group.tasks)), self.group.task_hash)
            listed = {task: {each[:2]: each for each in self.group.tasks[task].inputs} for task in tasks}
            ordered = [
                listed[task][key] for task in tasks for key in hash_order(listed[task], topic_partition_hash)
            ]
            complete = _read_until_unknown(ordered, read)
            if complete and self.topics_known(inputs):
                by_topic: dict[str, list[TaskPartition]] = {}
                for each in (part for task in self.group.tasks for part in task.changelogs):
                    by_topic.setdefault(each.topic, []).append(each)
                described = [each for topic in hash_order(by_topic) for each in by_topic[topic]]
                _read_until_unknown(described, read, empty_ends=True)
        return frozenset(read)

    def was_read(self, partition: TaskPartition) -> bool:
        """Whether Kafka has read the racks of this partition, if it has any."""
        return self._read is None or partition[:2] in self._read

    def usable(self, config: Config) -> bool:
        """canEnableRackAwareAssignor: changelogs count only if there are standbys."""
        return (
            config.strategy is not Strategy.NONE
            and self.known
            and self.topics_known(inputs)
            and (config.num_standby_replicas == 0 or self.topics_known(changelogs))
        )


def _read_until_unknown(
    partitions: Iterable[TaskPartition], read: set[tuple[str, int]], *, empty_ends: bool = False
) -> bool:
    """``empty_ends``: a partition without replicas ends it, too; otherwise Kafka asks for those later."""
    for each in partitions:
        if each.racks is None or (empty_ends and not each.racks):
            return False
        if each.racks:
            read.add((each.topic, each.partition))
    return True


class CrossRack:
    """Counts the partitions of a task, of one kind, that are outside a client's rack.

    ``described``: every task has its racks (KIP-924). Otherwise only those count that Kafka has read.
    """

    def __init__(self, racks: TaskRacks, partitions: PartitionsOf, *, described: bool = False) -> None:
        self.racks = racks
        self._partitions = partitions
        self._described = described
        self._rows: dict[int, tuple[int, ...]] = {}
        self._missing: dict[frozenset[str], tuple[int, ...]] = {}

    def row(self, task: int) -> tuple[int, ...]:
        """Per rack of `TaskRacks.names`."""
        found = self._rows.get(task)
        if found is None:
            parts = [self._missing_in(each.racks) for each in self._of(task)]
            found = parts[0] if len(parts) == 1 else tuple(map(sum, zip(*parts, strict=True)))
            self._rows[task] = found
        return found

    def _missing_in(self, racks: frozenset[str] | None) -> tuple[int, ...]:
        replicas = racks or frozenset()
        missing = self._missing.get(replicas)
        if missing is None:
            missing = tuple(int(name not in replicas) for name in self.racks.names)
            self._missing[replicas] = missing
        return missing

    def _of(self, task: int) -> list[TaskPartition]:
        """The task's partitions; refuses as RackAwareTaskAssignor.getCost does if it cannot price them."""
        partitions = list(self._partitions(self.racks.group.tasks[task]))
        if not partitions:
            name = self.racks.group.tasks[task].id
            raise AssignmentRefused("IllegalStateException", f"Task {name} has no TopicPartitions")
        unread = {
            each[:2]: each
            for each in partitions
            if not each.racks or not (self._described or self.racks.was_read(each))
        }
        if unread:
            everything = [each[:2] for each in partitions]
            first = next(key for key in hash_order(everything, topic_partition_hash) if key in unread)
            raise AssignmentRefused(
                "IllegalStateException",
                f"TopicPartition {unread[first]} has no rack information. "
                "Maybe forgot to call canEnableRackAwareAssignor first",
            )
        return partitions

    def count(self, task: int, client: int) -> int:
        """Partitions of the task that the client would read from another rack."""
        rack = self.racks.numbers[client]
        if rack < 0:
            raise AssignmentRefused(
                "IllegalStateException",
                f"Client {self.racks.group.clients[client].id} doesn't have rack configured. "
                "Maybe forgot to call canEnableRackAwareAssignor first",
            )
        return self.row(task)[rack]

    def total(self, holders: Sequence[set[int]], tasks: Iterable[int]) -> int:
        """Cross-rack partitions of a placement; refuses as Kafka's graph does if any task has no price."""
        chosen = sorted(set(tasks))
        for client in range(len(holders) if chosen else 0):
            self.count(chosen[0], client)
        for task in chosen:
            self.row(task)
        wanted = set(chosen)
        return sum(self.count(task, client) for client, held in enumerate(holders) for task in held & wanted)
