"""One Spark session per command: on this machine or a cluster, quiet, without a trace of it left behind."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import chdir, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from groupstorm.held_signals import stop_signals_held
from groupstorm.pipeline.java import java_home
from groupstorm.problems import InputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")

#: A shuffle has at least so many tasks (more cost more than they bring on one machine), and as many as there
#: are so many bytes of traces: what a task sorts fits into memory.
SHUFFLE_PARTITIONS_MIN = 2
SHUFFLE_BYTES = 64_000_000

#: Below so many bytes of traces a JVM lives for seconds: its second compiler never earns back what it costs
#: (measured: half the CPU time without it at 15 MB, two and a half times as much at 640 MB).
SMALL_TRACE_BYTES = 100_000_000
_JVM_FOR_LITTLE = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_JVM_FOR_MUCH = "-XX:+UseParallelGC"

_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.sql.adaptive.enabled": "false",  # many small plans: to plan again costs more than it saves
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.ansi.enabled": "true",  # an overflow is an error, not another number
    "spark.sql.session.timeZone": "UTC",
}

#: All cores of this machine.
LOCAL = "local[*]"
_ON_THIS_MACHINE = re.compile(
    r"local\[(\*|[1-9][0-9]*)(,[1-9][0-9]*)?\]|local-cluster\[[1-9][0-9]*(,[1-9][0-9]*){2}\]"
)
_LOOPBACK = "127.0.0.1"
_CLUSTER = re.compile(r"spark://(?P<host>\[[0-9A-Fa-f:.]+\]|[^:/\[\],\s]+):(?P<port>[0-9]{1,5})")
_CONNECT_TIMEOUT_S = 10.0

_LOG_LINES_SHOWN = 3

_POLL_SECONDS = 0.5

_END_SECONDS = 10.0
#: Spark's Python workers find this package where this process found it.
_IMPORTED_FROM = str(Path(__file__).resolve().parents[2])
_MIB = 1024 * 1024


@contextmanager
def spark_session(
    trace_bytes: int = 0,
    master: str = LOCAL,
    packages: Sequence[str] = (),
    driver_memory_mib: int | None = None,
) -> Iterator[SparkSession]:
    """A session on all cores of this machine; it is stopped and its files are removed at the end.

    ``trace_bytes`` says how much it is for. ``master``: local[N] takes so many cores of this machine,
    spark://HOST:PORT the workers of a standalone cluster, which need this package and the same Python,
    local-cluster[WORKERS,CORES,MIB] plays one here. ``packages``: what Spark fetches from Maven Central, the
    first time. ``driver_memory_mib``: None for half of the machine's memory, between 1 and 8 GiB. Inside
    another one it is the same session, which goes on (a test run has one for all its tests).
    Raises InputError, saying what to install, where PySpark or Java is missing or does not start, and for
    a cluster that does not answer.
    """
    try:
        import pandas  # noqa: F401  # what Spark hands to Python functions
        from pyspark.sql import SparkSession
    except ImportError as missing:
        raise InputError(
            f"{missing.name} is not installed: pip install 'groupstorm[spark]', or do without Spark "
            "(analyze --engine local, sweep without --master)"
        ) from missing
    running = SparkSession.getActiveSession()
    if running is not None:
        yield running
        return
    address = spark_address(master)
    os.environ["JAVA_HOME"] = str(java_home())
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [_IMPORTED_FROM, os.environ.get("PYTHONPATH")]))
    os.environ["SPARK_LOCAL_IP"] = address
    with tempfile.TemporaryDirectory(prefix="groupstorm-spark-") as folder:
        builder = SparkSession.builder.master(master).appName("groupstorm")
        jvm = _JVM_FOR_LITTLE if trace_bytes < SMALL_TRACE_BYTES else _JVM_FOR_MUCH
        own = {
            "spark.driver.host": address,
            "spark.driver.bindAddress": address,
            "spark.driver.memory": f"{driver_memory_mib or _driver_memory_mib()}m",
            "spark.sql.shuffle.partitions": str(max(SHUFFLE_PARTITIONS_MIN, trace_bytes // SHUFFLE_BYTES)),
            "spark.driver.extraJavaOptions": jvm,
            "spark.executor.extraJavaOptions": jvm,
            "spark.local.dir": folder,
            "spark.sql.warehouse.dir": str(Path(folder, "warehouse")),
        }
        if packages:
            own["spark.jars.packages"] = ",".join(packages)
        for name, value in (_SETTINGS | own).items():
            builder = builder.config(name, value)
        log = Path(folder, "spark.log")
        with _stderr_to(log), _same_interrupt_handler(), _no_jvm_left():
            try:
                spark = builder.getOrCreate()
            except RuntimeError as failure:  # what PySpark raises when its JVM ends before it answers
                raise InputError(f"Spark does not start: {_last_words(log) or failure}") from failure
        spark.sparkContext.setLogLevel("OFF")
        try:
            yield spark
        except BaseException as problem:
            if _is_interruption(problem):
                _kill_jvm(spark)
            else:
                _stop(spark)
            raise
        _stop(spark)


def spark_address(master: str) -> str:
    """The address of this machine that a master's workers connect back to. Raises InputError."""
    return _LOOPBACK if _ON_THIS_MACHINE.fullmatch(master) else address_towards(master)


