"""The result of an import, and its folder: its trace and `import.json`, or nothing at all."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from groupstorm.imports.clocks import Offset
from groupstorm.imports.source import LogSource
from groupstorm.imports.timeline.summary import GroupSummary
from groupstorm.imports.times import shown
from groupstorm.problems import InputError, writing
from groupstorm.trace.writer import complete_or_absent, partial_path

_GROUP: Final = json.JSONEncoder(ensure_ascii=False)
SUMMARY: Final = "import.json"
FILES = ("trace.jsonl", "trace.parquet", SUMMARY)


@contextmanager
def import_folder(out: Path) -> Iterator[Path]:
    """Make the folder for the block; if the block fails, nothing of it stays.

    Raises InputError for a folder that holds anything but an earlier import.
    """
    missing = [folder for folder in (out, *out.parents) if not folder.exists()]
    check_folder(out)
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
        for name in FILES:
            (out / name).unlink(missing_ok=True)
    try:
        yield out
    except BaseException:
        for name in FILES:
            for path in (out / name, partial_path(out / name)):
                with suppress(OSError):
                    path.unlink()
        for folder in missing:
            with suppress(OSError):
                folder.rmdir()
        raise


def check_folder(out: Path) -> None:
    """Raises InputError for a folder that holds anything but an earlier import."""
    if out.exists() and not out.is_dir():
        raise InputError(f"{out}: is a file: expected a folder: name another with --out")
    foreign = [path.name for path in out.iterdir() if path.name not in FILES] if out.is_dir() else []
    if foreign or (out.is_dir() and any(out.glob("trace.*")) and not (out / SUMMARY).exists()):
        raise InputError(
            f"{out}: holds {(foreign or ['a trace'])[0]}, which is no import's: name another --out"
        )


def write_summary(path: Path, done: Imported) -> None:
    """Which logs there were, how their clocks go together, what of each group is known and what is not."""
    logs: list[dict[str, Any]] = []
    for one in done.logs:
        offset = done.offsets[one.number]
        logs.append(
            {
                "log": one.log.name,
                "lines": one.lines,
                "understood": one.understood,
                "not_understood": one.not_understood,
                "untimed": one.untimed,
                "damage": one.damage,
                "written_by": sorted(map(str, one.writers)),
                "not_stated": one.clock.lacks,
                "zone_stated": one.clock.zoned,
                "newest_first": one.newest_first,
                "clock_offset_us": offset.us,
                "clock_offset_bounds_us": [offset.earliest_us, offset.latest_us],
                "clock_zone_us": offset.zone_us,
                "clock_contradiction": offset.contradiction,
            }
        )
    text = {
        "began": shown(done.began_us, done.lacks),
        "ended": shown(done.ended_us, done.lacks),
        "rows": done.rows,
        "logs": logs,
        "groups": [],
    }
    with complete_or_absent(path) as partial, writing(path), partial.open("w", encoding="utf-8") as file:
        file.write(json.dumps(text, indent=2, ensure_ascii=False).removesuffix("]\n}"))
        for number, record in enumerate(done.groups):  # each in a line of its own: there may be very many
            file.write("," * (number > 0) + "\n    " + _GROUP.encode(_of_group(record)))
        file.write("\n  ]\n}\n")


def _of_group(one: GroupSummary) -> dict[str, Any]:
    return {
        "group": one.name,
        "ownership_from": one.view,
        "rounds_with_known_ownership": one.rounds_known,
        "descriptions": one.descriptions,
        "rounds_with_unknown_ownership": one.rounds_unknown,
        "missing": {cause: {"times": count, "first": first} for cause, (count, first) in one.missing.items()},
    }


def writers_of_logs(trace: Path) -> Mapping[str, tuple[str, ...]]:
    """Log -> the programs that wrote it, of an imported trace. Empty without an `import.json`.

    Raises InputError if the file is not that of an import.
    """
    file = (trace if trace.is_dir() else trace.parent) / SUMMARY
    if not file.is_file():
        return {}
    try:
        logs = json.loads(file.read_text("utf-8"))["logs"]
        return {str(log["log"]): tuple(map(str, log["written_by"])) for log in logs}
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise InputError(f"{file}: not the summary of an import: {problem}") from problem


@dataclass(frozen=True, slots=True)
class Imported:
    """The groups and logs, how far each log's clock is off, and the time and rows of the trace."""

    groups: Sequence[GroupSummary]
    logs: Sequence[LogSource]
    offsets: Mapping[int, Offset]
    began_us: int
    ended_us: int
    rows: int

    @property
    def lacks(self) -> str:
        """The part of its times that no source says: see `shown`."""
        return next((one.clock.lacks for one in self.logs if one.clock.lacks), "")
