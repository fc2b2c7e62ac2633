"""Kill a broker under load, start it again from its folder, and look for what it has acknowledged."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from tests.broker import wire
from tests.broker.kills.load import FIRST, PLAIN, SECOND, TOPIC, Acknowledged, under_load
from tests.broker.kills.requests import read
from tests.broker.kills.served import ServedProcess, served
from tests.broker.test_serve import DEADLINE_S
from tests.broker.wire import RawClient
from tests.waiting import wait_until

#: The longest life of a broker, in seconds from its first line.
LONGEST_LIFE_S = 0.6
#: After so many kills the folder is a new one: every check reads all records.
KILLS_PER_FOLDER = 25


def kill_repeatedly(folder: Path, count: int, seed: int) -> Iterator[Acknowledged]:
    """Kill a broker ``count`` times, at moments that the seed chooses; give what each folder's last broker
    had acknowledged. Raises AssertionError if any of that is missing after a restart."""
    draw = random.Random(seed)
    for first in range(0, count, KILLS_PER_FOLDER):
        told = Acknowledged()
        data = folder / f"data-{first}"
        for _ in range(min(KILLS_PER_FOLDER, count - first)):
            live_and_die(data, told, draw.uniform(0, LONGEST_LIFE_S))
        with _served(data) as broker, RawClient(broker.address) as client:
            check(client, told)
        yield told


def _served(data: Path) -> AbstractContextManager[ServedProcess]:
    """A broker that writes checkpoints often: a kill meets every part of that."""
    return served(data, f"--topic={TOPIC}:3", "--set=group.initial.rebalance.delay.ms=0")


def live_and_die(data: Path, told: Acknowledged, life_s: float) -> None:
    """One life of the broker: check what was acknowledged before, serve under load, be killed."""
    with _served(data) as broker:
        with RawClient(broker.address) as client:
            check(client, told)
        threads = under_load(broker.address, told)
        time.sleep(life_s)
        wait_until(lambda: told.has_all_kinds or told.problems, "something of each kind to lose")
        broker.kill()
        for thread in threads:
            thread.join(timeout=DEADLINE_S)
            assert not thread.is_alive(), "a client waits for a broker that was killed"
        assert "Traceback" not in broker.log(), broker.log()
        assert told.problems == [], told.problems


def check(client: RawClient, told: Acknowledged) -> None:
    """Everything that was acknowledged is there, and each transaction as a whole or not at all."""
    plain = {one.offset: one.value for one in read(client, TOPIC, PLAIN)}
    for offset, value in told.records:
        assert plain.get(offset) == value, f"the record at {offset} is {plain.get(offset)!r}, not {value!r}"
    for group, acknowledged in told.commits.items():
        found = committed_offset(client, group)
        assert acknowledged <= found <= told.tried_commits[group], (group, found, acknowledged)
    first, second = ([found.value for found in read(client, TOPIC, one)] for one in (FIRST, SECOND))
    assert first == second, "a transaction is in one partition and not in the other"
    assert set(told.committed) <= set(first), "a committed transaction is lost"
    assert not set(told.aborted) & set(first), "an aborted transaction is there"


def committed_offset(client: RawClient, group: str) -> int:
    topic = {"name": TOPIC, "partition_indexes": (0,)}
    answer = client.ask(wire.OFFSET_FETCH, 7, group_id=group, topics=(topic,))
    return int(answer.topics[0].partitions[0].committed_offset)
