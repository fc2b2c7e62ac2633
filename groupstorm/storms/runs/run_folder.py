"""The folder of a run: all its files, or as if the run had never begun."""

from __future__ import annotations

import errno
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from groupstorm.problems import InputError, OutputError, writing
from groupstorm.trace.writer import complete_or_absent, partial_path

RUN_FILES = ("trace.jsonl", "trace.parquet", "scenario.yaml", "figures.json", "measured.json")

#: In measured.json: the options of `groupstorm run` that made a run in real time, by name and without dashes.
REAL_TIME: Final = "real_time"

#: Errors of a folder that was named rightly.
_NOT_THE_USERS = (errno.ENOSPC, errno.EDQUOT, errno.EIO)


class RunFolder:
    """The folder of one run, and which of its parents the run makes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._missing = tuple(folder for folder in (path, *path.parents) if not folder.exists())

    @contextmanager
    def complete_or_absent(self) -> Iterator[Path]:
        """Make the folder for the block and remove an older run's files; if the block fails, `discard`.

        Raises InputError for a folder that holds something else or cannot be made.
        """
        try:
            self._prepare()
            yield self.path
        except BaseException:
            self.discard()
            raise

    def is_complete(self) -> bool:
        """Whether a run has written its last file."""
        return (self.path / RUN_FILES[-1]).exists()

    def discard(self) -> None:
        """Remove the run's files, partial ones too, and the folders that were made for them and are empty.

        A folder that holds something else is nobody's run: its other files stay, whatever their names.
        """
        paths = [partial_path(self.path / name) for name in RUN_FILES]
        with suppress(OSError):
            if self._foreign_file() is None:
                paths += [self.path / name for name in RUN_FILES]
        for path in paths:
            with suppress(OSError):
                path.unlink()
        for folder in self._missing:
            with suppress(OSError):
                folder.rmdir()

    def _prepare(self) -> None:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            foreign = self._foreign_file()
            if foreign:
                raise InputError(
                    f"{self.path}: holds {foreign}, which is no run's: name another folder with --out"
                )
            for name in RUN_FILES:
                (self.path / name).unlink(missing_ok=True)
        except OSError as error:
            kind = OutputError if error.errno in _NOT_THE_USERS else InputError
            raise kind(f"{self.path}: cannot be written: {error.strerror}") from error

    def _foreign_file(self) -> str | None:
        """The name of something in the folder that no run has written."""
        if not self.path.is_dir():
            return None
        ours = {*RUN_FILES, *(partial_path(self.path / name).name for name in RUN_FILES)}
        return next((path.name for path in self.path.iterdir() if path.name not in ours), None)


def remove_run(folder: Path) -> None:
    """Remove a finished run's files, and its folder if nothing else is in it."""
    for name in RUN_FILES:
        (folder / name).unlink(missing_ok=True)
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


def real_time_options(folder: Path) -> list[str]:
    """The options that ran the scenario of ``folder`` in real time (``--on jvm``); none in virtual time.

    Raises InputError if measured.json cannot be read as what a run writes.
    """
    file = folder / "measured.json"
    if not file.is_file():
        return []
    try:
        options = json.loads(file.read_text("utf-8")).get(REAL_TIME, {})
        return [word for name, value in options.items() for word in (f"--{name}", str(value))]
    except (ValueError, AttributeError) as problem:
        raise InputError(f"{file}: expected an object with the run's cost: {problem}") from problem


def write_text(path: Path, text: str) -> None:
    """Write a file that is complete or not there. Raises OutputError."""
    with complete_or_absent(path) as partial, writing(path):
        partial.write_text(text, "utf-8")


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write a JSON object for people and programs. Raises OutputError."""
    write_text(path, json_text(value))


def json_text(value: Mapping[str, Any]) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
