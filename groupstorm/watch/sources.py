"""The sources of a watched trace: a folder of files, or a topic that Spark's Structured Streaming reads."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from groupstorm.pipeline.session import has_jvm, wait_for_end_of_jvm
from groupstorm.problems import ExpectedError, InputError
from groupstorm.trace.reader import read_rows, run_below
from groupstorm.trace.schema import VERSION_KEY
from groupstorm.trace.topic import TopicAddress
from groupstorm.watch.checkpoint import Checkpoint
from groupstorm.watch.feed import BATCHES, Feed, Line, Progress, Take

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

#: Spark's source for Kafka, which is not part of PySpark. Maven Central has none of Spark 4.3; this one works
#: with it (a test).
KAFKA_PACKAGE: Final = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0"

_VERSION_LINE: Final = f'{{"{VERSION_KEY}"'


class TraceSource(Protocol):
    """A trace that is being written."""

    @property
    def name(self) -> str:
        """The name of the trace that the checkpoint belongs to."""

    @property
    def default_checkpoint(self) -> Path:
        """Where the checkpoint is unless the user names another place."""

    def feed(self, checkpoint: Checkpoint, take: Take) -> AbstractContextManager[Feed]:
        """Its lines from where the checkpoint ends."""

    def first_line(self) -> str | None:
        """The line of the trace's first row, if it can be told now."""

    def explain(self, place: str) -> None:
        """Raises InputError naming the line at ``place`` that is no row, if it can be found."""


class FolderSource:
    """A folder of files: trace-000000.jsonl and so on. Raises InputError if it is none."""

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise InputError(
                f"{folder}: no such folder: expected the DIR of serve --trace, or of a run, or HOST:PORT "
                "with --topic TOPIC"
            )
        if any(folder.glob("trace*.parquet")):
            raise InputError(f"{folder}: holds a trace as Parquet: watch reads JSON lines (--format jsonl)")
        below = run_below(folder)
        if below is not None and not any(folder.glob("trace*.jsonl")):
            raise InputError(f"{folder}: no trace in it, but below: watch reads one, as {below}")
        self._folder = folder.resolve()

    @property
    def name(self) -> str:
        return str(self._folder)

    @property
    def default_checkpoint(self) -> Path:
        return self._folder.with_name(f"{self._folder.name}.watch")

    @contextmanager
    def feed(self, checkpoint: Checkpoint, take: Take) -> Iterator[Feed]:
        yield Tail(self._folder, checkpoint.progress(), take)

    def first_line(self) -> str | None:
        for file in sorted(self._folder.glob("trace*.jsonl"))[:1]:
            with file.open(encoding="utf-8", errors="replace") as lines:
                first = next((line for line in lines if not line.startswith(_VERSION_LINE)), "")
                return first.rstrip("\n") or None
        return None

    def explain(self, place: str) -> None:
        for _ in read_rows(Path(place)):
            pass


class TopicSource:
    """A topic that `--trace-to` produces to. Its rows come in the order of each partition."""

    def __init__(self, address: TopicAddress) -> None:
        self._address = address

    @property
    def name(self) -> str:
        return str(self._address)

    @property
    def default_checkpoint(self) -> Path:
        return Path(f"{self._address.topic}.watch").absolute()

    @contextmanager
    def feed(self, checkpoint: Checkpoint, take: Take) -> Iterator[Feed]:
        from groupstorm.pipeline.session import spark_session

        if not checkpoint.spark_folder.exists():
            checkpoint.forget_batches()
        with spark_session(packages=(KAFKA_PACKAGE,)) as spark:
            yield TopicStream(spark, self._address, checkpoint.spark_folder, take)

    def first_line(self) -> str | None:
        return None

    def explain(self, place: str) -> None:
        """The place says which record it is."""


#: A batch is held in memory.
_BYTES_PER_BATCH: Final = 8_000_000


class Tail:
    """Reads the files ``trace*.jsonl`` of a folder. ``read``: file -> how many bytes are known already."""

    def __init__(self, folder: Path, read: Mapping[str, int], take: Take) -> None:
        self._folder = folder
        self._read = dict(read)
        self._take = take
        self._finished: set[str] = set()

    def catch_up(self, most_seconds: float) -> bool:
        """See `Feed`. Raises InputError if a file cannot be read."""
        until = time.monotonic() + most_seconds
        try:
            for file in self._files():
                while self._read_on(file):
                    if time.monotonic() >= until:
                        return True
        except OSError as problem:
            raise InputError(f"{problem.filename}: {problem.strerror}") from problem
        return False

    def follow(self, seconds: float) -> None:
        """See `Feed`. It reads at the end: a picture that follows is one of now."""
        time.sleep(seconds)
        self.catch_up(seconds)

    def _files(self) -> Iterator[os.DirEntry[str]]:
        """Yield files that may have news. A file grows no more once there is another one behind it."""
        found = [one for one in os.scandir(self._folder) if _is_of_trace(one.name)]
        found.sort(key=lambda one: one.name)
        for file in found:
            if file.name not in self._finished:
                yield file
                if file is not found[-1]:
                    self._finished.add(file.name)

    def _read_on(self, file: os.DirEntry[str]) -> bool:
        """Take the next lines of a file; returns whether there were some."""
        at = self._read.get(file.name, 0)
        with open(file.path, "rb") as opened:
            came = os.fstat(opened.fileno()).st_mtime
            opened.seek(at)
            data = opened.read(_BYTES_PER_BATCH)
            data += opened.readline()
        begun = data.rfind(b"\n") + 1
        if not _is_json(data[begun:]):
            data = data[:begun]  # somebody is writing this line
        if not data:
            return False
        self._read[file.name] = at + len(data)
        texts = data.decode("utf-8", "replace").split("\n")
        lines = [Line(text, file.path, came) for text in texts if text]
        self._take(Progress(file.name, at + len(data)), lines)
        return True


