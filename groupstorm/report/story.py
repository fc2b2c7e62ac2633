"""A trace as a story: what happened to each group, to one member or to one partition, and when; and the names
that a trace has.

`sentences.tsv` has an event a line: whether a story of the whole group tells it (x), and its sentence. What
stands in braces is a word of `_WORDS`, or else a column of the row.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import takewhile
from typing import Any

from groupstorm import tables
from groupstorm.explain.explanation import Reader
from groupstorm.figures.accumulator import FiguresAccumulator
from groupstorm.history.gaps import ClosedGap
from groupstorm.history.unknown import json_object
from groupstorm.imports.timeline.members import name_before_uuid
from groupstorm.problems import InputError
from groupstorm.wording import dollars, size, some

Row = Mapping[str, Any]

MANY = 6
"""More names than this are counted, not listed."""

_BILLION = 10**9
_MILLION = 10**6
_FOLLOW_UPS = {
    "probing": "to see whether warm-ups have caught up",
    "tasks-change-owner": "as tasks wait for their old owners to let go",
    "version-probing": "as members differ in the versions that they know",
    "watching": "when the standbys that it watches have caught up",
}
_PLACED = {
    "stable": "nothing is left to be moved",
    "probing": "warm-ups are under way",
    "follow-up": "tasks wait for their old owners to let go",
    "imbalanced": "standbys are to be watched",
    "version-probing": "members differ in the versions that they know",
}

_SOURCES = {"nothing": "nothing", "checkpoint": "its host's checkpoint", "standby": "its standby"}


def count(number: int, noun: str) -> str:
    """A number with its noun."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _some(partitions: Iterable[str] | None) -> str:
    listed = list(partitions or ())
    if not listed:
        return "no partitions"
    return " ".join(listed) if len(listed) <= MANY else count(len(listed), "partition")


def _settings(row: Row) -> str:
    return ", ".join(f"{name}={value}" for name, value in json_object(row["detail"]).items())


def _who(row: Row) -> str:
    return str(row.get("member") or row.get("member_id") or "the group")


def _generation(row: Row) -> str:
    """The generation, if an imported trace knows it."""
    return f"generation {row['generation']}" if "generation" in row else "an unknown generation"


def _state_changed(row: Row) -> str:
    line = f"group      {row['previous_state']} -> {row['state']}: {row['cause']}"
    if row["state"] == "PreparingRebalance":
        return line + (f" ({name_before_uuid(row['member_id'])})" if row.get("member_id") else "")
    if row["state"] == "CompletingRebalance":
        protocol = row.get("protocol", "unknown assignor")
        return f"{line}; {_generation(row)}, {protocol}, {members(row)}"
    return f"{line}; {_generation(row)}"


def members(row: Row) -> str:
    """The number of members, if an imported trace knows it."""
    return count(row["count"], "member") if "count" in row else "an unknown number of members"


def _callback(name: str) -> Callable[..., str]:
    def sentence(row: Row, partition: str | None = None) -> str:
        took = f", {row['duration_us'] / 1000:g} ms" if row.get("duration_us") else ""
        why = f" ({row['cause']})" if "cause" in row else ""
        which = f"generation {row['generation']}" if row.get("generation", -1) >= 0 else "no generation"
        return f"{_who(row):10} {name} {partition or _some(row['partitions'])}{why}{took}, in {which}"

    return sentence


def _begun(row: Row) -> str:
    detail = json_object(row["detail"])
    clock = f"{detail.get('clock', 'an unknown time')}, with no date that any line says"
    return f"{detail['began']} UTC" if detail.get("began") else clock


def _lasted(row: Row) -> str:
    return f"{row['duration_us'] / _MILLION:,.3f} s"


#: Words of sentences that are no columns. "and_": nothing if the row lacks the columns.
def _created(row: Row) -> str:
    """Return how a group came that was there before: logs may not say that a coordinator loaded it."""
    return "there already" if "provenance" in row else "loaded by its coordinator"


