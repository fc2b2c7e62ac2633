"""Where a watched trace comes from."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final, Protocol

from groupstorm.problems import InputError
from groupstorm.trace.reader import read_rows
from groupstorm.trace.schema import VERSION_KEY
from groupstorm.trace.topic import TopicAddress
from groupstorm.watch.checkpoint import Checkpoint
from groupstorm.watch.feed import Feed, Take
from groupstorm.watch.tail import Tail

#: Spark's source for Kafka, which is not part of PySpark. Maven Central has none of Spark 4.3; this one works
#: with it (a test).
KAFKA_PACKAGE: Final = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0"

_VERSION_LINE: Final = f'{{"{VERSION_KEY}"'


class TraceSource(Protocol):
    """A trace that is being written."""

    @property
    def name(self) -> str:
        """What the checkpoint is of."""

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
        from groupstorm.watch.stream import TopicStream

        if not checkpoint.spark_folder.exists():
            checkpoint.forget_batches()
        with spark_session(packages=(KAFKA_PACKAGE,)) as spark:
            yield TopicStream(spark, self._address, checkpoint.spark_folder, take)

    def first_line(self) -> str | None:
        return None

    def explain(self, place: str) -> None:
        """The place says which record it is."""
