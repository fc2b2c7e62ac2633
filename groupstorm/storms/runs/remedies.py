"""Values of settings that let a group settle, confirmed by running the scenario again.

A value counts if the group is mended with several seeds, and stays so for longer than its timeouts last: one
that only moves an expiry behind the end of the run is no remedy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from groupstorm.figures import Figures
from groupstorm.figures.overload import lag_growth
from groupstorm.figures.unsettled import HELD, SETTLED_LATE, SETTLES
from groupstorm.storms.checks.settling import OBSERVED_US
from groupstorm.storms.runs.contradictions import has_fatal_record, outlasts_polls
from groupstorm.storms.runs.load import longest_work_us, record_ns
from groupstorm.storms.runs.run import chosen_assignors
from groupstorm.storms.runs.step_runner import Progress
from groupstorm.storms.scenario.files import ResolvedScenario
from groupstorm.storms.scenario.settings import Settings
from groupstorm.storms.world.simulation import simulate
from groupstorm.trace.events.coordinator import MemberRemoved
from groupstorm.trace.events.member import RejoinRequested
from groupstorm.trace.rows import TracedEvent, TraceEntry
from groupstorm.trace.schema import Source
from groupstorm.trace.writer import NullSink

_POLL_INTERVAL: Final = "max.poll.interval.ms"

_SEEDS: Final = 3
"""With so many seeds a value has to mend the group."""

_LONGEST_POLL_INTERVAL_MS: Final = 3_600_000
"""For so long nobody would wait until a process that hangs loses its partitions."""

_QUIET_TIMEOUTS: Final = 3
"""A mended group throws nobody out for this many times its longest timeout."""

_NEAR_ENOUGH: Final = 64
"""The search ends when its two values differ by less than this part of the lower one."""

_FURTHER: Final = 3
"""So often a value that only one seed likes is moved further away from the present one."""

_THROWN_OUT: Final = frozenset({"rebalance-timeout", "session-expired", "sync-timeout"})


class SearchEnded(Exception):
    """Raised by the progress of a search whose time is over."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """A value with which the group is mended.

    ``is_nearest``: to the present one, as far as the search went; else the search ended before, and
    ``seeds`` had confirmed the value.
    """

    setting: str
    now: int
    value: int
    is_upper_bound: bool
    """Whether the setting was lowered: then this is the largest value that was found to help."""
    lag_growth: float | None
    """Records a second by which the lag grows all the same; None if the group then keeps up."""
    is_nearest: bool = True
    seeds: int = _SEEDS


#: A setting, the furthest value to try, and the grain of the answer.
Search = tuple[str, int, int]


class _Departures:
    """Takes a run's events and keeps when a member was last thrown out, or left because it had not polled."""

    def __init__(self) -> None:
        self.last_us = 0
        self.end_us = 0

    def add(self, time_us: int, source: Source, event: TracedEvent) -> None:
        self.end_us = time_us
        if (isinstance(event, RejoinRequested) and event.cause == "poll-timeout") or (
            isinstance(event, MemberRemoved) and event.cause in _THROWN_OUT
        ):
            self.last_us = time_us

    def add_all(self, entries: Iterable[TraceEntry]) -> None:
        for time_us, source, event in entries:
            self.add(time_us, source, event)

    def close(self) -> None:
        pass


def remedies_for_livelock(scenario: ResolvedScenario, progress: Progress | None = None) -> Iterator[Remedy]:
    """Values of single settings, each of which lets the group settle.

    ``progress``: of every run, as `simulate` takes it. If it raises `SearchEnded`, so does this.
    """
    settings = scenario.settings
    if has_fatal_record(settings):
        return
    # By arithmetic, with a quarter of room for the rest of the batch: the search seldom has to go further.
    work_us = max(max(longest_work_us(own).values()) for own in settings.of_profiles())
    enough_ms = work_us * 5 // 4_000_000 * 1000
    searches = _smaller_batches(settings)
    if enough_ms < _LONGEST_POLL_INTERVAL_MS:
        searches.insert(0, (_POLL_INTERVAL, _LONGEST_POLL_INTERVAL_MS, 1000))
    if not outlasts_polls(settings):  # else members leave, whatever their session is
        searches.append(("session.timeout.ms", settings.integer("group.max.session.timeout.ms"), 1000))
    for setting, furthest, grain in searches:
        trials = _Trials(scenario, setting, progress)
        now = settings.integer(setting)
        limits = [furthest]
        confirmed = 0
        try:
            if setting == _POLL_INTERVAL and now < enough_ms:
                limits.insert(0, enough_ms)
                while confirmed < _SEEDS and trials.mends(enough_ms, confirmed):
                    confirmed += 1
                if confirmed < _SEEDS:
                    confirmed = 0
            tried = (_nearest(now, limit, grain, trials.settles) for limit in limits)
            nearest = next((value for value in tried if value is not None), None)
            if nearest is not None and not trials.mends(nearest):
                nearest = _nearest(nearest, furthest, grain, trials.mends)
            found = None if nearest is None else trials.with_every_seed(nearest, now, furthest, grain)
        except SearchEnded:
            if confirmed:
                yield Remedy(setting, now, enough_ms, False, trials.lag_growths[enough_ms], False, confirmed)
            raise
        if found is not None:
            yield Remedy(setting, now, found, furthest < now, trials.lag_growths[found])


