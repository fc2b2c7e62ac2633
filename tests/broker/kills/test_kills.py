"""kill -9 of `groupstorm serve --data` under load: nothing that a client was told is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.broker.kills import real_clients, word_count
from tests.needs import needed
from tests.soaking import sizes


@pytest.mark.slow
@pytest.mark.parametrize("kills", sizes(3, 1_000, within_minutes=120))
def test_kills_lose_and_double_nothing_of_real_clients(tmp_path: Path, kills: int) -> None:
    told = real_clients.kill_repeatedly(tmp_path, kills, seed=1)
    assert told.has_all_kinds, told


@pytest.mark.slow
@pytest.mark.parametrize("kills", sizes(2, 100, within_minutes=60))
def test_kills_lose_and_double_nothing_of_a_kafka_streams_application(tmp_path: Path, kills: int) -> None:
    with needed():
        counted = word_count.kill_repeatedly(tmp_path, kills, seed=1)
    assert counted
