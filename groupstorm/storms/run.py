"""Runs and their files: one folder per run, complete or not there.

`trace.jsonl` or `trace.parquet`, `scenario.yaml`, `figures.json` depend on the scenario and its seed
alone; `measured.json` holds what depends on the machine.
"""

from __future__ import annotations

import json
import resource
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from groupstorm.assignors.contract import Assignor, RebalanceProtocol
from groupstorm.assignors.registry import get
from groupstorm.clients.profiles import PROFILES
from groupstorm.problems import CheckFailed, InputError
from groupstorm.storms.assignor_work import AssignorWork
from groupstorm.storms.ending import Progress
from groupstorm.storms.figures import Figures
from groupstorm.storms.members import strategies
from groupstorm.storms.scenario import ResolvedScenario
from groupstorm.storms.settings import Settings
from groupstorm.storms.simulation import simulate
from groupstorm.storms.streams.settings import STREAMS
from groupstorm.trace.rows import TraceSink
from groupstorm.trace.writer import Tee, TraceWriter, open_writer, partial_path

RUN_FILES = ("trace.jsonl", "trace.parquet", "scenario.yaml", "figures.json", "measured.json")


@dataclass(frozen=True, slots=True)
class Run:
    """What a finished run has left: its figures, and where its files lie."""

    scenario: ResolvedScenario
    figures: Figures
    folder: Path
    trace: Path
    events: int
    wall_seconds: float
    assignor_failure: str | None = None

    @property
    def violations(self) -> dict[str, str]:
        invariants = self.figures.invariants or {}
        return {name: verdict for name, verdict in invariants.items() if verdict != "held"}


def chosen_assignors(scenario: ResolvedScenario) -> Sequence[Assignor]:
    """The assignors that the scenario's members offer, in their order. Raises InputError.

    None for a Kafka Streams application, whose threads bring their own.
    """
    if scenario.settings.choice("application") == STREAMS:
        return []
    for own in scenario.settings.of_profiles():
        _refuse_cooperative(own)
    return [get(entry) for entry in strategies(scenario.settings)]


def _refuse_cooperative(settings: Settings) -> None:
    """Members of a client that cannot be told what they own would own it twice."""
    client = PROFILES[settings.names("client_profile")[0]]
    for entry in settings.names("partition.assignment.strategy"):
        if not client.has_cooperative and RebalanceProtocol.COOPERATIVE in get(entry).protocols:
            raise InputError(
                f"partition.assignment.strategy: {client.name} (client_profile) has no cooperative "
                f"rebalancing, expected eager assignors and not {entry}"
            )


def run(
    scenario: ResolvedScenario,
    folder: Path,
    trace_format: str = "jsonl",
    exact: bool = False,
    progress: Progress | None = None,
    log: TraceSink | None = None,
) -> Run:
    """Run in virtual time and write the files into ``folder``, whose older run they replace.

    ``log``: a second sink for every event, for people who watch.
    Raises InputError for a folder that holds something else, or that cannot be written.
    """
    assignors = chosen_assignors(scenario)
    work = AssignorWork()

    def storm(sink: TraceSink) -> Figures:
        return simulate(scenario, assignors, sink, exact, progress, work)

    return record(scenario, folder, trace_format, storm, log, work)


def record(
    scenario: ResolvedScenario,
    folder: Path,
    trace_format: str,
    storm: Callable[[TraceSink], Figures],
    log: TraceSink | None = None,
    work: AssignorWork | None = None,
) -> Run:
    """Let ``storm`` tell its events and give its figures, and write the run's files into ``folder``.

    ``work``: what ``storm`` adds up of the assignors' work, where it does.
    """
    _prepare(folder)
    started, cpu_started = time.perf_counter(), time.process_time()
    writer = open_writer(folder, "trace", trace_format)
    with ExitStack() as unfinished:
        unfinished.callback(writer.discard)
        sink = writer if log is None else Tee(writer, log)
        figures = storm(sink)
        unfinished.pop_all()
    writer.close()
    wall_seconds = time.perf_counter() - started
    write_text(folder / "scenario.yaml", scenario.as_yaml())
    write_json(folder / "figures.json", figures.to_json())
    cpu_seconds = time.process_time() - cpu_started
    write_json(folder / "measured.json", _measured(writer, wall_seconds, cpu_seconds, work))
    failure = None if work is None else work.failure
    return Run(scenario, figures, folder, writer.path, writer.rows, wall_seconds, failure)


def _measured(
    writer: TraceWriter, wall_seconds: float, cpu_seconds: float, work: AssignorWork | None
) -> dict[str, Any]:
    assignors = {} if work is None else work.measured()
    return {
        "wall_seconds": round(wall_seconds, 3),
        "cpu_seconds": round(cpu_seconds, 3),
        **assignors,
        "peak_memory_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "trace_rows": writer.rows,
        "trace_bytes": writer.path.stat().st_size,
    }


def _prepare(folder: Path) -> None:
    """Make the folder; take away an older run's files, and nothing else."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        foreign = [
            path.name
            for path in folder.iterdir()
            if path.name not in RUN_FILES and not path.name.startswith(".trace")
        ]
        if foreign:
            raise InputError(
                f"{folder}: holds {foreign[0]}, which is no run's: name another folder with --out"
            )
        for name in RUN_FILES:
            (folder / name).unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot be written: {error.strerror}") from error


def write_text(path: Path, text: str) -> None:
    partial = partial_path(path)
    partial.write_text(text, "utf-8")
    partial.replace(path)


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def remove_run(folder: Path) -> None:
    """Take a run's files away, and its folder if nothing else is in it."""
    for name in RUN_FILES:
        (folder / name).unlink(missing_ok=True)
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


def require_invariants(run: Run) -> None:
    """Raise CheckFailed for a run in which an invariant broke: seed, options and the way to see it again."""
    if not run.violations:
        return
    scenario = run.scenario
    lines = [f"{scenario.name} ({scenario.variant}), seed {scenario.seed}: an invariant broke"]
    lines += [f"  {name}: {sentence}" for name, sentence in run.violations.items()]
    lines.append(
        "  with " + ", ".join(f"{name}={json.dumps(value)}" for name, value in scenario.settings.written())
    )
    lines.append(f"  again: groupstorm run {run.folder / 'scenario.yaml'}")
    raise CheckFailed("\n".join(lines))
