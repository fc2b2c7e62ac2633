"""A thread of group.protocol=streams (KIP-1071): the broker assigns the tasks.

While the broker says that the group is not ready (an assignment is delayed, topics are missing), the thread
polls and does nothing else: neither does it process records nor does it begin to run tasks that are restored
(StreamThread.runOnce, 4.4.0). The state updater, a thread of its own, restores on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from groupstorm.assignors.streams.groups import Task
from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.streams.group_member import StreamsGroupMember, ThreadFacts
from groupstorm.storms.streams.thread import StreamThread
from groupstorm.storms.world.consumer_group.process import ConsumerGroupProcess
from groupstorm.storms.world.fetch_pauses import pause_fetching, resume_fetching


class GroupThread(StreamThread):
    """A member of a streams group."""

    __slots__ = ("_config", "_group_member", "_ready")

    _group_member: StreamsGroupMember

    def _new_consumer(self, incarnation: int, config: ConsumerConfig) -> ConsumerGroupProcess:
        application = self._application
        self._config, self._ready = config, False
        return ConsumerGroupProcess(
            application.environment,
            self._instance.index,
            incarnation,
            config,
            self._instance.settings,
            self._new_member,
            self,
        )

    def _new_member(self, member_id: str, now_ms: int) -> StreamsGroupMember:
        instance, clock = self._instance, self._application.clock
        facts = ThreadFacts(
            str(instance.directory.process),
            self._application.topology,
            lambda: self._by_name(self.tasks.offsets(clock.now_us)),
            lambda: self._by_name(self.tasks.end_offsets(clock.now_us)),
            tags=tuple(sorted(instance.tags.items())),
        )
        self._group_member = StreamsGroupMember(self._config, member_id, facts, now_ms)
        return self._group_member

    def _by_name(self, offsets: Mapping[int, int]) -> dict[Task, int]:
        names = self._application.topology.in_group
        return {names[task]: offset for task, offset in offsets.items()}

    def before_taking(self) -> None:
        """Take over the assignment (onTasksAssigned)."""
        topology, (tasks, self._ready) = self._application.topology, self._group_member.assignment
        active, standby = topology.of_group(tasks.active), topology.of_group(tasks.standby)
        self.tasks.assigned(active, standby - active, self._application.clock.now_us)
        self._taken()

    def fetching(self, begun: Sequence[TopicPartition]) -> None:
        """Hold still while the group is not ready."""
        if self._ready:
            super().fetching(begun)
            inputs = self._application.topology.inputs
            resume_fetching(self.consumer, [part for task in self.tasks.running for part in inputs[task]])
        else:
            self.consumer.periodic_requests.settle_commits()
            moving = [part for part in self.work.partitions if not self.work.stands_still(part)]
            pause_fetching(self.consumer, moving)

    def _run_restored(self) -> None:
        if self._ready:
            super()._run_restored()

    def progressed(self) -> None:
        """The broker alone decides when tasks move."""

    def give_up_follow_ups(self) -> None:
        """The broker assigns for good: nobody asks for another rebalance."""
