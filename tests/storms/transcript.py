"""Storms as transcripts: a small world, and the rows of its members and of its coordinator.

A transcript is a file of three parts: a comment, which says what the world shows and derives its times; the
steps and settings, as YAML; behind ``----`` the rows from the first step on, or from ``from_ms`` on. Each row
begins with its time in milliseconds. All members start at 0, and `start.txt` derives the times until they
have their partitions; `consumer_start.txt` does so for ``group.protocol: consumer`` (KIP-848).

``show: positions`` shows other rows and fields: positions, committed offsets, the epochs of members, and at
the end the requests that arrived.

Settings that a transcript does not name are those of `WORLD`, under which times can be derived by hand: one
millisecond from a process to the coordinator and back again, no time for the work of the coordinator and for
writes, no records and no commits.
"""

from __future__ import annotations

from typing import Any

import yaml

from groupstorm.storms.scenario.files import parse
from groupstorm.trace.rows import event_name
from tests.storms.storms_in_memory import FIXED, START, Storm, scenario, storm

WORLD: dict[str, Any] = {
    **FIXED,
    "record_rate": 0,
    "commits": "never",
    "partition.assignment.strategy": ["range"],
    "partitions": 2,
    "members": 2,
    "start_ms": {"exactly": 10_000},
    "stop_grace_ms": {"exactly": 500},
    "ready_ms": {"exactly": 5_000},
    "tail_ms": 1_000,
}

#: A member of the classic protocol that is alone, and commits: `positions.txt` derives its times.
ALONE: dict[str, Any] = {
    "members": 1,
    "partitions": 1,
    "record_rate": 1,
    "process_ms": 1,
    "commits": "background",
}
ADD: dict[str, Any] = {"at_ms": 60_000, "do": "add"}

#: The fields that a transcript shows of each kind of row; other kinds are not shown.
SHOWN: dict[str, tuple[str, ...]] = {
    "step_taken": ("member", "cause", "detail"),
    "partitions_created": ("partitions",),
    "group_state_changed": ("state", "generation", "cause"),
    "member_pending": ("member",),
    "member_added": ("member", "instance", "cause"),
    "member_replaced": ("member", "instance"),
    "member_removed": ("member", "cause"),
    "join_parked": ("member",),
    "member_started": ("member",),
    "rejoin_requested": ("member", "cause"),
    "partitions_revoked": ("member", "partitions", "cause"),
    "partitions_lost": ("member", "partitions", "cause"),
    "partitions_assigned": ("member", "generation", "partitions"),
    "member_paused": ("member", "cause"),
    "member_resumed": ("member",),
    "member_crashed": ("member", "partitions"),
    "member_closed": ("member", "cause"),
    "member_failed": ("member", "error"),
    "scenario_ended": (),
}

_TAKEN = ("member", "generation", "partitions", "positions")
_GONE = (*_TAKEN, "committed")

#: The same for transcripts that say ``show: positions``.
SHOWN_WITH_POSITIONS: dict[str, tuple[str, ...]] = {
    "member_added": ("member", "generation", "cause"),
    "member_replaced": ("member",),
    "member_removed": ("member", "cause"),
    "member_reconciled": ("member", "generation", "state", "partitions"),
    "group_state_changed": ("state", "generation"),
    "member_started": ("member",),
    "rejoin_requested": ("member", "cause"),
    "partitions_paused": ("member", "partitions", "positions"),
    "partitions_revoked": (*_GONE, "cause"),
    "partitions_lost": (*_GONE, "cause"),
    "partitions_assigned": _TAKEN,
    "member_paused": ("member", "cause"),
    "member_resumed": ("member",),
    "member_crashed": _GONE,
    "member_closed": ("member", "cause"),
    "member_failed": ("member", "error"),
    "requests_counted": ("api", "error", "count"),
    "scenario_ended": (),
}

DIVIDER = "----\n"


def play(text: str) -> str:
    """The transcript with the rows of its world as it is now."""
    question, divider, _ = text.partition(DIVIDER)
    assert divider, "a transcript has its rows behind a line of ----"
    written = yaml.safe_load(question)
    first_ms = written["steps"][0]["at_ms"] if written["steps"] else 0
    return question + divider + rows(run(question), written.get("from_ms", first_ms), shown(text))


def shown(text: str) -> dict[str, tuple[str, ...]]:
    """The fields that the transcript shows, by kind of row."""
    shows = yaml.safe_load(text.partition(DIVIDER)[0]).get("show")
    return {None: SHOWN, "positions": SHOWN_WITH_POSITIONS}[shows]


def run(text: str, exact: bool = False) -> Storm:
    """The storm of a transcript."""
    written = yaml.safe_load(text.partition(DIVIDER)[0])
    document = {
        "name": "transcript",
        "settings": WORLD | written.get("settings", {}),
        "steps": [START, *written["steps"]],
    }
    loaded = parse(yaml.safe_dump(document), "yaml", "transcript")
    ran = storm(loaded, seed=written.get("seed", 1), exact=exact)
    assert ran.broken == {}
    return ran


def played(*steps: dict[str, Any], exact: bool = False, **settings: Any) -> Storm:
    """The storm of a member that is alone, for tests of what no row shows."""
    return storm(scenario([START, *steps], **WORLD | ALONE | settings), exact=exact)


def rows(ran: Storm, from_ms: int, fields_of: dict[str, tuple[str, ...]] = SHOWN) -> str:
    """The rows that a transcript shows, one line each, from a time on."""
    lines = []
    for time_us, _, event in ran.rows:
        kind: type = type(event)
        name = event_name(kind)
        if name in fields_of and time_us >= from_ms * 1000:
            fields = (f"{field}={_shown(getattr(event, field))}" for field in fields_of[name])
            lines.append(" ".join((f"{time_us / 1000:>10.3f}", name, *fields)).rstrip())
    return "".join(f"{line}\n" for line in lines)


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return ",".join(str(part).removeprefix("topic-") for part in value) or "-"
    return str(value).replace(" ", "_")
