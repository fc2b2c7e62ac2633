"""`groupstorm analyze`: from traces to everything that it prints or writes, by the engine that suits them."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from enum import StrEnum
from pathlib import Path
from typing import Any

from groupstorm.figures import Figures
from groupstorm.figures.accumulator import WHOLE
from groupstorm.pipeline.results import (
    TABLES,
    Analysis,
    EngineResult,
    Key,
    Request,
    RoundsByCause,
    SlowHandover,
)
from groupstorm.pipeline.table_files import COMPLETE_MARK, complete_tables
from groupstorm.pipeline.trace_fold import NOTHING_COUNTED, Part, analyze_traces
from groupstorm.problems import InputError, writing
from groupstorm.trace.reader import trace_files

#: Up to so many bytes of traces the local engine is chosen (measured: `docs/analyze.md`). Parquet holds about
#: twenty times as many rows in a byte as JSON lines do.
LOCAL_BYTES_MAX = 100_000_000
PARQUET_WEIGHT = 20

_TABLES = ("figures", *TABLES)


class Engine(StrEnum):
    """An engine: ``auto`` is local for small traces, and Spark for large ones or on a cluster."""

    AUTO = "auto"
    LOCAL = "local"
    SPARK = "spark"


def analyze(request: Request, engine: Engine = Engine.AUTO, master: str | None = None) -> Analysis:
    """Compute all tables and figures of the traces; write the tables, if they are asked for.

    ``master``: a Spark cluster (spark://HOST:PORT). Raises InputError for a path without a trace, for a
    group that no trace has, if what the engine needs is missing, or if the tables cannot be written.
    """
    if engine == Engine.LOCAL and master is not None:
        raise InputError("--engine local: expected no --master, which is for Spark")
    if request.out is not None:
        _check_out(request.out)
    trace_bytes = weight(request.traces)
    if engine == Engine.AUTO:
        engine = Engine.SPARK if master is not None or trace_bytes > LOCAL_BYTES_MAX else Engine.LOCAL
    with all_or_none(request.out, _TABLES) if request.out is not None else nullcontext() as folder:
        if engine == Engine.LOCAL:
            parts = [Part(run, trace) for run, trace in request.traces.items()]
            result = analyze_traces(request, parts, folder)
        else:
            result = _on_spark(request, folder, trace_bytes, master)
        figures = _named_figures(request, result)
        if folder is not None:
            complete_tables(figures, folder)
    return _analysis(engine, request, result, figures)


def _on_spark(request: Request, folder: Path | None, trace_bytes: int, master: str | None) -> EngineResult:
    from groupstorm.pipeline.session import LOCAL, spark_session

    with spark_session(trace_bytes, LOCAL if master is None else master) as spark:
        from groupstorm.pipeline.spark import analyze_on_spark

        return analyze_on_spark(spark, request, folder)


def weight(traces: Mapping[str, Path]) -> int:
    """The size of traces in bytes of JSON lines."""
    files = [file for trace in traces.values() for file in trace_files(trace)]
    return sum(file.stat().st_size * (PARQUET_WEIGHT if file.suffix == ".parquet" else 1) for file in files)


def _named_figures(request: Request, result: EngineResult) -> dict[str, Figures]:
    """The figures by run name, in the order of the traces. Raises InputError for an unknown group."""
    there = dict.fromkeys(group for _, group in result.groups)
    for group in request.groups:
        if group not in there:
            raise InputError(f"--group {group}: not in the traces; there are: {', '.join(there)}")
    if not result.figures:
        raise InputError(NOTHING_COUNTED)
    names = _names(result)
    runs = [*request.traces]
    return {names[key]: result.figures[key] for key in sorted(result.figures, key=lambda k: runs.index(k[0]))}


def _is_asked(request: Request, key: Key) -> bool:
    return not request.groups or key[1] in request.groups


def _names(result: EngineResult) -> dict[Key, str]:
    """A run goes by its name; a group of a run with several groups by run:group."""
    groups = Counter(run for run, _ in result.groups)
    return {key: key[0] if groups[key[0]] == 1 else ":".join(key) for key in result.groups}


def _analysis(
    engine: Engine, request: Request, result: EngineResult, figures: Mapping[str, Figures]
) -> Analysis:
    names = _names(result)
    # figures.json is about the whole run
    traces = request.traces if request.window == WHOLE else {}
    confirmed, disagreements = compare_with_files(figures, traces)
    return Analysis(
        engine,
        figures,
        [SlowHandover(names[run, group], *row) for run, group, *row in result.handovers],
        [RoundsByCause(names[run, group], *row) for run, group, *row in result.rounds],
        [names[key] for key in result.groups if key not in result.figures and _is_asked(request, key)],
        confirmed,
        disagreements,
    )


def compare_with_files(
    figures: Mapping[str, Figures], traces: Mapping[str, Path]
) -> tuple[Sequence[str], Sequence[str]]:
    """Compare figures with the `figures.json` beside each trace: the runs that agree, and the differences."""
    confirmed, disagreements = [], []
    for run, trace in traces.items():
        file = (trace if trace.is_dir() else trace.parent) / "figures.json"
        if run not in figures or not file.is_file():
            continue
        written = _read_figures(file)
        computed = json.loads(json.dumps(figures[run].to_json()))
        different = [*_differences(written, computed)]
        disagreements += [f"{file}: {difference}" for difference in different]
        if not different:
            confirmed.append(run)
    return confirmed, disagreements


def _differences(written: Mapping[str, Any], computed: Mapping[str, Any]) -> Iterator[str]:
    """A figure that one of the two does not have is a difference, whatever its value."""
    for name in {**computed, **written}:
        if name not in written:
            yield f"{name}: is missing, but the trace gives {computed[name]!r}"
        elif name not in computed:
            yield f"{name}: {written[name]!r}, but there is no such figure"
        elif computed[name] != written[name]:
            yield f"{name}: {written[name]!r}, but the trace gives {computed[name]!r}"


def _read_figures(file: Path) -> dict[str, Any]:
    try:
        figures = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as problem:
        raise InputError(f"{file}: not the figures of a run: {problem}") from problem
    if not isinstance(figures, dict):
        raise InputError(f"{file}: not the figures of a run: expected a JSON object")
    return figures


def _check_out(out: Path) -> None:
    """Refuse a folder for the tables before they are computed. Raises InputError."""
    there = next(folder for folder in (out.absolute(), *out.absolute().parents) if folder.exists())
    if not there.is_dir() or not os.access(there, os.W_OK):
        raise InputError(f"{out}: cannot be written: expected a folder that you may write to: {there}")
    for name in _TABLES:
        table = out / name
        if table.exists() and not (table / COMPLETE_MARK).exists():
            raise InputError(f"{table}: is there and is no table of an earlier analysis: name another --out")


_PARTIAL = ".partial"


@contextmanager
def all_or_none(out: Path, tables: Sequence[str]) -> Iterator[Path]:
    """A folder for the block to write ``tables`` into; if the block succeeds, they replace those in ``out``.

    If the block fails, ``out`` is as it was. Raises OutputError if a folder cannot be made or moved.
    """
    made = [folder for folder in (out, *out.parents) if not folder.exists()]
    partial = out / _PARTIAL
    try:
        with writing(out):
            shutil.rmtree(partial, ignore_errors=True)  # of an analysis that was killed
            partial.mkdir(parents=True)
        yield partial
        with writing(out):
            for name in tables:
                shutil.rmtree(out / name, ignore_errors=True)
                (partial / name).rename(out / name)
            partial.rmdir()
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        for folder in made:
            with suppress(OSError):
                folder.rmdir()
        raise
