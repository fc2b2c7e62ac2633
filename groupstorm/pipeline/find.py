"""Where the traces of an analysis lie, and the names of their runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from groupstorm.problems import InputError
from groupstorm.trace.reader import trace_files


def find_traces(paths: Sequence[Path]) -> dict[str, Path]:
    """Run name -> trace (a file, or a folder of trace files), in the order of ``paths``.

    A folder without a trace of its own stands for all traces below it, each named by its sub-folder
    (`groupstorm compare`: the variant). Raises InputError for a path without any.
    """
    found = [(path, name, trace) for path in paths for name, trace in _traces_at(path)]
    if len({name for _, name, _ in found}) == len(found):
        return {name: trace for _, name, trace in found}
    runs = {str(trace): trace for _, _, trace in found}
    if len(runs) < len(found):
        raise InputError("a trace is named twice: " + ", ".join(str(path) for path in paths))
    return runs


def _traces_at(path: Path) -> list[tuple[str, Path]]:
    if path.is_file():
        trace_files(path)  # raises if the name is wrong
        return [(path.resolve().parent.name if path.stem == "trace" else path.stem, path)]
    if path.is_dir() and not _has_trace(path):
        below = [folder for folder in sorted(path.rglob("*/")) if folder.is_dir() and _has_trace(folder)]
        if not below:
            raise InputError(
                f"{path}: no trace found, neither in it nor below it (trace*.jsonl, trace*.parquet)"
            )
        return [(folder.relative_to(path).as_posix(), folder) for folder in below]
    trace_files(path)  # raises if the path is wrong
    return [(path.resolve().name, path)]


def _has_trace(folder: Path) -> bool:
    return any(file.suffix in (".jsonl", ".parquet") and file.is_file() for file in folder.glob("trace*"))
