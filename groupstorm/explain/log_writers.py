"""Which client library wrote which log of an import: `import.json` beside the trace says it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from groupstorm.problems import InputError


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
