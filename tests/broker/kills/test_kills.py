"""kill -9 of `groupstorm serve --data` under load: nothing that a client was told is lost."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.broker.kills import real_clients, word_count
from tests.broker.kills.compacted import CompactedTopic
from tests.broker.kills.killing import check, kill_repeatedly
from tests.broker.kills.load import TOPIC, Acknowledged
from tests.broker.kills.sharing import SHARED, SharedTopic
from tests.broker.test_serve import serving
from tests.broker.wire import RawClient
from tests.conformance.programs.building import ProgramUnavailable
from tests.soaking import sizes


@pytest.mark.slow
@pytest.mark.parametrize("kills", sizes(6, 1_000, within_minutes=120))
def test_kills_lose_nothing(tmp_path: Path, kills: int) -> None:
    for told in kill_repeatedly(tmp_path, kills, seed=1):
        assert told.has_all_kinds, told
        compacted = told.compacted
        assert compacted.newest_committed
        assert 0 < compacted.kept < compacted.written / 2, "nothing was compacted"


@pytest.mark.slow
@pytest.mark.parametrize("kills", sizes(3, 300, within_minutes=60))
def test_kills_lose_and_double_nothing_of_real_clients(tmp_path: Path, kills: int) -> None:
    told = real_clients.kill_repeatedly(tmp_path, kills, seed=1)
    assert told.has_all_kinds, told


@pytest.mark.slow
@pytest.mark.parametrize("kills", sizes(2, 100, within_minutes=60))
def test_kills_lose_and_double_nothing_of_a_kafka_streams_application(tmp_path: Path, kills: int) -> None:
    try:
        counted = word_count.kill_repeatedly(tmp_path, kills, seed=1)
    except ProgramUnavailable as unavailable:
        pytest.skip(str(unavailable))
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


@pytest.mark.slow
def test_what_is_missing_in_a_compacted_topic_is_found() -> None:
    told = CompactedTopic()
    with serving("--topic", f"{TOPIC}:3") as (_, address), RawClient(address) as client:
        told.create(client)
        told.write(client)
        told.check(client)
        (key, found), *_ = told.newest.items()
        later = found._replace(offset=found.offset + 1)
        for newest, problem in ((later, f"{found} is the newest"), (later._replace(key=b"x"), "is lost")):
            told.newest = {newest.key or b"": newest}
            told.sent_later = {newest.key or b"": []}
            with pytest.raises(AssertionError, match=re.escape(problem)):
                told.check(client)
        told.newest = {}
        told.newest_committed = {key: 1}
        with pytest.raises(AssertionError, match="None, not 1 is committed"):
            told.check(client)


@pytest.mark.slow
def test_what_a_share_group_has_lost_or_gets_twice_is_found() -> None:
    shared = SharedTopic()
    with serving("--topic", f"{SHARED}:1") as (_, address), RawClient(address) as client:
        shared.create(client)
        shared.work(client)
        shared.check(client)
        shared.accepted.add(max(shared.produced) + 1)
        shared.produced.add(1_000)
        with pytest.raises(AssertionError, match=r"records are lost: \[1000\]"):
            shared.check(client)
        with pytest.raises(AssertionError, match=r"accepted records come again: \[10\]"):
            shared.work(client)
