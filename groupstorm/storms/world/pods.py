"""Pods with several consumers each, as Spring's listener containers with concurrency have them.

The consumers of a pod start, drain, stop and are killed together. Each is a member of the group.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from groupstorm.assignors.contract import Assignor
from groupstorm.storms.runs.scenario_host import Process, member_names
from groupstorm.storms.world.consumers import PlainConsumers
from groupstorm.storms.world.environment import Environment
from groupstorm.storms.world.members import MemberProcess


class Pod:
    """A process that is gone when the last of its ``consumers`` is."""

    def __init__(
        self, index: int, name: str, consumers: Sequence[MemberProcess], on_gone: Callable[[Pod], None]
    ) -> None:
        self.index = index
        self.name = name
        self.alive = True
        self.started = False
        self.on_exit: Callable[[], None] | None = None
        self._consumers = consumers
        self._on_gone = on_gone
        for consumer in consumers:
            consumer.on_exit = self._consumer_gone

    def start(self) -> None:
        self.started = True
        for consumer in self._consumers:
            consumer.start()

    def stop(self) -> None:
        for consumer in self._consumers:
            if consumer.alive:  # else a fatal error has ended it before
                consumer.stop()

    def crash(self) -> None:
        for consumer in self._consumers:
            consumer.crash()

    def _consumer_gone(self) -> None:
        if self.alive and not any(consumer.alive for consumer in self._consumers):
            self.alive = False
            self._on_gone(self)
            if self.on_exit is not None:
                self.on_exit()


class Pods(PlainConsumers):
    """Every process is a pod with ``each`` consumers, whose places in the group follow each other."""

    def __init__(self, environment: Environment, assignors: Sequence[Assignor], each: int) -> None:
        super().__init__(environment, assignors)
        self._each = each
        self._pods: dict[str, Pod] = {}

    @property
    def running(self) -> Mapping[str, Process]:
        return self._pods

    def new(self, index: int, name: str) -> Process:
        """A pod under ``name``: it takes the name over from an earlier one.

        A static consumer's group.instance.id is the pod's with a number from 1 on, as Spring names it.
        """
        consumers = [
            self.new_member(index * self._each + number, member, f"{name}-{number + 1}")
            for number, member in enumerate(member_names(name, self._each))
        ]
        pod = self._pods[name] = Pod(index, name, consumers, self._remove)
        return pod

    def _remove(self, pod: Pod) -> None:
        """The pod is gone; its name may belong to a later one by now."""
        if self._pods.get(pod.name) is pod:
            del self._pods[pod.name]
