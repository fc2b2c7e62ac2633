"""The processes of a scenario with plain consumers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from groupstorm.assignors.contract import Assignor
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.profiles import GroupProtocol
from groupstorm.storms.runs.scenario_host import Process
from groupstorm.storms.scenario.topics import topic_names
from groupstorm.storms.world.consumer import VirtualConsumer
from groupstorm.storms.world.environment import Environment
from groupstorm.storms.world.member_settings import consumer_config, strategies
from groupstorm.storms.world.members import MemberProcess


class PlainConsumers:
    """Every process is a consumer. ``assignors``: those of all the scenario's clients together."""

    #: Nothing runs that the group itself does not know of.
    settled = True
    follow_ups = False

    def __init__(self, environment: Environment, assignors: Sequence[Assignor]) -> None:
        self._environment = environment
        self._assignors = assignors
        self._incarnations: Counter[str] = Counter()

    @property
    def running(self) -> Mapping[str, Process]:
        return self._environment.members.by_name

    def new(self, index: int, name: str) -> Process:
        """A consumer under ``name``: it takes the name over from an earlier one."""
        return self.new_member(index, name, name)

    def new_member(self, index: int, name: str, instance: str) -> MemberProcess:
        """A consumer under ``name``, whose group.instance.id is ``instance`` if it is static."""
        environment = self._environment
        settings = environment.settings.release(environment.release)
        topics = topic_names(environment.settings)
        config = consumer_config(settings, environment.group, topics, name, index, instance)
        self._incarnations[name] += 1
        incarnation, own = self._incarnations[name], settings.of_member(index)
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

    def give_up_follow_ups(self) -> bool:
        return False

    def finish(self) -> None:
        """Nothing is left to count."""
