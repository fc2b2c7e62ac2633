"""The runs of a sweep on Spark: tasks, what a repeated task does, and what a sweep on one machine says."""

from __future__ import annotations

import os
import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import pytest

from groupstorm import __version__
from groupstorm.pipeline.session import dealt_out
from groupstorm.pipeline.sweep import (
    RUNS_PER_TASK_MAX,
    repeating_tasks,
    run_batch,
    task_problem,
)
from groupstorm.problems import InputError, OutputError
from groupstorm.storms.runs.sweep import Sweep, parse_axis
from groupstorm.storms.runs.sweep_runs import Order, Plan, RunsFile, SweepStore, definition_text
from groupstorm.storms.scenario.files import load
from tests.command import COMMAND, environment_of_command, groupstorm
from tests.needs import needed
from tests.processes import outcome_of
from tests.waiting import while_it_runs

DEADLINE_S = 240

SMALL = ["--set", "partitions=4", "--over", "members=2,3", "--seeds", "3"]


def plan(seeds: int = 2) -> Plan:
    sweep = Sweep(
        "cold-start", None, (parse_axis("members=2,3", load("cold-start")),), 0, seeds, {"partitions": 4}
    )
    return Plan(sweep, sweep.points())


@pytest.fixture
def store(tmp_path: Path) -> SweepStore:
    with SweepStore(tmp_path / "x").begun(definition_text(plan(), __version__)):
        return SweepStore(tmp_path / "x")


@pytest.mark.parametrize(
    ("runs", "cores", "sizes"),
    [
        (3, 2, [1, 1, 1]),
        (8, 2, [1] * 8),
        (20, 2, [3, 3, 3, 3, 2, 2, 2, 2]),
        (800, 2, [100] * 8),
        (801, 2, [89] * 9),
        (2000, 1, [100] * 20),
        (2000, 16, [32] * 16 + [31] * 48),
    ],
)
def test_few_tasks_of_many_runs(runs: int, cores: int, sizes: list[int]) -> None:
    orders: list[Order] = plan(runs).orders[:runs]
    found = dealt_out(orders, cores, RUNS_PER_TASK_MAX)
    assert [len(batch) for batch in found] == sizes
    assert {order.key for batch in found for order in batch} == {order.key for order in orders}
    assert found[0][:2] == [orders[0], *orders[len(found) : len(found) + 1]], (
        "neighbours are in different tasks"
    )


@pytest.mark.parametrize(
    ("master", "asked"),
    [
        ("local[2]", "local[2,4]"),
        ("local[*]", "local[*,4]"),
        ("local[2,1]", "local[2,1]"),
        ("local-cluster[2,1,1024]", "local-cluster[2,1,1024]"),
        ("spark://host:7077", "spark://host:7077"),
    ],
)
def test_a_task_that_fails_is_repeated_on_every_master(master: str, asked: str) -> None:
    assert repeating_tasks(master) == asked


def test_a_repeated_task_leaves_out_the_runs_that_it_has_finished(store: SweepStore) -> None:
    orders = plan().orders
    with RunsFile(store.runs, "task-00003") as file:
        file.add(orders[1].key, "kept")
    with RunsFile(store.runs, "task-00004") as file:
        file.add(orders[2].key, "kept by another task")
    assert run_batch(store, "task-00003", orders[:3]) == 2
    assert store.results("task-00003-1.jsonl") == {orders[1].key: "kept"}
    assert [*store.results("task-00003-2.jsonl")] == [orders[0].key, orders[2].key]
    assert run_batch(store, "task-00003", orders[:3]) == 0


def test_a_worker_that_does_not_see_the_folder_says_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="runs: not seen here"):
        run_batch(SweepStore(tmp_path / "gone"), "task-00000", plan().orders)


def test_an_error_of_ours_in_a_task_is_that_error(store: SweepStore) -> None:
    text = (
        "SparkException: Job aborted\n  File x\ngroupstorm.problems.{}: /x/runs: why not\n\n\tat org.apache"
    )
    for kind in (InputError, OutputError):
        problem = task_problem(text.format(kind.__name__), store)
        assert (type(problem), str(problem)) == (kind, "--master: a worker of Spark says: /x/runs: why not")
    assert isinstance(
        task_problem("Job aborted due to stage failure: Task 0 failed 4 times", store), RuntimeError
    )


# -- with Spark ----------------------------------------------------------------------------------


@pytest.fixture
def needs_spark() -> None:
    from groupstorm.pipeline.java import java_home

    pytest.importorskip("pyspark", reason="needs PySpark: pip install 'groupstorm[spark]'")
    with needed(InputError):
        java_home()


@pytest.mark.slow
@pytest.mark.usefixtures("needs_spark")
def test_a_sweep_on_spark_says_what_one_on_this_machine_says(tmp_path: Path) -> None:
    here = groupstorm("sweep", "cold-start", *SMALL, "--out", "here", "--parquet", cwd=tmp_path)
    there = groupstorm("sweep", "cold-start", *SMALL, "--out", "there", "--master", "local[2]", cwd=tmp_path)
    assert (here.returncode, there.returncode) == (0, 0), there.stderr
    assert there.stdout == here.stdout.replace("here/", "there/")
    for name in ("sweep.json", "runs.parquet"):
        assert (tmp_path / "there" / name).read_bytes() == (tmp_path / "here" / name).read_bytes()
    assert there.stderr.splitlines()[-1] == "  6 of 6 runs"


