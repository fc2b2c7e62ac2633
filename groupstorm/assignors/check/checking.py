"""Plays histories, keeps the smallest failing one of each property, and measures the CPU time of answers."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from string import ascii_lowercase
from typing import NamedTuple

from groupstorm.assignors.check.history import (
    Change,
    History,
    HistoryStep,
    SimulatedGroup,
    StepKind,
    draw_history,
    play,
)
from groupstorm.assignors.check.properties import (
    DETERMINISTIC,
    OF_CHANGES,
    OF_ROUNDS,
    PROPERTIES,
    SOUND,
    Subject,
    Verdict,
    moves,
)
from groupstorm.assignors.contract import Assignor
from groupstorm.assignors.promises import promises_of

#: Answers a history as `transcript` does, in another process with other hash seeds.
Elsewhere = Callable[[History], str]


class Broken(NamedTuple):
    """A property that does not hold: the step of the history, and the reason."""

    name: str
    step: int
    sentence: str


class Finding(NamedTuple):
    """The result of one property over all histories; ``history``: the smallest failing one that was found."""

    name: str
    verdict: Verdict
    asked: int
    failed: int
    broken: Broken | None = None
    history: History | None = None


class Stickiness(NamedTuple):
    """Over ``changes`` with a known optimum: how many partitions moved, and the fewest possible."""

    changes: int
    moved: int
    fewest: int


class Report(NamedTuple):
    """``findings``: one for each property, in the order of `PROPERTIES`."""

    assignor: str
    histories: int
    rounds: int
    findings: tuple[Finding, ...]
    stickiness: Stickiness
    most_rounds: int

    @property
    def kept(self) -> bool:
        return all(finding.verdict is not Verdict.BROKEN for finding in self.findings)


_NOTHING_MEASURED = Stickiness(0, 0, 0)


@dataclass
class _Tally:
    asked: Counter[str] = field(default_factory=Counter)
    failed: dict[str, list[History]] = field(default_factory=dict)
    rounds: int = 0
    most_rounds: int = 0
    stickiness: Stickiness = field(default=_NOTHING_MEASURED)

    def measure(self, subject: Subject, change: Change) -> None:
        self.rounds += len(change.rounds)
        self.most_rounds = max(self.most_rounds, len(change.rounds))
        measured = moves(subject, change) if change.rounds and change.settled else None
        if measured is not None:
            changes, moved, fewest = self.stickiness
            self.stickiness = Stickiness(changes + 1, moved + measured[0], fewest + measured[1])


def check(
    assignor: Assignor,
    histories: Iterable[History],
    elsewhere: Sequence[Elsewhere] = (),
    progress: Callable[[int], None] | None = None,
) -> Report:
    """Play the histories and report. ``progress`` gets the number of histories that are done."""
    subject = Subject(assignor, promises_of(assignor))
    tally = _Tally()
    played = 0
    for played, history in enumerate(histories, start=1):
        asked: set[str] = set()
        failed = {broken.name for broken in _questions(subject, history, asked, tally)}
        if _differs(assignor, history, elsewhere):
            failed.add(DETERMINISTIC)
            asked.add(DETERMINISTIC)
        tally.asked.update(asked)
        for name in failed:
            tally.failed.setdefault(name, []).append(history)
        if progress is not None:
            progress(played)
    return Report(
        assignor.name,
        played,
        tally.rounds,
        tuple(_finding(subject, name, tally, elsewhere) for name in PROPERTIES),
        tally.stickiness,
        tally.most_rounds,
    )


def drawn(assignor: Assignor, seed: int, count: int) -> Iterator[History]:
    """``count`` random histories of the kind that the assignor is made for."""
    for case in range(count):
        yield draw_history(seed, case, assignor.needs_equal_subscriptions)


def breaks(subject: Subject, history: History, name: str) -> Broken | None:
    """The first violation of the property in the history."""
    return next((broken for broken in _questions(subject, history) if broken.name == name), None)


def _questions(
    subject: Subject, history: History, asked: set[str] | None = None, tally: _Tally | None = None
) -> Iterator[Broken]:
    """All violations; ``asked`` collects the properties that could have failed."""
    asked = set() if asked is None else asked
    for change in play(subject.assignor, history):
        sound = True
        for broken in _of_rounds(subject, change, asked):
            sound = sound and broken.name not in SOUND
            yield broken
        if not sound:
            return
        if change.rounds:
            for name, question in OF_CHANGES:
                asked.add(name)
                sentence = question(subject, change)
                if sentence is not None:
                    yield Broken(name, change.number, sentence)
                if sentence is not None and not change.settled:
                    return
        if tally is not None:
            tally.measure(subject, change)


def _of_rounds(subject: Subject, change: Change, asked: set[str]) -> Iterator[Broken]:
    for round_ in change.rounds:
        for name, question in OF_ROUNDS:
            asked.add(name)
            sentence = question(subject, round_)
            if sentence is not None:
                yield Broken(name, change.number, sentence)
                if name in SOUND:
                    return


def transcript(assignor: Assignor, history: History) -> str:
    """All answers of a history as one text. The words of a refusal may have the address of an object."""
    rounds = [
        None if round_.refusal is not None else list(round_.assigned.items())
        for change in play(assignor, history)
        for round_ in change.rounds
    ]
    return json.dumps(rounds)


def _differs(assignor: Assignor, history: History, elsewhere: Sequence[Elsewhere]) -> bool:
    if not elsewhere:
        return False
    here = transcript(assignor, history)
    return any(answer(history) != here for answer in elsewhere)


def _finding(subject: Subject, name: str, tally: _Tally, elsewhere: Sequence[Elsewhere]) -> Finding:
    failed = tally.failed.get(name, [])
    asked = tally.asked[name]
    if not failed:
        promised = Verdict.HELD if asked else Verdict.NEVER_ASKED
        return Finding(name, promised if subject.promised(name) else Verdict.NOT_PROMISED, asked, 0)
    smallest = min(failed, key=lambda history: (len(history.steps), sum(history.topics.values())))

    def fails(history: History) -> bool:
        if breaks(subject, history, name) is not None:
            return True
        return name == DETERMINISTIC and _differs(subject.assignor, history, elsewhere)

    shrunk = shrink(smallest, fails)
    broken = breaks(subject, shrunk, name)
    if broken is None:
        broken = Broken(name, len(shrunk.steps), "another process, with another hash seed, answers otherwise")
    verdict = Verdict.BROKEN if subject.promised(name) else Verdict.NOT_PROMISED
    return Finding(name, verdict, asked, len(failed), broken, shrunk)


#: `shrink` tries at most so many smaller histories: that takes a few seconds.
MAX_TRIALS = 3_000


def shrink(history: History, fails: Callable[[History], bool]) -> History:
    """The smallest history found for which ``fails`` is still true."""
    trials = 0
    smaller = True
    while smaller and trials < MAX_TRIALS:
        smaller = False
        for candidate in _candidates(history):
            trials += 1
            if fails(candidate):
                history, smaller = candidate, True
                break
            if trials >= MAX_TRIALS:
                break
    plain = _plainly_named(history)
    return plain if fails(plain) else history


def _candidates(history: History) -> Iterator[History]:
    """Smaller histories, those that leave out the most first."""
    yield from _without_steps(history)
    for topic in history.topics:
        if len(history.topics) > 1:
            yield _without_topic(history, topic)
    for topic, count in history.topics.items():
        for fewer in _smaller(count):
            yield history._replace(topics={**history.topics, topic: fewer})
    yield from _smaller_alike(history)
    yield from _from_the_beginning(history)
    for place, step in enumerate(history.steps):
        for changed in _smaller_steps(step):
            yield history._replace(steps=(*history.steps[:place], changed, *history.steps[place + 1 :]))


def _without_steps(history: History) -> Iterator[History]:
    steps = history.steps
    length = len(steps)
    while length:
        for begin in range(0, len(steps), length):
            yield history._replace(steps=steps[:begin] + steps[begin + length :])
        length //= 2


def _without_topic(history: History, gone: str) -> History:
    topics = {topic: count for topic, count in history.topics.items() if topic != gone}
    steps = (step._replace(topics=tuple(t for t in step.topics if t != gone)) for step in history.steps)
    return History(topics, tuple(steps))


def _smaller_alike(history: History) -> Iterator[History]:
    """Make topics of one size smaller together: joined topics have to keep equal sizes."""
    for size in sorted(set(history.topics.values()), reverse=True):
        for fewer in _smaller(size):
            changed = {t: fewer if count == size else count for t, count in history.topics.items()}
            yield history._replace(topics=changed)


def _from_the_beginning(history: History) -> Iterator[History]:
    """Without a step, whose effect the beginning of the history has instead."""
    for place, step in enumerate(history.steps):
        others = (*history.steps[:place], *history.steps[place + 1 :])
        if step.do is StepKind.RESIZE:
            yield History({**history.topics, **dict.fromkeys(step.topics, step.partitions)}, others)
        elif step.do is StepKind.SUBSCRIBE:
            yield history._replace(
                steps=tuple(
                    other._replace(topics=step.topics)
                    if other.do is StepKind.JOIN and step.member in ("", other.member)
                    else other
                    for other in others
                )
            )


def _smaller(count: int) -> list[int]:
    return sorted({fewer for fewer in (0, 1, count // 2, count - 1) if 0 <= fewer < count})


def _smaller_steps(step: HistoryStep) -> Iterator[HistoryStep]:
    if step.do is StepKind.RESIZE:
        for fewer in _smaller(step.partitions):
            yield step._replace(partitions=fewer)
    elif len(step.topics) > 1:
        for gone in step.topics:
            yield step._replace(topics=tuple(topic for topic in step.topics if topic != gone))


def _plainly_named(history: History) -> History:
    """Members a, b, c, ..., if their names do not matter."""
    names = sorted({step.member for step in history.steps if step.member}, key=lambda name: (len(name), name))
    if len(names) > len(ascii_lowercase):
        return history
    plain = dict(zip(names, ascii_lowercase, strict=False))
    steps = (step._replace(member=plain.get(step.member, "")) for step in history.steps)
    return history._replace(steps=tuple(steps))


#: If a phase takes longer than this, no larger group is measured.
ENOUGH_MS = 1_500

#: A clock of CPU time may tick every few milliseconds only: an answer is asked for until so much has passed.
LEAST_NS = 50_000_000

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
        begun_ns, asked = cpu_ns(), 1
        round_ = group.ask()
        while (took_ns := cpu_ns() - begun_ns) < LEAST_NS and round_.refusal is None:
            round_ = group.ask()
            asked += 1
        spent_ns += took_ns // asked
        if round_.refusal is not None:
            return None
        if not group.hand_out(round_):
            break
    return round(spent_ns / 1e6, 3)
