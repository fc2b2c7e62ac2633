"""The tasks of an application. In this package tasks are numbers, in Kafka's order of TaskIds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from groupstorm.assignors.streams.groups import Task as GroupTask
from groupstorm.assignors.streams.model import Task
from groupstorm.assignors.userdata import TopicPartition
from groupstorm.assignors.userdata.streams import TaskId
from groupstorm.coordinator.streams.topology import CopartitionGroup, Subtopology, TopicInfo
from groupstorm.coordinator.streams.topology import Topology as GroupTopology


@dataclass(frozen=True)
class Topology:
    """``tasks`` ascending by TaskId: a task's number is its index."""

    tasks: tuple[Task, ...]

    @cached_property
    def names(self) -> list[str]:
        """As Kafka prints them: ``0_1``."""
        return [str(task.id) for task in self.tasks]

    @cached_property
    def _by_name(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.names)}

    def named(self, name: str) -> int:
        return self._by_name[name]

    @cached_property
    def inputs(self) -> list[tuple[TopicPartition, ...]]:
        return [tuple(TopicPartition(*part[:2]) for part in task.inputs) for task in self.tasks]

    @cached_property
    def ids(self) -> list[TaskId]:
        return [task.id for task in self.tasks]

    @cached_property
    def _numbers(self) -> dict[TaskId, int]:
        return {task: number for number, task in enumerate(self.ids)}

    @cached_property
    def _of_partition(self) -> dict[TopicPartition, int]:
        return {part: number for number, parts in enumerate(self.inputs) for part in parts}

    def numbers(self, tasks: Iterable[TaskId]) -> set[int]:
        """The numbers of tasks in user data."""
        return {self._numbers[task] for task in tasks}

    @cached_property
    def in_group(self) -> list[GroupTask]:
        """As heartbeats of a streams group name them."""
        return [(str(task.id.subtopology), task.id.partition) for task in self.tasks]

    @cached_property
    def _of_group(self) -> dict[GroupTask, int]:
        return {task: number for number, task in enumerate(self.in_group)}

    def of_group(self, tasks: Iterable[GroupTask]) -> set[int]:
        """The numbers of tasks in a heartbeat's answer."""
        return {self._of_group[task] for task in tasks}

    @cached_property
    def for_group(self) -> GroupTopology:
        """The topology that a member sends when it joins a streams group, with epoch 0."""
        topics: dict[int, tuple[set[str], set[str]]] = {}
        for task in self.tasks:
            sources, changelogs = topics.setdefault(task.id.subtopology, (set(), set()))
            sources.update(part.topic for part in task.inputs)
            changelogs.update(part.topic for part in task.changelogs)
        return GroupTopology(
            0,
            tuple(
                Subtopology(
                    str(subtopology),
                    tuple(sorted(sources)),
                    changelogs=tuple(map(TopicInfo, sorted(changelogs))),
                    copartition=(CopartitionGroup(tuple(range(len(sources)))),) if len(sources) > 1 else (),
                )
                for subtopology, (sources, changelogs) in sorted(topics.items())
            ),
        )

    def reading(self, partitions: Iterable[TopicPartition]) -> list[int]:
        """The tasks that read any of these partitions, ascending."""
        return sorted({self._of_partition[part] for part in partitions})
