"""What a session of Spark does to this process and its environment; the JVM is played."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from groupstorm.pipeline import session
from groupstorm.problems import InputError

sql = pytest.importorskip("pyspark.sql", reason="needs PySpark: pip install 'groupstorm[spark]'")
pytest.importorskip("pandas", reason="needs pandas: pip install 'groupstorm[spark]'")

GIB = 2**30
LARGE = 100_000_000


class Spark:
    """A session of Spark and its builder: they keep what they are asked for."""

    def __init__(self, start: Callable[[], None] = lambda: None, running: bool = False) -> None:
        self.settings: dict[str, str] = {}
        self.calls: list[str] = []
        self._start = start
        self._running = running
        #: The exit code of the JVM, if it has ended.
        self.ended: int | None = None
        process = SimpleNamespace(
            kill=lambda: self.calls.append("killed"),
            wait=lambda: self.calls.append("waited"),
            poll=lambda: self.ended,
        )
        self.sparkContext = SimpleNamespace(
            _gateway=SimpleNamespace(proc=process), setLogLevel=self.calls.append
        )
        self.builder = self

    def getActiveSession(self) -> Spark | None:  # noqa: N802 - PySpark's name
        return self if self._running else None

    def master(self, master: str) -> Spark:
        return self.config("master", master)

    def appName(self, name: str) -> Spark:  # noqa: N802 - PySpark's name
        return self.config("name", name)

    def config(self, name: str, value: str) -> Spark:
        self.settings[name] = value
        return self

    def getOrCreate(self) -> Spark:  # noqa: N802 - PySpark's name
        self._start()
        return self

    def stop(self) -> None:
        self.calls.append("stopped")


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> Callable[[Spark], Spark]:
    """Puts a played Spark in the place of PySpark's; the environment is as before after the test."""
    for name in ("JAVA_HOME", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "PYTHONPATH", "SPARK_LOCAL_IP"):
        monkeypatch.setenv(name, "before")
    monkeypatch.setattr(session, "java_home", lambda: Path("/jdk"))

    def play(spark: Spark) -> Spark:
        monkeypatch.setattr(sql, "SparkSession", spark)
        return spark

    return play


def test_a_session_runs_on_this_machine_alone_and_leaves_nothing_behind(
    played: Callable[[Spark], Spark],
) -> None:
    spark = played(Spark())
    with session.spark_session() as one:
        assert one is spark
        folder = Path(spark.settings["spark.local.dir"])
        assert folder.is_dir()
        assert spark.calls == ["OFF"], "its log is off"
    assert spark.calls == ["OFF", "stopped"]
    assert not folder.exists()
    assert spark.settings["master"] == "local[*]"
    assert {spark.settings[f"spark.driver.{name}"] for name in ("host", "bindAddress")} == {"127.0.0.1"}
    assert os.environ["SPARK_LOCAL_IP"] == "127.0.0.1"
    assert os.environ["JAVA_HOME"] == "/jdk"
    assert os.environ["PYSPARK_PYTHON"] == os.environ["PYSPARK_DRIVER_PYTHON"] == sys.executable
    ours, before = os.environ["PYTHONPATH"].split(os.pathsep)
    assert before == "before"
    assert Path(ours, "groupstorm", "pipeline", "session.py").samefile(session.__file__)


