"""Checks an assignor: plays histories, asks every property, keeps the smallest failing history of each."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from groupstorm.assignors.check.history import Change, History, play
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
from groupstorm.assignors.check.random_histories import draw_history
from groupstorm.assignors.check.shrinking import shrink
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
    """All answers of a history as one text."""
    rounds = [
        [round_.refusal] if round_.refusal is not None else list(round_.assigned.items())
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
        verdict = Verdict.HELD if subject.promised(name) else Verdict.NOT_PROMISED
        return Finding(name, verdict, asked, 0)
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
