"""examples/partition_state.py: two processes join and leave, and every order counts once."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import signal
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

from groupstorm.broker.embedded import EmbeddedBroker
from tests.clients.consumer.applications import PARTITIONS, PATIENCE_S, TOPIC, until
from tests.command import ROOT

EXAMPLE = ROOT / "examples" / "partition_state.py"
CUSTOMERS = ("ann", "bob", "eve")


def saved(folder: Path) -> tuple[int, Counter[str]]:
    """Offsets and amounts of all partitions in the files."""
    offsets, amounts = 0, Counter[str]()
    for path in folder.glob("*.json"):
        content = json.loads(path.read_text("utf-8"))
        offsets += content["offset"]
        amounts.update(content["amounts"])
    return offsets, amounts


async def order(address: str, first: int, count: int) -> None:
    aiokafka = pytest.importorskip("aiokafka", reason="pip install aiokafka (extra `kafka`)")
    async with aiokafka.AIOKafkaProducer(bootstrap_servers=address) as producer:
        for number in range(first, first + count):
            key = CUSTOMERS[number % len(CUSTOMERS)].encode()
            await producer.send(TOPIC, str(number).encode(), key=key, partition=number % PARTITIONS)
        await producer.flush()


def load_example() -> ModuleType:
    specification = importlib.util.spec_from_file_location("partition_state", EXAMPLE)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules["partition_state"] = module  # where its dataclass looks for it
    specification.loader.exec_module(module)
    return module


async def process(address: str, folder: Path) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        str(EXAMPLE),
        *(address, TOPIC, str(folder)),
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


@pytest.mark.slow
async def test_every_order_counts_once(broker: EmbeddedBroker, tmp_path: Path) -> None:
    """One consumer in a process of its own, and one in the test, whose progress the test reads."""
    example = load_example()
    ledger, stop = example.Ledger(tmp_path), asyncio.Event()
    await order(broker.address, 0, 300)
    ours = asyncio.create_task(example.run(broker.address, TOPIC, ledger, stop))
    await until(lambda: ledger.counted == 300)
    other = await process(broker.address, tmp_path)
    await until(lambda: ledger.counted == 150)  # half of the partitions have gone
    await order(broker.address, 300, 300)
    await until(lambda: ledger.counted == 300)
    other.send_signal(signal.SIGTERM)
    assert await asyncio.wait_for(other.wait(), PATIENCE_S) == 0
    await until(lambda: ledger.counted == 600)
    await order(broker.address, 600, 300)
    await until(lambda: ledger.counted == 900)
    stop.set()
    await ours
    expected = Counter[str]()
    for number in range(900):
        expected[CUSTOMERS[number % len(CUSTOMERS)]] += number
    assert saved(tmp_path) == (900, expected)
