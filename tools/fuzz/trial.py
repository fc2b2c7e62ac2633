"""One trial: a scenario runs in memory, and is checked while faults happen and after them.

Safety while faults happen and liveness after them are the invariants of every run; a run ends when the
group has settled, and `group_settles` is broken if it does not. For a share of the scenarios the exact
simulation of every heartbeat must give the same trace.
"""

from __future__ import annotations

import signal
import threading
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby, zip_longest
from types import FrameType
from typing import Any, Final

import yaml

from groupstorm.problems import InputError
from groupstorm.storms.checks.settling import kafkas_own
from groupstorm.storms.checks.verdicts import HELD
from groupstorm.storms.runs.run import chosen_assignors
from groupstorm.storms.scenario.files import ResolvedScenario, parse
from groupstorm.storms.world.simulation import simulate
from groupstorm.trace.rows import TracedEvent, TraceEntry
from groupstorm.trace.schema import Source
from tools.fuzz.drawing import Document

EQUAL_TRACES: Final = "exact_and_computed_traces_are_equal"
ENDS: Final = "the_run_ends"
NO_EXCEPTION: Final = "no_exception"

#: Time, source, event.
Rows = Sequence[tuple[int, str, Any]]

CPU_LIMIT_S: Final = 40
"""CPU time that a trial may take: scenarios are small, most take a hundredth of a second. While writes fail,
the members of a consumer group try again at once, each time with new targets: seven of them took 10 s."""

EXACT_CPU_LIMIT_S: Final = 60
"""CPU time of an exact simulation: a group that does not settle is followed for an hour, poll by poll."""


@dataclass(frozen=True, slots=True)
class Result:
    """The end of a trial. ``broken``: property -> what was found, in a sentence; empty if everything held.

    ``kafkas_own``: what Kafka itself does wrong and no check holds against the emulation, in a sentence.
    """

    broken: Mapping[str, str]
    kafkas_own: str | None = None

    @property
    def kind(self) -> str:
        """The first broken property: shrinking keeps it broken."""
        return next(iter(self.broken))


class TooLong(BaseException):
    """The trial has used up its CPU time, ``limit_s``; no `Exception`, so that it passes through handlers of
    errors."""

    def __init__(self, limit_s: float) -> None:
        super().__init__()
        self.limit_s = limit_s


def try_scenario(document: Document, fixed: Mapping[str, Any], exact: bool) -> Result:
    """Run the scenario. ``fixed``: settings as on the command line. ``exact``: compare with the exact
    simulation, too. Raises InputError for a scenario that cannot be run."""
    scenario = parse(yaml.safe_dump(document, sort_keys=False), "yaml", document["name"])
    resolved = scenario.resolve(None, None, fixed)
    own: str | None = None
    try:
        with _cpu_limit(CPU_LIMIT_S):
            rows, broken = _run(resolved, exact=False)
        own = kafkas_own(broken)
        if own is not None:
            broken = {}
        if not broken and exact:
            with _cpu_limit(EXACT_CPU_LIMIT_S):
                exact_rows, _ = _run(resolved, exact=True)
            broken = compare(rows, exact_rows)
    except TooLong as broken_off:
        broken = {ENDS: f"the run was broken off after {broken_off.limit_s:g} s of CPU time"}
    except InputError:
        raise
    except Exception as problem:  # noqa: BLE001  # whatever it is, it is a finding
        broken = {NO_EXCEPTION: _described(problem)}
    return Result(broken, own)


def _run(resolved: ResolvedScenario, exact: bool) -> tuple[list[TraceEntry], dict[str, str]]:
    sink = _Rows()
    figures = simulate(resolved, chosen_assignors(resolved), sink, exact)
    verdicts = figures.invariants or {}
    return sink.rows, {name: said for name, said in sorted(verdicts.items()) if said != HELD}


class _Rows:
    """A sink that keeps the rows in memory."""

    def __init__(self) -> None:
        self.rows: list[TraceEntry] = []

    def add(self, time_us: int, source: Source, event: TracedEvent) -> None:
        self.rows.append((time_us, source, event))

    def add_all(self, entries: Iterable[TraceEntry]) -> None:
        self.rows.extend(entries)

    def close(self) -> None:
        """Nothing to complete."""


def compare(computed: Rows, exact: Rows) -> dict[str, str]:
    """Compare instant by instant. Requests of several members that arrive in the same microsecond may come in
    another order; from there on the traces are not comparable."""
    for (time_us, ours), (exact_us, theirs) in zip(_instants(computed), _instants(exact), strict=False):
        if time_us != exact_us or ours != theirs:
            if time_us == exact_us and sorted(map(repr, ours)) == sorted(map(repr, theirs)):
                return {}
            own, other = _first_difference(ours, theirs)
            return {
                EQUAL_TRACES: f"at {time_us / 1000:g} ms the computed trace has {own}, "
                f"at {exact_us / 1000:g} ms the exact one has {other}"
            }
    if len(computed) != len(exact):
        return {EQUAL_TRACES: f"the computed trace has {len(computed)} rows, the exact one {len(exact)}"}
    return {}


def _first_difference(ours: Rows, theirs: Rows) -> tuple[Any, Any]:
    """The first events of two instants that differ; None if an instant has no more."""
    return next(
        (None if own is None else own[2], None if other is None else other[2])
        for own, other in zip_longest(ours, theirs)
        if own != other
    )


def _instants(rows: Rows) -> Iterator[tuple[int, list[tuple[int, str, Any]]]]:
    for time_us, entries in groupby(rows, key=lambda entry: entry[0]):
        yield time_us, list(entries)


def _described(problem: Exception) -> str:
    """The exception and the place that raised it."""
    frames = traceback.extract_tb(problem.__traceback__)
    where = f"{frames[-1].filename.rpartition('groupstorm/')[2]}:{frames[-1].name}" if frames else "?"
    return f"{type(problem).__name__} in {where}: {problem}"


@contextmanager
def _cpu_limit(limit_s: float) -> Iterator[None]:
    """`TooLong` in the block after ``limit_s``. Signals go to the main thread of a process only."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def break_off(_signal: int, _frame: FrameType | None) -> None:
        raise TooLong(limit_s)

    before = signal.signal(signal.SIGPROF, break_off)
    try:
        signal.setitimer(signal.ITIMER_PROF, limit_s)
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
