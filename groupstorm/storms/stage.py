"""What a scenario's steps and the checks of a run need of the world they act in, virtual or real."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.storms.records import Records, Work
from groupstorm.storms.scenario import ResolvedScenario
from groupstorm.storms.settings import Settings
from groupstorm.trace.rows import TracedEvent
from groupstorm.trace.schema import Source

if TYPE_CHECKING:
    from groupstorm.storms.checkers import Checkers


class Timetable(Protocol):
    """Something that calls back; times in microseconds since the scenario began."""

    @property
    def now_us(self) -> int: ...

    def at(self, time_us: int, action: Callable[..., None], *arguments: Any) -> None: ...

    def after(self, delay_us: int, action: Callable[..., None], *arguments: Any) -> None: ...


class CanStandStill(Protocol):
    """How a process can be made to stand still."""

    def pause(self, duration_us: int) -> None: ...

    def busy(self, duration_us: int) -> None: ...


class Process(Protocol):
    """One incarnation of a process: a consumer, or an instance of a Kafka Streams application.

    ``index``: its place; ``on_exit`` is called when it is gone.
    """

    index: int
    name: str
    alive: bool
    started: bool
    on_exit: Callable[[], None] | None

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def crash(self) -> None: ...


class Owner(Process, Protocol):
    """One that owns partitions itself."""

    work: Work

    @property
    def standstill(self) -> CanStandStill: ...

    def disconnect(self, duration_us: int) -> None: ...


class Stage(Protocol):
    """Where a scenario is played."""

    scenario: ResolvedScenario
    settings: Settings
    seed: int
    group: str
    records: Records
    checkers: Checkers

    @property
    def requests(self) -> Mapping[tuple[str, str | None], int]:
        """(API, error) -> how many answers."""
        ...

    @property
    def clock(self) -> Timetable: ...

    @property
    def consumers(self) -> Mapping[str, Owner]: ...

    @property
    def processes(self) -> Mapping[str, Process]: ...

    def new_process(self, index: int, name: str) -> Process: ...

    def add_partitions(self, topic: str, count: int) -> None: ...

    def trace(self, source: Source, event: TracedEvent) -> None: ...

    @property
    def partitions(self) -> tuple[TopicPartition, ...]: ...

    @property
    def settled(self) -> bool: ...

    @property
    def follow_ups(self) -> bool: ...

    @property
    def unanswered(self) -> Sequence[str]: ...

    def generation_of(self, name: str) -> int | None: ...

    def lag(self) -> int: ...
