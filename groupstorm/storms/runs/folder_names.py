"""Names of the folders that commands choose themselves: they say what was run, and never hide another run.

`runs/<preset>-<seed>` for a preset as it is; with a variant or changed settings
`runs/rolling-deploy-eager-members=60-seed0`. A folder that holds something else gets the suffix -2, -3, ...;
one that holds the same run (the same scenario, seed included) is used again: the run writes the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Any

from groupstorm.problems import InputError

RUNS = Path("runs")

#: A longer list of settings is named by their number and a checksum.
SETTINGS_LENGTH_MAX = 60

#: Files that say what a folder of runs holds.
TELLING = ("scenario.yaml", "comparison.json", "definition.json", "fidelity.json")

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
        found = list(_telling_files(folder))
        return bool(found) and all(
            files.get(path.relative_to(folder).as_posix()) == path.read_text("utf-8") for path in found
        )
    except (OSError, UnicodeDecodeError):
        return False


def _telling_files(folder: Path) -> Iterator[Path]:
    """Those that say what was run. A comparison.json follows from the runs below it."""
    for name in TELLING:
        if name != "comparison.json":
            yield from folder.rglob(name)


def as_folder(path: Path) -> Path:
    """``path`` as a folder that exists from now on. Raises InputError."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from error
    return path
