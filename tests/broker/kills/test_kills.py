"""kill -9 of `groupstorm serve --data` under load: nothing that a client was told is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.broker.kills.killing import check, kill_repeatedly
from tests.broker.kills.load import TOPIC, Acknowledged
from tests.broker.test_serve import serving
from tests.broker.wire import RawClient


@pytest.mark.slow
def test_ten_kills_lose_nothing(tmp_path: Path) -> None:
    (told,) = kill_repeatedly(tmp_path, 10, seed=1)
    acknowledged = (told.records, told.commits, told.committed, told.aborted, told.generation)
    assert all(acknowledged), acknowledged


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
