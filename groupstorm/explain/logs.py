"""The logs behind an imported trace: the text of lines that it names, and the writer of each log."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from groupstorm.imports.lines import Log, open_files
from groupstorm.problems import InputError


def log_lines(places: Iterable[str]) -> Mapping[str, str]:
    """Place (``file:line``) -> its line. A log that is not there any more, or cannot be read, has none.

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


def log_writers(trace: Path) -> Mapping[str, str]:
    """Log -> the library that wrote it, of logs that one library wrote. Empty without an `import.json`.

    Raises InputError if the file is not that of an import.
    """
    file = (trace if trace.is_dir() else trace.parent) / "import.json"
    if not file.is_file():
        return {}
    try:
        logs = json.loads(file.read_text("utf-8"))["logs"]
        written = {str(log["log"]): log["written_by"] for log in logs}
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise InputError(f"{file}: not the summary of an import: {problem}") from problem
    return {log: str(names[0]) for log, names in written.items() if len(names) == 1}
