"""Compares a recording of a real client with the requests of the emulated one."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from tests.client_profiles.wiretap import Json

Row = dict[str, Json]

#: How far the times of two corresponding requests may lie apart: real heartbeats come a few hundredths
#: late, each counts from the one before, and rejoins wait for heartbeats.
TOLERANCE_MS = 700
#: How much longer than heartbeat.interval.ms a real interval may be, and how much shorter after a long one.
LATENESS_MS = 250
HASTE_MS = 40
ROUNDS = ("JoinGroup", "SyncGroup", "LeaveGroup")


class KnownDifference(NamedTuple):
    """A difference that stays. ``rows``: the rows that it explains, by member, API and ms."""

    why: str
    rows: frozenset[tuple[str, str, int]]


#: By recording.
KNOWN_DIFFERENCES: Mapping[str, Sequence[KnownDifference]] = {
    "kafka-python": (
        KnownDifference(
            "a leader that knows nothing yet of the topic when it joins does so again as soon as it does",
            frozenset({("first", "JoinGroup", 1468), ("first", "SyncGroup", 1469)}),
        ),
        KnownDifference(
            "a poll() that times out while a round is answered loses it: the member joins once more",
            frozenset(
                {
                    ("first", "JoinGroup", 82577),
                    ("second", "OffsetCommit", 85627),
                    ("second", "JoinGroup", 85629),
                    ("second", "SyncGroup", 85630),
                    ("first", "SyncGroup", 85631),
                }
            ),
        ),
    )
}


def to_compare(recording: Sequence[Row], known: Sequence[KnownDifference]) -> list[Row]:
    """A recording without the explained rows. Every explained row must be in the recording."""
    places = [(row["who"], row.get("api", ""), row["ms"]) for row in recording]
    explained = {place for one in known for place in one.rows}
    assert explained <= set(places), "an explained row is not in the recording any more"
    return [row for place, row in zip(places, recording, strict=True) if place not in explained]


def rounds(rows: Sequence[Row], who: str) -> list[Row]:
    """JoinGroup, SyncGroup and LeaveGroup of one member, with generations numbered from 1."""
    seen: list[int] = []
    kept = [row for row in rows if row["who"] == who and row.get("api") in ROUNDS]
    return [_counted(row, seen) for row in kept]


def _counted(row: Row, seen: list[int]) -> Row:
    if row["api"] != "SyncGroup":
        return row
    if row["generation"] not in seen:
        seen.append(row["generation"])
    return {**row, "generation": len(seen)}


def fields(row: Row) -> Row:
    """All fields but time and subscriptions; null, an empty text and an empty list count as equal."""
    kept = {name: value for name, value in row.items() if name not in ("ms", "protocols")}
    kept["reasons"] = [reason for reason in kept.get("reasons", ()) if reason]
    return {name: value or None for name, value in kept.items()}


def subscriptions(row: Row) -> Row:
    """The subscriptions of a JoinGroup, without generations: extra rounds of the real client shift these."""
    kept: dict[str, Row] = row.get("protocols", {})
    return {name: {**one, "generation": one["generation"] >= 0} for name, one in kept.items()}


def first_heartbeats(rows: Sequence[Row], who: str) -> list[int]:
    """Milliseconds from each SyncGroup to the next heartbeat, if that comes before a JoinGroup."""
    found = []
    synced_ms: int | None = None
    for row in rows:
        if row["who"] != who:
            continue
        if row.get("api") == "SyncGroup":
            synced_ms = row["ms"]
        elif row.get("api") == "Heartbeat" and synced_ms is not None:
            found.append(row["ms"] - synced_ms)
            synced_ms = None
        elif row.get("api") == "JoinGroup" or "do" in row:
            synced_ms = None
    return found


def intervals(rows: Sequence[Row], who: str) -> Iterator[int]:
    """Milliseconds between two heartbeats of one generation, without the first interval."""
    times: dict[int, list[int]] = {}
    for row in rows:
        if row["who"] == who and row.get("api") == "Heartbeat":
            times.setdefault(row["generation"], []).append(row["ms"])
    for sent in times.values():
        yield from (later - sooner for sooner, later in itertools.pairwise(sent[1:]))


def commits_before_joining(rows: Sequence[Row], who: str) -> list[bool]:
    """For each repeated JoinGroup of a member: whether the request before it was a commit."""
    found = []
    last = ""
    in_round = False
    for row in rows:
        if row["who"] != who or row.get("api") == "Heartbeat":
            continue
        if row.get("api") == "JoinGroup" and in_round:
            found.append(last == "OffsetCommit")
            in_round = False
        in_round = in_round or row.get("api") == "SyncGroup"
        last = row.get("api", "")
    return found
