"""One thread of a Kafka Streams instance in virtual time: a consumer whose partitions are tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from groupstorm.assignors.streams.leader import Application, Rebalance
from groupstorm.assignors.userdata import TopicPartition
from groupstorm.assignors.userdata.streams import AssignorError
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.streams import events
from groupstorm.clients.streams.assignor import StreamsPartitionAssignor
from groupstorm.clients.streams.changelogs import ChangelogReader
from groupstorm.clients.streams.tasks import ThreadTasks
from groupstorm.storms.consumer import VirtualConsumer
from groupstorm.storms.records import names
from groupstorm.storms.streams.followups import FollowUps
from groupstorm.storms.streams.listener import TaskListener
from groupstorm.trace.schema import Source

if TYPE_CHECKING:
    from groupstorm.storms.streams.instance import StreamsInstance
    from groupstorm.storms.streams.world import StreamsWorld


class StreamThread(VirtualConsumer):
    """A member of the group; what it has beside a consumer are tasks, and follow-up rebalances."""

    __slots__ = (
        "_application",
        "_look_us",
        "assignor",
        "follow_ups",
        "instance",
        "tasks",
    )

    def __init__(
        self, application: StreamsWorld, instance: StreamsInstance, incarnation: int, config: ConsumerConfig
    ) -> None:
        self._application = application
        self.instance = instance
        who = (config.group_id, config.client_id, instance.name)
        reader = ChangelogReader(
            application.restore_rate, application.changelog_end, application.follow_records
        )
        self.tasks = ThreadTasks(
            who,
            application.topology,
            instance.directory,
            reader,
            application.changelog_end,
            application.record_bytes,
            self.tell,
            self._changelog_read,
        )
        self.assignor = StreamsPartitionAssignor(
            instance.directory.process,
            instance.version,
            instance.tags,
            lambda: self.tasks.offset_sums(application.clock.now_us),
            self._as_leader,
            lambda: application.clock.now_us // 1000,
            self._placed,
            self._version_changed,
        )
        super().__init__(application, instance.index, incarnation, config, [self.assignor])
        self._listener = TaskListener(self)
        self._look_us: int | None = None
        self.follow_ups = FollowUps(application, self)

    # -- what it knows as leader -----------------------------------------------------------------

    def _as_leader(self) -> Application:
        return self._application.as_leader(self.instance)

    def _placed(self, found: Rebalance) -> None:
        self._application.placed(self, found)

    def _version_changed(self, version: int, cause: str) -> None:
        self.tell(events.SubscriptionVersionChanged(self.config.group_id, self.name, version, cause))

    # -- assignments -----------------------------------------------------------------------------

    def suspend(self, partitions: Sequence[TopicPartition], cause: str) -> None:
        """These are about to be given up: their tasks stop."""
        now_us = self.clock.now_us
        if cause == "lost":
            self.tasks.lost(now_us)
        else:
            self.tasks.suspend(self._application.topology.reading(partitions), cause, now_us)

    def given_up(self, partitions: Sequence[TopicPartition]) -> None:
        """Nobody processes these any more: their changelogs stand still."""
        self._course_changed(self._application.topology.reading(partitions))

    def take_assignment(self) -> None:
        """What came with the assignment: tasks to close, to open, to turn over; the next rebalance."""
        info, follow_up = self.assignor.on_assignment(self.membership.user_data)
        if info.error_code not in (AssignorError.NONE, AssignorError.IMBALANCED_ASSIGNMENT):
            # StreamsRebalanceListener throws it out of poll(): the thread dies
            self.membership.failure = "TaskAssignmentException"
            return
        topology = self._application.topology
        active, standby = topology.numbers(info.active), topology.numbers(info.standby)
        now_us = self.clock.now_us
        self.tasks.assigned(active, standby - active, now_us)
        self.follow_ups.schedule(info, follow_up)
        self.instance.state_let_go()
        self.look()

    def fetching(self, begun: Sequence[TopicPartition]) -> None:
        """Input positions are known: pause what still restores, run what is restored."""
        topology = self._application.topology
        ready = set(self.tasks.restored)
        waiting = [
            part for task in topology.reading(begun) if task not in ready for part in topology.inputs[task]
        ]
        paused = tuple(part for part in waiting if part in begun)
        if paused:
            positions = self.work.stop(paused, self.clock.now_us)
            member_id = self.membership.generation.member_id
            self.tell(
                events.PartitionsPaused(self.config.group_id, self.name, member_id, names(paused), positions)
            )
        self._run_restored()

    def _run_restored(self) -> None:
        """Tasks whose state is complete and whose input positions are known."""
        now_us, topology = self.clock.now_us, self._application.topology
        ready = [
            task for task in self.tasks.restored if all(part in self.work for part in topology.inputs[task])
        ]
        if not ready:
            return
        standing = tuple(
            part for task in ready for part in topology.inputs[task] if self.work.stands_still(part)
        )
        if standing:
            positions = self.work.resume_some(standing, now_us)
            member_id = self.membership.generation.member_id
            self.tell(
                events.PartitionsResumed(
                    self.config.group_id, self.name, member_id, names(standing), positions
                )
            )
        for task in ready:
            self.tasks.run(task, now_us)
            self._application.task_runs(task, self)
        self._course_changed(ready)

    def _course_changed(self, tasks: Sequence[int]) -> None:
        """Changelogs grow otherwise from now on: forecasts of their readers are void."""
        if tasks:
            self._application.course_changed(tasks)

    # -- restoration and standbys ----------------------------------------------------------------

    def look(self) -> None:
        """Something may have come to its end: restorations, standbys that catch up."""
        if not self.alive:
            return
        now_us = self.clock.now_us
        self.tasks.progress(now_us)
        self._run_restored()
        self.follow_ups.look_after_watched()
        due_us = self.tasks.next_us(now_us)
        self._look_us = None if due_us is None else max(due_us, now_us + 1)
        if self._look_us is not None:
            self.clock.at(self._look_us, self._look_again, self._look_us)

    def _look_again(self, due_us: int) -> None:
        if self._look_us == due_us:
            self.look()

    # -- the end of it ---------------------------------------------------------------------------

    def crash(self) -> None:
        if self.alive:
            held = self.tasks.held
            self._gone("crash")
            super().crash()
            self._course_changed(held)

    def _exit(self) -> None:
        self._gone("close")
        super()._exit()
        self.instance.thread_gone()

    def _gone(self, cause: str) -> None:
        """Whatever it has is left to the host's disk."""
        self.tasks.gone(cause, self.clock.now_us)
        self._look_us = None
        self.follow_ups.drop()
        self._application.streams_checkers.gone(self.name)

    def end_of_run(self) -> None:
        """What was read so far counts."""
        self.tasks.account_for_standbys(self.clock.now_us)
        for task in self.tasks.running:
            self._application.task_stops(task, self)

    # -- what is told ----------------------------------------------------------------------------

    def _changelog_read(self, task: int, active: bool, records: int) -> None:
        self._application.changelog_read(task, active, records, self.instance.rack)

    def tell(self, event: events.Event) -> None:
        if isinstance(event, events.TaskSuspended):
            self._application.task_stops(self._application.topology.named(event.task), self)
        self.world.trace(Source.MEMBER, event)
