"""An instance of a Kafka Streams application in virtual time: a process whose threads are members.

A thread is a consumer whose partitions are tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from groupstorm.assignors.streams.leader import Application, Rebalance
from groupstorm.assignors.userdata import TopicPartition
from groupstorm.assignors.userdata.streams import AssignorError
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.operations import CallbackKind, RunCallback
from groupstorm.clients.streams.assignor import StreamsPartitionAssignor
from groupstorm.clients.streams.changelogs import ChangelogReader
from groupstorm.clients.streams.directory import StateDirectory
from groupstorm.clients.streams.tasks import TaskManager
from groupstorm.storms.streams.application import StreamsApplication
from groupstorm.storms.streams.application_settings import client_tags, rack_of, thread_config
from groupstorm.storms.streams.followups import FollowUps
from groupstorm.storms.world.consumer import VirtualConsumer
from groupstorm.storms.world.fetch_pauses import pause_fetching, resume_fetching
from groupstorm.trace.events import streams as events

CLOSE = "close"
_CAUSES = {CallbackKind.REVOKED: "revoked", CallbackKind.LOST: "lost"}


class StreamsInstance:
    """A process of the scenario. ``directory``: the state on its host; ``version``: its release.

    ``on_gone`` is called before ``on_exit``, which belongs to the scenario's steps.
    """

    def __init__(
        self,
        application: StreamsApplication,
        index: int,
        name: str,
        incarnation: int,
        directory: StateDirectory,
        version: int,
        on_gone: Callable[[StreamsInstance], None],
    ) -> None:
        self.index = index
        self.name = name
        self.directory = directory
        self.version = version
        self.rack = rack_of(application.settings, index)
        self.tags = client_tags(application.settings, self.rack)
        self.alive = True
        self.started = False
        self.on_exit: Callable[[], None] | None = None
        self._application = application
        self._on_gone = on_gone
        self._cause = "failed"
        threads = range(1, application.settings.integer("num.stream.threads") + 1)
        self.threads = [self._thread(f"{name}-StreamThread-{number}", incarnation) for number in threads]

    def _thread(self, name: str, incarnation: int) -> StreamThread:
        application = self._application
        topics = tuple(application.environment.topics.at(application.clock.now_us))
        config = thread_config(application.settings, application.group, topics, name, self.rack)
        return StreamThread(application, self, incarnation, config)

    def start(self) -> None:
        """KafkaStreams.start()."""
        self.started = True
        self._application.emit(
            events.InstanceStarted(
                self._application.group, self.name, self.rack, len(self.threads), self.version
            )
        )
        for thread in self.threads:
            thread.start()

    def stop(self) -> None:
        """KafkaStreams.close(): every thread closes."""
        self._cause = "closed"
        for thread in self.threads:
            thread.stop()

    def crash(self) -> None:
        """SIGKILL."""
        self._cause = "crashed"
        for thread in self.threads:
            thread.crash()

    def state_released(self) -> None:
        """A thread has closed tasks: another one may be waiting for their state."""
        now_us = self._application.clock.now_us
        for thread in self.threads:
            if thread.alive and thread.tasks.waits_for_state:
                thread.tasks.try_locks(now_us)
                thread.check_progress()

    def thread_gone(self) -> None:
        """One of its threads has ended."""
        self.state_released()
        if self.alive and not any(thread.alive for thread in self.threads):
            self.alive = False
            if self.started:
                self._application.emit(events.InstanceGone(self._application.group, self.name, self._cause))
            self._on_gone(self)
            if self.on_exit is not None:
                self.on_exit()


class StreamThread:
    """``consumer`` is the member of the group; the thread adds tasks and follow-up rebalances.

    It is its consumer's `RebalanceHooks` (Kafka: StreamsRebalanceListener).
    """

    __slots__ = (
        "_application",
        "_check_us",
        "_instance",
        "assignor",
        "consumer",
        "follow_ups",
        "name",
        "tasks",
        "work",
    )

    def __init__(
        self,
        application: StreamsApplication,
        instance: StreamsInstance,
        incarnation: int,
        config: ConsumerConfig,
    ) -> None:
        self._application = application
        self._instance = instance
        self.name = config.client_id
        identity = (config.group_id, config.client_id, instance.name)
        reader = ChangelogReader(
            application.restore_rate, application.changelog_end, application.follow_records
        )
        self.tasks = TaskManager(
            identity,
            application.topology,
            instance.directory,
            reader,
            application.changelog_end,
            application.record_bytes,
            self._emit,
            self._changelog_read,
        )
        self.assignor = StreamsPartitionAssignor(
            instance.directory.process,
            instance.version,
            instance.tags,
            lambda: self.tasks.offset_sums(application.clock.now_us),
            self._as_leader,
            lambda: application.clock.now_us // 1000,
            self._assigned,
            self._version_changed,
        )
        self.consumer = VirtualConsumer(
            application.environment,
            instance.index,
            incarnation,
            config,
            [self.assignor],
            application.settings,
            self,
        )
        self.consumer.on_exit = self._exited
        self.work = self.consumer.work
        self.follow_ups = FollowUps(application, self.consumer, self.tasks)
        self._check_us: int | None = None

    @property
    def alive(self) -> bool:
        return self.consumer.alive

    def start(self) -> None:
        self.consumer.start()

    def stop(self) -> None:
        self.consumer.stop()

    # -- as leader -------------------------------------------------------------------------------

    def _as_leader(self) -> Application:
        return self._application.as_leader(self._instance.directory.process, self._instance.version)

    def _assigned(self, found: Rebalance) -> None:
        self._application.assigned(self.name, self.consumer.membership.generation.id, found)

    def _version_changed(self, version: int, cause: str) -> None:
        self._emit(events.SubscriptionVersionChanged(self._application.group, self.name, version, cause))

    # -- partitions go ---------------------------------------------------------------------------

    def before_giving_up(self, operation: RunCallback) -> Mapping[TopicPartition, int]:
        """Suspend the tasks; commit revoked ones (TaskManager.handleRevocation)."""
        closing = operation.cause == CLOSE
        now_us, cause = self._application.clock.now_us, _CAUSES[operation.kind]
        if closing:
            cause = CLOSE
        if cause == "lost":
            self.tasks.lost(now_us)
        else:
            self.tasks.suspend(self._application.topology.reading(operation.partitions), cause, now_us)
        if closing or operation.kind is not CallbackKind.REVOKED:
            return {}
        owned = self.work.positions(now_us)
        return {part: position for part, position in owned.items() if part in operation.partitions}

    def given_up(self, partitions: Sequence[TopicPartition]) -> None:
        """The thread does not process these any more: their changelogs stand still."""
        self._processing_changed(self._application.topology.reading(partitions))

    # -- partitions come -------------------------------------------------------------------------

    def before_taking(self) -> None:
        """Take over the assignment: close, open and convert tasks, schedule the next rebalance."""
        info, follow_up = self.assignor.on_assignment(self.consumer.membership.user_data)
        if info.error_code not in (AssignorError.NONE, AssignorError.IMBALANCED_ASSIGNMENT):
            # StreamsRebalanceListener throws it out of poll(): the thread dies
            self.consumer.membership.failure = "TaskAssignmentException"
            return
        topology = self._application.topology
        active, standby = topology.numbers(info.active), topology.numbers(info.standby)
        self.tasks.assigned(active, standby - active, self._application.clock.now_us)
        self.follow_ups.schedule(info, follow_up)
        self._instance.state_released()
        self.check_progress()

    def start_positions(self, committed: tuple[int, ...]) -> tuple[int, ...]:
        """Kafka Streams begins at the beginning if nothing is committed (auto.offset.reset)."""
        return tuple(max(0, offset) for offset in committed)

    def fetching(self, begun: Sequence[TopicPartition]) -> None:
        """Input positions are known: pause partitions of tasks that still restore, run restored tasks."""
        topology = self._application.topology
        ready = set(self.tasks.restored)
        waiting = [
            part for task in topology.reading(begun) if task not in ready for part in topology.inputs[task]
        ]
        pause_fetching(self.consumer, [part for part in waiting if part in begun])
        self._run_restored()

    def _run_restored(self) -> None:
        """Run the tasks whose state is complete and whose input positions are known."""
        application, topology = self._application, self._application.topology
        now_us = application.clock.now_us
        ready = [
            task for task in self.tasks.restored if all(part in self.work for part in topology.inputs[task])
        ]
        if not ready:
            return
        resume_fetching(self.consumer, [part for task in ready for part in topology.inputs[task]])
        for task in ready:
            self.tasks.run(task, now_us)
            application.task_runs(task, self.name, self.work)
        self._processing_changed(ready)

    def _processing_changed(self, tasks: Sequence[int]) -> None:
        """Changelogs grow at other rates from now on: what their readers have computed is out of date."""
        if tasks:
            self._application.processing_changed(tasks)

    # -- restoration and standbys ----------------------------------------------------------------

    def check_progress(self) -> None:
        """Restorations and standbys may have come to their end."""
        if not self.alive:
            return
        now_us = self._application.clock.now_us
        self.tasks.progress(now_us)
        self._run_restored()
        self.follow_ups.check_watched()
        due_us = self.tasks.next_us(now_us)
        self._check_us = None if due_us is None else max(due_us, now_us + 1)
        if self._check_us is not None:
            self._application.clock.at(self._check_us, self._check_again, self._check_us)

    def _check_again(self, due_us: int) -> None:
        if self._check_us == due_us:
            self.check_progress()

    # -- the end of it ---------------------------------------------------------------------------

    def crash(self) -> None:
        if self.alive:
            held = self.tasks.held
            self._leave_state("crash")
            self.consumer.crash()
            self._processing_changed(held)

    def _exited(self) -> None:
        self._leave_state("close")
        self._instance.thread_gone()

    def _leave_state(self, cause: str) -> None:
        """Leave the state of all tasks on the host's disk."""
        self.tasks.gone(cause, self._application.clock.now_us)
        self._check_us = None
        self.follow_ups.drop()
        self._application.invariants.gone(self.name)

    def finish(self) -> None:
        """The run is over: count what was read so far."""
        self.tasks.account_for_standbys(self._application.clock.now_us)
        for task in self.tasks.running:
            self._task_stops(task)

    # -- events ----------------------------------------------------------------------------------

    def _changelog_read(self, task: int, active: bool, records: int) -> None:
        self._application.changelog_read(task, active, records, self._instance.rack)

    def _task_stops(self, task: int) -> None:
        self._application.task_stops(task, self.name, self.work, self._instance.rack)

    def _emit(self, event: events.Event) -> None:
        if isinstance(event, events.TaskSuspended):
            self._task_stops(self._application.topology.named(event.task))
        self._application.emit(event)
