"""Effects of a session of Spark on this process and its environment; the JVM is played."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest

from groupstorm.pipeline import session
from groupstorm.problems import InputError

pytestmark = [  # not importorskip(): it would take a second of every collection
    pytest.mark.skipif(
        find_spec(name) is None, reason="needs PySpark and pandas: pip install 'groupstorm[spark]'"
    )
    for name in ("pyspark", "pandas")
]


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
        monkeypatch.setattr("pyspark.sql.SparkSession", spark)
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
