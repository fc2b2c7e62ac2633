"""The folders of runs: their names, and their files - all of them, or as if the run had never begun.

Commands choose names that say what was run, and never hide another run: `runs/<preset>-<seed>` for a preset
as it is; with a variant or changed settings `runs/rolling-deploy-eager-members=60-seed0`. A folder that holds
something else gets the suffix -2, -3, ...; one that holds the same run (the same scenario, seed included) is
used again: the run writes the same bytes.
"""

from __future__ import annotations

import errno
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any, Final

from groupstorm.problems import InputError, OutputError, writing
from groupstorm.trace.writer import complete_or_absent, partial_path

RUNS = Path("runs")

#: A longer list of settings is named by their number and a checksum.
SETTINGS_LENGTH_MAX = 60

#: Files that say what a folder of runs holds. A comparison.json follows from the runs below it.
TELLING = ("scenario.yaml", "definition.json", "fidelity.json")

RUN_FILES = ("trace.jsonl", "trace.parquet", "scenario.yaml", "figures.json", "measured.json")

#: In measured.json: the options of `groupstorm run` that made a run in real time, by name and without dashes.
REAL_TIME: Final = "real_time"

#: Errors of a folder that was named rightly.
_NOT_THE_USERS = (errno.ENOSPC, errno.EDQUOT, errno.EIO)

_UNSAFE = re.compile(r"[^A-Za-z0-9_.,=+-]+")


def folder_stem(
    preset: str, seeds: str, *, kind: str = "", variants: str = "", changed: Mapping[str, Any]
) -> str:
    """The name of a folder. ``seeds``: 7, or 7-to-16. ``kind``: compare, sweep, on-...; "" for a run.

    ``variants``: those that were asked for; ``changed``: the settings of --set.
    """
    words = (preset, kind, variants, _settings_name(changed))
    parts = [_UNSAFE.sub("-", word) for word in words if word]
    plain = not variants and not changed and kind in ("", "compare", "sweep")
    return "-".join([*parts, seeds if plain else f"seed{seeds}"])


def _settings_name(changed: Mapping[str, Any]) -> str:
    if not changed:
        return ""
    name = "-".join(_UNSAFE.sub("-", f"{key}={_value(value)}").strip("-") for key, value in changed.items())
    if len(name) <= SETTINGS_LENGTH_MAX:
        return name
    written = json.dumps(changed, sort_keys=True, default=str)
    return f"{len(changed)}-settings-{hashlib.sha256(written.encode()).hexdigest()[:8]}"


def _value(value: Any) -> str:
    if isinstance(value, list):
        return "+".join(map(str, value))
    return json.dumps(value) if isinstance(value, bool | dict) or value is None else str(value)


def free_folder(stem: str, files: Mapping[str, str]) -> Path:
    """`runs/<stem>`, or with a suffix the first such folder that is free or holds just this run.

    ``files``: what this run's telling files will hold, by their paths in the folder. None of them: no folder
    is used again.
    """
    for suffix in count(1):
        folder = RUNS / (stem if suffix == 1 else f"{stem}-{suffix}")
        if _is_free(folder) or _holds_only(folder, files):
            return folder
    raise AssertionError("count() does not end")


def _is_free(folder: Path) -> bool:
    if not folder.exists():
        return True
    return folder.is_dir() and not any(folder.iterdir())


def _holds_only(folder: Path, files: Mapping[str, str]) -> bool:
    try:
        found = [path for name in TELLING for path in folder.rglob(name)]
        return bool(found) and all(
            files.get(path.relative_to(folder).as_posix()) == path.read_text("utf-8") for path in found
        )
    except (OSError, UnicodeDecodeError):
        return False


def as_folder(path: Path) -> Path:
    """``path`` as a folder that exists from now on. Raises InputError."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from error
    return path


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
