"""A trace as records of a Kafka topic: produced and watched, on the emulator and on Kafka in a JVM."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import groupstorm
from groupstorm.clients.brokers.jvm import held_ports
from groupstorm.figures import FiguresAccumulator
from groupstorm.problems import InputError, OutputError
from groupstorm.testing.broker import BrokerUnderTest
from groupstorm.testing.chosen import chosen_broker
from groupstorm.trace import topic as topic_module
from groupstorm.trace.rows import TraceEntry
from groupstorm.trace.topic import TopicAddress, TopicSink, read_topic_address
from tests.command import COMMAND, environment_of_command, refused
from tests.command import groupstorm as run_groupstorm
from tests.explain.explaining import storm
from tests.needs import needed
from tests.processes import killed_after, next_line, outcome_of
from tests.watch.rolling_rows import rows_of

confluent_kafka = pytest.importorskip("confluent_kafka", reason="pip install 'groupstorm[kafka]'")


@pytest.fixture(scope="module", params=["emulator", pytest.param("jvm", marks=pytest.mark.slow)])
def broker(request: pytest.FixtureRequest) -> Iterator[BrokerUnderTest]:
    with needed(), chosen_broker(request.param, {}) as running:
        yield running


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("storm")
    return storm(folder, "rolling-deploy", "eager", {"members": 4, "partitions": 8})


def entries_of(trace: Path) -> list[TraceEntry]:
    return [one.entry for one in rows_of(trace) if one.entry is not None]


def sink_to(broker: BrokerUnderTest, topic: str) -> TopicSink:
    return TopicSink(TopicAddress(broker.bootstrap_servers, topic), f"--trace-to .../{topic}", may_wait=True)


def records_of(bootstrap: str, topic: str) -> list[Any]:
    """All records of a topic with one partition."""
    consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": "reader"})
    try:
        place = confluent_kafka.TopicPartition(topic, 0, 0)
        _, end = consumer.get_watermark_offsets(place, timeout=60)
        consumer.assign([place])
        return [one for one in consumer.consume(end, timeout=60) if one.error() is None] if end else []
    finally:
        consumer.close()


def test_the_records_are_the_lines_of_the_trace_by_group(broker: BrokerUnderTest, trace: Path) -> None:
    sink = sink_to(broker, "lines")
    sink.add_all(entries_of(trace))
    sink.close()
    records = records_of(broker.bootstrap_servers, "lines")
    assert [one.value().decode() for one in records] == (trace / "trace.jsonl").read_text(
        "utf-8"
    ).splitlines()
    assert {one.key() for one in records} == {b"storm"}
    assert sink.readable_rows == len(records)


def test_a_topic_that_holds_records_is_refused(broker: BrokerUnderTest, trace: Path) -> None:
    sink = sink_to(broker, "used")
    sink.close()
    sink = sink_to(broker, "used")  # it exists and is empty
    sink.add(*entries_of(trace)[0])
    sink.close()
    with pytest.raises(InputError, match=r"^--trace-to \.\.\./used: the topic holds records already"):
        sink_to(broker, "used")


def test_a_broker_that_takes_no_rows_ends_the_trace(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_module, "_WAITING_MAX", 3)
    with held_ports(1) as (port,):
        with groupstorm.broker(port=port) as stopped:
            sink = TopicSink(TopicAddress(stopped.bootstrap_servers, "t"), "--trace-to", may_wait=False)
        monkeypatch.setattr(topic_module, "_ANSWER_S", 1.0)
        _refuses_rows(sink, trace)


def _refuses_rows(sink: TopicSink, trace: Path) -> None:
    with pytest.raises(OutputError, match="/t: cannot be written: the broker takes the rows too slowly"):
        sink.add_all(entries_of(trace)[:4])
    with pytest.raises(OutputError, match="/t: cannot be written: 3 rows were not acknowledged within 1 s"):
        sink.close()
    assert sink.readable_rows == 0
    sink.discard()


def test_a_broker_that_does_not_answer_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_module, "_ANSWER_S", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = TopicAddress(f"127.0.0.1:{silent.getsockname()[1]}", "t")
        with pytest.raises(InputError, match=f"^--trace-to {address}: "):
            TopicSink(address, f"--trace-to {address}", may_wait=True)


@pytest.mark.parametrize(
    ("written", "bootstrap"), [("a:1/t", "a:1"), ("a:1,[::1]:9092/x.y_z-1", "a:1,[::1]:9092")]
)
def test_an_address_of_a_topic(written: str, bootstrap: str) -> None:
    address = read_topic_address("--trace-to", written)
    assert (str(address), address.bootstrap) == (written, bootstrap)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("a:1", "expected HOST:PORT/TOPIC"),
        ("a/t", "expected HOST:PORT"),
        ("a:1,/t", "expected HOST:PORT"),
        ("a:1/", "expected a topic's name"),
        ("a:1/b c", "expected a topic's name"),
        ("a:1/..", "expected a topic's name"),
    ],
)
def test_an_address_that_cannot_be_understood_is_refused(written: str, message: str) -> None:
    with pytest.raises(InputError, match=r"^--trace-to ") as refused:
        read_topic_address("--trace-to", written)
    assert message in str(refused.value)


@pytest.mark.slow
def test_a_watch_reads_a_topic_and_goes_on_where_it_ended(
    broker: BrokerUnderTest, trace: Path, tmp_path: Path
) -> None:
    pytest.importorskip("pyspark", reason="needs PySpark: pip install 'groupstorm[watch]'")
    entries, sink = entries_of(trace), sink_to(broker, "watched")
    half = len(entries) // 2
    seen = []
    for part in (entries[:half], entries[half:]):
        sink.add_all(part)
        sink.close()
        address = broker.bootstrap_servers
        options = ("--topic", "watched", "--once", "--json", "--window", "1d")
        done = run_groupstorm("watch", address, *options, cwd=tmp_path)
        skip_without_source(done.stderr)
        assert done.returncode == 0, done.stderr
        seen.append(json.loads(done.stdout)["figures"])
    assert seen == [figures_of(entries[:half]), figures_of(entries)]


def figures_of(entries: list[TraceEntry]) -> Any:
    whole = FiguresAccumulator()
    whole.count_from(0)
    whole.add_all(entries)
    return json.loads(json.dumps(whole.figures().to_json()))


def skip_without_source(errors: str) -> None:
    if "unresolved dependenc" in errors:
        pytest.skip("Spark cannot fetch spark-sql-kafka-0-10: give it a way to Maven Central")


@pytest.mark.slow
def test_a_checkpoint_that_spark_cannot_read_is_refused(
    broker: BrokerUnderTest, trace: Path, tmp_path: Path
) -> None:
    pytest.importorskip("pyspark", reason="needs PySpark: pip install 'groupstorm[watch]'")
    sink = sink_to(broker, "damaged")
    sink.add_all(entries_of(trace)[:40])
    sink.close()
    watch = ("watch", broker.bootstrap_servers, "--topic", "damaged", "--once")
    done = run_groupstorm(*watch, cwd=tmp_path)
    skip_without_source(done.stderr)
    assert done.returncode == 0, done.stderr
    checkpoint = tmp_path / "damaged.watch"
    (checkpoint / "spark" / "offsets" / "0").write_text("mine", "utf-8")
    for checksum in (checkpoint / "spark").rglob(".*.crc"):
        checksum.unlink()
    refusal = refused(run_groupstorm(*watch, cwd=tmp_path))
    assert f"--checkpoint {checkpoint}: Spark cannot go on: " in refusal
    assert refusal.endswith("name another folder or remove it")


@pytest.mark.slow
def test_a_watch_whose_jvm_has_gone_ends_with_one_line(
    broker: BrokerUnderTest, trace: Path, tmp_path: Path
) -> None:
    pytest.importorskip("pyspark", reason="needs PySpark: pip install 'groupstorm[watch]'")
    sink = sink_to(broker, "ended")
    sink.add_all(entries_of(trace)[:40])
    sink.close()
    with (
        subprocess.Popen(
            [*COMMAND, "watch", broker.bootstrap_servers, "--topic", "ended", "--json", "--every", "200ms"],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment_of_command() | {"PYTHONUNBUFFERED": "1"},
        ) as process,
        killed_after(process),
    ):
        assert process.stdout is not None
        if not process.stdout.readline():
            skip_without_source(outcome_of(process)[1])
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text("utf-8").split()
        (jvm,) = [int(one) for one in children if "java" in Path(f"/proc/{one}/cmdline").read_text("utf-8")]
        os.kill(jvm, signal.SIGKILL)
        _, errors = outcome_of(process)
        assert process.returncode == 2, errors
    progress = "reading the rows that are there"
    assert [line for line in errors.splitlines() if not line.startswith(progress)] == [
        "groupstorm: Spark has ended: start the watch again, and it goes on where it was"
    ]


@pytest.mark.slow
def test_serve_produces_what_its_coordinator_does(broker: BrokerUnderTest, tmp_path: Path) -> None:
    with (
        subprocess.Popen(
            [
                *COMMAND,
                "serve",
                "--port",
                "0",
                "--topic",
                "orders:2",
                "--trace-to",
                f"{broker.bootstrap_servers}/served",
            ],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment_of_command(),
        ) as server,
        killed_after(server),
    ):
        served = next_line(server).removeprefix("listening on ").strip()
        member = confluent_kafka.Consumer({"bootstrap.servers": served, "group.id": "payments"})
        member.subscribe(["orders"])
        while not member.assignment():
            assert server.poll() is None, outcome_of(server)
            member.poll(0.1)
        member.close()
        server.send_signal(signal.SIGTERM)
        _, errors = outcome_of(server)
        assert server.returncode == 0, errors
    rows = [json.loads(one.value()) for one in records_of(broker.bootstrap_servers, "served")]
    assert [row["seq"] for row in rows] == [*range(len(rows))]
    assert {row["group"] for row in rows} == {"payments"}
    assert {"member_added", "member_removed"} <= {row["event"] for row in rows}


@pytest.mark.slow
def test_a_run_produces_its_trace_too(broker: BrokerUnderTest, tmp_path: Path) -> None:
    to = f"{broker.bootstrap_servers}/run"
    options = ("--set", "members=4", "--set", "partitions=8", "--out", "r", "--trace-to", to)
    done = run_groupstorm("run", "rolling-deploy", *options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = [one.value().decode() for one in records_of(broker.bootstrap_servers, "run")]
    assert lines == (tmp_path / "r" / "trace.jsonl").read_text("utf-8").splitlines()
