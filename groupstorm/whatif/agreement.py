"""Replays of a scenario in virtual time, and their agreement with the run, within a tolerance that is stated.

What a replay cannot know is at which part of its heartbeat interval each member was: a member learns of a
round with its next heartbeat, and a session runs from the last one. So times may differ by one interval, and
so may the duration of a round.

`repeat` makes the scenario that repeats a run, and compares its replays, over seeds and on all cores, with
the run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import sqrt
from pathlib import Path
from statistics import median
from typing import Any, Final, NamedTuple

from groupstorm.figures.table import Figures
from groupstorm.problems import CheckFailed, InputError
from groupstorm.storms.runs.choices import AS_IT_WAS
from groupstorm.storms.runs.run import chosen_assignors
from groupstorm.storms.runs.several import cores
from groupstorm.storms.runs.worker_processes import map_in_processes
from groupstorm.storms.scenario.files import Scenario, load, parse
from groupstorm.storms.scenario.setting_names import How
from groupstorm.storms.world.simulation import simulate
from groupstorm.trace.rows import TracedEvent, TraceEntry
from groupstorm.trace.schema import Source
from groupstorm.verdicts.measures import Spread
from groupstorm.whatif.drafting import Draft, draft_of, scenario_text
from groupstorm.whatif.facts import UNKNOWN, Reading, Round, RoundReader
from groupstorm.whatif.inference import TIMEOUTS
from groupstorm.whatif.lives import BUSY, STOP
from groupstorm.whatif.reading import LivedFigures, read_run
from groupstorm.wording import counted, seconds


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
        self.rounds = RoundReader()

    def add(self, time_us: int, source: Source, event: TracedEvent) -> None:
        self.add_all([(time_us, source, event)])

    def add_all(self, entries: Iterable[TraceEntry]) -> None:
        for time_us, source, event in entries:
            self._now_us = time_us
            self._lived.add((time_us, source, event))
            self.rounds.add(time_us, event)

    def close(self) -> None:
        """Nothing is held back."""

    def lived(self) -> Figures:
        """Return the figures of the recorded group; call it once, at the end."""
        return self._lived.figures(self._now_us)


def replay(order: tuple[str, str, int]) -> Replay:
    """Run one seed of a variant of a scenario file. ``order``: the file, the variant, the seed."""
    path, variant, seed = order
    scenario = load(path).resolve(variant, seed, {})
    sink = RoundSink()
    figures = simulate(scenario, chosen_assignors(scenario), sink)
    return Replay(seed, tuple(sink.rounds.rounds), figures, sink.lived())


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


#: Generations: one, or a tenth of them.
GENERATIONS_SHARE: Final = 0.1
#: So many rounds must have a partner in the replay, a round of the same time; so many of these must
#: have the same cause.
MATCHED_SHARE: Final = 0.9
#: Beside one heartbeat interval: what networks, polls and logs of whole milliseconds add.
SLACK_US: Final = 1_000_000
#: Durations and un-owned time: a tenth, and a quarter, of the observed value.
DURATION_SHARE: Final = 0.1
UNOWNED_SHARE: Final = 0.25


class Line(NamedTuple):
    """One thing that is compared. ``unit``: "", "s" or "%". ``tolerance``: in words.

    It agrees if the median of the replays differs by no more than the tolerance, or if the observed value
    lies within the range of the seeds, so that their draws alone may explain the difference.
    """

    what: str
    observed: float
    replayed: Spread
    unit: str
    tolerance: str
    agrees: bool

    def shown(self, value: float) -> str:
        return f"{value:,.1f} {self.unit}" if self.unit else f"{value:,g}"


class RoundLine(NamedTuple):
    """A round of the run beside its partners in the replays: medians over the seeds that have one.

    Times are in microseconds since the run's trace began.
    """

    seen: Round
    began_us: float | None
    duration_us: float | None
    causes: tuple[str, ...]


class Agreement(NamedTuple):
    """Compares a recording with its replays. ``not_compared``: what the trace does not know, in sentences."""

    lines: tuple[Line, ...]
    rounds: tuple[RoundLine, ...]
    not_compared: tuple[str, ...]

    @property
    def agrees(self) -> bool:
        return all(line.agrees for line in self.lines)

    def require(self, run: Path) -> None:
        """Raise CheckFailed if the replays do something else than ``run`` did."""
        if self.agrees:
            return
        words = "; ".join(
            f"{line.what}: {line.shown(line.observed)} in the run, "
            f"{line.shown(line.replayed.median)} in its replays (tolerance {line.tolerance})"
            for line in self.lines
            if not line.agrees
        )
        what_else = runs_again(run) or "Check what whatif.yaml assumes, and say what you know with --known"
        raise CheckFailed(
            f"{run}: the replays do not do what the run did, so nothing follows from other settings: "
            f"{words}. {what_else}"
        )


def runs_again(run: Path) -> str:
    """The command that runs a storm's own scenario with other settings; "" of what is no storm."""
    written = (run if run.is_dir() else run.parent) / "scenario.yaml"
    again = f"groupstorm compare {written} --set NAME=VALUE"
    return f"It is a storm, which runs again: {again}" if written.is_file() else ""


