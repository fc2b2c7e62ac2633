"""Small storms, their traces, the same as imported logs, and what is made of both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from groupstorm.imports.importing import Options, import_logs
from groupstorm.imports.lines import find_logs
from groupstorm.storms.runs.choices import AS_IT_WAS
from groupstorm.storms.runs.run import run
from groupstorm.storms.scenario.files import load
from groupstorm.trace.reader import read_rows
from groupstorm.whatif.agreement import Agreement, agreement, replay
from groupstorm.whatif.drafting import Draft, draft_of, scenario_text
from groupstorm.whatif.facts import Reading
from groupstorm.whatif.reading import read_run
from tools.log_printing.logs import LogKind, as_log

SIZE: dict[str, Any] = {"members": 4, "partitions": 12, "phases": "aligned"}
#: None of them is the storm's own.
SEEDS = range(100, 103)
#: What a log does not say and its reader knows.
KNOWN = ("session.timeout.ms", "max.poll.interval.ms")


def storm(folder: Path, preset: str, variant: str | None = None, **settings: Any) -> Path:
    """The folder of a small storm."""
    run(load(preset).resolve(variant, 1, {**SIZE, **settings}), folder)
    return folder


def as_logs(run_folder: Path, folder: Path, *kinds: LogKind) -> Path:
    """The folder of an import of the logs that the storm's members and broker would have written."""
    rows = list(read_rows(run_folder))
    folder.mkdir()
    for kind in kinds or tuple(LogKind):
        text = "".join(f"{line}\n" for line in as_log(rows, kind))
        (folder / f"{kind}.log").write_text(text, "utf-8")
    files = [str(folder / f"{kind}.log") for kind in kinds or tuple(LogKind)]
    import_logs(find_logs(files), folder / "imported", Options())
    return folder / "imported"


def drafted(path: Path, **known: Any) -> tuple[Reading, Draft]:
    reading = read_run(path)
    return reading, draft_of(reading, "again", known)


def replayed(path: Path, folder: Path, **known: Any) -> tuple[Agreement, Draft]:
    """A run beside the replays of its scenario, with seeds that the storm did not have."""
    reading, draft = drafted(path, **known)
    assert draft.problems == []
    file = folder / "whatif.yaml"
    file.write_text(scenario_text(draft, "a test", {}), "utf-8")
    replays = [replay((str(file), AS_IT_WAS, seed)) for seed in SEEDS]
    return agreement(reading, draft, replays), draft
