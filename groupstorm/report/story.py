"""A trace told as a story: what happened to the group, to one member, to one partition, and when."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from groupstorm.report import streams_sentences

Row = Mapping[str, Any]

MANY = 6
"""More names than this are counted, not listed."""


@dataclass(frozen=True, slots=True)
class Filter:
    """What to tell. Times in microseconds; ``everything``: each member's every step.

    ``member``: a client id, or an instance of a Kafka Streams application.
    """

    member: str | None = None
    partition: str | None = None
    from_us: int = 0
    to_us: int | None = None
    everything: bool = False


def tell(rows: Iterable[Row], wanted: Filter) -> Iterator[str]:
    """The lines of the story, in the trace's order."""
    until_us = wanted.to_us
    shown = takewhile(lambda row: until_us is None or row["time_us"] <= until_us, rows)
    for time_us, lines in (
        _tell_partition(shown, wanted.partition) if wanted.partition else _tell(shown, wanted)
    ):
        if time_us >= wanted.from_us:
            yield from lines


def _tell(rows: Iterable[Row], wanted: Filter) -> Iterator[tuple[int, list[str]]]:
    round_ = _Round()
    for row in rows:
        summary = round_.see(row)
        sentence = SENTENCES.get(row["event"])
        if sentence is not None and _concerns(row, wanted):
            yield row["time_us"], [_timed(row, sentence(row)), *summary]


def _tell_partition(rows: Iterable[Row], partition: str) -> Iterator[tuple[int, list[str]]]:
    """Only the rounds in which the partition was given up, un-owned or taken: what led to them included."""
    gap = _Gap(partition)
    before: list[str] = []
    for row in rows:
        event = row["event"]
        if event in GROUP_EVENTS:
            before.append(_timed(row, SENTENCES[event](row)))
            if gap.is_open:
                yield row["time_us"], before
                before = []
        if event in OWNERSHIP_EVENTS and partition in row["partitions"]:
            yield row["time_us"], [*before, _timed(row, SENTENCES[event](row, partition)), *gap.see(row)]
            before = []
        elif event == "group_state_changed" and row["state"] == "Stable":
            gap.round_over()
            if not gap.is_open:
                before = []


def _timed(row: Row, sentence: str) -> str:
    return f"{row['time_us'] / 1e6:12.6f} s  {sentence}"


def _concerns(row: Row, wanted: Filter) -> bool:
    event = row["event"]
    if event in GROUP_EVENTS:
        return True
    if wanted.member is not None:
        return wanted.member in (row.get("member"), row.get("process"))
    return wanted.everything or event in OVERVIEW_EVENTS


class _Round:
    """How long a round took and what was given up for it."""

    def __init__(self) -> None:
        self._prepared_us: int | None = None
        self._joined = 0
        self._given_up = 0

    def see(self, row: Row) -> list[str]:
        """Follow the trace; a line when a round is over."""
        event = row["event"]
        if event == "join_answered" and "error" not in row:
            self._joined += 1
        elif event in ("partitions_revoked", "partitions_lost"):
            self._given_up += len(row["partitions"])
        elif event == "group_state_changed" and row["state"] == "PreparingRebalance":
            if self._prepared_us is None:
                self._prepared_us = row["time_us"]
        elif event == "group_state_changed" and row["state"] == "Stable" and self._prepared_us is not None:
            took = (row["time_us"] - self._prepared_us) / 1e6
            line = f"{'':15}round of {took:.3f} s, {_count(self._joined, 'member')}"
            if self._given_up:
                line += f", {_count(self._given_up, 'partition')} given up since the last one"
            self._prepared_us, self._joined, self._given_up = None, 0, 0
            return [line]
        return []


class _Gap:
    """From one owner of a partition to the next."""

    def __init__(self, partition: str) -> None:
        self._partition = partition
        self._free_us: int | None = None
        self._old_owner = ""
        self._rounds = 0

    @property
    def is_open(self) -> bool:
        return self._free_us is not None

    def round_over(self) -> None:
        self._rounds += 1

    def see(self, row: Row) -> list[str]:
        """Follow what happens to the partition; a line when somebody owns it again."""
        if row["event"] != "partitions_assigned":
            self._free_us, self._old_owner, self._rounds = row["time_us"], row["member"], 0
            return []
        if self._free_us is None:
            return []
        gap = (row["time_us"] - self._free_us) / 1e6
        self._free_us = None
        return [
            f"{'':15}{self._partition}: {self._old_owner} -> {row['member']}, "
            f"un-owned for {gap:.3f} s over {_count(self._rounds, 'round')}"
        ]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _some(names: Iterable[str] | None, noun: str = "partition") -> str:
    listed = list(names or ())
    if not listed:
        return f"no {noun}s"
    return " ".join(listed) if len(listed) <= MANY else _count(len(listed), noun)


def _who(row: Row) -> str:
    return str(row.get("member") or row.get("member_id") or "the group")


def _in_generation(row: Row) -> str:
    return f"in generation {row['generation']}" if row.get("generation", -1) >= 0 else "in no generation"