def _is_json(text: bytes) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _is_of_trace(name: str) -> bool:
    return name.startswith("trace") and name.endswith(".jsonl")


#: A batch is collected in this process.
_RECORDS_PER_BATCH = 200_000
#: So often Spark is asked whether the query is running.
_ASK_SECONDS = 0.1

_SPARK_HAS_ENDED = "Spark has ended: start the watch again, and it goes on where it was"


def lines_of_topic(spark: SparkSession, address: TopicAddress) -> DataFrame:
    """The values of the topic's records, present and to come, with the columns of `Line`."""
    from pyspark.sql import functions as f

    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", address.bootstrap)
    reader = reader.option("subscribe", address.topic).option("startingOffsets", "earliest")
    records = reader.option("maxOffsetsPerTrigger", _RECORDS_PER_BATCH).load()
    return records.select(
        f.col("value").cast("string").alias("text"),
        f.format_string("%s-%d: offset %d", "topic", "partition", "offset").alias("place"),
        f.col("timestamp").cast("double").alias("came"),
    )


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    return record.module != "java_gateway"


class TopicStream:
    """A `Feed` of the records of a topic; ``take`` runs in a thread of Spark's.

    ``checkpoint``: the folder in which Spark keeps how far it has read.
    """

    def __init__(self, spark: SparkSession, address: TopicAddress, checkpoint: Path, take: Take) -> None:
        # py4j logs the traceback of a call that the JVM's end cuts off; our message says it in one line
        logging.getLogger().addFilter(_is_not_of_py4j)
        self._spark = spark
        self._lines = lines_of_topic(spark, address)
        self._checkpoint = checkpoint
        self._take = take
        self._query: StreamingQuery | None = None
        self._follows = False
        self._failures: list[ExpectedError] = []

    def catch_up(self, most_seconds: float) -> bool:
        """See `Feed`. Raises as `follow` does."""
        if self._query is None:
            self._query = self._start(availableNow=True)
        return self._runs_for(self._query, most_seconds)

    def follow(self, seconds: float) -> None:
        """See `Feed`.

        Raises what ``take`` has raised, and InputError if Spark has ended, cannot read the topic, or cannot
        go on from its part of the checkpoint.
        """
        if self._query is None or not self._follows:
            self._follows, self._query = True, self._start(processingTime=f"{seconds:g} seconds")
        self._runs_for(self._query, seconds)

    def _start(self, **trigger: Any) -> StreamingQuery:
        from py4j.protocol import Py4JError, Py4JJavaError

        goes_on = self._checkpoint.exists()
        try:
            writer = self._lines.writeStream.foreachBatch(self._batch).trigger(**trigger)
            return writer.option("checkpointLocation", self._checkpoint.as_uri()).start()
        except Py4JJavaError as problem:
            if not goes_on:
                raise
            reason = str(problem.java_exception.toString()).splitlines()[0]
            raise _refusal(self._checkpoint, reason) from problem
        except (Py4JError, ConnectionError) as gone:
            wait_for_end_of_jvm(self._spark)
            raise InputError(_SPARK_HAS_ENDED) from gone

    def _batch(self, frame: DataFrame, number: int) -> None:
        lines = [Line(row["text"], row["place"], row["came"]) for row in frame.collect()]
        try:
            self._take(Progress(BATCHES, number), lines)
        except ExpectedError as problem:
            self._failures.append(problem)
            raise

    def _runs_for(self, query: StreamingQuery, most_seconds: float) -> bool:
        """Wait so long, or until the query has ended; returns whether it is still running."""
        until = time.monotonic() + most_seconds
        while self._is_running(query):
            left = until - time.monotonic()
            if left <= 0:
                return True
            time.sleep(min(left, _ASK_SECONDS))
        return False

    def _is_running(self, query: StreamingQuery) -> bool:
        from py4j.protocol import Py4JError

        if not has_jvm(self._spark):  # asking it would print the errors of PySpark's connection
            raise InputError(_SPARK_HAS_ENDED)
        try:
            active = bool(query.isActive)
            problem = None if active else query.exception()
        except (Py4JError, ConnectionError) as gone:
            wait_for_end_of_jvm(self._spark)
            raise InputError(_SPARK_HAS_ENDED) from gone
        if self._failures:
            raise self._failures[0]
        if problem is not None:
            reason = str(problem).splitlines()[0]
            if str(self._checkpoint) in reason:
                raise _refusal(self._checkpoint, reason)
            raise InputError(f"Spark cannot read on: {reason}")
        return active


def _refusal(checkpoint: Path, reason: str) -> InputError:
    return InputError(
        f"--checkpoint {checkpoint.parent}: Spark cannot go on: {reason}: name another folder or remove it"
    )
