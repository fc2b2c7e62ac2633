"""The processes of a scenario with a share group, and the world that hosts them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.storms.deployments.autoscaler import partition_lag
from groupstorm.storms.scenario.topics import topic_names
from groupstorm.storms.share.consumer import ShareConsumer
from groupstorm.storms.share.leader import ShareLeader
from groupstorm.storms.world.environment import Environment
from groupstorm.storms.world.member_settings import consumer_config
from groupstorm.storms.world.world import Processes, World

#: Records that have arrived so recently may still be on their way to a consumer.
_DELIVERED_US = 1_000_000


class ShareConsumers(Processes[ShareConsumer]):
    """Every process is a share consumer."""

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self.leader = ShareLeader(environment)

    def new(self, index: int, name: str) -> ShareConsumer:
        """A share consumer under ``name``: it takes the name over from an earlier one."""
        environment = self._environment
        settings = environment.settings.release(environment.release)
        config = consumer_config(settings, environment.group, topic_names(settings), name, index)
        consumer = ShareConsumer(
            environment,
            self.leader,
            index,
            self._next_incarnation(name),
            config,
            settings.of_member(index),
            self._remove,
        )
        self.running[name] = consumer
        return consumer

    @property
    def settled(self) -> bool:
        """Whether the group is made of exactly the living, and each of them has joined."""
        living = [one for one in self.running.values() if one.started]
        group = self._environment.broker.share_group
        members = set() if group is None else set(group.members.keys())
        return members == {one.group_member.member_id for one in living} and all(
            one.settled for one in living
        )

    def finish(self) -> None:
        """Count the heartbeats that are computed."""
        for consumer in tuple(self.running.values()):
            consumer.heartbeats.wake()


class ShareWorld(World):
    """The world of a share group, whose start offsets are what committed offsets are elsewhere."""

    def __init__(self, environment: Environment, consumers: ShareConsumers) -> None:
        super().__init__(environment, consumers)
        self._share_consumers = consumers
        self._leader = consumers.leader

    @property
    def consumers(self) -> Mapping[str, ShareConsumer]:
        return self._share_consumers.running

    @property
    def settled(self) -> bool:
        return self._share_consumers.settled

    @property
    def left_behind(self) -> Sequence[str]:
        return ()

    def add_partitions(self, topic: str, count: int) -> None:
        super().add_partitions(topic, count)
        for consumer in self.consumers.values():
            consumer.metadata_may_have_changed()

    @property
    def committed(self) -> Mapping[TopicPartition, int]:
        starts = {partition: self._leader.start(partition) for partition in self.partitions}
        return {partition: start for partition, start in starts.items() if start >= 0}

    def caught_up(self) -> bool:
        arrived_by_us = self.clock.now_us - _DELIVERED_US
        return not self.consumers or all(
            self._leader.is_caught_up(partition, arrived_by_us) for partition in self.partitions
        )

    def group_lags(self) -> list[int]:
        """The records of every partition that are not done (kafka-share-groups.sh calls them the lag)."""
        logs, now_us = self.records.logs, self.clock.now_us
        return [
            partition_lag(logs.end(partition, now_us), self._leader.done(partition))
            for partition in self.partitions
        ]

    def committed_records(self) -> int:
        return sum(self._leader.done(partition) for partition in self.partitions)
