"""The answer of a ledger, in sentences, with the shortest history of each kind of fault."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from groupstorm.testing.ledger.history import (
    MEANINGS,
    Allowed,
    Assigned,
    Commit,
    Entry,
    Finding,
    History,
    Incident,
    Input,
    Kind,
    Moment,
    Processing,
    Started,
)
from groupstorm.testing.ledger.judging import Judge, Rules, ShareJudge
from groupstorm.wording import counted

_SECOND_US = 1_000_000
#: A time with wider bounds is printed with both.
_SHOWN_AS_ONE_US = 2_000
#: The words that the summary says of findings that are no faults.
_ALLOWED: Final = {
    Allowed.YES: "again as at-least-once allows",
    Allowed.UNKNOWN: "again, too close to a commit to tell whether at-least-once allows it",
    Allowed.UNNOTICED: "by an instance that could not know yet that its partition had gone",
}
#: So many offsets are listed by number.
_LISTED = 10


class Report(NamedTuple):
    """``numbers``: of the records, by partition and offset; ``processed``: how many of them were;
    ``uncommitted``: how many of these are not committed; ``strangers``: instances that are no members of the
    group, though others are."""

    findings: tuple[Finding, ...]
    start_us: int
    numbers: Mapping[tuple[str, int], int]
    processed: int
    uncommitted: int
    strangers: Sequence[str]

    @property
    def records(self) -> int:
        """The number of numbered records."""
        return len(self.numbers)

    @property
    def faults(self) -> list[Finding]:
        """The findings that the service must not have."""
        return [one for one in self.findings if one.is_fault]

    def count_allowed(self, allowed: Allowed) -> int:
        """Count the findings that are none for at-least-once, for this reason."""
        return sum(one.allowed is allowed for one in self.findings)

    @property
    def summary(self) -> str:
        """One sentence on the whole run."""
        said = f"{self.processed:,} of {counted(self.records, 'record')} processed"
        for allowed, words in _ALLOWED.items():
            count = self.count_allowed(allowed)
            said += f", {count:,} {words}" if count else ""
        said += "" if self.faults else "; nothing was lost"
        if self.uncommitted:
            some = f"left {self.uncommitted:,} of these uncommitted: the next owner processes them again"
            said += "; the group " + (some if self.uncommitted < self.processed else "committed nothing")
        for one in self.strangers:
            said += f"; {one} is no client.id of a member: its doubles are judged without its assignments"
        return said

    def lines(self) -> list[str]:
        """The summary, then each kind of fault: how many, which, and the shortest history that shows it."""
        lines = [self.summary]
        for kind in Kind:
            found = [one for one in self.faults if one.kind is kind]
            if found:
                lines += self._of_kind(kind, found)
        return lines

    def _of_kind(self, kind: Kind, found: Sequence[Finding]) -> list[str]:
        shortest = min(found, key=lambda one: len(one.shown_by))
        place = f"record {shortest.number} ({shortest.partition}, offset {shortest.offset})"
        return [
            f"{kind}: {counted(len(found), 'record')} ({_places(found)})",
            f"  {place}: {MEANINGS[kind]}; {shortest.detail}",
            *(f"  {line}" for line in self.history(shortest)),
        ]

    def history(self, finding: Finding) -> list[str]:
        """The entries that show a finding, one line each, in the order of their times."""
        lines: list[tuple[int, int, str]] = []
        for place, entry in enumerate(finding.shown_by):
            for moment, who, what in _told(entry, self.numbers):
                line = f"{_time(moment, self.start_us)}  {who:<10} {what}"
                lines.append((moment.earliest_us, place, line))
        return [line for _, _, line in sorted(lines)]

    def to_json(self) -> dict[str, Any]:
        """The report as JSON: counts by kind, and every fault with its history."""
        counts = Counter(one.kind for one in self.faults)
        return {
            "records": self.records,
            "processed": self.processed,
            "uncommitted": self.uncommitted,
            "allowed": {one.name.lower(): self.count_allowed(one) for one in _ALLOWED},
            "faults": {str(kind): counts[kind] for kind in Kind},
            "findings": [
                {
                    "kind": str(one.kind),
                    "partition": one.partition,
                    "offset": one.offset,
                    "number": one.number,
                    "detail": one.detail,
                    "allowed": None if one.allowed is None else not one.is_fault,
                    "history": self.history(one),
                }
                for one in self.findings
            ],
        }


def report(history: History, rules: Rules) -> Report:
    numbers = {(one.partition, one.offset): one.number for one in history.inputs}
    done = {(one.partition, one.offset) for one in history.processings if one.is_complete}
    judge = ShareJudge(history, rules) if history.is_shared else Judge(history, rules)
    found = tuple(judge.findings())
    done &= numbers.keys()
    offsets = {one.partition: one.offset for one in sorted(history.commits, key=lambda one: one.at)}
    left = [] if history.is_shared else [one for one in done if offsets.get(one[0], 0) <= one[1]]
    named = {one.by for one in history.processings if one.by}
    strangers = sorted(named - history.followed) if named & history.followed else []
    return Report(found, history.start_us, numbers, len(done), len(left), strangers)


def _told(entry: Entry, numbers: Mapping[tuple[str, int], int]) -> list[tuple[Moment, str, str]]:
    """When, who and what, of each line of an entry."""
    match entry:
        case Input(at, partition, offset, number):
            return [(at, "ledger", f"puts record {number} into {partition} at offset {offset}")]
        case Commit(at, partition, offset, by):
            return [(at, by or "group", f"commits {partition} up to offset {offset}")]
        case Assigned(at, partition, by):
            return [(at, by, f"gets {partition}")]
        case Started(at, by):
            return [(at, by, "starts")]
        case Incident(at, _, what):
            return [(at, "scenario", what)]
        case Processing():
            return _worked(entry, numbers)


def _worked(one: Processing, numbers: Mapping[tuple[str, int], int]) -> list[tuple[Moment, str, str]]:
    who = one.by or "service"
    number = numbers.get((one.partition, one.offset))
    record = "a record of others" if number is None else f"record {number}"
    what = f"{record} ({one.partition}, offset {one.offset})"
    if one.ended is None:
        return [(one.begun, who, f"begins {what}")]
    word = "has processed" if one.is_complete else "breaks off"
    end = (one.ended, who, f"{word} {what}")
    # a source that tells only the end leaves the beginning open until then
    return [end] if one.begun.latest_us >= one.ended.latest_us else [(one.begun, who, f"begins {what}"), end]


def _time(moment: Moment, start_us: int) -> str:
    earliest, latest = ((one - start_us) / _SECOND_US for one in moment)
    if moment.latest_us - moment.earliest_us < _SHOWN_AS_ONE_US:
        return f"{latest:12.6f} s"
    return f"{earliest:12.6f} s to {latest:.6f} s"


def _places(found: Sequence[Finding]) -> str:
    """Partition by partition, the offsets: orders-0: 3, 4; orders-1: 7."""
    offsets: dict[str, list[int]] = defaultdict(list)
    for one in found[:_LISTED]:
        offsets[one.partition].append(one.offset)
    parts = [f"{partition}: {', '.join(map(str, those))}" for partition, those in offsets.items()]
    return "; ".join(parts) + (f" and {len(found) - _LISTED} more" if len(found) > _LISTED else "")
