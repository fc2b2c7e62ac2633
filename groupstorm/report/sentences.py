"""A sentence for every event of a trace, and which events a story tells.

`sentences.tsv` has an event a line: whether a story of the whole group tells it (x), and its sentence. What
stands in braces is a word of `_WORDS`, or else a column of the row.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from groupstorm.imports.timeline.members import name_before_uuid
from groupstorm.tables import rows
from groupstorm.wording import dollars, size

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
    return ", ".join(f"{name}={value}" for name, value in json.loads(row["detail"]).items())


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
    detail = json.loads(row["detail"])
    began = detail.get("began")
    return f"{began} UTC" if began else f"{detail['clock']}, with no date that any line says"


def _lasted(row: Row) -> str:
    return f"{row['duration_us'] / _MILLION:,.3f} s"


#: Words of sentences that are no columns. "and_": nothing if the row lacks the columns.
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


_TABLE = [*rows(__package__, "sentences")]
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