def agreement(reading: Reading, draft: Draft, replays: Sequence[Replay]) -> Agreement:
    """The run beside the replays of the scenario that was made from it.

    Rounds of a replay that begin before the run's trace, or too long after its end, do not count.
    """
    rounds, lead_us, heartbeat_us = reading.rounds.rounds, draft.lead_ms * 1000, draft.heartbeat_us
    unowned_s = None if reading.figures is None else reading.figures.unowned_partition_seconds
    partitions_per_member = draft.partitions / len(draft.names)
    within_us = heartbeat_us + SLACK_US
    kept = {
        one.seed: [
            shifted
            for shifted in (_earlier(each, lead_us) for each in one.rounds)
            if 0 <= shifted.began_us <= reading.ended_us + within_us
        ]
        for one in replays
    }
    of_seeds = list(kept.values())
    lines = [_completed(rounds, of_seeds)]
    lines += matches(rounds, of_seeds, within_us)
    missing = []
    if rounds and all(one.cause == UNKNOWN for one in rounds):
        missing.append("why rounds began: the trace does not say")
    if reading.rounds.has_epochs and not reading.has_member_rows:
        missing.append("how long rounds took: the logs of the members say when they got partitions")
    else:
        lines += _durations(rounds, of_seeds, within_us)
    drawn_s = heartbeat_us / 1e6 * partitions_per_member * sqrt(len(rounds))
    of_replays = [one.figures if reading.is_storm else one.lived for one in replays]
    known = [one.unowned_partition_seconds for one in of_replays]
    if draft.unowned_unknown:
        missing.append(f"un-owned time: {draft.unowned_unknown}")
    elif unowned_s is None or any(value is None for value in known):
        missing.append("un-owned time: there was no time at which every partition is known to have an owner")
    else:
        lines.append(_unowned(unowned_s, [value for value in known if value is not None], drawn_s))
    stops = sum(one.step["do"] == STOP for one in draft.steps)
    deploys = None if reading.figures is None else reading.figures.deploys
    if stops > 1 and deploys not in (one.deploys for one in of_replays):
        run = "" if deploys is None else f", and the run has {counted(deploys, 'deployment')}"
        missing.append(f"un-owned time of a deploy: the replays count each of {stops:,} stops as one{run}")
    busy_ms = [one.step["for_ms"] for one in draft.steps if one.step["do"] == BUSY]
    if busy_ms:
        lasted = f"{counted(len(busy_ms), 'time')}, for up to {seconds(max(busy_ms) / 1000)}"
        missing.append(
            f"what max.poll.records does to members that worked without poll() ({lasted}): no row says on "
            "how many records, so they do so for as long under every value"
        )
    if assumed := _assumed_timeouts(draft):
        missing.append(f"{assumed}: assumed, because no log says it; check it and give it with --known")
    return Agreement(tuple(lines), _round_lines(rounds, of_seeds, within_us), tuple(missing))


def _assumed_timeouts(draft: Draft) -> str:
    """A replay that agrees does not confirm these: sessions end, and processes die, where they put it."""
    known = {name: draft.settings[name] for name in TIMEOUTS if name in draft.settings}
    return ", ".join(f"{name}={one.value / 1000:g}s" for name, one in known.items() if one.how is How.ASSUMED)


def _earlier(one: Round, lead_us: int) -> Round:
    return one._replace(began_us=one.began_us - lead_us, ended_us=one.ended_us - lead_us)


def _completed(rounds: Sequence[Round], of_seeds: Sequence[Sequence[Round]]) -> Line:
    seen = sum(one.completed for one in rounds)
    spread = _spread([sum(one.completed for one in each) for each in of_seeds])
    allowed = max(1, round(GENERATIONS_SHARE * seen))
    return _line("completed rounds", seen, spread, "", allowed, f"{allowed:,}")


def matches(rounds: Sequence[Round], of_seeds: Sequence[Sequence[Round]], within_us: int) -> list[Line]:
    """The shares of the run's rounds that the replays have, and that have the same cause there, if known."""
    if not rounds:
        return []
    in_time, same_cause = [], []
    of_known = [one for one in rounds if one.cause != UNKNOWN]
    for each in of_seeds:
        partners = partners_of(rounds, each, within_us)
        paired = [(one, partner) for one, partner in partners if partner is not None]
        in_time.append(100 * len(paired) / len(rounds))
        causes = [(one.cause, partner.cause) for one, partner in paired if one.cause != UNKNOWN]
        same = sum(cause == other for cause, other in causes)
        same_cause.append(100 * same / len(causes) if causes else 100)
    allowed = 100 - 100 * MATCHED_SHARE
    words = f"{allowed:g} %"
    lines = [
        _line(f"rounds that begin within {within_us / 1e6:g} s", 100, _spread(in_time), "%", allowed, words)
    ]
    if of_known:
        of_these = "of these" if len(of_known) == len(rounds) else "of these, if the cause is known"
        what = f"{of_these}, rounds of the same cause"
        lines.append(_line(what, 100, _spread(same_cause), "%", allowed, words))
    return lines


