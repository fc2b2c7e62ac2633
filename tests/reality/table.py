"""The table "how far is the answer from reality": real runs beside five seeds in virtual time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from statistics import median
from typing import Any, NamedTuple

from groupstorm.figures import Figures, FiguresAccumulator
from groupstorm.storms.runs.run import chosen_assignors
from groupstorm.storms.world.simulation import simulate
from groupstorm.trace.events.coordinator import GroupStateChanged
from groupstorm.trace.events.group_states import GroupState
from groupstorm.trace.events.member import PartitionsAssigned
from groupstorm.trace.events.scenario import ScenarioStarted
from groupstorm.trace.schema import Source
from tests.reality.cases import CASES, Case
from tests.storms.storms_in_memory import MemorySink

SEEDS = range(5)

#: The figures of the table, and the difference that counts as none beside 10 % of the value: 200 ms for one
#: time, as in `groupstorm compare --on`; a second of all partitions together; a second's records of the
#: member that has the most partitions.
FIGURES: dict[str, float] = {
    "generations": 0,
    "unowned_partition_seconds": 1.0,
    "unowned_max_seconds": 0.2,
    "dual_owner_seconds": 0.2,
    "moves": 0,
    "records_duplicated": 200,
    "lag_peak": 200,
    "staleness_max_seconds": 0.5,
}
_SHARE = 0.1

INSIDE, NEAR, OUTSIDE, UNKNOWN = "inside", "near", "outside", "not known"


class Line(NamedTuple):
    """One figure of one case: the virtual seeds' values, in order, and the real one."""

    case: str
    library: str
    figure: str
    virtual: Sequence[float]
    real: float | None

    @property
    def verdict(self) -> str:
        if self.real is None or not self.virtual:
            return UNKNOWN
        least, most = min(self.virtual), max(self.virtual)
        if least <= self.real <= most:
            return INSIDE
        tolerated = max(FIGURES[self.figure], _SHARE * max(abs(self.real), abs(most)))
        return NEAR if least - tolerated <= self.real <= most + tolerated else OUTSIDE


def lines(measured: dict[str, dict[str, Any]]) -> Iterator[Line]:
    """All lines of the cases that were measured, in the order of `CASES`."""
    for case in CASES:
        for name in case.libraries:
            if name in measured.get(case.name, {}):
                yield from _of(case, name, measured[case.name][name]["figures"])


def _of(case: Case, name: str, real: dict[str, Any]) -> Iterator[Line]:
    runs = [_virtual(case, name, seed) for seed in SEEDS]
    for figure in FIGURES:
        values = [value for run in runs if (value := getattr(run, figure)) is not None]
        yield Line(case.name, name, figure, sorted(values), real.get(figure))


def _virtual(case: Case, name: str, seed: int) -> Figures:
    """As the figures of the real runs were made: time without an owner, lag and ages count from the first
    complete assignment on, and every return of the group to Stable is a generation."""
    scenario, sink = case.scenario(name, seed), MemorySink()
    figures = simulate(scenario, chosen_assignors(scenario), sink)
    later = FiguresAccumulator(_first_complete_us(sink) + 1)
    later.add_all((time_us, Source(source), event) for time_us, source, event in sink.rows)
    found = later.figures()
    stable = [
        event
        for _, _, event in sink.rows
        if isinstance(event, GroupStateChanged) and event.state == GroupState.STABLE
    ]
    return replace(
        figures,
        generations=len(stable),
        unowned_partition_seconds=found.unowned_partition_seconds,
        unowned_max_seconds=found.unowned_max_seconds,
        lag_peak=found.lag_peak,
        staleness_max_seconds=found.staleness_max_seconds,
    )


def _first_complete_us(sink: MemorySink) -> int:
    """Every partition of these scenarios has its first owner before one of them is given up."""
    owned: set[str] = set()
    started = sink.rows[0][2]
    assert isinstance(started, ScenarioStarted)
    for time_us, _, event in sink.rows:
        if isinstance(event, PartitionsAssigned):
            owned.update(event.partitions)
            if owned >= set(started.partitions):
                return time_us
    raise AssertionError("not every partition had an owner")


def markdown(all_lines: Sequence[Line]) -> list[str]:
    """The summary by figure, then a table for each case."""
    return [*_summary(all_lines), *_tables(all_lines)]


def _summary(all_lines: Sequence[Line]) -> Iterator[str]:
    yield "| figure | runs | inside | near | outside |"
    yield "|---|---:|---:|---:|---:|"
    for figure in FIGURES:
        of_figure = [line.verdict for line in all_lines if line.figure == figure]
        counts = [of_figure.count(verdict) for verdict in (INSIDE, NEAR, OUTSIDE)]
        yield f"| `{figure}` | {sum(counts)} | {' | '.join(map(str, counts))} |"


def _tables(all_lines: Sequence[Line]) -> Iterator[str]:
    for case, of_case in groupby(all_lines, key=lambda line: line.case):
        yield from ("", f"**{case}**", "")
        yield f"| | {' | '.join(f'`{figure}`' for figure in FIGURES)} |"
        yield "|---" * (len(FIGURES) + 1) + "|"
        for library, of_library in groupby(of_case, key=lambda line: line.library):
            yield f"| {library} | {' | '.join(map(_cell, of_library))} |"


def _cell(line: Line) -> str:
    """The real value, then the virtual median and range; the real value is bold if it is outside."""
    real = _number(line.real)
    marked = {OUTSIDE: f"**{real}**", NEAR: f"*{real}*"}.get(line.verdict, real)
    return f"{marked} : {_spread(line.virtual)}"


def _spread(values: Sequence[float]) -> str:
    if not values:
        return "-"
    if values[0] == values[-1]:
        return _number(values[0])
    return f"{_number(median(values))} ({_number(values[0])} to {_number(values[-1])})"


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    if value == int(value) or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
