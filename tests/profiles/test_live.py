"""The clients that are installed here still say what was recorded; half a minute for all of them."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.profiles.clients import CLIENTS, Client, Missing
from tests.profiles.comparison import Row, fields, rounds, subscriptions
from tests.profiles.emulated import NAMES
from tests.profiles.recording import Deed, Recording, Session, read, record

pytestmark = pytest.mark.slow

SHORTLY = (
    Deed(0, "start", "first"),
    Deed(9, "start", "second"),
    Deed(9, "stop", "second"),
    Deed(6, "stop", "first"),
    Deed(3, "", ""),
)


@pytest.fixture(scope="module")
def recordings() -> dict[str, Recording | str]:
    """By profile; a text where the client is missing, which says how to have it."""
    found: dict[str, Recording | str] = {}
    clients: dict[str, Client] = {}
    for profile, find in CLIENTS.items():
        try:
            clients[profile] = find()
        except Missing as missing:
            found[profile] = str(missing)
    with ThreadPoolExecutor(len(clients) or 1) as pool:
        recorded = pool.map(lambda name: record(clients[name], Session(name, "", SHORTLY)), clients)
        found |= dict(zip(clients, recorded, strict=True))
    return found


@pytest.mark.parametrize("profile", CLIENTS)
def test_an_installed_client_says_what_was_recorded(
    recordings: dict[str, Recording | str], profile: str
) -> None:
    recording = recordings[profile]
    if isinstance(recording, str):
        pytest.skip(recording)
    live, golden = said(recording), said(read(profile))
    assert live
    assert live <= golden, f"{recording.client} says something new: python -m tests.profiles.record {profile}"


def said(recording: Recording) -> set[str]:
    """Everything that members say in rounds, without the generations."""
    return {in_short(row) for who in NAMES for row in rounds(recording.rows, who)}


def in_short(row: Row) -> str:
    told = {name: value for name, value in fields(row).items() if name not in ("generation", "who")}
    return json.dumps([told, subscriptions(row)], sort_keys=True)
