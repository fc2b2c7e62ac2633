"""The CPU time of an assignor's answers in growing groups: empty start, one more member, a tenth leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from groupstorm.assignors.check.history import HistoryStep, SimulatedGroup, StepKind
from groupstorm.assignors.contract import Assignor

#: If a phase takes longer than this, no larger group is measured.
ENOUGH_MS = 1_500

TOPICS = 10


class GroupSize(NamedTuple):
    """Members that all subscribe to `TOPICS` topics of ``partitions`` partitions in all."""

    members: int
    partitions: int


SIZES: Sequence[GroupSize] = (GroupSize(100, 1_000), GroupSize(1_000, 10_000), GroupSize(2_000, 100_000))


class Speed(NamedTuple):
    """CPU milliseconds of the ``assign`` calls of each phase; None if there was no answer."""

    size: GroupSize
    empty_start_ms: float | None
    one_more_ms: float | None
    tenth_leaves_ms: float | None


def measure(
    assignor: Assignor, cpu_ns: Callable[[], int], sizes: Sequence[GroupSize] = SIZES
) -> Iterator[Speed]:
    """A row for every size until one takes too long. ``cpu_ns``: the CPU time used so far."""
    for size in sizes:
        row = _measure(assignor, cpu_ns, size)
        yield row
        phases = (row.empty_start_ms, row.one_more_ms, row.tenth_leaves_ms)
        if any(ms is None or ms > ENOUGH_MS for ms in phases):
            return


def _measure(assignor: Assignor, cpu_ns: Callable[[], int], size: GroupSize) -> Speed:
    names = tuple(f"topic-{number}" for number in range(TOPICS))
    group = SimulatedGroup(assignor, dict.fromkeys(names, size.partitions // TOPICS))

    phases = (
        [HistoryStep(StepKind.JOIN, f"member-{number}", names) for number in range(size.members)],
        [HistoryStep(StepKind.JOIN, f"member-{size.members}", names)],
        [HistoryStep(StepKind.LEAVE, f"member-{number}") for number in range(0, size.members, 10)],
    )
    spent: list[float | None] = [None] * len(phases)
    for phase, steps in enumerate(phases):
        for step in steps:
            group.take(step)
        spent[phase] = _settle(group, cpu_ns)
        if spent[phase] is None:
            break
    return Speed(size, *spent)


def _settle(group: SimulatedGroup, cpu_ns: Callable[[], int]) -> float | None:
    """All rounds of the change, or None at the first without an answer."""
    spent_ns = 0
    for _ in range(2 if group.cooperative else 1):
        begun_ns = cpu_ns()
        round_ = group.ask()
        spent_ns += cpu_ns() - begun_ns
        if round_.refusal is not None:
            return None
        if not group.hand_out(round_):
            break
    return round(spent_ns / 1e6, 3)