class _Trials:
    """Runs of a scenario with other values of one setting."""

    def __init__(self, scenario: ResolvedScenario, setting: str, progress: Progress | None) -> None:
        self._scenario = scenario
        self._setting = setting
        self._progress = progress
        self._assignors = chosen_assignors(scenario)
        #: By value, of the last seed that was run: records a second.
        self.lag_growths: dict[int, float | None] = {}

    def settles(self, value: int) -> bool:
        """Whether the group settles, perhaps between two expiries."""
        scenario = with_settings(self._scenario, {self._setting: value})
        return settles(simulate(scenario, self._assignors, NullSink(), progress=self._progress))

    def mends(self, value: int, further_seed: int = 0) -> bool:
        """Whether the group settles and then nobody is thrown out for a few timeouts."""
        settings = with_settings(self._scenario, {self._setting: value}).settings
        longest_ms = max(settings.integer("max.poll.interval.ms"), settings.integer("session.timeout.ms"))
        tail_ms = max(settings.integer("tail_ms"), _QUIET_TIMEOUTS * longest_ms)
        departures = _Departures()
        waits_ms = max(settings.integer("settle_timeout_ms"), OBSERVED_US // 1000)
        changes = {self._setting: value, "tail_ms": tail_ms, "settle_timeout_ms": waits_ms}
        changed = with_settings(self._scenario, changes)
        changed = replace(changed, seed=self._scenario.seed + further_seed)
        figures = simulate(changed, self._assignors, departures, progress=self._progress)
        self.lag_growths[value] = lag_growth(figures)
        return settles(figures) and departures.last_us < departures.end_us - tail_ms * 1000

    def with_every_seed(self, found: int, now: int, furthest: int, grain: int) -> int | None:
        """``found``, or a value a few per cent further from ``now``, that mends with all seeds; None if none
        does. ``found`` mends with the scenario's own seed."""
        step = max(grain, min(found, now) // _NEAR_ENOUGH) * (1 if furthest > now else -1)
        for further in range(_FURTHER):
            value = found + further * step
            value = min(value, furthest) if furthest > now else max(value, furthest)
            if all(self.mends(value, seed) for seed in range(0 if further else 1, _SEEDS)):
                return value
        return None


def _smaller_batches(settings: Settings) -> list[Search]:
    """The search for max.poll.records, if a full batch takes as long as half of max.poll.interval.ms.

    It ends where a full batch takes a tenth of the interval: an application that polls for each record would
    take long to simulate, and nobody would run it.
    """
    records = settings.integer("max.poll.records")
    batch_us = max(records * record_ns(own) // 1000 for own in settings.of_profiles())
    interval_us = settings.integer("max.poll.interval.ms") * 1000
    if 2 * batch_us < interval_us:
        return []
    return [("max.poll.records", max(1, records * interval_us // (10 * batch_us)), 1)]


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


def settles(figures: Figures) -> bool:
    """Whether the group came to rest, if late."""
    verdict = (figures.invariants or {}).get(SETTLES, HELD)
    return verdict == HELD or verdict.startswith(SETTLED_LATE)


def with_settings(scenario: ResolvedScenario, changes: dict[str, Any]) -> ResolvedScenario:
    """Give a scenario other values of some settings; its steps keep their times."""
    written = dict(scenario.settings.written())
    return replace(scenario, settings=Settings(("", {**written, **changes})))