def _round_lines(
    rounds: Sequence[Round], of_seeds: Sequence[Sequence[Round]], within_us: int
) -> tuple[RoundLine, ...]:
    found = []
    of_each = [[partner for _, partner in partners_of(rounds, each, within_us)] for each in of_seeds]
    for number, one in enumerate(rounds):
        partners = [partner for each in of_each if (partner := each[number]) is not None]
        found.append(
            RoundLine(
                one,
                median([partner.began_us for partner in partners]) if partners else None,
                median([partner.duration_us for partner in partners]) if partners else None,
                tuple(dict.fromkeys(partner.cause for partner in partners)),
            )
        )
    return tuple(found)


def partners_of(
    rounds: Sequence[Round], others: Sequence[Round], within_us: int
) -> list[tuple[Round, Round | None]]:
    """For each round the first of ``others`` that begins near it and is no earlier one's partner."""
    found: list[tuple[Round, Round | None]] = []
    place = 0
    for one in rounds:
        while place < len(others) and others[place].began_us < one.began_us - within_us:
            place += 1
        if place < len(others) and others[place].began_us <= one.began_us + within_us:
            found.append((one, others[place]))
            place += 1
        else:
            found.append((one, None))
    return found


def _durations(rounds: Sequence[Round], of_seeds: Sequence[Sequence[Round]], within_us: int) -> list[Line]:
    if not rounds or not all(of_seeds):
        return []
    lines = []
    for what, of in (("median round", median), ("longest round", max)):
        seen = of([one.duration_us for one in rounds]) / 1e6
        spread = _spread([of([one.duration_us for one in each]) / 1e6 for each in of_seeds])
        allowed = within_us / 1e6 + DURATION_SHARE * seen
        lines.append(_line(what, seen, spread, "s", allowed, f"{allowed:.1f} s"))
    return lines


def _unowned(seen: float, values: Sequence[float], drawn_s: float) -> Line:
    """``drawn_s``: in every round the partitions of one member may wait a heartbeat interval longer or
    shorter, and the sum of such draws grows with the root of their number."""
    allowed = max(drawn_s, UNOWNED_SHARE * seen)
    return _line("un-owned partition-seconds", seen, _spread(values), "s", allowed, f"{allowed:,.0f} s")


def _line(what: str, seen: float, spread: Spread, unit: str, allowed: float, words: str) -> Line:
    agrees = abs(seen - spread.median) <= allowed or spread.holds(seen)
    return Line(what, seen, spread, unit, words, agrees)


def _spread(values: Sequence[float]) -> Spread:
    return Spread(min(values), median(values), max(values))


_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_.-]+")
_NAME_LENGTH_MAX: Final = 60
_STREAMS: Final = (
    "the members are threads of a Kafka Streams application, and no row says which state lies on which host."
)


class Repeated(NamedTuple):
    """A run, and the scenario that repeats it."""

    reading: Reading
    draft: Draft
    scenario: Scenario

    def agreement(self, file: Path, seeds: range, progress: Callable[[int, int], None]) -> Agreement:
        """Replay the scenario in ``file`` as it was over ``seeds``, and compare the replays with the run."""
        return agreement(self.reading, self.draft, replay_seeds(str(file), AS_IT_WAS, seeds, progress))


def repeat(run: Path, group: str | None, given: Mapping[str, Any]) -> Repeated:
    """Make the scenario that repeats a run. Raises InputError if no scenario can repeat the run.

    ``given``: settings that the run had and its trace does not say.
    """
    reading = read_run(run, group)
    if reading.is_streams:
        raise InputError(f"{run}: no scenario repeats this run: {_STREAMS} {_instead(run)}")
    words = _UNSAFE.sub("-", run.resolve().name.removesuffix(run.suffix)).lstrip("-_.")
    draft = draft_of(reading, words[:_NAME_LENGTH_MAX] or "run", given)
    if draft.problems:
        again = runs_again(run)
        said = f"{'; '.join(draft.problems)}{again and f'. {again}'}"
        raise InputError(f"{run}: no scenario repeats this run: {said}")
    return Repeated(reading, draft, parse(scenario_text(draft, str(run), {}), "yaml", str(run)))


def _instead(run: Path) -> str:
    """The command that answers for Kafka Streams."""
    return runs_again(run) or (
        "A storm with your numbers answers: groupstorm compare stateful-warmup --set members=N "
        "--set partitions=N --set state_bytes=N"
    )
