"""The text of log lines that an imported trace names as evidence (``file:line``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from groupstorm.imports.lines import Log, open_files


def log_lines(places: Iterable[str]) -> Mapping[str, str]:
    """Place -> its line. A log that is not there any more, or cannot be read, has none.

    Each file is read once, up to the last line that is wanted. Logs were named from the folder in which they
    were imported.
    """
    wanted: dict[str, set[int]] = {}
    for place in places:
        name, _, line = place.rpartition(":")
        if line.isdecimal():
            wanted.setdefault(name, set()).add(int(line))
    found: dict[str, str] = {}
    for name, lines in wanted.items():
        if Path(name).is_file():
            found.update(_lines_of(name, lines))
    return found


def _lines_of(name: str, wanted: set[int]) -> dict[str, str]:
    found: dict[str, str] = {}
    last = max(wanted)
    for file in open_files(Log(name, (Path(name),))):
        for number, line in file.lines():
            if number in wanted:
                found.setdefault(f"{name}:{number}", line.decode("utf-8", "replace").strip())
            if number >= last:
                break
    return found
