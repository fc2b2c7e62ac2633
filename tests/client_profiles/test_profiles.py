"""Emulated members of every profile against recordings of the real clients."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from groupstorm.clients.profiles import PROFILES
from tests.client_profiles.comparison import (
    HASTE_MS,
    KNOWN_DIFFERENCES,
    LATENESS_MS,
    TOLERANCE_MS,
    Row,
    commits_before_joining,
    fields,
    first_heartbeats,
    intervals,
    rounds,
    subscriptions,
    to_compare,
)
from tests.client_profiles.emulated import NAMES, emulate
from tests.client_profiles.recording import SESSIONS, Session, read


class Pair(NamedTuple):
    session: Session
    recorded: list[Row]
    #: The recorded rows without the explained ones.
    real: list[Row]
    emulated: list[Row]


@pytest.fixture(params=sorted(SESSIONS))
def pair(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Pair:
    session: Session = SESSIONS[request.param]
    recording = read(session.name)
    real = to_compare(recording.rows, KNOWN_DIFFERENCES.get(session.name, ()))
    return Pair(session, recording.rows, real, emulate(session, recording, monkeypatch))


@pytest.mark.parametrize("who", NAMES)
def test_rounds_are_those_of_the_real_client(pair: Pair, who: str) -> None:
    """Every JoinGroup, SyncGroup and LeaveGroup: version, fields, order, time."""
    real, ours = rounds(pair.real, who), rounds(pair.emulated, who)
    assert [row["api"] for row in ours] == [row["api"] for row in real]
    for our, their in zip(ours, real, strict=True):
        assert subscriptions(our) == subscriptions(their)
        assert fields(our) == fields(their)
        assert abs(our["ms"] - their["ms"]) <= TOLERANCE_MS


@pytest.mark.parametrize("who", NAMES)
def test_heartbeats_come_when_the_real_client_sends_them(pair: Pair, who: str) -> None:
    interval_ms = PROFILES[pair.session.profile].defaults.get("heartbeat.interval.ms", 3000)
    versions = {row["v"] for row in pair.real if row.get("api") == "Heartbeat"}
    assert versions == {row["v"] for row in pair.emulated if row["api"] == "Heartbeat"}
    for gap_ms in (*intervals(pair.real, who), *intervals(pair.emulated, who)):
        assert interval_ms - HASTE_MS <= gap_ms <= interval_ms + LATENESS_MS
    real, ours = first_heartbeats(pair.recorded, who), first_heartbeats(pair.emulated, who)
    for some, others in ((real, ours), (ours, real)):
        assert all(min(abs(one - other) for other in others) <= TOLERANCE_MS for one in some)


@pytest.mark.parametrize("who", NAMES)
def test_positions_are_committed_before_a_rejoin_where_the_real_client_does(pair: Pair, who: str) -> None:
    real, ours = commits_before_joining(pair.real, who), commits_before_joining(pair.emulated, who)
    assert set(ours) == set(real)
    versions = {row["v"] for row in pair.real if row.get("api") == "OffsetCommit"}
    assert {row["v"] for row in pair.emulated if row["api"] == "OffsetCommit"} == versions


def test_every_profile_has_a_recording() -> None:
    assert {session.profile for session in SESSIONS.values()} == set(PROFILES)
    for session in SESSIONS.values():
        assert read(session.name).client.split()[1] in PROFILES[session.profile].client