@pytest.mark.parametrize(("trace_bytes", "is_large"), [(LARGE - 1, False), (LARGE, True)])
def test_little_work_gets_a_jvm_that_starts_fast(
    played: Callable[[Spark], Spark], trace_bytes: int, is_large: bool
) -> None:
    spark = played(Spark())
    with session.spark_session(trace_bytes):
        pass
    options = {spark.settings[f"spark.{who}.extraJavaOptions"] for who in ("driver", "executor")}
    assert options == {"-XX:+UseParallelGC" if is_large else "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}


@pytest.mark.parametrize(
    ("trace_bytes", "tasks"), [(0, 2), (191_999_999, 2), (192_000_000, 3), (6_400_000_000, 100)]
)
def test_a_shuffle_has_a_task_for_each_64_mb(
    played: Callable[[Spark], Spark], trace_bytes: int, tasks: int
) -> None:
    spark = played(Spark())
    with session.spark_session(trace_bytes):
        pass
    assert spark.settings["spark.sql.shuffle.partitions"] == str(tasks)


def test_the_driver_has_the_memory_that_the_caller_names_or_half_of_the_machines(
    played: Callable[[Spark], Spark], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "_driver_memory_mib", lambda: 3584)
    for named, memory in ((512, "512m"), (None, "3584m")):
        spark = played(Spark())
        with session.spark_session(driver_memory_mib=named):
            pass
        assert spark.settings["spark.driver.memory"] == memory


def test_a_cluster_is_told_the_address_by_which_it_reaches_this_machine(
    played: Callable[[Spark], Spark], monkeypatch: pytest.MonkeyPatch
) -> None:
    spark = played(Spark())
    monkeypatch.setattr(session, "address_towards", {"spark://there:7077": "10.0.0.7"}.__getitem__)
    with session.spark_session(master="spark://there:7077"):
        pass
    assert (spark.settings["master"], spark.settings["spark.driver.host"]) == (
        "spark://there:7077",
        "10.0.0.7",
    )


def test_a_session_inside_of_another_one_is_the_same_and_goes_on(played: Callable[[Spark], Spark]) -> None:
    spark = played(Spark(running=True))
    with session.spark_session() as one:
        assert one is spark
    assert (spark.calls, spark.settings) == ([], {})


@pytest.mark.parametrize(
    ("said", "shown"),
    [("", "exited"), ("one\n\n  two\n", "one | two"), ("one\ntwo\n\nthree\nfour\n", "two | three | four")],
)
def test_the_last_words_of_a_jvm_that_does_not_start_are_shown(
    played: Callable[[Spark], Spark], said: str, shown: str
) -> None:
    def fail() -> None:
        os.write(2, said.encode())
        raise RuntimeError("exited")

    played(Spark(fail))
    with pytest.raises(InputError) as problem, session.spark_session():
        pass
    assert str(problem.value) == f"Spark does not start: {shown}"


@contextmanager
def kept_stderr() -> Iterator[None]:
    kept = os.dup(2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def test_a_problem_stops_spark_and_an_interruption_ends_its_jvm_without_a_call(
    played: Callable[[Spark], Spark],
) -> None:
    """An interrupted call has left half an answer on the connection to the JVM."""
    spark = played(Spark())
    with pytest.raises(ValueError, match="a problem"), session.spark_session():
        raise ValueError("a problem")
    assert spark.calls == ["OFF", "stopped"]
    spark = played(Spark())
    with kept_stderr():
        with pytest.raises(KeyboardInterrupt), session.spark_session():
            raise KeyboardInterrupt
        assert os.fstat(2).st_rdev == os.stat(os.devnull).st_rdev, "nobody reads what PySpark says then"
    assert spark.calls == ["OFF", "killed", "waited"]


def test_a_problem_without_a_jvm_is_not_hidden_by_another_one(played: Callable[[Spark], Spark]) -> None:
    spark = played(Spark())
    spark.ended = 137
    with pytest.raises(InputError, match="Spark has ended"), session.spark_session():
        raise InputError("Spark has ended")
    assert spark.calls == ["OFF"]


def test_an_answer_without_a_jvm_is_not_lost_by_an_attempt_to_stop_it(
    played: Callable[[Spark], Spark],
) -> None:
    spark = played(Spark())
    with session.spark_session():
        spark.ended = 137
    assert spark.calls == ["OFF"]


def test_packages_are_fetched_if_they_are_named(played: Callable[[Spark], Spark]) -> None:
    spark = played(Spark())
    with session.spark_session(packages=("a:b:1", "c:d:2")):
        pass
    assert spark.settings["spark.jars.packages"] == "a:b:1,c:d:2"
    spark = played(Spark())
    with session.spark_session():
        pass
    assert "spark.jars.packages" not in spark.settings


@pytest.mark.parametrize("gateway", [None, SimpleNamespace(proc=None)])
def test_a_jvm_that_is_not_ours_is_not_killed(played: Callable[[Spark], Spark], gateway: Any) -> None:
    spark = played(Spark())
    spark.sparkContext._gateway = gateway
    with kept_stderr(), pytest.raises(KeyboardInterrupt), session.spark_session():
        raise KeyboardInterrupt
    assert spark.calls == ["OFF"]


def test_errors_that_pyspark_raises_while_it_is_interrupted_count_as_interruptions() -> None:
    interrupted = ConnectionError("no answer")
    interrupted.__context__ = ValueError("half an answer")
    interrupted.__context__.__context__ = KeyboardInterrupt()
    assert session._is_interruption(interrupted)
    assert session._is_interruption(SystemExit(1))
    assert not session._is_interruption(ConnectionError("no answer"))


@pytest.mark.parametrize(
    ("machine", "mib"), [(GIB, 1024), (2 * GIB, 1024), (7 * GIB, 3584), (64 * GIB, 8192)]
)
def test_spark_gets_half_of_the_memory_between_1_and_8_gib(
    machine: int, mib: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sysconf", {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": machine // 4096}.__getitem__)
    assert session._driver_memory_mib() == mib


def test_the_standard_error_of_the_start_goes_to_a_file_and_nothing_else_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also what this process has written and not flushed, before and meanwhile."""
    outside, log = tmp_path / "outside", tmp_path / "log"
    with kept_stderr(), outside.open("wb") as file:
        os.dup2(file.fileno(), 2)
        buffered = io.TextIOWrapper(io.BufferedWriter(io.FileIO(2, "wb", closefd=False)))
        monkeypatch.setattr(sys, "stderr", buffered)
        opened = len(os.listdir("/proc/self/fd"))
        buffered.write("before ")
        with session._stderr_to(log):
            subprocess.run(["sh", "-c", "echo started >&2"], check=True)
            buffered.write("meanwhile")
        buffered.write("after")
        buffered.flush()
        assert len(os.listdir("/proc/self/fd")) == opened
        monkeypatch.undo()
    assert (outside.read_text(), log.read_text()) == ("before after", "started\nmeanwhile")


def test_the_handler_of_interrupts_is_as_before() -> None:
    before = signal.getsignal(signal.SIGINT)
    try:
        with session._same_interrupt_handler():
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        assert signal.getsignal(signal.SIGINT) is before
    finally:
        signal.signal(signal.SIGINT, before)


def test_outside_of_the_main_thread_no_handler_is_set() -> None:
    """Only the main thread may."""
    problems: list[BaseException] = []

    def start() -> None:
        try:
            with session._same_interrupt_handler():
                pass
        except ValueError as problem:
            problems.append(problem)

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    assert problems == []
