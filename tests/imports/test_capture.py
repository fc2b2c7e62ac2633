"""`groupstorm capture`: against the emulator, which has no offsets topic to read, and against Kafka 4.3.1."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from groupstorm.broker.embedded import EmbeddedBroker
from groupstorm.broker.security.listener import ListenerSecurity, tls_context
from groupstorm.broker.security.users import Users
from groupstorm.clients.brokers.contract import read_addresses
from groupstorm.clients.brokers.jvm import jvm
from groupstorm.clients.wire.admin import create_topics
from groupstorm.clients.wire.cluster import ClusterClient
from groupstorm.imports.capture.shell import Progress, Watch, captured
from groupstorm.imports.importing import Options, import_sources
from groupstorm.imports.output import Imported
from tests.certificates import make_certificates
from tests.command import groupstorm, refused
from tests.imports.importing import figures, rows
from tests.needs import needed

PATIENCE_S = 60

aiokafka = pytest.importorskip("aiokafka", reason="the members: pip install 'groupstorm[kafka]'")
PARTITIONS = 4


@pytest.fixture
def emulator() -> Iterator[str]:
    with EmbeddedBroker({"group.initial.rebalance.delay.ms": "0"}) as broker:
        yield broker.address


class Watching:
    """A capture that runs beside the members of a test."""

    def __init__(self, address: str, group: str) -> None:
        self.address = address
        self.group = group
        self.progress = Progress(told=lambda _: self._told.set())
        self._told = asyncio.Event()
        watch = Watch(read_addresses(address), [group], for_s=600, every_s=0.1)
        self._task = asyncio.ensure_future(captured(watch, self.progress))

    async def rounds(self, count: int) -> None:
        """Wait until the cluster was asked, or had time to be asked, so many times."""
        for _ in range(count):
            self._told.clear()
            waiting = asyncio.ensure_future(self._told.wait())
            ended = {waiting, self._task}
            await asyncio.wait(ended, timeout=PATIENCE_S, return_when=asyncio.FIRST_COMPLETED)
            assert not self._task.done(), self._task.exception()
            assert waiting.done(), f"it does not ask the cluster within {PATIENCE_S} s"

    async def end(self, out: Path) -> Imported:
        """End it as a user does, or as `timeout` does, which passes each signal on twice, and import what it
        has."""
        signal.raise_signal(signal.SIGINT)
        for _ in range(3):  # the first has been handled
            await asyncio.sleep(0)
        if not self._task.done():
            signal.raise_signal(signal.SIGINT)
        sources = await self._task
        return import_sources(sources, out, Options(groups=frozenset({self.group})))


async def member(stack: AsyncExitStack, address: str, group: str, client: str) -> Any:
    consumer = aiokafka.AIOKafkaConsumer(
        "t",
        bootstrap_servers=address,
        group_id=group,
        client_id=client,
        heartbeat_interval_ms=100,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    await consumer.start()
    stack.push_async_callback(consumer.stop)
    return consumer


async def owns(consumer: Any, count: int) -> None:
    """Wait until the member has so many partitions."""
    async with asyncio.timeout(PATIENCE_S):
        while len(consumer.assignment()) != count:
            await consumer.getmany(timeout_ms=50)


async def join_and_leave(watching: Watching) -> None:
    """A member, a second one that joins and leaves, and the first one alone again."""
    cluster = ClusterClient(read_addresses(watching.address), "test", 30_000)
    await create_topics(cluster, {"t": PARTITIONS})
    cluster.close()
    await watching.rounds(1)  # the capture has begun: no generation is before it
    async with AsyncExitStack() as stack:
        first = await member(stack, watching.address, watching.group, "app-a")
        await owns(first, PARTITIONS)
        await watching.rounds(2)
        async with AsyncExitStack() as inner:
            second = await member(inner, watching.address, watching.group, "app-b")
            await asyncio.gather(owns(first, 2), owns(second, 2))
            await watching.rounds(2)
        await owns(first, PARTITIONS)
        await first.commit({aiokafka.TopicPartition("t", 0): 7})
        await watching.rounds(2)


def handed_over(folder: Path) -> list[tuple[str, int]]:
    """(member, how many partitions) of every assignment that is not empty, each change once."""
    told = [(row["member"], len(row["partitions"])) for row in rows(folder, "sync_answered")]
    return [one for at, one in enumerate(told) if one[1] and one not in told[max(0, at - 2) : at]]


async def test_how_fast_the_logs_grow(emulator: str, tmp_path: Path) -> None:
    """Ten records between two polls; the row stands at the first and has the rate until the second."""
    watching = Watching(emulator, "growing")
    cluster = ClusterClient(read_addresses(emulator), "test", 30_000)
    await create_topics(cluster, {"t": PARTITIONS})
    cluster.close()
    async with AsyncExitStack() as stack:
        await owns(await member(stack, emulator, "growing", "app-a"), PARTITIONS)
        await watching.rounds(2)
        producer = aiokafka.AIOKafkaProducer(bootstrap_servers=emulator)
        await producer.start()
        stack.push_async_callback(producer.stop)
        for _ in range(10):
            await producer.send_and_wait("t", b"x", partition=1)
        await watching.rounds(2)
    await watching.end(tmp_path / "out")
    grown = [row for row in rows(tmp_path, "record_rates_changed") if any(row["rates"])]
    assert grown
    per_partition = [dict(zip(row["partitions"], row["rates"], strict=True)) for row in grown]
    assert all(rates["t-0"] == 0 < rates["t-1"] for rates in per_partition)
    assert figures(tmp_path)["growing"].lag_peak is None


async def test_the_emulator_is_polled(emulator: str, tmp_path: Path) -> None:
    watching = Watching(emulator, "polled")
    await join_and_leave(watching)
    done = await watching.end(tmp_path / "out")
    assert "__consumer_offsets is not there" in watching.progress.without_records
    assert done.logs[0].unit == "poll"
    assert sorted(handed_over(tmp_path))[0] == ("app-a", 2)
    assert ("app-b", 2) in handed_over(tmp_path)
    removed = next(row for row in rows(tmp_path, "member_removed") if row["member"] == "app-b")
    assert removed["provenance"] == "inferred"
    assert removed["earliest_us"] <= removed["latest_us"] == removed["time_us"]
    assert rows(tmp_path, "offsets_committed")[-1]["positions"] == [7]
    assert figures(tmp_path)["polled"].lag_peak is None


@pytest.mark.slow
async def test_kafka_tells_every_generation(tmp_path: Path) -> None:
    """The records of Kafka 4.3.1 are followed while members join and leave."""
    with needed():
        async with jvm({"group.initial.rebalance.delay.ms": "0"}) as broker:
            cluster = ClusterClient(broker.bootstrap, "test", 30_000)
            async with AsyncExitStack() as stack:  # a first group makes Kafka create its offsets topic
                await create_topics(cluster, {"other": 1})
                await owns(await _other(stack, broker.address), 1)
            cluster.close()
            watching = Watching(broker.address, "followed")
            await join_and_leave(watching)
            await watching.end(tmp_path / "out")
    assert watching.progress.without_records == ""
    assert watching.progress.records > 3
    stable = [row for row in rows(tmp_path, "group_state_changed") if row["state"] == "Stable"]
    assert [row["generation"] for row in stable][:3] == [1, 2, 3]
    assert all(row["evidence"][0].startswith("__consumer_offsets-0:") for row in stable)
    assert rows(tmp_path, "member_removed")[0]["member"] == "app-b"
    assert rows(tmp_path, "offsets_committed")[-1]["positions"] == [7]
    assert figures(tmp_path)["followed"].unowned_max_seconds is not None


async def _other(stack: AsyncExitStack, address: str) -> Any:
    consumer = aiokafka.AIOKafkaConsumer("other", bootstrap_servers=address, group_id="other")
    await consumer.start()
    stack.push_async_callback(consumer.stop)
    return consumer


def test_the_command(emulator: str, tmp_path: Path) -> None:
    ran = groupstorm(
        "capture",
        emulator,
        "--group",
        "nobody",
        "--for",
        "300ms",
        "--every",
        "100ms",
        "--out",
        "out",
        cwd=tmp_path,
    )
    assert ran.returncode == 0, ran.stderr
    asked = "it had no members: does the cluster know a consumer group of this name?"
    assert f"times, {asked}" in " ".join(ran.stdout.split())
    assert "the groups were described every 100ms instead" in " ".join(ran.stdout.split())
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"trace.jsonl", "import.json"}


def test_tls_and_a_password(tmp_path: Path) -> None:
    files = make_certificates(tmp_path)
    config = tmp_path / "client.properties"
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    lines = ["security.protocol=SASL_SSL", "ssl.truststore.type=PEM", "sasl.mechanism=SCRAM-SHA-512"]
    lines += [f"ssl.truststore.location={files.authority}"]
    lines += [f'sasl.jaas.config={module} required username="alice" password="secret";']
    config.write_text("\n".join(lines))
    security = ListenerSecurity(tls_context(files.server, files.server_key), Users({"alice": "secret"}))
    with EmbeddedBroker({}, security=security) as broker:
        command = [
            "capture",
            broker.address,
            "--group",
            "g",
            "--for",
            "100ms",
            "--client-config",
            str(config),
        ]
        ran = groupstorm(*command, "--out", "out", cwd=tmp_path)
        config.write_text(config.read_text().replace("secret", "wrong"))
        denied = refused(groupstorm(*command, "--out", "other", cwd=tmp_path))
    assert ran.returncode == 0, ran.stderr
    assert "invalid credentials with SASL mechanism SCRAM-SHA-512" in denied


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["nowhere", "--group", "g"], "'nowhere': expected HOST:PORT"),
        (["127.0.0.1:1", "--group", "g"], "127.0.0.1:1: connection refused: nothing listens there"),
        (["127.0.0.1:1", "--group", "g", "--for", "soon"], "--for: 'soon' is no duration"),
        (["127.0.0.1:1", "--group", "g", "--every", "1ms"], "--every: expected 100ms or more"),
        (["127.0.0.1:1", "--group", "g", "--client-config", "x"], "--client-config x: cannot be read"),
    ],
)
def test_what_is_refused_leaves_nothing(arguments: list[str], expected: str, tmp_path: Path) -> None:
    assert expected in refused(groupstorm("capture", *arguments, "--out", "out", cwd=tmp_path))
    assert not (tmp_path / "out").exists()
