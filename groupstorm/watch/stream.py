"""The lines of a source as Spark's Structured Streaming finds them, batch by batch."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from groupstorm.pipeline.read import literal_path
from groupstorm.pipeline.session import has_jvm, wait_for_end_of_jvm
from groupstorm.problems import ExpectedError, InputError
from groupstorm.trace.topic import TopicAddress

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

#: Files of one batch: a batch is collected in this process.
_FILES_PER_BATCH = 20
_RECORDS_PER_BATCH = 200_000
#: So often Spark is asked whether the query is running.
_ASK_SECONDS = 0.1

_SPARK_HAS_ENDED = "Spark has ended: start the watch again, and it goes on where it was"


class Line(NamedTuple):
    """A line of a trace, where it stands, and when it came there: seconds since 1970."""

    text: str
    place: str
    came: float


def lines_of_folder(spark: SparkSession, folder: Path) -> DataFrame:
    """The lines of the trace's files, present and to come, with the columns of `Line`."""
    from pyspark.sql import functions as f

    reader = spark.readStream.option("pathGlobFilter", "trace*.jsonl").option("lineSep", "\n")
    texts = reader.option("maxFilesPerTrigger", _FILES_PER_BATCH).text(literal_path(str(folder)))
    return texts.select(
        f.col("value").alias("text"),
        f.col("_metadata.file_path").alias("place"),
        f.col("_metadata.file_modification_time").cast("double").alias("came"),
    )


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


class Stream:
    """A running query. ``take`` receives the number of each batch and its lines, in a thread of Spark's."""

    def __init__(
        self, spark: SparkSession, query: StreamingQuery, checkpoint: Path, failures: Sequence[ExpectedError]
    ) -> None:
        self._spark = spark
        self._query = query
        self._checkpoint = checkpoint
        self._failures = failures

    def runs_for(self, most_seconds: float) -> bool:
        """Wait so long, or until the query has ended; returns whether it is still running.

        Raises what ``take`` has raised, and InputError if Spark cannot read the source or has ended.
        """
        until = time.monotonic() + most_seconds
        while self._is_running():
            left = until - time.monotonic()
            if left <= 0:
                return True
            time.sleep(min(left, _ASK_SECONDS))
        return False

    def _is_running(self) -> bool:
        from py4j.protocol import Py4JError

        if not has_jvm(self._spark):  # asking it would print the errors of PySpark's connection
            raise InputError(_SPARK_HAS_ENDED)
        try:
            active = bool(self._query.isActive)
            problem = None if active else self._query.exception()
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


def start(
    lines: DataFrame,
    checkpoint: Path,
    take: Callable[[int, Sequence[Line]], None],
    every_seconds: float | None,
) -> Stream:
    """Begin to read ``lines``; ``every_seconds`` None: until everything that is there has been read.

    Raises InputError if Spark has ended, or cannot go on from its part of the checkpoint.
    """
    from py4j.protocol import Py4JError, Py4JJavaError

    # py4j logs the traceback of a call that the JVM's end cuts off; what is raised here says it in one line.
    logging.getLogger().addFilter(_is_not_of_py4j)
    failures: list[ExpectedError] = []

    def batch(frame: DataFrame, number: int) -> None:
        found = [Line(row["text"], row["place"], row["came"]) for row in frame.collect()]
        try:
            take(number, found)
        except ExpectedError as problem:
            failures.append(problem)
            raise

    goes_on = checkpoint.exists()
    trigger: dict[str, Any] = (
        {"availableNow": True} if every_seconds is None else {"processingTime": f"{every_seconds:g} seconds"}
    )
    try:
        writer = lines.writeStream.foreachBatch(batch).option("checkpointLocation", checkpoint.as_uri())
        query = writer.trigger(**trigger).start()
    except Py4JJavaError as problem:
        if not goes_on:
            raise
        raise _refusal(checkpoint, str(problem.java_exception.toString()).splitlines()[0]) from problem
    except (Py4JError, ConnectionError) as gone:
        wait_for_end_of_jvm(lines.sparkSession)
        raise InputError(_SPARK_HAS_ENDED) from gone
    return Stream(lines.sparkSession, query, checkpoint, failures)
