"""Settings that let a group settle: arithmetic proposes them, runs of the scenario confirm them.

A proposal counts if the group is mended with several seeds, and stays so for longer than its timeouts last:
one that only moves an expiry behind the end of the run is no remedy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from groupstorm.clients.profiles import ALL_FETCHED, consumer_protocol_needs
from groupstorm.figures import Figures
from groupstorm.figures.table import HELD, SETTLED_LATE, SETTLES, lag_growth
from groupstorm.storms.checks.settling import OBSERVED_US
from groupstorm.storms.runs.choices import client_defaults
from groupstorm.storms.runs.contradictions import endless_work, has_fatal_record, outlasts_polls
from groupstorm.storms.runs.load import longest_work_us, record_ns
from groupstorm.storms.runs.run import chosen_assignors
from groupstorm.storms.runs.step_runner import Progress
from groupstorm.storms.scenario.consistency import longest_session_ms
from groupstorm.storms.scenario.files import ResolvedScenario
from groupstorm.storms.scenario.setting_names import CONSUMER
from groupstorm.storms.scenario.settings import Settings
from groupstorm.storms.world.simulation import simulate
from groupstorm.trace.events.coordinator import MemberRemoved
from groupstorm.trace.events.member import RejoinRequested
from groupstorm.trace.rows import TracedEvent, TraceSink
from groupstorm.trace.schema import Source

_SEEDS: Final = 3
"""With so many seeds a value has to mend the group."""

_LONGEST_POLL_INTERVAL_MS: Final = 3_600_000
"""For so long nobody would wait until a process that hangs loses its partitions."""

_QUIET_TIMEOUTS: Final = 3
"""A mended group throws nobody out for this many times its longest timeout."""

Setting = int | str

_THROWN_OUT: Final = frozenset({"rebalance-timeout", "session-expired", "sync-timeout"})


@dataclass(frozen=True, slots=True)
class Remedy:
    """Settings with which the group is mended: one, or several that only help together.

    ``before``: their values now. ``lag_growth``: records a second by which the lag grows all the same; None
    if the group then keeps up.
    """

    settings: Mapping[str, Setting]
    before: Mapping[str, Setting]
    lag_growth: float | None


class _Departures(TraceSink):
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

    def close(self) -> None:
        pass


class RemedySearch:
    """Iterates over remedies: several settings that leave no contradiction together, or else single ones.

    ``trials``: so many runs of the scenario are made at most. ``progress``: of every run, as `simulate` takes
    it.
    """

    def __init__(self, scenario: ResolvedScenario, trials: int, progress: Progress | None = None) -> None:
        self._scenario = scenario
        self._trials = trials
        self._progress = progress
        self._assignors = chosen_assignors(scenario)

    def __iter__(self) -> Iterator[Remedy]:
        for candidates in _proposals(self._scenario.settings):
            for changes in candidates:
                growths: list[float | None] = []
                while len(growths) < _SEEDS and self._trials > 0:
                    self._trials -= 1
                    figures = self._mended(changes, self._scenario.seed + len(growths))
                    if figures is None:
                        break
                    growths.append(lag_growth(figures))
                if len(growths) == _SEEDS:
                    now = self._scenario.settings
                    before = {name: _value(now, name) for name in changes}
                    yield Remedy(changes, before, growths[-1])
                    if len(changes) > 1:
                        return  # a single setting would leave a contradiction that the next rebalance shows
                    break
                if not self._trials:
                    return

    def _mended(self, changes: Mapping[str, Setting], seed: int) -> Figures | None:
        """The figures with other settings, if the group settles and then nobody is thrown out for a while."""
        settings = with_settings(self._scenario, changes).settings
        longest_ms = max(settings.integer("max.poll.interval.ms"), settings.integer("session.timeout.ms"))
        tail_ms = max(settings.integer("tail_ms"), _QUIET_TIMEOUTS * longest_ms)
        waits_ms = max(settings.integer("settle_timeout_ms"), OBSERVED_US // 1000)
        waiting = {**changes, "tail_ms": tail_ms, "settle_timeout_ms": waits_ms}
        changed = replace(with_settings(self._scenario, waiting), seed=seed)
        departures = _Departures()
        figures = simulate(changed, self._assignors, departures, progress=self._progress)
        is_quiet = departures.last_us < departures.end_us - tail_ms * 1000
        return figures if settles(figures) and is_quiet else None


def _proposals(settings: Settings) -> Iterator[list[Mapping[str, Setting]]]:
    """Changes that may end it, those of the same settings together, the nearest to the present values first.

    If several timeouts are too short, no single setting is enough: then all are changed together. Times have
    a quarter of room above the work that they have to outlast.
    """
    if has_fatal_record(settings):
        return
    together = _together(settings)
    if len(together) > 1:
        yield [together]
    for name, values in _single_values(settings):
        yield [{name: value} for value in values]


def _together(settings: Settings) -> Mapping[str, Setting]:
    """The settings that leave no contradiction: the longest work fits, and a batch of such records, too."""
    changes: dict[str, Setting] = {}
    works_ms = [
        {name: work_us // 1000 for name, work_us in longest_work_us(own).items()}
        for own in settings.of_profiles()
    ]
    work_ms = max(max(own.values()) for own in works_ms)
    record_ms = max(own.pop("process_ms") for own in works_ms)
    interval_ms = settings.integer("max.poll.interval.ms")
    if interval_ms < _with_room(work_ms) <= _LONGEST_POLL_INTERVAL_MS:
        interval_ms = changes["max.poll.interval.ms"] = _with_room(work_ms)
    beside_ms = interval_ms - max(max(own.values()) for own in works_ms)
    records = max(1, beside_ms // record_ms) if record_ms else ALL_FETCHED
    if records < settings.integer("max.poll.records") < ALL_FETCHED:
        changes["max.poll.records"] = records
    is_silent = any(one.rule == "silent rounds" for one in endless_work(settings))
    if is_silent and consumer_protocol_needs(settings.names("client_profile")):
        changes["group.protocol"] = CONSUMER
    return changes


def _single_values(settings: Settings) -> Iterator[tuple[str, list[int]]]:
    """Values of one setting."""
    members = settings.of_profiles()
    work_ms = max(max(longest_work_us(own).values()) for own in members) // 1000
    record_us = max(record_ns(own) for own in members) / 1000
    records = settings.integer("max.poll.records")
    batch_ms = int(records * record_us) // 1000
    interval_ms = settings.integer("max.poll.interval.ms")
    # a batch may hold two slow records, and ordinary ones beside them
    works_ms = [work_ms, work_ms + batch_ms, 2 * work_ms]
    default_ms = client_defaults(settings).integer("max.poll.interval.ms")
    enough_ms = [*map(_with_room, works_ms), default_ms, _LONGEST_POLL_INTERVAL_MS]
    if enough_ms[0] < _LONGEST_POLL_INTERVAL_MS:
        yield "max.poll.interval.ms", _between(interval_ms, enough_ms, _LONGEST_POLL_INTERVAL_MS)
    if 2 * batch_ms >= interval_ms:
        # an application that polled for each record would take long to simulate, and nobody would run it
        fitting = [int(interval_ms * 1000 / record_us * share) for share in (0.8, 0.4, 0.1)]
        yield "max.poll.records", [value for value in fitting if 1 <= value < records]
    if not outlasts_polls(settings):  # else members leave, whatever their session is
        session_ms = settings.integer("session.timeout.ms")
        longer_ms = [_with_room(max(work_ms, batch_ms)), 2 * session_ms, 4 * session_ms, 16 * session_ms]
        yield (
            "session.timeout.ms",
            _between(session_ms, longer_ms, longest_session_ms(settings)),
        )


def _value(settings: Settings, name: str) -> Setting:
    return settings.choice(name) if name == "group.protocol" else settings.integer(name)


def _with_room(milliseconds: int) -> int:
    return milliseconds * 5 // 4000 * 1000


def _between(now: int, values: Iterable[int], most: int) -> list[int]:
    return sorted({value for value in values if now < value <= most})


def settles(figures: Figures) -> bool:
    """Whether the group came to rest, if late."""
    verdict = (figures.invariants or {}).get(SETTLES, HELD)
    return verdict == HELD or verdict.startswith(SETTLED_LATE)


def with_settings(scenario: ResolvedScenario, changes: Mapping[str, Any]) -> ResolvedScenario:
    """Give a scenario other values of some settings; its steps keep their times."""
    written = dict(scenario.settings.written())
    return replace(scenario, settings=Settings(("", {**written, **changes})))
