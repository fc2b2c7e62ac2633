"""The installed clients still send the recorded requests; half a minute for all of them."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.client_profiles.clients import CLIENTS, Client
from tests.client_profiles.comparison import Row, fields, rounds, subscriptions
from tests.client_profiles.emulated import NAMES
from tests.client_profiles.recording import Action, Recording, Session, read, record
from tests.needs import Missing

pytestmark = pytest.mark.soak

SHORT_SESSION = (
    Action(0, "start", "first"),
    Action(9, "start", "second"),
    Action(9, "stop", "second"),
    Action(6, "stop", "first"),
    Action(3, "", ""),
)


@pytest.fixture(scope="module")
def recordings() -> dict[str, Recording | str]:
    """Recordings by profile; for a missing client a text that says what it needs."""
    found: dict[str, Recording | str] = {}
    clients: dict[str, Client] = {}
    for profile, find in CLIENTS.items():
        try:
            clients[profile] = find()
        except Missing as missing:
            found[profile] = str(missing)
    with ThreadPoolExecutor(len(clients) or 1) as pool:
        recorded = pool.map(lambda name: short_recording(name, clients[name]), clients)
        found |= dict(zip(clients, recorded, strict=True))
    return found


@pytest.mark.parametrize("profile", CLIENTS)
def test_an_installed_client_sends_the_recorded_requests(
    recordings: dict[str, Recording | str], profile: str
) -> None:
    recording = recordings[profile]
    if isinstance(recording, str):
        pytest.skip(recording)
    live, golden = request_summaries(recording), request_summaries(read(profile))
    if not live <= golden:  # on a busy machine a client may lose its session and join again: let it try alone
        live = request_summaries(short_recording(profile, CLIENTS[profile]()))
    assert live
    assert live <= golden, (
        f"{recording.client}: record anew: python -m tests.client_profiles.record {profile}"
    )


def short_recording(profile: str, client: Client) -> Recording:
    return record(client, Session(profile, "", SHORT_SESSION))


def request_summaries(recording: Recording) -> set[str]:
    """All requests of the members' rounds, without the generations."""
    return {summary(row) for who in NAMES for row in rounds(recording.rows, who)}


def summary(row: Row) -> str:
    kept = {name: value for name, value in fields(row).items() if name not in ("generation", "who")}
    return json.dumps([kept, subscriptions(row)], sort_keys=True)
