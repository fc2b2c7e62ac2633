"""`groupstorm serve` on a disk that is full: the trace ends, the log is lost, the journal ends the broker."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import groupstorm
from groupstorm.broker import data_directory
from groupstorm.broker.assembly import make_broker
from groupstorm.broker.broker_journal import BrokerJournal, trace_in_folder
from groupstorm.broker.changes import ClusterNamed
from groupstorm.coordinator.errors import Error
from groupstorm.problems import ExitCode, OutputError
from groupstorm.trace.events.coordinator import GroupStateChanged
from groupstorm.trace.reader import read_rows
from tests.broker import wire
from tests.broker.full_disk import on_small_disk
from tests.broker.test_connections import join
from tests.broker.test_data import commit_one
from tests.broker.test_serve import DEADLINE_S, served
from tests.broker.wire import RawClient
from tests.command import ROOT
from tests.processes import killed_after, last_lines, outcome_of, run_process
from tests.testing.members import AT_ONCE, RawMember
from tests.waiting import wait_until

Address = tuple[str, int]


@contextmanager
def serving_on_small_disk(
    folder: Path, size: str, *arguments: str, log: str = ""
) -> Iterator[tuple[subprocess.Popen[str], Address]]:
    """The broker, on a disk of ``size`` at ``folder``; ``log``: the file that standard error goes to."""
    folder.mkdir()
    serve = [sys.executable, "-m", "groupstorm", "serve", "--port", "0", *arguments]
    if log:
        serve = ["sh", "-c", 'log="$1"; shift; exec "$@" 2>"$log"', "sh", log, *serve]
    with served(on_small_disk(folder, size, *serve)) as found:
        yield found


def seen_by(process: subprocess.Popen[str], folder: Path) -> Path:
    """The folder as the process sees it; nobody else sees its disk."""
    return Path(f"/proc/{process.pid}/root{folder}")


def log_lines(process: subprocess.Popen[str], until: str) -> list[str]:
    """The lines of the log up to the one that has ``until`` in it."""
    assert process.stderr is not None
    lines: list[str] = []
    with killed_after(process):
        for line in process.stderr:
            lines.append(line)
            if until in line:
                return lines
    raise AssertionError(f"the log ends without {until!r}{last_lines(''.join(lines))}")


@pytest.mark.slow
def test_the_broker_serves_on_without_a_trace_that_cannot_be_written(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    options = ("--topic", "orders:1", "--trace", str(disk / "trace"))
    with serving_on_small_disk(disk, "16k", *options) as (process, address), RawClient(address) as client:
        for offset in range(1, 21):
            commit_one(client, offset)
        trace = seen_by(process, disk / "trace")
        wait_until(lambda: list(trace.glob("*.jsonl")))
        for offset in range(21, 301):
            commit_one(client, offset)
        given_up = log_lines(process, "cannot be written")[-1]
        assert f"--trace {disk / 'trace'}: cannot be written: No space left on device" in given_up
        complete = len(list(read_rows(trace)))
        assert f"ends with the first {complete} events, the broker goes on without it" in given_up
        commit_one(client, 301)  # served as before
        assert not list(trace.glob(".*")), "nothing half written is left"
        process.send_signal(signal.SIGTERM)
        _, log = outcome_of(process, DEADLINE_S)
    assert process.returncode == ExitCode.OUTPUT
    *before, last = log.splitlines()
    assert not [line for line in before if "--trace" in line], "it is said once, and at the end"
    incomplete = f"groupstorm: --trace {disk / 'trace'}: the trace is incomplete: No space left on device: "
    assert last.startswith(f"{incomplete}it holds the first {complete} events of ")
    assert int(last.rpartition(" ")[2]) >= 301


@pytest.mark.slow
def test_the_broker_serves_on_without_a_log_that_cannot_be_written(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    log = disk / "log"
    with serving_on_small_disk(disk, "4k", "--topic", "orders:1", log=str(log)) as (process, address):
        for number in range(40):
            with RawClient(address) as client:
                client.send(join(f"group-{number}"))  # a new group is a line of the log, or several
        with RawClient(address) as client:
            commit_one(client, 1)
            assert seen_by(process, log).stat().st_size == 4096, "the disk is full"
            commit_one(client, 2)
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=DEADLINE_S)
    assert process.returncode == ExitCode.SUCCESS


@pytest.mark.slow
@pytest.mark.parametrize(("data", "expected"), [("disk", "cannot be used"), ("disk/data", "cannot be used")])
def test_a_disk_that_is_read_only_is_refused_with_one_line(tmp_path: Path, data: str, expected: str) -> None:
    (tmp_path / "disk").mkdir()
    serve = [sys.executable, "-m", "groupstorm", "serve", "--port", "0", "--data", str(tmp_path / data)]
    command = on_small_disk(tmp_path / "disk", "16k,ro", *serve)
    path = os.environ | {"PYTHONPATH": str(ROOT)}
    result = run_process(command, text=True, env=path, capture_output=True, check=False)
    assert result.returncode == ExitCode.INPUT
    assert result.stderr == f"groupstorm: --data {tmp_path / data}: {expected}: Read-only file system\n"


@pytest.mark.slow
def test_a_record_that_cannot_be_kept_is_a_storage_error(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    options = ("--topic", "orders:1", "--data", str(disk / "data"))
    data = {"index": 0, "records": wire.batch([b"a"])}
    topic = {"name": "orders", "partition_data": (data,)}
    error = Error.NONE
    with serving_on_small_disk(disk, "16k", *options) as (_, address), RawClient(address) as client:
        while error is Error.NONE:
            answer = client.ask(wire.PRODUCE, 9, transactional_id=None, acks=-1, topic_data=(topic,))
            (written,) = answer.responses[0].partition_responses
            error = Error(written.error_code)
    assert error is Error.KAFKA_STORAGE_ERROR


@contextmanager
def small_files() -> Iterator[None]:
    """No file grows beyond 4,000 bytes (EFBIG): for the writer this is like a full disk.

    The limit ends with the block, not with the test: pytest itself may write its report into a file.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    writes_no_bytecode, sys.dont_write_bytecode = sys.dont_write_bytecode, True  # it would be cut as well
    resource.setrlimit(resource.RLIMIT_FSIZE, (4_000, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        sys.dont_write_bytecode = writes_no_bytecode


def state_changed(generation: int) -> GroupStateChanged:
    return GroupStateChanged("readers", "Empty", "Stable", generation, "x" * 50, None, None, None, 1)


def test_a_trace_that_ends_keeps_its_complete_files(tmp_path: Path) -> None:
    said: list[str] = []
    with small_files():
        trace = trace_in_folder(tmp_path / "trace", "--trace here", said.append)
        trace.add(0, [state_changed(1), state_changed(2)])
        trace.rotate()
        for generation in range(100):
            trace.add(1, [state_changed(generation)])
        trace.rotate()
        trace.rotate()
        trace.add(2, [state_changed(1)])
        trace.close()
    assert said == [
        "--trace here: cannot be written: File too large: the trace ends with the first 2 events, "
        "the broker goes on without it"
    ]
    assert os.listdir(tmp_path / "trace") == ["trace-000000.jsonl"]
    with pytest.raises(
        OutputError,
        match=r"^--trace here: the trace is incomplete: File too large: it holds the first 2 events of 103$",
    ):
        trace.check()


def test_a_brokers_trace_in_a_test_warns(tmp_path: Path) -> None:
    with small_files(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with groupstorm.broker({"orders": 1}, AT_ONCE, trace=tmp_path / "trace") as broker:
            for _ in range(30):
                with RawMember(broker) as member:
                    member.join_alone([0])
                    broker.expire_member("readers", member.member_id)
    (warning,) = [str(one.message) for one in caught if one.category is RuntimeWarning]
    assert warning.startswith(
        f"trace: {tmp_path / 'trace'}: the trace is incomplete: File too large: it holds no"
    )


def test_a_journal_that_cannot_be_shortened_goes_on_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data_directory, "_COMPACT_AFTER_BYTES", 300)
    warned: list[str] = []
    journal = BrokerJournal(tmp_path, lambda: pytest.fail("the broker must go on"), warned.append)
    journal.restart(lambda changes, now_ms: make_broker({}, {"orders": 1}, journal=changes, now_ms=now_ms), 0)
    (tmp_path / "journal.new").mkdir()
    changes = [ClusterNamed("x" * 50)]
    while not warned:
        assert journal.add(changes)
    refused = f"--data {tmp_path}: cannot be written: Is a directory"
    assert journal.add(changes)
    assert warned == [f"{refused}: the journal stays as long as it is"], "tried again later, not every time"
    journal.check()
    journal.close()
