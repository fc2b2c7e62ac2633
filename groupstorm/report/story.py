"""A trace as a story: what happened to each group, to one member or to one partition, and when; and the names
that a trace has."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import takewhile
from typing import Any

from groupstorm.explain.explanation import Reader
from groupstorm.figures.accumulator import FiguresAccumulator
from groupstorm.history.gaps import ClosedGap
from groupstorm.problems import InputError
from groupstorm.report.sentences import (
    GROUP_EVENTS,
    OVERVIEW_EVENTS,
    OWNERSHIP_EVENTS,
    SENTENCES,
    count,
    members,
)
from groupstorm.wording import some

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Selection:
    """The part of a trace that a story is about. Times are in microseconds.

    ``groups``: None for all groups. ``group_width``: every line names its group in a column of that width; 0:
    no line does. ``member``: a client id, or an instance of a Kafka Streams application. ``everything``: each
    member's every step.
    """

    groups: frozenset[str] | None = None
    group_width: int = 0
    member: str | None = None
    partition: str | None = None
    from_us: int = 0
    to_us: int | None = None
    everything: bool = False


def story(rows: Iterable[Row], selection: Selection) -> Iterator[str]:
    """The lines of the story, in the trace's order."""
    to_us, groups = selection.to_us, selection.groups
    in_time = takewhile(lambda row: to_us is None or row["time_us"] <= to_us, rows)
    chosen = (row for row in in_time if groups is None or row["group"] in groups)
    parts = _of_partition(chosen, selection) if selection.partition else _of_members(chosen, selection)
    for time_us, lines in parts:
        if time_us >= selection.from_us:
            yield from lines


def sentence(row: Row) -> str:
    """One row in a story's words; its event and what it counts, if no story tells of it."""
    words = SENTENCES.get(row["event"])
    if words is not None:
        return str(words(row))
    said = (row[name] for name in ("count", "api", "error", "detail") if name in row)
    return " ".join([row["event"], *map(str, said)])


def _of_members(rows: Iterable[Row], selection: Selection) -> Iterator[tuple[int, list[str]]]:
    rounds: defaultdict[str, _Round] = defaultdict(_Round)
    for row in rows:
        summary = rounds[row["group"]].add(row)
        if row["event"] in SENTENCES and _concerns(row, selection):
            lines = [_timed(row, sentence(row), selection)]
            yield row["time_us"], lines if summary is None else [*lines, _untimed(row, summary, selection)]


def _of_partition(rows: Iterable[Row], selection: Selection) -> Iterator[tuple[int, list[str]]]:
    """The rounds in which the partition was given up, un-owned or taken, with the events that led to them."""
    partition = str(selection.partition)
    handovers: defaultdict[str, _Handovers] = defaultdict(lambda: _Handovers(partition))
    pending: defaultdict[str, list[str]] = defaultdict(list)  # printed if the partition changes hands
    for row in rows:
        event, group = row["event"], row["group"]
        gap = handovers[group]
        summary = gap.take(row)
        if event in GROUP_EVENTS:
            pending[group].append(_timed(row, SENTENCES[event](row), selection))
            if gap.is_open:
                yield row["time_us"], pending.pop(group)
        if event in OWNERSHIP_EVENTS and partition in row["partitions"]:
            lines = [*pending.pop(group, ()), _timed(row, SENTENCES[event](row, partition), selection)]
            yield row["time_us"], lines if summary is None else [*lines, _untimed(row, summary, selection)]
        elif event == "group_state_changed" and row["state"] == "Stable" and not gap.is_open:
            pending.pop(group, None)


def _timed(row: Row, sentence: str, selection: Selection) -> str:
    return f"{row['time_us'] / 1e6:12.6f} s  {_group_column(row, selection)}{sentence}"


def _untimed(row: Row, summary: str, selection: Selection) -> str:
    return f"{'':15}{_group_column(row, selection)}{summary}"


def _group_column(row: Row, selection: Selection) -> str:
    return f"{row['group']:{selection.group_width}}  " if selection.group_width else ""


