"""kill -9 of `groupstorm serve --data` under load: nothing that a client was told is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.broker.kills import real_clients, word_count
from tests.broker.kills.killing import check, kill_repeatedly
from tests.broker.kills.load import TOPIC, Acknowledged
from tests.broker.test_serve import serving
from tests.broker.wire import RawClient
from tests.needs import needed
from tests.soaking import sizes


@pytest.mark.slow
@pytest.mark.parametrize("kills", sizes(6, 1_000, within_minutes=120))
def test_kills_lose_nothing(tmp_path: Path, kills: int) -> None:
    for told in kill_repeatedly(tmp_path, kills, seed=1):
        assert told.has_all_kinds, told


@pytest.mark.slow
@pytest.mark.parametrize("kills", sizes(3, 300, within_minutes=60))
def test_kills_lose_and_double_nothing_of_real_clients(tmp_path: Path, kills: int) -> None:
    told = real_clients.kill_repeatedly(tmp_path, kills, seed=1)
    assert told.has_all_kinds, told


@pytest.mark.slow
@pytest.mark.parametrize("kills", sizes(2, 100, within_minutes=60))
def test_kills_lose_and_double_nothing_of_a_kafka_streams_application(tmp_path: Path, kills: int) -> None:
    with needed():
        counted = word_count.kill_repeatedly(tmp_path, kills, seed=1)
    assert counted


@pytest.mark.slow
@pytest.mark.parametrize(
    ("told", "missing"),
    [
        (Acknowledged(records=[(0, b"a")]), "the record at 0 is None, not b'a'"),
        (Acknowledged(commits={"g": 5}, tried_commits={"g": 5}), "-1, 5"),
        (Acknowledged(committed=[b"a"]), "a committed transaction is lost"),
    ],
)
def test_what_is_missing_is_found(told: Acknowledged, missing: str) -> None:
    with (
        serving("--topic", f"{TOPIC}:3") as (_, address),
        RawClient(address) as client,
        pytest.raises(AssertionError, match=missing),
    ):
        check(client, told)
