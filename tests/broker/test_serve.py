"""`groupstorm serve` as a process: its first line, its end, its trace, its refusals."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from groupstorm.clients.share import ShareConsumer
from groupstorm.coordinator.errors import Error
from groupstorm.trace.reader import read_rows
from tests.broker import wire
from tests.broker.test_connections import join
from tests.broker.wire import RawClient
from tests.command import ROOT, groupstorm, refused
from tests.processes import next_line, outcome_of
from tests.waiting import wait_until

DEADLINE_S = 120


@contextmanager
def serving(
    *arguments: str, folder: Path | None = None, module: str = "groupstorm"
) -> Iterator[tuple[subprocess.Popen[str], tuple[str, int]]]:
    """The process and its address; ``folder``: its working directory; ``module``: the command's."""
    with served([sys.executable, "-m", module, "serve", "--port", "0", *arguments], folder) as found:
        yield found


@contextmanager
def served(
    command: Sequence[str], folder: Path | None = None
) -> Iterator[tuple[subprocess.Popen[str], tuple[str, int]]]:
    """The process of a command that serves, and its address; ``folder``: its working directory."""
    pipe = subprocess.PIPE
    path = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    process = subprocess.Popen(command, text=True, cwd=folder, env=path, stdout=pipe, stderr=pipe)
    try:
        first = next_line(process)
        assert first.startswith("listening on 127.0.0.1:"), first
        yield process, ("127.0.0.1", int(first.rpartition(":")[2]))
    finally:
        process.kill()
        process.communicate()


