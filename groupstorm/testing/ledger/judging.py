"""The judge: from a history to its findings. Pure: no clock, no broker."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, pairwise
from typing import NamedTuple

from groupstorm.testing.ledger.history import (
    Allowed,
    Commit,
    Entry,
    Finding,
    History,
    Incident,
    Input,
    Kind,
    Processing,
    Started,
    Stint,
    Stints,
    by_partition,
)
from groupstorm.wording import counted

_BEHIND = "auto.offset.reset=latest begins behind them, or a commit came before the work"


class Rules(NamedTuple):
    """The promises of the service, and whether the run is over.

    ``exactly_once``: no record is processed twice. ``is_ordered``: an instance processes the records of a
    partition in their order. ``notice_us``: how long an instance that has lost a partition may begin records
    before it notices, from its first sign of life on; None: it may not even finish the record in hand.
    ``is_over``: whatever is not processed now will never be. ``deliveries``: how often a share group may give
    a record out; None: that is not judged.
    """

    exactly_once: bool = False
    is_ordered: bool = True
    notice_us: int | None = 3_000_000
    is_over: bool = True
    deliveries: int | None = None


class Judge:
    """Judges one history."""

    def __init__(self, history: History, rules: Rules) -> None:
        self._history = history
        self._rules = rules
        self._committed = by_partition(history.commits)
        self._numbers = {(one.partition, one.offset): one for one in history.inputs}
        self._of_record: dict[tuple[str, int], list[Processing]] = defaultdict(list)
        for one in sorted(history.processings, key=lambda one: one.begun):
            if (one.partition, one.offset) in self._numbers:
                self._of_record[one.partition, one.offset].append(one)
        self._stints = Stints(history, self._committed)
        seen: list[Commit | Processing] = [*history.commits, *history.processings]
        seen.sort(key=lambda one: -one.offset)
        self._first_offsets = {one.partition: one.offset for one in seen}

    def findings(self) -> list[Finding]:
        """All findings, in the order of the inputs within each kind."""
        found: list[Finding] = []
        for record in self._history.inputs:
            processings = self._of_record.get((record.partition, record.offset), [])
            found += self._unprocessed(record, processings)
            found += self._doubles(record, processings)
        for partition in dict.fromkeys(one.partition for one in self._history.inputs):
            stints = self._stints.by_partition.get(partition, [])
            found += self._two_at_once(stints)
            if self._rules.is_ordered:
                for stint in stints:
                    found += self._out_of_order(stint)
        return found

    # -- one record ------------------------------------------------------------------------------

    def _unprocessed(self, record: Input, processings: Sequence[Processing]) -> Iterator[Finding]:
        """The record is lost, or was not done yet when the group committed beyond it."""
        committed = self._committed[record.partition]
        beyond = committed.first_beyond(record.offset)
        done = min(
            (one for one in processings if one.is_complete), key=lambda one: one.last.latest_us, default=None
        )
        if done is not None:
            if beyond is not None and beyond.at.is_before(done.last):
                late_us = done.last.earliest_us - beyond.at.latest_us
                detail = f"{_name(done.by)} processed it {late_us / 1_000_000:.6f} s after the commit"
                yield self._finding(Kind.COMMITTED_FIRST, record, detail, (beyond, done))
        elif beyond is None:
            if self._rules.is_over:
                yield self._finding(Kind.UNPROCESSED, record, _begun(processings), processings)
        else:
            kind = Kind.LOST if self._rules.is_over else Kind.COMMITTED_FIRST
            shown: list[Entry] = [*processings, beyond]
            if self._rules.is_over and committed.last.offset <= record.offset:
                kind = Kind.UNPROCESSED
                shown.append(committed.last)
            detail = _begun(processings)
            if record.offset < self._first_offsets.get(record.partition, 0):
                detail += f", nor any record before it: {_BEHIND}"
            yield self._finding(kind, record, detail, shown)

    def _doubles(self, record: Input, processings: Sequence[Processing]) -> Iterator[Finding]:
        complete = [one for one in processings if one.is_complete]
        committed = self._committed[record.partition]
        for first, again in pairwise(complete):
            allowed = self._allowed(first, again)
            before = committed.last_before(again.begun)
            shown: list[Entry] = [first, again, *([] if before is None else [before])]
            beyond = committed.first_beyond(record.offset)
            if allowed is Allowed.NO and beyond is not None:
                shown.append(beyond)
            detail = f"by {_name(first.by)} and again by {_name(again.by)}: {allowed}"
            if allowed is Allowed.NO and self._may_come_twice(first, again):
                detail += " (but librdkafka may deliver the first record of an assignment twice)"
            found = self._finding(Kind.TWICE, record, detail, shown)
            yield found._replace(allowed=allowed)

    def _allowed(self, first: Processing, again: Processing) -> Allowed:
        """At-least-once gives an instance the records from the offset on that is committed when it gets the
        partition. If it goes back by itself, the offset that is committed then counts."""
        if self._rules.exactly_once:
            return Allowed.NEVER
        stint = self._stints.of(again)
        came_anew = stint is not None and stint is not self._stints.of(first)
        when = stint.since if stint is not None and came_anew else again.begun
        beyond = [offset > again.offset for offset in self._committed[again.partition].possible_at(when)]
        if all(beyond):
            return Allowed.NO
        return Allowed.UNKNOWN if any(beyond) else Allowed.YES

    def _may_come_twice(self, first: Processing, again: Processing) -> bool:
        """Whether an instance did the first record of an assignment, and the same one next: librdkafka may
        still have it in its queue from a fetch of before the assignment."""
        stint = self._stints.of(first)
        return stint is not None and stint.processings[:2] == [first, again]

    # -- one partition ---------------------------------------------------------------------------

    def _two_at_once(self, stints: Sequence[Stint]) -> Iterator[Finding]:
        """Stints of two instances that surely overlap. Each pair is shown by its first record."""
        for index, first in enumerate(stints):
            for second in stints[index + 1 :]:
                overlap = first.begun.is_before(second.ended) and second.begun.is_before(first.ended)
                if second.by != first.by and overlap:
                    yield from self._shared(first, second)

    def _shared(self, first: Stint, second: Stint) -> Iterator[Finding]:
        """``first`` went on after ``second`` had begun: with a record that it had in hand, or with others."""
        other = second.processings[0]
        after = [one for one in first.processings if other.begun.is_before(one.last)]
        alive_us = min(one.last.latest_us for one in after)
        notice_us = self._rules.notice_us
        too_late = [
            one
            for one in after
            if notice_us is None or one.begun.earliest_us > max(alive_us, other.begun.latest_us) + notice_us
        ]
        allowed = None if too_late else Allowed.UNNOTICED
        went_on = (too_late or after)[0]
        record = self._numbers.get((went_on.partition, went_on.offset))
        if record is not None:
            before = [one for one in first.processings if one.begun.is_before(other.begun)]
            detail = f"{first.by} went on with {first.partition} after {second.by} had begun with it"
            if allowed is not None:
                detail += f": {allowed}"
            shown = dict.fromkeys((*before[-1:], other, went_on))
            yield self._finding(Kind.TWO_AT_ONCE, record, detail, shown)._replace(allowed=allowed)

    def _out_of_order(self, stint: Stint) -> Iterator[Finding]:
        """A record that is done after one behind it, for the first time in the stint and without a rewind to
        the committed offset in between."""
        complete = sorted(
            (one for one in stint.processings if one.is_complete), key=lambda one: one.last.latest_us
        )
        seen: set[int] = set()
        farthest: Processing | None = None
        for one in complete:
            is_first = one.offset not in seen
            seen.add(one.offset)
            if farthest is None or one.offset > farthest.offset:
                farthest = one
            elif is_first and farthest.last.is_before(one.last) and not self._rewound(stint, farthest, one):
                record = self._numbers.get((one.partition, one.offset))
                if record is not None:
                    detail = f"{_name(one.by)} processed offset {farthest.offset} before it"
                    yield self._finding(Kind.OUT_OF_ORDER, record, detail, (farthest, one))

    def _rewound(self, stint: Stint, farther: Processing, one: Processing) -> bool:
        """Whether the instance may have gone back to the committed offset between the two records."""
        committed = self._committed[stint.partition]
        return any(
            back.offset <= one.offset and back.offset in committed.possible_at(back.begun)
            for back in stint.processings
            if farther.begun < back.begun <= one.begun
        )

    # -- findings --------------------------------------------------------------------------------

    def _finding(self, kind: Kind, record: Input, detail: str, entries: Iterable[Entry]) -> Finding:
        return Finding(
            kind, record.partition, record.offset, record.number, detail, self._shown(record, entries)
        )

    def _shown(self, record: Input, entries: Iterable[Entry]) -> tuple[Entry, ...]:
        """The entries that show a fault, with how the instances came to the partition, and what happened to
        them meanwhile."""
        those = list(dict.fromkeys(entries))
        names = {one.by for one in those if isinstance(one, Processing | Commit) and one.by}
        shown: list[Entry] = [record, *those]
        begun = [one for one in those if isinstance(one, Processing)]
        since_us = min((one.begun.earliest_us for one in begun), default=record.at.earliest_us)
        until_us = max((_time_us(one) for one in those), default=record.at.latest_us)
        for one in begun:
            got = [
                each
                for each in self._history.assigned
                if (each.by, each.partition) == (one.by, one.partition)
                and each.at.earliest_us <= one.begun.latest_us
            ]
            shown += got[-1:]
        happened: list[Started | Incident] = [*self._history.started, *self._history.incidents]
        shown += [
            each
            for each in happened
            if since_us < each.at.earliest_us <= until_us and (not each.by or each.by in names)
        ]
        if not begun:  # what became of the instance that has committed the record without processing it
            since_us = min((one.at.earliest_us for one in those if isinstance(one, Commit)), default=until_us)
            later = [
                each
                for each in happened
                if each.at.earliest_us > since_us and (each.by in names or (each.by and not names))
            ]
            shown += sorted(later, key=lambda each: each.at)[:1]
        return tuple(dict.fromkeys(shown))


def _time_us(entry: Entry) -> int:
    return entry.last.latest_us if isinstance(entry, Processing) else entry.at.latest_us


def _begun(processings: Sequence[Processing]) -> str:
    if not processings:
        return "no instance has begun it"
    last = processings[-1]
    return f"{_name(last.by)} has begun it" + ("" if last.ended is None else " and broken off")


def _name(by: str) -> str:
    return by or "an instance"


class ShareJudge(Judge):
    """At-least-once holds if every record was processed. A record may come again: its lock has ended, or it
    was released. It may not come more often than the group allows, and two instances may not have it at once:
    then one of them has worked on it for longer than its lock.
    """

    def findings(self) -> list[Finding]:
        found: list[Finding] = []
        for record in self._history.inputs:
            processings = self._of_record.get((record.partition, record.offset), [])
            found += self._not_processed(record, processings)
            found += self._again(record, processings)
            found += self._at_once(record, processings)
            found += self._too_often(record, processings)
        return found

    def _not_processed(self, record: Input, processings: Sequence[Processing]) -> Iterator[Finding]:
        if self._rules.is_over and not any(one.is_complete for one in processings):
            is_done = record.partition in self._history.finished
            kind = Kind.LOST if is_done else Kind.UNPROCESSED
            yield self._finding(kind, record, _deliveries(processings), processings)

    def _again(self, record: Input, processings: Sequence[Processing]) -> Iterator[Finding]:
        allowed = Allowed.NEVER if self._rules.exactly_once else Allowed.YES
        for first, again in pairwise(one for one in processings if one.is_complete):
            detail = f"by {_name(first.by)} and again by {_name(again.by)}: {allowed}"
            found = self._finding(Kind.TWICE, record, detail, (first, again))
            yield found._replace(allowed=allowed)

    def _at_once(self, record: Input, processings: Sequence[Processing]) -> Iterator[Finding]:
        for first, second in combinations(processings, 2):
            if first.by != second.by and first.ended is not None and second.begun.is_before(first.ended):
                detail = f"{first.by} still had it in hand when {second.by} got it: its lock had ended"
                yield self._finding(Kind.TWO_AT_ONCE, record, detail, (first, second))

    def _too_often(self, record: Input, processings: Sequence[Processing]) -> Iterator[Finding]:
        most = self._rules.deliveries
        if most is not None and len(processings) > most:
            detail = f"{len(processings)} times, and the group allows {most}"
            yield self._finding(Kind.TOO_OFTEN, record, detail, processings)


def _deliveries(processings: Sequence[Processing]) -> str:
    if not processings:
        return "no instance has begun it"
    return f"begun and not done {counted(len(processings), 'time')}, last by {_name(processings[-1].by)}"
