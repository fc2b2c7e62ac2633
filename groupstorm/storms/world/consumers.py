"""The processes of a scenario with plain consumers: one each, or pods with several.

The consumers of a pod, as Spring's listener containers with concurrency have them, start, drain, stop and are
killed together. Each is a member of the group.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from groupstorm.assignors.contract import Assignor
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.profiles import GroupProtocol
from groupstorm.storms.runs.scenario_host import Process, member_names
from groupstorm.storms.scenario.topics import topic_names
from groupstorm.storms.world.consumer import VirtualConsumer
from groupstorm.storms.world.environment import Environment, MemberProcess
from groupstorm.storms.world.member_settings import consumer_config, strategies
from groupstorm.storms.world.world import Processes


class PlainConsumers(Processes[Any]):
    """Every process is a consumer. ``assignors``: those of all the scenario's clients together."""

    def __init__(self, environment: Environment, assignors: Sequence[Assignor]) -> None:
        super().__init__(environment)
        self.running = environment.members.by_name
        self._assignors = assignors

    def new(self, index: int, name: str) -> Process:
        """A consumer under ``name``: it takes the name over from an earlier one."""
        return self.new_member(index, name, name)

    def new_member(self, index: int, name: str, instance: str) -> MemberProcess:
        """A consumer under ``name``, whose group.instance.id is ``instance`` if it is static."""
        environment = self._environment
        settings = environment.settings.release(environment.release)
        topics = topic_names(environment.settings)
        config = consumer_config(settings, environment.group, topics, name, index, instance)
        incarnation, own = self._next_incarnation(name), settings.of_member(index)
        consumer: MemberProcess
        if config.group_protocol is GroupProtocol.CONSUMER:
            # Storms of the classic protocol start without the modules of the other one.
            from groupstorm.storms.world.consumer_group.process import ConsumerGroupProcess

            consumer = ConsumerGroupProcess(environment, index, incarnation, config, own)
        else:
            offered = self._offered(config)
            consumer = VirtualConsumer(environment, index, incarnation, config, offered, own)
        environment.members.add(consumer)
        return consumer

    def _offered(self, config: ConsumerConfig) -> Sequence[Assignor]:
        """Return this process's assignors: its client's own ones if members have several clients."""
        all_offered = strategies(self._environment.settings)
        if all_offered == config.partition_assignment_strategy:
            return self._assignors
        by_entry = dict(zip(all_offered, self._assignors, strict=True))
        return [by_entry[entry] for entry in config.partition_assignment_strategy]

    def finish(self) -> None:
        """Nothing is left to count."""


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
        self.running = {}
        self._each = each

    def new(self, index: int, name: str) -> Process:
        """A pod under ``name``: it takes the name over from an earlier one.

        A static consumer's group.instance.id is the pod's with a number from 1 on, as Spring names it.
        """
        consumers = [
            self.new_member(index * self._each + number, member, f"{name}-{number + 1}")
            for number, member in enumerate(member_names(name, self._each))
        ]
        pod = self.running[name] = Pod(index, name, consumers, self._remove)
        return pod
