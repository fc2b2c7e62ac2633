"""A thread of an instance: a consumer whose partitions are tasks, which have state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Protocol

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.operations import CallbackKind, RunCallback
from groupstorm.clients.streams.state import ChangelogReader, StateDirectory
from groupstorm.clients.streams.tasks import TaskManager
from groupstorm.storms.scenario.settings import Settings
from groupstorm.storms.streams.application import StreamsApplication
from groupstorm.storms.world.consumer import VirtualConsumer
from groupstorm.storms.world.consumer_group.process import ConsumerGroupProcess
from groupstorm.storms.world.disturbances import pause_fetching, resume_fetching
from groupstorm.trace.events import streams as events

CLOSE = "close"
_CAUSES = {CallbackKind.REVOKED: "revoked", CallbackKind.LOST: "lost"}


class ThreadInstance(Protocol):
    """The instance of a thread. ``version``: the latest SubscriptionInfo that it knows; ``settings``: those
    of its release."""

    name: str
    index: int
    rack: str | None
    tags: Mapping[str, str]
    directory: StateDirectory
    settings: Settings
    version: int

    def state_released(self) -> None:
        """A thread has closed tasks: another one may be waiting for their state."""
        ...

    def thread_gone(self) -> None:
        """One of its threads has ended."""
        ...


class StreamThread(ABC):
    """``consumer`` is the member of the group; the thread adds tasks.

    It is its consumer's `RebalanceHooks` (Kafka: StreamsRebalanceListener).
    """

    def __init__(
        self,
        application: StreamsApplication,
        instance: ThreadInstance,
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
        self.consumer = self._new_consumer(incarnation, config)
        self.consumer.on_exit = self._exited
        self.work = self.consumer.work
        self._check_us: int | None = None

    @abstractmethod
    def _new_consumer(
        self, incarnation: int, config: ConsumerConfig
    ) -> VirtualConsumer | ConsumerGroupProcess: ...

    @property
    def alive(self) -> bool:
        return self.consumer.alive

    def start(self) -> None:
        self.consumer.start()

    def stop(self) -> None:
        self.consumer.stop()

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

    @abstractmethod
    def before_taking(self) -> None:
        """Take over the assignment: close, open and convert tasks."""

    def _taken(self) -> None:
        """The tasks are as the assignment says."""
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
        self.progressed()
        due_us = self.tasks.next_us(now_us)
        self._check_us = None if due_us is None else max(due_us, now_us + 1)
        if self._check_us is not None:
            self._application.clock.at(self._check_us, self._check_again, self._check_us)

    @abstractmethod
    def progressed(self) -> None:
        """Standbys may have come nearer to their active tasks."""

    @abstractmethod
    def give_up_follow_ups(self) -> None:
        """The thread asks for no more rebalances by itself."""

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
        self.give_up_follow_ups()
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
