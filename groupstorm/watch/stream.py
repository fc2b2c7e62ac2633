"""The records of a topic as Spark's Structured Streaming finds them, batch by batch."""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from groupstorm.pipeline.session import has_jvm, wait_for_end_of_jvm
from groupstorm.problems import ExpectedError, InputError
from groupstorm.trace.topic import TopicAddress
from groupstorm.watch.feed import BATCHES, Line, Progress, Take

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

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