@pytest.mark.slow
def test_a_broker_from_its_first_line_to_its_graceful_end(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    options = (
        "--topic",
        "orders:4",
        "--set",
        "group.initial.rebalance.delay.ms=60000",
        "--trace",
        str(trace),
    )
    with serving(*options) as (process, address), RawClient(address) as parked, RawClient(address) as asking:
        (topic,) = asking.ask(wire.METADATA, 1, topics=None).topics
        assert (topic.name, len(topic.partitions)) == ("orders", 4)
        parked.send(join("g"))
        wait_until(
            lambda: (
                any(trace.glob("*.jsonl")) and "join_parked" in [row["event"] for row in read_rows(trace)]
            ),
            "the trace can be read while it runs",
        )
        process.send_signal(signal.SIGTERM)
        _, log = outcome_of(process, DEADLINE_S)
        assert process.returncode == 0
        assert parked.answer(wire.JOIN_GROUP, 3).error_code == Error.NOT_COORDINATOR
        assert parked.is_closed_by_server()
    assert "group state changed" in log
    assert "group=g" in log
    assert "Traceback" not in log
    rows = list(read_rows(trace))
    assert [row["seq"] for row in rows] == list(range(len(rows)))
    assert {row["source"] for row in rows} == {"coordinator"}
    assert not list(trace.glob(".*")), "nothing half written is left"


@pytest.mark.slow
def test_no_time_without_an_owner_is_told_of_a_share_group(tmp_path: Path) -> None:
    async def one_comes_and_goes(address: tuple[str, int]) -> None:
        async with ShareConsumer(
            "orders", bootstrap_servers=f"127.0.0.1:{address[1]}", group_id="billing"
        ) as consumer:
            await consumer.poll(timeout_ms=100)

    trace = tmp_path / "trace"
    with serving("--topic", "orders:4", "--trace", str(trace)) as (process, address):
        asyncio.run(one_comes_and_goes(address))
        process.send_signal(signal.SIGTERM)
        outcome_of(process, DEADLINE_S)
    said = " ".join(groupstorm("explain", str(trace)).stdout.split())
    assert "Time without an owner: none counted, as nobody owns a partition of a share group" in said
    said = " ".join(groupstorm("watch", str(trace), "--once").stdout.split())
    assert "un-owned unknown (members of a share group own no partitions" in said
    assert "cost most" not in said


@pytest.mark.slow
def test_interrupting_ends_it_gracefully_as_well() -> None:
    with serving() as (process, address):
        with RawClient(address) as client:
            assert client.ask(wire.API_VERSIONS, 0).error_code == Error.NONE
        process.send_signal(signal.SIGINT)
        output, _ = outcome_of(process, DEADLINE_S)
        assert (process.returncode, output) == (0, "")


@pytest.mark.slow
def test_each_of_several_brokers_prints_its_address() -> None:
    with serving("--brokers", "3") as (process, address):
        ports = [address[1]] + [int(next_line(process).rpartition(":")[2]) for _ in range(2)]
        with RawClient(("127.0.0.1", ports[2])) as client:
            brokers = client.ask(wire.METADATA, 1, topics=()).brokers
        assert [one.port for one in brokers] == ports


@pytest.mark.slow
def test_a_signal_moves_every_groups_coordinator() -> None:
    options = ("--brokers", "2", "--set", "group.initial.rebalance.delay.ms=60000")
    with serving(*options) as (process, address), RawClient(address) as client:
        before = client.ask(wire.FIND_COORDINATOR, 0, key="g")
        with RawClient(("127.0.0.1", before.port)) as parked:
            parked.send(join("g"))
            wait_until(lambda: lists_groups(before.port))
            process.send_signal(signal.SIGUSR1)
            assert parked.answer(wire.JOIN_GROUP, 3).error_code == Error.NOT_COORDINATOR
        assert client.ask(wire.FIND_COORDINATOR, 0, key="g").port != before.port


def lists_groups(port: int) -> bool:
    with RawClient(("127.0.0.1", port)) as asking:
        return bool(asking.ask(wire.LIST_GROUPS, 0).groups)


def refusal(*arguments: str) -> str:
    """The line that `groupstorm serve` prints when it ends with exit code 2."""
    result = groupstorm("serve", *arguments, cwd=ROOT)
    assert result.stdout == ""
    return refused(result)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--topic", "orders"), "--topic orders: expected NAME:PARTITIONS"),
        (("--topic", "orders:"), "--topic orders:: expected NAME:PARTITIONS"),
        (("--topic", "orders:-1"), "--topic orders:-1: expected NAME:PARTITIONS"),
        (("--topic", "orders:0"), "1 partition or more"),
        (("--topic", "orders:99999999999"), "expected at most 10000 partitions"),
        (("--topic", "a:1", "--topic", "a:2"), "--topic a:2: a was named before"),
        (("--topic", "a/b:2"), "topic 'a/b'"),
        (("--set", "num.partitions"), "--set num.partitions: expected KAFKA.OPTION=VALUE"),
        (("--set", "num.partitions=x"), "num.partitions=x: expected an integer"),
        (("--brokers", "0"), "0 brokers: expected 1 to 100"),
        (("--brokers", "101"), "101 brokers: expected 1 to 100"),
        (("--port", "65535", "--brokers", "2"), "--port 65535: expected a port from 0"),
        (("--as-version", "1.0"), "version 1.0 of Kafka: expected one of 2.8, 3.9, 4.x"),
        (("--port", "70000"), "--port 70000: expected a port from 0 to 65535"),
        (
            ("--host", "192.0.2.1", "--port", "0", "--insecure"),
            "--host 192.0.2.1 --port 0: cannot listen there",
        ),
    ],
)
def test_a_wrong_option_is_one_line_and_exit_code_2(arguments: tuple[str, ...], expected: str) -> None:
    assert expected in refusal(*arguments)


def test_a_port_in_use_is_refused_with_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert f"--port {port}: cannot listen there" in refusal("--port", port)


def test_a_folder_that_cannot_hold_a_trace_is_refused_with_one_line(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    assert f"--trace {file}" in refusal("--port", "0", "--trace", str(file))
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "trace-000000.jsonl").write_text("")
    assert "holds a trace already" in refusal("--port", "0", "--trace", str(tmp_path / "old"))
