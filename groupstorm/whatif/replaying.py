"""Replays of a scenario in virtual time, over seeds and on all cores: their rounds and their figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from groupstorm.figures.table import Figures
from groupstorm.storms.runs.run import chosen_assignors
from groupstorm.storms.runs.several import cores
from groupstorm.storms.runs.worker_processes import map_in_processes
from groupstorm.storms.scenario.files import load
from groupstorm.storms.world.simulation import simulate
from groupstorm.trace.events.coordinator import GroupStateChanged
from groupstorm.trace.rows import TracedEvent, TraceEntry
from groupstorm.trace.schema import Source
from groupstorm.whatif.lived import LivedFigures
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
