"""Clients read a compacted log, from every offset: those that are gone, too."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest

from tests.broker.wire import RawClient
from tests.conformance.backends import Backends
from tests.conformance.compacting import Partition
from tests.conformance.programs.building import SOURCES, java_program
from tests.conformance.test_compaction import CLEANING, HOUR_MS
from tests.needs import needed
from tests.processes import run_process

#: What is left: offset, key and value.
LEFT = (
    "1:a=1", "3:b=1", "4:c=1", "13:d=1", "16:e=1", "18:x=7", "19:y=5", "20:z=1", "21:f=1", "22:f=2", "23:g=1",
)  # fmt: skip
#: The offset of a record whose transaction was aborted, and the end of the log.
ABORTED, END = 23, 25
_DEADLINE_S = 60.0


class Compacted(NamedTuple):
    address: str
    topic: str


#: The line of each start: START OFFSET:KEY=VALUE...
Read = Callable[[Compacted, str], list[str]]


@pytest.fixture(scope="module")
def compacted(backends: Backends, kind: str) -> Iterator[Compacted]:
    """A log with gaps at the beginning, in the middle and at the end of batches, without whole batches, and
    with a batch without records."""
    backend = backends.needed(kind, CLEANING)
    host, _, port = backend.address.partition(":")
    with RawClient((host, int(port))) as client:
        topic = backend.topic(1, "compacted")
        _write(Partition(client, topic))
        yield Compacted(backend.address, topic)


def _write(partition: Partition) -> None:
    partition.configure(segment_ms="1000", min_cleanable_dirty_ratio="0.0")
    at_ms = time.time_ns() // 1_000_000 - HOUR_MS
    idempotent, epoch = partition.producer()
    name = f"t-{partition.topic}"
    partition.write((b"x", b"1"), (b"a", b"1"), (b"x", b"2"), (b"b", b"1"), at_ms=at_ms)  # 0-3
    partition.write((b"c", b"1"), (b"y", b"1"), (b"y", b"2"), at_ms=at_ms)  # 4-6
    partition.write((b"x", b"3"), (b"y", b"3"), at_ms=at_ms)  # 7-8
    for sequence in range(2):  # 9, 10
        partition.write(
            (b"x", b"%d" % (4 + sequence)),
            at_ms=at_ms,
            producer_id=idempotent,
            epoch=epoch,
            sequence=sequence,
        )
    partition.transact(name, (b"a", b"aborted"), at_ms=at_ms, commits=False)  # 11, marker 12
    partition.transact(name, (b"d", b"1"), at_ms=at_ms, commits=True)  # 13, marker 14
    partition.write((b"x", b"6"), (b"e", b"1"), (b"y", b"4"), at_ms=at_ms, compression=1)  # 15-17
    # markers have the present time: later records begin new segments behind them
    soon_ms = at_ms + HOUR_MS + 600_000
    partition.write((b"x", b"7"), (b"y", b"5"), (b"z", b"1"), at_ms=soon_ms)  # 18-20
    partition.write((b"f", b"1"), (b"f", b"2"), at_ms=soon_ms + 2000)  # 21-22, active
    partition.transact(name, (b"g", b"1"), at_ms=soon_ms + 2000, commits=False)  # 23, marker 24
    partition.configure(cleanup_policy="compact")
    left = partition.wait_for([int(one.partition(":")[0]) for one in LEFT])
    empty = [one.base_offset for one in left if not one.records and not one.marker]
    assert 10 in empty, "the idempotent producer's last batch stays, without its record"


def java(compacted: Compacted, isolation_level: str) -> list[str]:
    with needed():
        program = java_program(SOURCES / "java" / "ReadFrom.java", "conformance-java-read")
    command = program.command("ReadFrom", *compacted, isolation_level)
    answer = run_process(command, capture_output=True, text=True, check=True, deadline_s=_DEADLINE_S)
    lines = []
    for line in answer.stdout.splitlines():
        start, end, *read = line.split()
        assert int(end) == END, line
        lines.append(" ".join([start, *read]))
    return lines


def confluent(compacted: Compacted, isolation_level: str) -> list[str]:
    from confluent_kafka import Consumer, KafkaError, TopicPartition

    options = {
        "bootstrap.servers": compacted.address,
        "group.id": "unused",
        "isolation.level": isolation_level,
        "enable.partition.eof": True,
    }
    consumer = Consumer(options)
    lines = []
    try:
        for start in range(END):
            consumer.assign([TopicPartition(compacted.topic, 0, start)])
            line = [str(start)]
            while (message := consumer.poll(_DEADLINE_S)) is not None:
                error = message.error()
                if error is not None:
                    assert (error.code(), message.offset()) == (KafkaError._PARTITION_EOF, END)
                    break
                line.append(_shown(message.offset(), message.key(), message.value()))
            lines.append(" ".join(line))
    finally:
        consumer.close()
    return lines


def aiokafka(compacted: Compacted, isolation_level: str) -> list[str]:
    return asyncio.run(_aiokafka(compacted, isolation_level))


async def _aiokafka(compacted: Compacted, isolation_level: str) -> list[str]:
    from aiokafka import AIOKafkaConsumer, TopicPartition

    consumer = AIOKafkaConsumer(
        bootstrap_servers=compacted.address, isolation_level=isolation_level, enable_auto_commit=False
    )
    await consumer.start()
    lines = []
    try:
        partition = TopicPartition(compacted.topic, 0)
        consumer.assign([partition])
        for start in range(END):
            consumer.seek(partition, start)
            line = [str(start)]
            async with asyncio.timeout(_DEADLINE_S):
                while await consumer.position(partition) < END:
                    got = await consumer.getmany(partition, timeout_ms=100)
                    line += [_shown(one.offset, one.key, one.value) for one in got.get(partition, ())]
            lines.append(" ".join(line))
    finally:
        await consumer.stop()
    return lines


def _shown(offset: int, key: bytes, value: bytes) -> str:
    return f"{offset}:{key.decode()}={value.decode()}"


@pytest.mark.slow
@pytest.mark.parametrize("isolation_level", ["read_uncommitted", "read_committed"])
@pytest.mark.parametrize("read", [java, confluent, aiokafka])
def test_clients_read_over_the_gaps(compacted: Compacted, read: Read, isolation_level: str) -> None:
    """On the emulator and on Kafka, clients read every record that is left, from the start on."""
    committed = isolation_level == "read_committed"
    left = [one for one in LEFT if not (committed and one.startswith(f"{ABORTED}:"))]
    expected = [
        " ".join([str(start), *(one for one in left if int(one.partition(":")[0]) >= start)])
        for start in range(END)
    ]
    assert read(compacted, isolation_level) == expected
