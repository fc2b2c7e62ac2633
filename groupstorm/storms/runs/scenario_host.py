"""The world that hosts a run, virtual or real, as the run's steps and checks see it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.storms.checks.invariants import InvariantChecks
from groupstorm.storms.checks.settling import FinalState, Owner
from groupstorm.storms.records.positions import Records
from groupstorm.storms.records.rates import RecordRateRows, Timetable
from groupstorm.storms.scenario.files import ResolvedScenario
from groupstorm.storms.scenario.settings import Settings
from groupstorm.storms.share.checks import ShareChecks
from groupstorm.trace.rows import TracedEvent
from groupstorm.trace.schema import Source


class Pausable(Protocol):
    """The pauses of a process: one of the whole process, or one long batch."""

    def pause(self, duration_us: int) -> None: ...

    def busy(self, duration_us: int) -> None: ...


class Process(Protocol):
    """One incarnation of a process: a consumer, or an instance of a Kafka Streams application.

    ``index`` is its place in the group; ``on_exit`` is called when the process is gone.
    """

    index: int
    name: str
    alive: bool
    started: bool
    on_exit: Callable[[], None] | None

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def crash(self) -> None: ...


class ConsumerProcess(Process, Protocol):
    """A consumer: a member of the group, which owns partitions."""

    @property
    def work(self) -> Owner: ...

    @property
    def pauses(self) -> Pausable: ...

    def disconnect(self, duration_us: int) -> None: ...


class StepHost(Protocol):
    """The world in which the steps of a scenario are taken."""

    scenario: ResolvedScenario
    settings: Settings
    seed: int
    group: str

    @property
    def clock(self) -> Timetable: ...

    @property
    def consumers(self) -> Mapping[str, ConsumerProcess]:
        """The members of the group by name."""
        ...

    @property
    def processes(self) -> Mapping[str, Process]:
        """The processes that steps start and stop: consumers, or instances that hold them as threads."""
        ...

    def new_process(self, index: int, name: str) -> Process: ...

    def use_release(self, number: int) -> None:
        """Processes that start from now on have the settings of this release."""
        ...

    def add_partitions(self, topic: str, count: int) -> None: ...

    def trace(self, source: Source, event: TracedEvent) -> None:
        """Emit an event that happens now."""
        ...

    @property
    def partitions(self) -> tuple[TopicPartition, ...]: ...

    def group_lags(self) -> list[int]:
        """The lag of every partition as an autoscaler sees it: from the committed offset to the log's end."""
        ...

    def committed_records(self) -> int:
        """Records that the group has committed, over all partitions."""
        ...


def member_names(name: str, each: int) -> list[str]:
    """The client ids of the ``each`` consumers of the process ``name``, numbered as Spring does."""
    return [name] if each == 1 else [f"{name}-{number}" for number in range(each)]


def consumers_of(host: StepHost, process: Process) -> list[ConsumerProcess]:
    """The consumer that the process is, those of a pod, or those of a Streams instance's threads."""
    each = host.settings.integer("members_per_pod")
    if each > 1:
        return [host.consumers[name] for name in member_names(process.name, each) if name in host.consumers]
    threads = f"{process.name}-StreamThread-"
    return [
        consumer
        for name, consumer in host.consumers.items()
        if name == process.name or name.startswith(threads)
    ]


def partitions_owned(host: StepHost, process: Process) -> int:
    """The number of partitions that the process owns."""
    return sum(len(consumer.work.partitions) for consumer in consumers_of(host, process))


class ScenarioHost(StepHost, FinalState, Protocol):
    """The world in which a scenario runs, with what its figures and its checks need."""

    records: Records
    rate_rows: RecordRateRows

    @property
    def invariants(self) -> InvariantChecks | ShareChecks: ...

    @property
    def requests(self) -> Mapping[tuple[str, str | None], int]:
        """(API, error) -> number of responses."""
        ...

    @property
    def follow_ups(self) -> bool:
        """Whether members that are at rest will ask for another rebalance by themselves."""
        ...

    def caught_up(self) -> bool:
        """Whether all records have been processed."""
        ...
