"""A thread of the classic protocol: its assignor, as a member or as the leader, and follow-up rebalances."""

from __future__ import annotations

from groupstorm.assignors.streams.leader import Application, Rebalance
from groupstorm.assignors.userdata.streams import AssignorError
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.streams.assignor import StreamsPartitionAssignor
from groupstorm.storms.streams.application import StreamsApplication
from groupstorm.storms.streams.followups import FollowUps
from groupstorm.storms.streams.thread import StreamThread, ThreadInstance
from groupstorm.storms.world.consumer import VirtualConsumer
from groupstorm.trace.events import streams as events


class ClassicThread(StreamThread):
    """A member that takes JoinGroup and SyncGroup part in the assignment of tasks."""

    __slots__ = ("_assignor", "_follow_ups", "_member")

    _member: VirtualConsumer

    def __init__(
        self,
        application: StreamsApplication,
        instance: ThreadInstance,
        incarnation: int,
        config: ConsumerConfig,
    ) -> None:
        super().__init__(application, instance, incarnation, config)
        self._follow_ups = FollowUps(application, self._member, self.tasks)

    def _new_consumer(self, incarnation: int, config: ConsumerConfig) -> VirtualConsumer:
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
        self._follow_ups.schedule(info, follow_up)
        self._taken()

    def progressed(self) -> None:
        self._follow_ups.check_watched()

    def give_up_follow_ups(self) -> None:
        self._follow_ups.give_up()