def address_towards(master: str) -> str:
    """This machine's address as the cluster sees it: its workers connect back. Raises InputError."""
    match = _CLUSTER.fullmatch(master)
    if match is None or not 0 < int(match["port"]) < 2**16:
        raise InputError(f"--master {master}: expected local[N], local[*] or spark://HOST:PORT")
    try:
        endpoint = (match["host"].strip("[]"), int(match["port"]))
        with socket.create_connection(endpoint, _CONNECT_TIMEOUT_S) as connection:
            return str(connection.getsockname()[0])
    except OSError as problem:
        raise InputError(
            f"--master {master}: nobody answers there: {problem.strerror or problem}"
        ) from problem


@contextmanager
def _same_interrupt_handler() -> Iterator[None]:
    """Keep the handler of SIGINT: PySpark's calls the JVM over the connection of the interrupted call."""
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, handler)


@contextmanager
def _no_jvm_left() -> Iterator[None]:
    """Kill the JVM that PySpark starts in the block if the block fails: PySpark itself forgets it."""
    from pyspark import java_gateway

    popen, started = java_gateway.Popen, []

    def start(*arguments: Any, **options: Any) -> Any:
        with stop_signals_held():  # between its start and our list, too
            started.append(popen(*arguments, **options))
        return started[-1]

    java_gateway.Popen = start
    try:
        yield
    except BaseException:
        for process in started:
            process.kill()
            process.wait()
        raise
    finally:
        java_gateway.Popen = popen


def _is_interruption(problem: BaseException) -> bool:
    """Whether it is one, or an error of PySpark's while it unwinds one."""
    found: BaseException | None = problem
    while isinstance(found, Exception):
        found = found.__context__
    return found is not None


#: Tasks for each core that Spark has, so that all cores are busy until the end.
_TASKS_PER_CORE = 4


def dealt_out(works: Sequence[T], cores: int, most_per_task: int | None = None) -> list[Sequence[T]]:
    """The work of each task. Neighbours, which take equally long, are dealt out to different tasks.

    ``most_per_task``: there are more tasks if one had more than that.
    """
    count = _TASKS_PER_CORE * cores
    if most_per_task is not None:
        count = max(count, -(-len(works) // most_per_task))
    return [works[first::count] for first in range(min(count, len(works)))]


def result_of(job: Callable[[], T], meanwhile: Callable[[], None] = lambda: None) -> T:
    """Return what a job of Spark returns, or raise what it raises; ``meanwhile`` is called now and then.

    It runs in a thread of its own: PySpark cleans up after an interrupted call, and waits for its answer.
    """
    thread = ThreadPoolExecutor(1)
    try:
        result = thread.submit(job)
        while not result.done():
            wait([result], timeout=_POLL_SECONDS)
            meanwhile()
        return result.result()
    finally:
        thread.shutdown(wait=False)


@contextmanager
def in_folder(current: Path) -> Iterator[None]:
    """In a worker of Spark: work in the folder that the driver works in, where the worker has it."""
    with chdir(current) if current.is_dir() else nullcontext():
        yield


def has_jvm(spark: SparkSession) -> bool:
    """Whether Spark's JVM still runs."""
    gateway = spark.sparkContext._gateway
    return gateway is None or gateway.proc is None or gateway.proc.poll() is None


def wait_for_end_of_jvm(spark: SparkSession) -> None:
    """For a caller whose connection to Spark's JVM has broken: a JVM that ends closes it a moment earlier."""
    gateway = spark.sparkContext._gateway
    if gateway is not None and gateway.proc is not None:
        with suppress(subprocess.TimeoutExpired):
            gateway.proc.wait(_END_SECONDS)


def _stop(spark: SparkSession) -> None:
    """Stop Spark, unless its JVM has ended: `stop` would fail, and hide what was found or raised."""
    if has_jvm(spark):
        spark.stop()


def _kill_jvm(spark: SparkSession) -> None:
    """End Spark without a call: an interrupted one has left half an answer on the connection.

    PySpark's threads then report a JVM that is gone, which nobody wants to read.
    """
    gateway = spark.sparkContext._gateway
    if gateway is not None and gateway.proc is not None:
        with Path(os.devnull).open("wb") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        gateway.proc.kill()
        gateway.proc.wait()


def _driver_memory_mib() -> int:
    """Half of the machine's memory, between 1 and 8 GiB: what does not fit goes to disk."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min(max(total // 2 // _MIB, 1024), 8192)


@contextmanager
def _stderr_to(log: Path) -> Iterator[None]:
    """Send the standard error of processes that start meanwhile to a file: the JVM's start-up warnings."""
    sys.stderr.flush()
    kept = os.dup(2)
    with log.open("wb") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, 2)
        os.close(kept)


def _last_words(log: Path) -> str:
    """The end of the log, without the frames of stack traces."""
    lines = [line.strip() for line in log.read_text("utf-8", "replace").splitlines()]
    said = [line for line in lines if line and not line.startswith("at ")]
    return " | ".join(said[-_LOG_LINES_SHOWN:])
