"""The threads of both group protocols.

A thread of the classic protocol has an assignor, as a member and as the leader, and asks for rebalances by
itself. With group.protocol=streams (KIP-1071) the broker assigns the tasks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from groupstorm.assignors.streams.draft import wants_rebalance
from groupstorm.assignors.streams.groups import Task
from groupstorm.assignors.streams.leader import Application, Rebalance
from groupstorm.assignors.userdata import TopicPartition
from groupstorm.assignors.userdata.streams import AssignmentInfo, AssignorError
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.error_tables import RejoinCause
from groupstorm.clients.member_session import MemberState
from groupstorm.clients.streams.assignor import FollowUp, StreamsPartitionAssignor
from groupstorm.clients.streams.group_member import StreamsGroupMember, ThreadFacts
from groupstorm.history.tasks import PROBING
from groupstorm.storms.streams.thread import StreamThread
from groupstorm.storms.world.consumer import VirtualConsumer
from groupstorm.storms.world.consumer_group.process import ConsumerGroupProcess
from groupstorm.storms.world.disturbances import pause_fetching, resume_fetching
from groupstorm.trace.events import streams as events


class ClassicThread(StreamThread):
    """A member that takes JoinGroup and SyncGroup part in the assignment of tasks."""

    _member: VirtualConsumer

    def _new_consumer(self, incarnation: int, config: ConsumerConfig) -> VirtualConsumer:
        self._next: FollowUp | None = None
        self._watched: set[int] = set()
        self._given_up = False
        application, instance = self._application, self._instance
        self._assignor = StreamsPartitionAssignor(
            instance.directory.process,
            instance.version,
            instance.tags,
            lambda: self.tasks.offset_sums(application.clock.now_us),
            self._as_leader,
            lambda: application.clock.now_us // 1000,
            self._assigned,
            self._version_changed,
        )
        self._member = VirtualConsumer(
            application.environment,
            instance.index,
            incarnation,
            config,
            [self._assignor],
            self._instance.settings,
            self,
        )
        return self._member

    # -- as leader -------------------------------------------------------------------------------

    def _as_leader(self) -> Application:
        return self._application.as_leader(self._instance.directory.process, self._instance.version)

    def _assigned(self, found: Rebalance) -> None:
        self._application.assigned(self.name, self._member.membership.generation.id, found)

    def _version_changed(self, version: int, cause: str) -> None:
        self._emit(events.SubscriptionVersionChanged(self._application.group, self.name, version, cause))

    # -- as member -------------------------------------------------------------------------------

    def before_taking(self) -> None:
        """Take over the assignment, and schedule the next rebalance."""
        membership, topology = self._member.membership, self._application.topology
        info, follow_up = self._assignor.on_assignment(membership.user_data)
        if info.error_code not in (AssignorError.NONE, AssignorError.IMBALANCED_ASSIGNMENT):
            # StreamsRebalanceListener throws it out of poll(): the thread dies
            membership.failure = "TaskAssignmentException"
            return
        active, standby = topology.numbers(info.active), topology.numbers(info.standby)
        self.tasks.assigned(active, standby - active, self._application.clock.now_us)
        self._schedule(info, follow_up)
        self._taken()

    # -- the next rebalance that it will ask for: every assignment brings another schedule ---------

    def _schedule(self, info: AssignmentInfo, follow_up: FollowUp | None) -> None:
        """Take over what a new assignment says. A thread asks once the time is past (StreamThread)."""
        self._drop()
        if follow_up is None or (self._given_up and follow_up.cause in PROBING):
            return
        application, clock = self._application, self._application.clock
        self._next = follow_up
        application.following_up.add(self)
        wait_us = None
        if follow_up.at_ms is None:
            listed = application.topology.numbers(info.watch)
            self._watched = listed or set(self.tasks.standbys)
        else:
            due_us = max(clock.now_us, (follow_up.at_ms + 1) * 1000 if follow_up.at_ms else 0)
            wait_us = due_us - clock.now_us
            clock.at(due_us, self._ask, follow_up)
        application.emit(
            events.FollowUpScheduled(application.group, self._member.name, wait_us, follow_up.cause)
        )

    def _drop(self) -> None:
        """The thread asks for nothing any more."""
        self._next = None
        self._watched = set()
        self._application.following_up.discard(self)

    def give_up_follow_ups(self) -> None:
        """Probe no more, whatever assignments say: the run is to end."""
        self._given_up = True
        self._drop()

    def progressed(self) -> None:
        """KIP-441's draft: ask for a rebalance if the standbys that the thread was told to watch have caught
        up."""
        if self._next is None or not self._watched or self._member.membership.rejoin_needed:
            return
        gaps = self.tasks.gaps(self._application.clock.now_us)
        if wants_rebalance(gaps, self._watched & gaps.keys(), self._application.near_zero):
            self._ask(self._next)

    def _ask(self, follow_up: FollowUp) -> None:
        """enforceRebalance, at the next poll(). A rebalance that is under way brings another schedule."""
        application, consumer = self._application, self._member
        if self._next is not follow_up or consumer.membership.state is not MemberState.STABLE:
            return
        self._drop()
        application.emit(events.FollowUpDue(application.group, consumer.name, follow_up.cause))
        application.invariants.asked(consumer.name)
        consumer.membership.request_rejoin(RejoinCause.FOLLOW_UP)
        consumer.nudge()


class GroupThread(StreamThread):
    """A member of a streams group."""

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
