"""Values of settings that let a group settle, or keep up: found by running the scenario again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from groupstorm.assignors.contract import Assignor
from groupstorm.figures import Figures
from groupstorm.figures.overload import lag_growth
from groupstorm.storms.checks.settling import SETTLED_LATE
from groupstorm.storms.checks.verdicts import HELD, SETTLES
from groupstorm.storms.runs.run import chosen_assignors
from groupstorm.storms.scenario.files import ResolvedScenario
from groupstorm.storms.scenario.settings import Settings
from groupstorm.storms.scenario.slow_work import Machines, SlowRecordList
from groupstorm.storms.scenario.topics import topic_partitions
from groupstorm.storms.world.simulation import simulate
from groupstorm.trace.writer import NullSink

MOST_EVENTS: Final = 400_000
"""A run with more events is not repeated a dozen times to find a remedy."""

_DAY_MS: Final = 86_400_000
_NEAR_ENOUGH: Final = 64
"""The search ends when its two values differ by less than this part of the lower one."""
_CONCURRENCY_MAX: Final = 100
"""So many records at a time are looked for at most."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """The value nearest to the present one, as far as the search went, with which the group is mended."""

    setting: str
    now: int
    value: int
    is_upper_bound: bool
    """Whether the setting was lowered: then this is the largest value that was found to help."""
    lag_growth: float | None
    """Records a second by which the lag grows all the same; None if the group then keeps up."""


#: A setting, the furthest value to try, and the grain of the answer.
Search = tuple[str, int, int]


def remedies_for_livelock(scenario: ResolvedScenario) -> Iterator[Remedy]:
    """Values of single settings, each of which lets the group settle with the scenario's seed."""
    settings = scenario.settings
    longest_ms = settings.integer("group.max.session.timeout.ms")
    searches = [
        ("max.poll.interval.ms", _DAY_MS, 1000),
        *_smaller_batches(settings),
        ("session.timeout.ms", longest_ms, 1000),
    ]
    return _remedies(scenario, settles, searches)


def _smaller_batches(settings: Settings) -> list[Search]:
    """The search for max.poll.records, if a full batch takes as long as half of max.poll.interval.ms.

    It ends where a full batch takes a tenth of the interval: an application that polls for each record would
    take long to simulate, and nobody would run it.
    """
    batch_us = max(_batch_us(own) for own in settings.of_profiles())
    interval_us = settings.integer("max.poll.interval.ms") * 1000
    if 2 * batch_us < interval_us:
        return []
    records = settings.integer("max.poll.records")
    return [("max.poll.records", max(1, records * interval_us // (10 * batch_us)), 1)]


def _batch_us(settings: Settings) -> int:
    """The mean time that the application works on a full batch, on the slowest machine."""
    slow_records = settings.of_type("slow_records", SlowRecordList)
    machines = settings.of_type("machines", Machines)
    nanoseconds, _ = settings.distribution("process_ms").mean_and_variance()
    nanoseconds += sum(1000 * one.work_us // one.every for one in slow_records.records if one.every)
    factor = max([1000, *(one.factor for one in machines.machines)])
    records = settings.integer("max.poll.records")
    return records * nanoseconds * factor // (settings.integer("concurrency") * 1_000_000)


def remedies_for_overload(scenario: ResolvedScenario) -> Iterator[Remedy]:
    """Values of single settings, each of which lets the group keep up with the scenario's seed."""
    settings = scenario.settings
    partitions = sum(topic_partitions(settings).values())
    return _remedies(
        scenario,
        lambda figures: settles(figures) and lag_growth(figures) is None,
        [("members", max(partitions, settings.integer("members")), 1), ("concurrency", _CONCURRENCY_MAX, 1)],
    )


def _remedies(
    scenario: ResolvedScenario, is_mended: Callable[[Figures], bool], searches: Sequence[Search]
) -> Iterator[Remedy]:
    assignors = chosen_assignors(scenario)

    growths: dict[tuple[str, int], float | None] = {}

    def mends(setting: str, value: int) -> bool:
        figures = _again(with_settings(scenario, {setting: value}), assignors)
        growths[setting, value] = lag_growth(figures)
        return is_mended(figures)

    for setting, furthest, grain in searches:
        now = scenario.settings.integer(setting)
        found = _nearest(now, furthest, grain, partial(mends, setting))
        if found is not None:
            yield Remedy(setting, now, found, furthest < now, growths[setting, found])


def _nearest(now: int, furthest: int, grain: int, mends: Callable[[int], bool]) -> int | None:
    """The value nearest to ``now`` that mends, by bisection; None if the furthest does not, either."""
    if furthest == now or not mends(furthest):
        return None
    fails, helps = now, furthest
    while abs(helps - fails) > max(grain, min(helps, fails) // _NEAR_ENOUGH):
        middle = (fails + helps) // 2 // grain * grain
        if middle in (fails, helps):
            break
        if mends(middle):
            helps = middle
        else:
            fails = middle
    return helps


def _again(scenario: ResolvedScenario, assignors: Sequence[Assignor]) -> Figures:
    return simulate(scenario, assignors, NullSink())


def settles(figures: Figures) -> bool:
    """Whether the group came to rest, if late."""
    verdict = (figures.invariants or {}).get(SETTLES, HELD)
    return verdict == HELD or verdict.startswith(SETTLED_LATE)


def with_settings(scenario: ResolvedScenario, changes: dict[str, Any]) -> ResolvedScenario:
    """Give a scenario other values of some settings; its steps keep their times."""
    written = dict(scenario.settings.written())
    return replace(scenario, settings=Settings(("", {**written, **changes})))
