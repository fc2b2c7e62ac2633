"""What a watch keeps over a restart: the rows that spans may need, and the state of the groups before them.

``FOLDER/rows.sqlite`` holds both; ``FOLDER/spark`` says which files have been read. A batch of rows and its
number are committed together: Spark repeats a batch that it does not know to be done.
"""

from __future__ import annotations

import json
import pickle
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from groupstorm import __version__
from groupstorm.problems import InputError, OutputError, writing
from groupstorm.watch.alerts import Active
from groupstorm.watch.rolling import Carried
from groupstorm.watch.rows import WatchedRow, read_line

_TABLES = """
CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS rows (seq INTEGER PRIMARY KEY, line TEXT NOT NULL);
"""


class Checkpoint:
    """The folder of one watch of one trace. One process at a time has it open."""

    def __init__(self, folder: Path, connection: sqlite3.Connection) -> None:
        self._folder = folder
        self._connection = connection

    @property
    def spark_folder(self) -> Path:
        return self._folder / "spark"

    def rows(self) -> list[WatchedRow]:
        """The rows that are kept, in their order."""
        lines = self._connection.execute("SELECT line FROM rows ORDER BY seq")
        return [row for (line,) in lines if (row := read_line(line)) is not None]

    def carried(self) -> Carried | None:
        """The state before the rows; None if there is none."""
        state = self._about("carried")
        return None if state is None else pickle.loads(state)

    def is_done(self, batch: int) -> bool:
        """Whether the rows of this batch, and of those before it, are kept."""
        last = self._about("batch")
        return last is not None and batch <= int(last)

    def came(self) -> float | None:
        """When the last row came; None if none has."""
        return self._about("came")  # type: ignore[no-any-return]

    def keep(self, batch: int, rows: Sequence[WatchedRow], came: float | None) -> None:
        """Keep the rows of a batch, and when the last row of the trace came. Raises OutputError."""
        with self._transaction():
            self._connection.executemany(
                "INSERT OR IGNORE INTO rows VALUES (?, ?)", [(one.seq, one.line) for one in rows]
            )
            self._tell("batch", batch)
            if came is not None:
                self._tell("came", came)
            if self._about("first") is None:
                for one in rows:
                    if one.seq == 0:
                        self._tell("first", one.line)

    def carry(self, carried: Carried) -> None:
        """Keep the state, and drop the rows that are part of it. Raises OutputError."""
        with self._transaction():
            self._connection.execute("DELETE FROM rows WHERE seq < ?", (carried.next_seq,))
            self._tell("carried", pickle.dumps(carried))

    def active(self) -> Active:
        """The alerts that were on."""
        state = self._about("active")
        return frozenset((alert, group) for alert, group in json.loads(state or "[]"))

    def keep_active(self, active: Active) -> None:
        """Keep which alerts are on. Raises OutputError."""
        with self._transaction():
            self._tell("active", json.dumps(sorted(active)))

    def forget_batches(self) -> None:
        """Spark begins to count batches anew. Raises OutputError."""
        with self._transaction():
            self._connection.execute("DELETE FROM about WHERE name = 'batch'")

    def check_is_of(self, source: str) -> None:
        """Raises InputError if this is the checkpoint of another source, or of another groupstorm."""
        for name, value, what in (("source", source, "of"), ("version", __version__, "of groupstorm")):
            there = self._about(name)
            if there is None:
                with self._transaction():
                    self._tell(name, value)
            elif there != value:
                raise InputError(
                    f"--checkpoint {self._folder}: is the checkpoint {what} {there}, not {value}: "
                    "name another folder or remove it"
                )

    def check_begins_with(self, first: str | None) -> None:
        """Raises InputError if the trace begins with another row than the kept one. None: no row yet."""
        there = self._about("first")
        if there is not None and first is not None and there != first:
            raise InputError(
                f"--checkpoint {self._folder}: is the checkpoint of an earlier trace there: remove it"
            )

    def _about(self, name: str) -> Any:
        found = self._connection.execute("SELECT value FROM about WHERE name = ?", (name,)).fetchone()
        return None if found is None else found[0]

    def _tell(self, name: str, value: bytes | str | float) -> None:
        self._connection.execute("INSERT OR REPLACE INTO about VALUES (?, ?)", (name, value))

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        try:
            with self._connection:
                yield
        except sqlite3.OperationalError as problem:
            raise OutputError(f"{self._folder}: cannot be written: {problem}") from problem


@contextmanager
def open_checkpoint(folder: Path, source: str) -> Iterator[Checkpoint]:
    """Open the checkpoint of ``source``, or make it.

    Raises InputError if it is another's, or if another process has it open; OutputError if it cannot be
    written.
    """
    with writing(folder):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = folder / "rows.sqlite"
    if not file.exists() and any(folder.iterdir()):
        raise InputError(f"--checkpoint {folder}: holds something else: name another folder")
    try:
        connection = sqlite3.connect(file, timeout=0, check_same_thread=False)
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.executescript(_TABLES)
        with connection:
            connection.execute("DELETE FROM rows WHERE seq < 0")  # which takes the lock
    except sqlite3.OperationalError as problem:
        if "locked" in str(problem):
            raise InputError(f"--checkpoint {folder}: another watch is using it") from problem
        raise OutputError(f"{file}: cannot be written: {problem}") from problem
    except sqlite3.DatabaseError as problem:
        raise InputError(f"{file}: not the checkpoint of a watch: {problem}") from problem
    try:
        checkpoint = Checkpoint(folder, connection)
        checkpoint.check_is_of(source)
        if not checkpoint.spark_folder.exists():
            checkpoint.forget_batches()
        yield checkpoint
    finally:
        connection.close()
