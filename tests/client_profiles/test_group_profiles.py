"""Emulated members of the consumer protocol (KIP-848) against recordings of the real clients."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import pytest

from groupstorm.clients.profiles import PROFILES, GroupProtocol
from tests.client_profiles.comparison import LATENESS_MS, TOLERANCE_MS, Row
from tests.client_profiles.emulated import NAMES, emulate
from tests.client_profiles.recording import GROUP_SESSIONS, Recording, Session, read

INTERVAL_MS = 2_000


class Pair(NamedTuple):
    recording: Recording
    emulated: list[Row]


@pytest.fixture(params=sorted(GROUP_SESSIONS))
def pair(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Pair:
    session: Session = GROUP_SESSIONS[request.param]
    recording = read(session.name)
    return Pair(recording, emulate(session, recording, monkeypatch))


def heartbeats(rows: list[Row], who: str) -> list[Row]:
    return [row for row in rows if row["who"] == who and row.get("api") == "ConsumerGroupHeartbeat"]


def telling(rows: list[Row], who: str) -> list[Row]:
    """The heartbeats that tell something: they join, acknowledge, leave, or come at another epoch."""
    found, epoch = [], -1
    for row in heartbeats(rows, who):
        if row["owned"] is not None or row["topics"] is not None or row["epoch"] != epoch:
            found.append(row)
        epoch = row["epoch"]
    return found


def without_time(rows: list[Row]) -> list[Row]:
    return [{name: value for name, value in row.items() if name != "ms"} for row in rows]


@pytest.mark.parametrize("who", NAMES)
def test_heartbeats_tell_what_the_real_client_tells_when_it_does(pair: Pair, who: str) -> None:
    """Joins, acknowledgements, leaving, and the return of a fenced member: fields, epochs, order, time."""
    real, ours = telling(pair.recording.rows, who), telling(pair.emulated, who)
    assert without_time(ours) == without_time(real)
    for our, their in zip(ours, real, strict=True):
        assert abs(our["ms"] - their["ms"]) <= INTERVAL_MS


@pytest.mark.parametrize("who", NAMES)
def test_a_silent_heartbeat_follows_another_one_at_the_interval(pair: Pair, who: str) -> None:
    """A late one does not delay those that follow: the next one comes sooner."""
    for rows in (pair.recording.rows, pair.emulated):
        gaps_ms = [
            later["ms"] - sooner["ms"]
            for sooner, later in pairwise(heartbeats(rows, who))
            if later["owned"] is None and later["epoch"] == sooner["epoch"]
        ]
        paused = [gap_ms for gap_ms in gaps_ms if gap_ms > INTERVAL_MS + LATENESS_MS]
        assert len(paused) == (1 if who == "first" else 0)
        assert all(gap_ms >= INTERVAL_MS - LATENESS_MS for gap_ms in gaps_ms)


def test_an_acknowledgement_and_the_return_of_a_fenced_member_follow_at_once(pair: Pair) -> None:
    for rows in (pair.recording.rows, pair.emulated):
        sent = heartbeats(rows, "first")
        joins = [at for at, row in enumerate(sent) if row["epoch"] == 0]
        assert len(joins) == 2, "it is fenced once"
        for at in joins:
            assert sent[at + 1]["owned"] == 4
            assert sent[at + 1]["ms"] - sent[at]["ms"] < TOLERANCE_MS
        assert sent[joins[1]]["ms"] - sent[joins[1] - 1]["ms"] < TOLERANCE_MS


def test_every_recorded_profile_has_the_protocol() -> None:
    for session in GROUP_SESSIONS.values():
        profile = PROFILES[session.profile]
        assert GroupProtocol.CONSUMER in profile.group_protocols
        assert read(session.name).client.split()[1] in profile.client
