"""A trace told as a story: what happened to the group, to one member, to one partition, and when."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Row = Mapping[str, Any]

MANY = 6
"""More names than this are counted, not listed."""


@dataclass(frozen=True, slots=True)
class Filter:
    """What to tell. Times in microseconds; ``everything``: each member's every step."""

    member: str | None = None
    partition: str | None = None
    from_us: int = 0
    to_us: int | None = None
    everything: bool = False


def tell(rows: Iterable[Row], wanted: Filter) -> Iterator[str]:
    """The lines of the story, in the trace's order."""
    round_ = _Round()
    gap = _Gap(wanted.partition) if wanted.partition else None
    for row in rows:
        time_us = row["time_us"]
        if wanted.to_us is not None and time_us > wanted.to_us:
            break
        round_.see(row)
        told = _line(row, wanted)
        if time_us < wanted.from_us:
            told = None
        if told is not None:
            yield f"{time_us / 1e6:12.6f} s  {told}"
        if gap is not None:
            yield from (f"{'':15} {line}" for line in gap.see(row) if time_us >= wanted.from_us)
        elif told is not None and row["event"] == "group_state_changed" and row["state"] == "Stable":
            yield from (f"{'':15} {line}" for line in round_.summary())


def _line(row: Row, wanted: Filter) -> str | None:
    event = row["event"]
    sentence = SENTENCES.get(event)
    if sentence is None or not _concerns(row, event, wanted):
        return None
    return sentence(row)


def _concerns(row: Row, event: str, wanted: Filter) -> bool:
    if event in GROUP_EVENTS:
        return True
    if wanted.member is not None:
        return bool(row.get("member") == wanted.member)
    if wanted.partition is not None:
        return wanted.partition in row.get("partitions", ()) and event not in ("scenario_started", "sync_answered")
    return wanted.everything or event in OVERVIEW_EVENTS


class _Round:
    """What changed hands since the group was last Stable."""

    def __init__(self) -> None:
        self._prepared_us: int | None = None
        self._stable_us = 0
        self._joined = 0
        self._revoked = 0

    def see(self, row: Row) -> None:
        event = row["event"]
        if event == "group_state_changed":
            if row["state"] == "PreparingRebalance" and self._prepared_us is None:
                self._prepared_us = row["time_us"]
            elif row["state"] == "Stable":
                self._stable_us = row["time_us"]
        elif event == "join_answered" and "error" not in row:
            self._joined += 1
        elif event in ("partitions_revoked", "partitions_lost"):
            self._revoked += len(row["partitions"])

    def summary(self) -> Iterator[str]:
        if self._prepared_us is not None:
            took = (self._stable_us - self._prepared_us) / 1e6
            yield f"  round of {took:.3f} s: {self._joined} joined, {self._revoked} partitions given up before it"
        self._prepared_us, self._joined, self._revoked = None, 0, 0


class _Gap:
    """From one owner of a partition to the next."""

    def __init__(self, partition: str) -> None:
        self._partition = partition
        self._free_us: int | None = None
        self._old_owner = ""
        self._rounds = 0

    def see(self, row: Row) -> Iterator[str]:
        event = row["event"]
        if event == "group_state_changed" and row["state"] == "Stable" and self._free_us is not None:
            self._rounds += 1
        if self._partition not in row.get("partitions", ()):
            return
        if event in ("partitions_revoked", "partitions_lost", "member_crashed"):
            self._free_us, self._old_owner, self._rounds = row["time_us"], row["member"], 0
        elif event == "partitions_assigned":
            if self._free_us is not None:
                gap = (row["time_us"] - self._free_us) / 1e6
                yield (
                    f"  {self._partition}: {self._old_owner} -> {row['member']}, "
                    f"un-owned for {gap:.3f} s over {_count(self._rounds, 'round')}"
                )
            self._free_us = None


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


def _state_changed(row: Row) -> str:
    by = f" by {row['member_id'].rpartition('-')[0][-48:] or row['member_id']}" if row.get("member_id") else ""
    line = f"group      {row['previous_state']} -> {row['state']}: {row['cause']}"
    if row["state"] == "PreparingRebalance":
        return line + (f" ({row['member_id']})" if by else "")
    if row["state"] == "CompletingRebalance":
        return f"{line}; generation {row['generation']}, {row.get('protocol')}, {_count(row['count'], 'member')}"
    return f"{line}; generation {row['generation']}"


def _callback(name: str) -> Callable[[Row], str]:
    def sentence(row: Row) -> str:
        took = f", {row['duration_us'] / 1000:g} ms" if row.get("duration_us") else ""
        why = f" ({row['cause']})" if "cause" in row else ""
        return f"{_who(row):10} {name} {_some(row['partitions'])}{why}{took}, {_in_generation(row)}"

    return sentence


def _answer(request: str) -> Callable[[Row], str]:
    def sentence(row: Row) -> str:
        outcome = row.get("error") or f"generation {row['generation']}"
        return f"{_who(row):10} {request} answered: {outcome}"

    return sentence


#: One sentence for every event that a story can tell.
SENTENCES: Mapping[str, Callable[[Row], str]] = {
    "scenario_started": lambda row: f"scenario   begins with {_count(len(row['partitions']), 'partition')}",
    "step_taken": lambda row: f"scenario   {row['cause']} {row.get('member', '')}: {row['detail']}",
    "partitions_created": lambda row: f"scenario   new partitions: {_some(row['partitions'])}",
    "scenario_ended": lambda row: "scenario   ends",
    "invariant_checked": lambda row: f"invariant  {row['cause']}: {row['detail']}",
    "group_created": lambda row: f"group      {row['group']} is created",
    "group_state_changed": _state_changed,
    "initial_delay_extended": lambda row: f"group      waits {row['duration_us'] / 1e6:g} s more for members",
    "append_failed": lambda row: f"group      an append failed: {row['error']} ({row['cause']})",
    "member_pending": lambda row: f"{_who(row):10} is told its member id: {row['member_id']}",
    "pending_member_removed": lambda row: f"group      forgets the unused id {row['member_id']}: {row['cause']}",
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
    "member_crashed": lambda row: f"{_who(row):10} crashed, holding {_some(row['partitions'])}",
    "member_paused": lambda row: f"{_who(row):10} stands still ({row['cause']}), {row['duration_us'] / 1e6:g} s",
    "member_resumed": lambda row: f"{_who(row):10} goes on with {_some(row['partitions'])}",
    "member_closed": lambda row: f"{_who(row):10} has closed: {row['cause']}",
    "member_failed": lambda row: f"{_who(row):10} failed: {row['error']}",
}

#: Events that every story tells, whatever it is about.
GROUP_EVENTS = frozenset({"group_state_changed", "step_taken", "scenario_started", "scenario_ended"})
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
    }
)
