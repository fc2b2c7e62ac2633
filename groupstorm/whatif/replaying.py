"""Replays of a scenario in virtual time, over seeds and on all cores: their rounds and their figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from groupstorm.figures.accumulator import FiguresAccumulator
from groupstorm.figures.table import Figures
from groupstorm.storms.runs.run import chosen_assignors
from groupstorm.storms.runs.several import cores
from groupstorm.storms.runs.worker_processes import map_in_processes
from groupstorm.storms.scenario.files import load
from groupstorm.storms.world.simulation import simulate
from groupstorm.trace.events.coordinator import GroupStateChanged
from groupstorm.trace.events.group_states import GroupState
from groupstorm.trace.events.imported import MembersBack, MembersGone
from groupstorm.trace.rows import TracedEvent, TraceEntry
from groupstorm.trace.schema import Source
from groupstorm.whatif.rounds import EpochReader, Round, RoundReader


class Replay(NamedTuple):
    """One seed's replay. ``figures``: of the whole run; ``lived``: until its last member went for good."""

    seed: int
    rounds: tuple[Round, ...]
    figures: Figures
    lived: Figures


class RoundSink:
    """Takes the events of a run for their rounds, and for the figures of the group while it had members."""

    def __init__(self) -> None:
        self._lived = LivedFigures()
        self._now_us = 0
        self._by_state = RoundReader()
        self._epochs = EpochReader()

    def add(self, time_us: int, source: Source, event: TracedEvent) -> None:
        self.add_all([(time_us, source, event)])

    def add_all(self, entries: Iterable[TraceEntry]) -> None:
        for time_us, source, event in entries:
            self._now_us = time_us
            self._lived.add((time_us, source, event))
            if isinstance(event, GroupStateChanged):
                self._by_state.add(time_us, event)
            else:
                self._epochs.add(time_us, event)

    def close(self) -> None:
        """The last epoch of a consumer group ends with the run."""
        self._epochs.finish()

    def lived(self) -> Figures:
        """To be called once, at the end."""
        return self._lived.figures(self._now_us)

    @property
    def rounds(self) -> tuple[Round, ...]:
        """The epochs of a consumer group; the rounds of a classic one."""
        return tuple(self._epochs.rounds or self._by_state.rounds)


def replay(order: tuple[str, str, int]) -> Replay:
    """Run one seed of a variant of a scenario file. ``order``: the file, the variant, the seed."""
    path, variant, seed = order
    scenario = load(path).resolve(variant, seed, {})
    sink = RoundSink()
    figures = simulate(scenario, chosen_assignors(scenario), sink)
    sink.close()
    return Replay(seed, sink.rounds, figures, sink.lived())


def replay_seeds(
    path: str, variant: str, seeds: Sequence[int], progress: Callable[[int, int], None]
) -> list[Replay]:
    """Run all seeds. ``progress``: how many are done, and how many there are."""
    orders = [(path, variant, seed) for seed in seeds]
    found = []
    for one in map_in_processes(replay, orders, max(1, min(len(orders), cores()))):
        found.append(one)
        progress(len(found), len(orders))
    return found


class LivedFigures:
    """A time without members counts, as in a storm, if somebody comes back after it."""

    def __init__(self) -> None:
        self._figures = FiguresAccumulator()
        #: When the members had gone, and the rows since then; None if the group has members.
        self.gone_us: int | None = None
        self._since_gone: list[TraceEntry] = []

    def add(self, entry: TraceEntry) -> None:
        time_us, _, event = entry
        if _is_gone(event):
            self.gone_us = time_us if self.gone_us is None else self.gone_us
        elif _is_back(event):
            self._come_back()
        if isinstance(event, MembersGone | MembersBack):
            return  # with which the figures of an import leave the time out
        if self.gone_us is None:
            self._figures.add(*entry)
        else:
            self._since_gone.append(entry)

    def _come_back(self) -> None:
        self.gone_us = None
        for one in self._since_gone:
            self._figures.add(*one)
        self._since_gone.clear()

    @property
    def owned_from_us(self) -> int | None:
        """See `FiguresAccumulator`."""
        return self._figures.owned_from_us

    def figures(self, ended_us: int) -> Figures:
        """``ended_us``: the time of the last row. To be called once."""
        return self._figures.figures(ended_us if self.gone_us is None else self.gone_us)


def _is_gone(event: object) -> bool:
    is_empty = isinstance(event, GroupStateChanged) and event.state == GroupState.EMPTY
    return is_empty or isinstance(event, MembersGone)


def _is_back(event: object) -> bool:
    return isinstance(event, GroupStateChanged | MembersBack) and not _is_gone(event)
