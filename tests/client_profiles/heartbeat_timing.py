"""When real members sent heartbeats and learnt of rebalances: recordings as JSON lines.

`record_heartbeats` writes them. The first line names client and circumstances. Each other line is a quiet
time of one group or a rebalance (`Quiet`, `Learned`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from tests.client_profiles.heartbeat_proxy import HEARTBEAT, JOIN_GROUP, LEAVE_GROUP, SYNC_GROUP, Passed

FOLDER = Path(__file__).parent / "heartbeats"
INTERVAL_US = 3_000_000
REBALANCE_IN_PROGRESS = 27
#: Shorter series of heartbeats are those between two rebalances of one round.
LEAST_QUIET = 50


class Quiet(NamedTuple):
    """A time without rebalances.

    ``phases_ms``: for each member, when its first heartbeat came after the group's first one.
    ``late``: for each member, tenths of a millisecond between heartbeats beyond the interval."""

    kind: str
    phases_ms: list[int]
    late: list[list[int]]


class Learned(NamedTuple):
    """A rebalance that began with another member's ``cause`` (join, leave).

    ``quiet_s``: since the last one. ``ms``: for each member, until it got REBALANCE_IN_PROGRESS."""

    kind: str
    cause: str
    quiet_s: int
    ms: list[int]


class HeartbeatRecording(NamedTuple):
    client: str
    circumstances: str
    quiet: list[Quiet]
    learned: list[Learned]


def of_rows(client: str, circumstances: str, rows: Sequence[Passed]) -> HeartbeatRecording:
    """The recording of one library: client ids are LIBRARY.KIND.MEMBER."""
    recording = HeartbeatRecording(client, circumstances, [], [])
    for kind in sorted({_kind(row) for row in rows}):
        own = [row for row in rows if _kind(row) == kind]
        joiner = max(_member(row) for row in own)
        series = {member: list(_series(own, member)) for member in range(joiner)}
        quiet = [[times for times in each if len(times) > LEAST_QUIET] for each in series.values()]
        for together in zip(*quiet, strict=False):  # the last time may lack members
            first_us = min(times[0] for times in together)
            phases_ms = [(times[0] - first_us) // 1000 for times in together]
            late = [[round((b - a - INTERVAL_US) / 100) for a, b in pairwise(times)] for times in together]
            recording.quiet.append(Quiet(kind, phases_ms, late))
        recording.learned.extend(_learned(kind, own, joiner))
    return recording


def _kind(row: Passed) -> str:
    return row.client_id.split(".")[1]


def _member(row: Passed) -> int:
    return int(row.client_id.split(".")[2])


def _series(rows: Iterable[Passed], member: int) -> Iterator[list[int]]:
    """When this member sent heartbeats: a list for each time between two joins."""
    times: list[int] = []
    for row in rows:
        if _member(row) != member:
            continue
        if row.api_key == HEARTBEAT and row.error is None:
            times.append(row.at_us)
        elif row.api_key == JOIN_GROUP and times:
            yield times
            times = []
    if times:
        yield times


def _learned(kind: str, rows: Sequence[Passed], joiner: int) -> Iterator[Learned]:
    """The rebalances that the joining member began, if all other members learnt of them."""
    settled_us = 0
    for at, row in enumerate(rows):
        if row.api_key == SYNC_GROUP:
            settled_us = row.at_us
        causes = {JOIN_GROUP: "join", LEAVE_GROUP: "leave"}
        if _member(row) != joiner or row.api_key not in causes:
            continue
        learned: dict[int, int] = {}
        for later in rows[at + 1 :]:
            if later.api_key in causes and _member(later) == joiner:
                break  # another begin, or the second JoinGroup, with the member id
            rebalancing = later.api_key == HEARTBEAT and later.error == REBALANCE_IN_PROGRESS
            if rebalancing and _member(later) != joiner:
                learned.setdefault(_member(later), (later.at_us - row.at_us) // 1000)
        if len(learned) == joiner:
            quiet_s = (row.at_us - settled_us) // 1_000_000
            yield Learned(kind, causes[row.api_key], quiet_s, [learned[member] for member in range(joiner)])


def write(library: str, recording: HeartbeatRecording) -> None:
    FOLDER.mkdir(exist_ok=True)
    head = {"client": recording.client, "circumstances": recording.circumstances}
    quiet = [row._asdict() for row in recording.quiet]
    learned = [row._asdict() for row in recording.learned]
    lines = [json.dumps(row, separators=(",", ":")) for row in (head, *quiet, *learned)]
    (FOLDER / f"{library}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def read(library: str) -> HeartbeatRecording:
    head, *rows = map(json.loads, (FOLDER / f"{library}.jsonl").read_text("utf-8").splitlines())
    quiet = [Quiet(**row) for row in rows if "late" in row]
    learned = [Learned(**row) for row in rows if "cause" in row]
    return HeartbeatRecording(head["client"], head["circumstances"], quiet, learned)
