"""The state that a watch keeps over a restart: rows that spans may need, and the groups before them.

``FOLDER/rows.sqlite`` holds both, and how far the source has been read, which is committed together with the
rows. For a topic ``FOLDER/spark`` says which records have been read; Spark repeats a batch that it does not
know to be done.

Somebody else may have written the folder. What it holds is JSON with a checksum, of which each value has the
expected type; anything else is refused, and the folder stays as it is.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

from groupstorm import __version__
from groupstorm.problems import ExpectedError, InputError, OutputError, writing
from groupstorm.watch.alerts import Active
from groupstorm.watch.feed import BATCHES, Progress, WatchedRow, read_line
from groupstorm.watch.rolling import Carried, Groups
from groupstorm.watch.snapshot import read, write

#: The version of the tables, and of what is in them; the first one had none.
FORMAT: Final = 21
_TABLES: Final = (
    "CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE rows (seq INTEGER PRIMARY KEY, line TEXT NOT NULL)",
)
_FILE: Final = "rows.sqlite"
_JOURNAL: Final = "rows.sqlite-journal"
#: So ends a journal that names the one of several databases, a file that SQLite deletes. Ours is of one.
_NAMES_ANOTHER_FILE: Final = bytes.fromhex("d9d505f920a163d7")
_REMEDY: Final = "name another folder or remove it"
#: The names under which progress is kept: how they begin, and the range that they lie in.
_READ: Final = "read:"
_READ_NAMES: Final = (_READ, "read;")
#: The errors that a fold raises if a state is none that rows can lead to.
_MISFITS: Final = (
    ArithmeticError, AssertionError, AttributeError, LookupError, RecursionError, TypeError, ValueError,
)  # fmt: skip
_CHECKSUM_LENGTH: Final = 16


class Checkpoint:
    """The folder of one watch of one trace. One process at a time has it open."""

    def __init__(self, folder: Path, connection: sqlite3.Connection) -> None:
        self._folder = folder
        self._connection = connection
        self._has_state = False

    @property
    def spark_folder(self) -> Path:
        return self._folder / "spark"

    def rows(self) -> list[WatchedRow]:
        """The rows that are kept, in their order. Raises InputError."""
        found = []
        with _refusing(self._folder):
            for seq, line in self._connection.execute("SELECT seq, line FROM rows ORDER BY seq"):
                row = read_line(_unsealed(line))
                if row is None or row.seq != seq:
                    raise ValueError(f"row {seq} is another one")
                found.append(row)
        return found

    def carried(self) -> Carried | None:
        """The state before the rows; None if there is none. Raises InputError."""
        found: Carried | None = self._about("carried", Carried)
        if found is not None:
            with _refusing(self._folder):
                if not (0 <= found.from_us < 2**63 and 0 <= found.next_seq <= 2**63):
                    raise ValueError("it begins at no row")
                read(Groups, found.groups, checks_rows=True)
            self._has_state = True
        return found

    @contextmanager
    def folding(self) -> Iterator[None]:
        """Raises InputError if the block cannot go on from the state that was kept."""
        try:
            yield
        except ExpectedError:
            raise
        except _MISFITS as problem:
            if not self._has_state:
                raise
            raise _refusal(self._folder, f"its state does not go with the rows: {problem!r}") from problem

    def progress(self) -> dict[str, int]:
        """The position up to which each part of the source has been read. Raises InputError."""
        names = self._connection.execute("SELECT name FROM about WHERE name >= ? AND name < ?", _READ_NAMES)
        parts = [name.removeprefix(_READ) for (name,) in names.fetchall()]
        found = {part: self._about(_READ + part, int) for part in parts}
        with _refusing(self._folder):
            if any(position < 0 for position in found.values()):
                raise ValueError("it has read less than nothing")
        return found

    def is_done(self, progress: Progress) -> bool:
        """Whether what has been read with it, and before it, is kept."""
        last = self._about(_READ + progress.part, int)
        return last is not None and progress.position <= last

    def came(self) -> float | None:
        """When the last row came; None if none has."""
        return self._about("came", float)  # type: ignore[no-any-return]

    def keep(self, progress: Progress, rows: Sequence[WatchedRow], came: float | None) -> None:
        """Keep rows, how far the source has been read with them, and when the last row of the trace came.

        Raises OutputError.
        """
        with self._transaction():
            self._connection.executemany(
                "INSERT OR IGNORE INTO rows VALUES (?, ?)", [(one.seq, _sealed(one.line)) for one in rows]
            )
            self._tell(_READ + progress.part, progress.position)
            if came is not None:
                self._tell("came", float(came))
            if self._about("first", str) is None:
                for one in rows:
                    if one.seq == 0:
                        self._tell("first", one.line)

    def carry(self, carried: Carried) -> None:
        """Keep the state, and drop the rows that are part of it. Raises OutputError."""
        with self._transaction():
            self._connection.execute("DELETE FROM rows WHERE seq <= ?", (carried.next_seq - 1,))
            self._tell("carried", write(Carried, carried))

    def active(self) -> Active:
        """The alerts that were on."""
        return self._about("active", Active) or frozenset()

    def keep_active(self, active: Active) -> None:
        """Keep which alerts are on. Raises OutputError."""
        with self._transaction():
            self._tell("active", sorted(active))

    def forget_batches(self) -> None:
        """Spark begins to count batches anew. Raises OutputError."""
        with self._transaction():
            self._connection.execute("DELETE FROM about WHERE name = ?", (_READ + BATCHES,))

    def check_is_of(self, source: str) -> None:
        """Raises InputError if this is the checkpoint of another source, or of another groupstorm."""
        for name, value, what in (("version", __version__, "of groupstorm"), ("source", source, "of")):
            there = self._about(name, str)
            if there is None:
                with self._transaction():
                    self._tell(name, value)
            elif there != value:
                raise _refusal(self._folder, f"is the checkpoint {what} {there}, not {value}")

    def check_begins_with(self, first: str | None) -> None:
        """Raises InputError if the trace begins with another row than the kept one. None: no row yet."""
        there = self._about("first", str)
        if there is not None and first is not None and there != first:
            raise InputError(
                f"--checkpoint {self._folder}: is the checkpoint of an earlier trace there: remove it"
            )

    def _about(self, name: str, kind: Any) -> Any:
        """A value of this type; None if there is none."""
        with _refusing(self._folder):
            found = self._connection.execute("SELECT value FROM about WHERE name = ?", (name,)).fetchone()
            return None if found is None else read(kind, json.loads(_unsealed(found[0])))

    def _tell(self, name: str, value: Any) -> None:
        self._connection.execute(
            "INSERT OR REPLACE INTO about VALUES (?, ?)", (name, _sealed(json.dumps(value)))
        )

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        try:
            with self._connection:
                yield
        except sqlite3.OperationalError as problem:
            raise OutputError(f"{self._folder}: cannot be written: {problem}") from problem
        except sqlite3.DatabaseError as problem:
            raise _refusal(self._folder, str(problem)) from problem


@contextmanager
def open_checkpoint(folder: Path, source: str) -> Iterator[Checkpoint]:
    """Open the checkpoint of ``source``, or make it.

    Raises InputError if it is another's, if it is damaged, or if another process has it open; OutputError if
    it cannot be written.
    """
    file = folder / _FILE
    is_new = _is_new(folder)
    with writing(file):
        if is_new:
            file.touch(mode=0o600)
        file.open("r+b").close()  # which says why it cannot be written
    with closing(sqlite3.connect(file, timeout=0, check_same_thread=False)) as connection:
        try:
            _take(folder, connection, is_new)
        except sqlite3.DatabaseError as problem:
            if "locked" in str(problem):
                raise InputError(f"--checkpoint {folder}: another watch is using it") from problem
            if is_new:
                raise OutputError(f"{file}: cannot be written: {problem}") from problem
            raise _refusal(folder, f"{_FILE} is not the checkpoint of a watch: {problem}") from problem
        checkpoint = Checkpoint(folder, connection)
        checkpoint.check_is_of(source)
        yield checkpoint


def _is_new(folder: Path) -> bool:
    """Whether there is no checkpoint in the folder yet, which is made if it is missing. Raises InputError."""
    if folder.exists() and not folder.is_dir():
        raise _refusal(folder, "is no folder")
    with writing(folder):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        there = {one.name: one for one in folder.iterdir()}
    for name, one in there.items():
        if name == "spark" or name.startswith(_FILE):
            is_right = one.is_dir() if name == "spark" else name in (_FILE, _JOURNAL) and one.is_file()
            if one.is_symlink() or not is_right:
                raise _refusal(folder, f"{name} is not that of a watch")
    if _JOURNAL in there and _end_of(there[_JOURNAL], len(_NAMES_ANOTHER_FILE)) == _NAMES_ANOTHER_FILE:
        raise _refusal(folder, f"{_JOURNAL} names another file")
    is_new = _FILE not in there or not there[_FILE].stat().st_size
    if is_new and there.keys() - {_FILE, _JOURNAL}:
        raise InputError(f"--checkpoint {folder}: holds something else: name another folder")
    return is_new


def _end_of(file: Path, length: int) -> bytes:
    with file.open("rb") as opened:
        opened.seek(max(0, file.stat().st_size - length))
        return opened.read(length)


def _take(folder: Path, connection: sqlite3.Connection, is_new: bool) -> None:
    """Lock the file until the connection is closed, and make its tables or check them."""
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    connection.execute("BEGIN EXCLUSIVE")
    (form,) = connection.execute("PRAGMA user_version").fetchone()
    tables = {sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master")}
    if is_new and not tables:
        for table in _TABLES:
            connection.execute(table)
        connection.execute(f"PRAGMA user_version = {FORMAT}")
    elif form != FORMAT:
        raise _refusal(
            folder, f"has the format {form}, not {FORMAT}: another groupstorm has made it, or none"
        )
    elif tables != set(_TABLES) or connection.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
        raise _refusal(folder, f"{_FILE} is damaged")
    connection.commit()


def _refusal(folder: Path, why: str) -> InputError:
    return InputError(f"--checkpoint {folder}: {' '.join(why.split())}: {_REMEDY}")


@contextmanager
def _refusing(folder: Path) -> Iterator[None]:
    """Raises InputError if the block finds something else than a watch writes."""
    try:
        yield
    except (sqlite3.DatabaseError, ValueError, RecursionError) as problem:
        why, _, _row = str(problem).partition(" with text ")  # SQLite quotes what is no UTF-8
        raise _refusal(folder, f"{_FILE} is damaged: {why}") from problem


def _sealed(text: str) -> str:
    """The text behind its checksum."""
    return hashlib.blake2b(text.encode(), digest_size=_CHECKSUM_LENGTH // 2).hexdigest() + text


def _unsealed(sealed: Any) -> str:
    """Raises ValueError if it is no text, or if the checksum is that of another one."""
    if not isinstance(sealed, str) or _sealed(text := sealed[_CHECKSUM_LENGTH:]) != sealed:
        raise ValueError("a checksum is wrong")
    return text