@pytest.mark.slow
@pytest.mark.usefixtures("needs_spark")
def test_a_worker_that_reads_another_scenario_ends_the_sweep_with_one_line(tmp_path: Path) -> None:
    """The file is changed when the command has read it; the workers start later."""
    file = tmp_path / "s.yaml"
    file.write_text("name: s\nsettings: {members: 2, partitions: 4}\nsteps: [{at_ms: 0, do: start}]\n")
    process = subprocess.Popen(
        [*COMMAND, "sweep", "s.yaml", "--over", "members=2,3", "--out", "x", "--master", "local[2]"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=environment_of_command(),
    )
    while_it_runs(process, (tmp_path / "x" / "runs" / "definition.json").exists)
    file.write_text(file.read_text().replace("partitions: 4", "partitions: 5"))
    _, errors = outcome_of(process, DEADLINE_S)
    assert (process.returncode, errors) == (
        2,
        "groupstorm: --master: a worker of Spark says: s.yaml: it, a file that it names or groupstorm "
        "is not the sweep's here\n",
    )
    assert not (tmp_path / "x").exists(), "no run was done"


Met = TypeVar("Met")


class Cluster:
    """`groupstorm sweep` on a cluster of two workers that Spark plays with processes of this machine."""

    def __init__(self, folder: Path, spark_home: Path) -> None:
        self.folder = folder
        self.process = subprocess.Popen(
            [
                *(*COMMAND, "sweep", "rolling-deploy", "--variant", "cooperative", "--set", "members=12"),
                *("--set", "partitions=24", "--over", "session.timeout.ms=20s..45s:5s", "--seeds", "8"),
                *("--out", "x", "--master", "local-cluster[2,1,1024]"),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=folder,
            env=environment_of_command() | {"SPARK_HOME": str(spark_home)},
            start_new_session=True,
        )

    def executors(self) -> list[int]:
        """The processes of Spark's workers: children of the JVM that the command has started."""
        return [pid for jvm in children(self.process.pid, "java") for pid in children(jvm, "java")]

    def stopped_in_a_task(self) -> tuple[int, int] | None:
        """One of them, and its Python, which has a file of runs open and has been stopped so: no task of it
        can end any more."""
        for executor in self.executors():
            for python in descendants(executor):
                if not self._writes_runs(python):
                    continue
                with suppress(ProcessLookupError):  # it has ended
                    os.kill(python, signal.SIGSTOP)
                    if self._writes_runs(python):
                        return executor, python
                    os.kill(python, signal.SIGCONT)
        return None

    def _writes_runs(self, pid: int) -> bool:
        runs = str(self.folder / "x" / "runs")
        return any(one.startswith(runs) for one in open_files(pid))

    def count(self) -> int:
        return SweepStore(self.folder / "x").count()

    def wait_for(self, condition: Callable[[], Met]) -> Met:
        return while_it_runs(self.process, condition)


def children(parent: int, name: str = "") -> list[int]:
    """The processes that it has started, or those of them with that name."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command, _, rest = (folder / "stat").read_text().partition("(")[2].rpartition(")")
        except OSError:  # it has ended
            continue
        fields = rest.split()
        if name in ("", command) and int(fields[1]) == parent and fields[0] != "Z":
            found.append(int(folder.name))
    return found


def descendants(pid: int) -> Iterator[int]:
    """The processes that it has started, and those that these have started."""
    for child in children(pid):
        yield child
        yield from descendants(child)


def open_files(pid: int) -> Iterator[str]:
    with suppress(OSError):  # it has ended
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                yield os.readlink(link)


@pytest.fixture
def spark_home(tmp_path: Path, needs_spark: None) -> Path:
    """Where Spark makes the folders of its workers; else that would be PySpark's own folder."""
    import pyspark

    home = tmp_path / "spark"
    home.mkdir()
    for path in Path(pyspark.__file__).parent.iterdir():
        (home / path.name).symlink_to(path)
    return home


@pytest.fixture
def cluster(tmp_path: Path, spark_home: Path) -> Iterator[Cluster]:
    started = Cluster(tmp_path, spark_home)
    yield started
    with suppress(ProcessLookupError):  # nothing is left, as it should be
        os.killpg(started.process.pid, signal.SIGKILL)
    outcome_of(started.process, DEADLINE_S)


@pytest.mark.slow
def test_a_sweep_survives_a_worker_that_is_killed(cluster: Cluster) -> None:
    cluster.wait_for(lambda: len(cluster.executors()) == 2 and cluster.count() >= 6)
    stopped = cluster.wait_for(cluster.stopped_in_a_task)
    assert stopped is not None
    store = SweepStore(cluster.folder / "x")
    for pid in stopped:
        os.kill(pid, signal.SIGKILL)
    finished = store.results()
    _, errors = outcome_of(cluster.process, DEADLINE_S)
    assert cluster.process.returncode == 0, errors
    assert errors.splitlines()[-1] == "  48 of 48 runs"
    assert len(finished) < len(store.results()) == 48
    times = Counter(key for file in store.runs.glob("*.jsonl") for key in store.results(file.name))
    assert {times[key] for key in finished} == {1}, "what was finished is not done again"
    assert [*store.runs.glob("task-*-2.jsonl")], "Spark has repeated a task"
