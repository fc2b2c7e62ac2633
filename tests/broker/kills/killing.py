"""Kill a broker under load, start it again from its folder, and look for what it has acknowledged."""

from __future__ import annotations

import random
import signal
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from groupstorm.broker.log.batches import HEADER_BYTES, LENGTH_END
from groupstorm.broker.log.records import keyed_records
from groupstorm.coordinator.errors import Error
from tests.broker import wire
from tests.broker.kills.load import FIRST, PLAIN, SECOND, TOPIC, Acknowledged, Address, under_load
from tests.broker.test_serve import DEADLINE_S, serving
from tests.broker.wire import RawClient, milliseconds, structure

_HEAD = struct.Struct(">q13xh20xq")
_TRANSACTIONAL, _CONTROL = 0x10, 0x20
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
        with _serving(data) as (_, address), RawClient(address) as client:
            check(client, told)
        yield told


def _serving(data: Path) -> AbstractContextManager[tuple[subprocess.Popen[str], Address]]:
    """A broker that writes checkpoints often: a kill meets every part of that."""
    at_once = ("--set", "group.initial.rebalance.delay.ms=0")
    options = ("--data", str(data), "--topic", f"{TOPIC}:3", *at_once)
    return serving(*options, module="tests.broker.kills.often")


def live_and_die(data: Path, told: Acknowledged, life_s: float) -> None:
    """One life of the broker: check what was acknowledged before, serve under load, be killed."""
    with _serving(data) as (process, address):
        with RawClient(address) as client:
            check(client, told)
        threads = under_load(address, told)
        time.sleep(life_s)
        process.send_signal(signal.SIGKILL)
        for thread in threads:
            thread.join(timeout=DEADLINE_S)
            assert not thread.is_alive(), "a client waits for a broker that was killed"
        _, log = process.communicate(timeout=DEADLINE_S)
        assert "Traceback" not in log, log
        assert told.problems == []


def check(client: RawClient, told: Acknowledged) -> None:
    """Everything that was acknowledged is there, and each transaction as a whole or not at all."""
    plain = dict(read(client, PLAIN))
    for offset, value in told.records:
        assert plain.get(offset) == value, f"the record at {offset} is {plain.get(offset)!r}, not {value!r}"
    for group, acknowledged in told.commits.items():
        found = committed_offset(client, group)
        assert acknowledged <= found <= told.tried_commits[group], (group, found, acknowledged)
    first, second = ([value for _, value in read(client, one)] for one in (FIRST, SECOND))
    assert first == second, "a transaction is in one partition and not in the other"
    assert set(told.committed) <= set(first), "a committed transaction is lost"
    assert not set(told.aborted) & set(first), "an aborted transaction is there"


def committed_offset(client: RawClient, group: str) -> int:
    topic = structure(wire.OFFSET_FETCH, 7, "OffsetFetchRequestTopic", name=TOPIC, partition_indexes=(0,))
    answer = client.ask(wire.OFFSET_FETCH, 7, group_id=group, topics=(topic,))
    return int(answer.topics[0].partitions[0].committed_offset)


def read(client: RawClient, partition: int) -> Iterator[tuple[int, bytes]]:
    """Offsets and values of the committed records, as a consumer with `read_committed` sees them.

    Every batch of the load has one record, so that a batch's offset is its record's.
    """
    offset = 0
    while True:
        answer = fetch(client, partition, offset)
        assert answer.error_code == Error.NONE
        if not answer.records:
            return
        aborted = sorted((one.first_offset, one.producer_id) for one in answer.aborted_transactions or ())
        dropped: set[int] = set()
        for batch in batches(answer.records):
            base_offset, attributes, producer_id = _HEAD.unpack_from(batch)
            offset = base_offset + 1
            while aborted and aborted[0][0] <= base_offset:
                dropped.add(aborted.pop(0)[1])
            if attributes & _CONTROL:
                dropped.discard(producer_id)
            elif not attributes & _TRANSACTIONAL or producer_id not in dropped:
                (record,) = keyed_records(batch, batch[HEADER_BYTES:])
                yield base_offset, record.value or b""


def batches(records: bytes) -> Iterator[bytes]:
    """The batches of an answer, which gives whole ones only."""
    at = 0
    while at < len(records):
        end = at + LENGTH_END + int.from_bytes(records[at + 8 : at + LENGTH_END], "big")
        yield records[at:end]
        at = end


def fetch(client: RawClient, partition: int, offset: int) -> Any:
    asked = structure(
        wire.FETCH,
        11,
        "FetchPartition",
        partition=partition,
        fetch_offset=offset,
        partition_max_bytes=1_000_000,
        current_leader_epoch=-1,
    )
    topic = structure(wire.FETCH, 11, "FetchTopic", topic=TOPIC, partitions=(asked,))
    answer = client.ask(
        wire.FETCH,
        11,
        replica_id=-1,
        max_wait=milliseconds(0),
        min_bytes=1,
        max_bytes=1_000_000,
        isolation_level=1,
        session_id=0,
        session_epoch=-1,
        topics=(topic,),
        rack_id="",
    )
    return answer.responses[0].partitions[0]