def _concerns(row: Row, selection: Selection) -> bool:
    event = row["event"]
    if event in GROUP_EVENTS:
        return True
    if selection.member is not None:
        return selection.member in (row.get("member"), row.get("process"))
    return selection.everything or event in OVERVIEW_EVENTS


class _Round:
    """A round of one group: its length, its members, and the partitions that were given up for it."""

    def __init__(self) -> None:
        self._prepared_us: int | None = None
        self._given_up = 0

    def add(self, row: Row) -> str | None:
        """Take the group's next row; returns a summary if it ends the round."""
        event = row["event"]
        if event in ("partitions_revoked", "partitions_lost"):
            self._given_up += len(row["partitions"])
        elif event == "group_state_changed" and row["state"] == "PreparingRebalance":
            if self._prepared_us is None:
                self._prepared_us = row["time_us"]
        elif event == "group_state_changed" and row["state"] == "Empty":
            self._prepared_us = None
        elif event == "group_state_changed" and row["state"] == "Stable" and self._prepared_us is not None:
            took = (row["time_us"] - self._prepared_us) / 1e6
            is_bounded = "earliest_us" in row  # seen between two descriptions of the group
            summary = f"round, {members(row)}" if is_bounded else f"round of {took:.3f} s, {members(row)}"
            if self._given_up:
                summary += f", {count(self._given_up, 'partition')} given up since the last one"
            self._prepared_us, self._given_up = None, 0
            return summary
        return None


class _Handovers(Reader):
    """One partition from owner to owner, in one group, as the figures see it."""

    def __init__(self, partition: str) -> None:
        self._partition = partition
        self._figures = FiguresAccumulator(listener=self)
        self._rounds = 0
        self._closed: ClosedGap | None = None

    @property
    def is_open(self) -> bool:
        """Whether the partition has no owner, and should have one, by the rows of members."""
        figures = self._figures
        is_known = figures.owned_from_us is not None and figures.view is None
        return is_known and figures.owners(self._partition) == []

    def gap_closed(self, gap: ClosedGap) -> None:
        if gap.partition == self._partition:
            self._closed = gap

    def interval_ended(self, partition: str, member: str, position: int | None) -> None:
        if partition == self._partition:
            self._rounds = 0

    def take(self, row: Row) -> str | None:
        """Take the group's next row; returns a summary if the row gives the partition an owner again."""
        self._figures.add_row(row)
        gap, self._closed = self._closed, None
        rounds = count(self._rounds, "round")
        self._rounds += row["event"] == "group_state_changed" and row["state"] == "Stable"
        if gap is None or (gap.old_owner is None and gap.since_us == gap.to_us):
            return None
        unowned_s = (gap.to_us - gap.since_us) / 1e6
        return (
            f"{self._partition}: {gap.old_owner or 'nobody'} -> {gap.new_owner}, "
            f"un-owned for {unowned_s:.3f} s over {rounds}"
        )


_NEAR_MAX = 3


@dataclass(frozen=True, slots=True)
class Names:
    """The members (client ids and instances of Kafka Streams applications) and partitions of one group."""

    members: dict[str, None] = field(default_factory=dict)
    partitions: dict[str, None] = field(default_factory=dict)


def names_by_group(rows: Iterable[Mapping[str, Any]]) -> dict[str, Names]:
    """Group -> the names that its rows have, in the order of their appearance."""
    found: dict[str, Names] = {}
    for row in rows:
        names = found.get(row["group"])
        if names is None:
            names = found[row["group"]] = Names()
        for column in ("member", "process"):
            if column in row:
                names.members[row[column]] = None
        if "partitions" in row:
            names.partitions.update(dict.fromkeys(row["partitions"]))
    return found


def require(option: str, name: str, there: Iterable[str]) -> None:
    """Raise InputError naming near names, or else some, if ``name`` is not among those that are ``there``."""
    known = [*dict.fromkeys(there)]
    if name in known:
        return
    if near := get_close_matches(name, known, _NEAR_MAX):
        raise InputError(f"{option} {name}: not in the trace; near it: {', '.join(near)}")
    if not known:
        raise InputError(f"{option} {name}: not in the trace, which has none")
    raise InputError(f"{option} {name}: not in the trace; there are: {some(known)}")