def _client(member_id: str) -> str:
    """The client's part of a member id: what stands before the UUID."""
    return re.sub(r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$", "", member_id)


def _state_changed(row: Row) -> str:
    line = f"group      {row['previous_state']} -> {row['state']}: {row['cause']}"
    if row["state"] == "PreparingRebalance":
        return line + (f" ({_client(row['member_id'])})" if row.get("member_id") else "")
    if row["state"] == "CompletingRebalance":
        return (
            f"{line}; generation {row['generation']}, {row.get('protocol')}, {_count(row['count'], 'member')}"
        )
    return f"{line}; generation {row['generation']}"


def _callback(name: str) -> Callable[..., str]:
    def sentence(row: Row, partition: str | None = None) -> str:
        took = f", {row['duration_us'] / 1000:g} ms" if row.get("duration_us") else ""
        why = f" ({row['cause']})" if "cause" in row else ""
        return (
            f"{_who(row):10} {name} {partition or _some(row['partitions'])}{why}{took}, {_in_generation(row)}"
        )

    return sentence


def _answer(request: str) -> Callable[[Row], str]:
    def sentence(row: Row) -> str:
        outcome = row.get("error") or f"generation {row['generation']}"
        return f"{_who(row):10} {request} answered: {outcome}"

    return sentence


#: One sentence for every event that a story can tell; those about partitions take one to speak of alone.
SENTENCES: Mapping[str, Callable[..., str]] = {
    "scenario_started": lambda row: f"scenario   begins with {_count(len(row['partitions']), 'partition')}",
    "step_taken": lambda row: " ".join(
        ["scenario  ", row["cause"], *([row["member"]] if "member" in row else []), f"({row['detail']})"]
    ),
    "partitions_created": lambda row: f"scenario   new partitions: {_some(row['partitions'])}",
    "scenario_ended": lambda row: "scenario   ends",
    "invariant_checked": lambda row: f"invariant  {row['cause']}: {row['detail']}",
    "group_created": lambda row: f"group      {row['group']} is created",
    "group_state_changed": _state_changed,
    "initial_delay_extended": lambda row: f"group      waits {row['duration_us'] / 1e6:g} s more for members",
    "append_failed": lambda row: f"group      an append failed: {row['error']} ({row['cause']})",
    "member_pending": lambda row: f"{_who(row):10} is told its member id: {row['member_id']}",
    "pending_member_removed": lambda row: (
        f"group      forgets the unused id {row['member_id']}: {row['cause']}"
    ),
    "member_added": lambda row: f"{_who(row):10} is added to the group: {row['cause']}",
    "member_replaced": lambda row: f"{_who(row):10} is back as {row['instance']} under a new id",
    "member_updated": lambda row: f"{_who(row):10} has joined with other metadata",
    "member_removed": lambda row: f"{_who(row):10} is removed from the group: {row['cause']}",
    "join_parked": lambda row: f"{_who(row):10} waits in JoinGroup",
    "join_answered": _answer("JoinGroup"),
    "sync_parked": lambda row: f"{_who(row):10} waits in SyncGroup",
    "sync_answered": _answer("SyncGroup"),
    "offsets_committed": lambda row: (
        f"{_who(row):10} commits {_some(row['partitions'])}: {row.get('error', 'accepted')}"
    ),
    "member_started": lambda row: f"{_who(row):10} polls for the first time",
    "rejoin_requested": lambda row: f"{_who(row):10} has to join: {row['cause']}",
    "assignment_computed": lambda row: (
        f"{_who(row):10} leads: {row['protocol']} for {_count(row['count'], 'member')} "
        f"took {row['duration_us'] / 1000:g} ms"
    ),
    "partitions_revoked": _callback("gives up"),
    "partitions_lost": _callback("has lost"),
    "partitions_assigned": _callback("fetches"),
    "member_crashed": lambda row, partition=None: (
        f"{_who(row):10} crashed, holding {partition or _some(row['partitions'])}"
    ),
    "member_paused": lambda row: (
        f"{_who(row):10} stands still ({row['cause']}), {row['duration_us'] / 1e6:g} s"
    ),
    "member_resumed": lambda row: f"{_who(row):10} goes on with {_some(row['partitions'])}",
    "member_closed": lambda row: f"{_who(row):10} has closed: {row['cause']}",
    "member_failed": lambda row: f"{_who(row):10} failed: {row['error']}",
    **streams_sentences.SENTENCES,
}

#: Events that every story tells, whatever it is about.
GROUP_EVENTS = frozenset({"group_state_changed", "step_taken", "scenario_started", "scenario_ended"})
#: How a partition changes hands.
OWNERSHIP_EVENTS = frozenset(
    {"partitions_assigned", "partitions_revoked", "partitions_lost", "member_crashed"}
)
#: What a story about nobody in particular tells beside them.
OVERVIEW_EVENTS = frozenset(
    {
        "group_created",
        "partitions_created",
        "initial_delay_extended",
        "append_failed",
        "pending_member_removed",
        "member_added",
        "member_replaced",
        "member_removed",
        "assignment_computed",
        "partitions_lost",
        "member_crashed",
        "member_paused",
        "member_resumed",
        "member_failed",
        "invariant_checked",
        *streams_sentences.OVERVIEW,
    }
)
