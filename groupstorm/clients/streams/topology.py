"""The tasks of an application. In this package tasks are numbers, in Kafka's order of TaskIds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from groupstorm.assignors.streams.model import Task
from groupstorm.assignors.userdata import TopicPartition
from groupstorm.assignors.userdata.streams import StreamsTask


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
    def on_wire(self) -> list[StreamsTask]:
        return [
            StreamsTask(task.id.subtopology, task.id.partition, task.id.topology or None)
            for task in self.tasks
        ]

    @cached_property
    def _numbers(self) -> dict[StreamsTask, int]:
        return {task: number for number, task in enumerate(self.on_wire)}

    @cached_property
    def _of_partition(self) -> dict[TopicPartition, int]:
        return {part: number for number, parts in enumerate(self.inputs) for part in parts}

    def numbers(self, tasks: Iterable[StreamsTask]) -> set[int]:
        """The numbers of tasks in user data."""
        return {self._numbers[task] for task in tasks}

    def reading(self, partitions: Iterable[TopicPartition]) -> list[int]:
        """The tasks that read any of these partitions, ascending."""
        return sorted({self._of_partition[part] for part in partitions})