_WORDS: Mapping[str, Callable[[Row], Any]] = {
    "a_generation": _generation,
    "and_error": lambda row: f", {row['error']}" if "error" in row else "",
    "and_member": lambda row: f" {row['member']}" if "member" in row else "",
    "and_rack": lambda row: f" in {row['rack']}" if "rack" in row else "",
    "and_revoking": lambda row: f", has to give up {_some(row['revoking'])}" if row.get("revoking") else "",
    "and_size": lambda row: f": {size(row['bytes'])}" if "bytes" in row else "",
    "and_took": lambda row: f" took {row['duration_us'] / 1000:g} ms" if "duration_us" in row else "",
    "and_warm_ups": lambda row: f", {row['count']} warm-ups" if row["count"] else "",
    "and_when": lambda row: f"in {_lasted(row)} " if row.get("duration_us") else "",
    "answer": lambda row: row.get("error") or _generation(row),
    "assignor": lambda row: row.get("protocol", "its assignor"),
    "begun": _begun,
    "between_racks": lambda row: size(row["cross_rack_bytes"]),
    "created": lambda row: _created(row) if row["cause"] == "loaded" else "created",
    "cost": lambda row: dollars(row["cross_rack_bytes"] * row["price"] / _BILLION / _MILLION),
    "follow_up": lambda row: _FOLLOW_UPS.get(row["cause"], row["cause"]),
    "lasted": _lasted,
    "members": members,
    "named": lambda row: _some(row.get("partitions")),
    "outcome": lambda row: row.get("error", "accepted"),
    "partition_count": lambda row: count(len(row["partitions"]), "partition"),
    "placed": lambda row: _PLACED.get(row["cause"], row["cause"]),
    # of all partitions together: the column counts in 1,000 seconds
    "rates": lambda row: f"{sum(row['rates']) / 1000:,g}",
    "restored_from": lambda row: _SOURCES[row["cause"]],
    "seconds": lambda row: row["duration_us"] / _MILLION,
    "settings": _settings,
    "size": lambda row: size(row["bytes"]),
    "task_count": lambda row: len(row["tasks"]),
    "who": _who,
    "work": lambda row: " ".join(row["tasks"]) or "nothing",
}


class _Words:
    """The words of one row's sentence by their names."""

    def __init__(self, row: Row) -> None:
        self._row = row

    def __getitem__(self, name: str) -> Any:
        return _WORDS[name](self._row) if name in _WORDS else self._row[name]


def _said(template: str) -> Callable[[Row], str]:
    return lambda row: template.format_map(_Words(row))


_TABLE = [*tables.rows(__package__, "sentences")]
#: Event -> its sentence. The sentences about partitions take one partition, which is then the only one named.
SENTENCES: Mapping[str, Callable[..., str]] = {
    **{event: _said(template) for event, _, template in _TABLE},
    "group_state_changed": _state_changed,
    "partitions_revoked": _callback("gives up"),
    "partitions_lost": _callback("has lost"),
    "partitions_assigned": _callback("fetches"),
    "member_crashed": lambda row, partition=None: (
        f"{_who(row):10} crashed, holding {partition or _some(row['partitions'])}"
    ),
}

#: Events of the group and the scenario: in every story.
GROUP_EVENTS = frozenset({"group_state_changed", "step_taken", "scenario_started", "scenario_ended"})
#: Events by which a partition changes hands.
OWNERSHIP_EVENTS = frozenset(
    {"partitions_assigned", "partitions_revoked", "partitions_lost", "member_crashed"}
)
#: Events that a story of the whole group has besides.
OVERVIEW_EVENTS = frozenset({"partitions_lost", "member_crashed", *(one for one, told, _ in _TABLE if told)})


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
    """One row in a story's words; its event and what it counts or whom it names, if no story tells of it."""
    words = SENTENCES.get(row["event"])
    if words is not None:
        return str(words(row))
    said = (row[name] for name in ("member", "count", "api", "error", "detail") if name in row)
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
