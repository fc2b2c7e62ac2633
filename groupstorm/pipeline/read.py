"""Trace files -> rows: a DataFrame with the schema's columns and ``run``, the name of the trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from groupstorm.problems import InputError
from groupstorm.storms.figures.rows import read_row
from groupstorm.trace.reader import read_rows, trace_files
from groupstorm.trace.schema import COLUMNS, ColumnType

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Column types in Spark's DDL.
_SPARK_TYPES = {
    ColumnType.INT: "bigint",
    ColumnType.TEXT: "string",
    ColumnType.TEXTS: "array<string>",
    ColumnType.INTS: "array<bigint>",
}

SCHEMA = ", ".join(f"`{column.name}` {_SPARK_TYPES[column.type]}" for column in COLUMNS)

#: Where Spark's JSON reader puts a line that is no row of the schema.
_CORRUPT = "_corrupt"

#: Characters that mean something in a path pattern of Hadoop.
_PATTERN_CHARACTERS = "\\{}[]*?"


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
        trace_files(path)  # says what is wrong with its name, if anything is
        return [(path.resolve().parent.name if path.stem == "trace" else path.stem, path)]
    if path.is_dir() and not _has_trace(path):
        below = [folder for folder in sorted(path.rglob("*/")) if folder.is_dir() and _has_trace(folder)]
        if not below:
            raise InputError(
                f"{path}: no trace found, neither in it nor below it (trace*.jsonl, trace*.parquet)"
            )
        return [(folder.relative_to(path).as_posix(), folder) for folder in below]
    trace_files(path)  # says what is wrong with the path, if anything is
    return [(path.resolve().name, path)]


def _has_trace(folder: Path) -> bool:
    return any(file.suffix in (".jsonl", ".parquet") and file.is_file() for file in folder.glob("trace*"))


def read_traces(spark: SparkSession, traces: Mapping[str, Path]) -> DataFrame:
    """All rows of the traces, cached. Raises InputError naming the place of what is no row of a trace."""
    from pyspark import StorageLevel
    from pyspark.sql import functions as f

    runs = {str(file.resolve()): run for run, trace in traces.items() for file in trace_files(trace)}
    by_format = {
        suffix: [_literal_path(file) for file in runs if file.endswith(suffix)]
        for suffix in (".jsonl", ".parquet")
    }
    frames = []
    if by_format[".jsonl"]:
        reader = spark.read.schema(f"{SCHEMA}, {_CORRUPT} string").option(
            "columnNameOfCorruptRecord", _CORRUPT
        )
        frames.append(_with_file(reader.json(by_format[".jsonl"])))
    if by_format[".parquet"]:
        plain = spark.read.schema(SCHEMA).parquet(*by_format[".parquet"])
        frames.append(_with_file(plain.withColumn(_CORRUPT, f.lit(None).cast("string"))))
    rows = frames[0] if len(frames) == 1 else frames[0].unionByName(frames[1])
    names = spark.createDataFrame([*runs.items()], "file string, run string")
    rows = rows.join(f.broadcast(names), "file").drop("file").persist(StorageLevel.MEMORY_AND_DISK)
    _check(rows, traces)
    return rows.drop(_CORRUPT)


def _with_file(rows: DataFrame) -> DataFrame:
    """Add ``file``, the path a row was read from (Spark tells it as a URL)."""
    from pyspark.sql import functions as f

    url = f.regexp_replace("_metadata.file_path", "^file:/+", "/")
    return rows.withColumn("file", f.url_decode(f.replace(url, f.lit("+"), f.lit("%2B"))))


def _literal_path(file: str) -> str:
    return "".join(f"\\{c}" if c in _PATTERN_CHARACTERS else c for c in file)


def _check(rows: DataFrame, traces: Mapping[str, Path]) -> None:
    """Raise InputError if a row is none, or a trace has no row at all."""
    from pyspark.sql import functions as f

    nothing = f.array().cast("array<bigint>")
    lengths = f.size(f.coalesce("positions", nothing)) != f.size(
        f.coalesce("partitions", nothing.cast("array<string>"))
    )
    needed = [f.col(name).isNull() for name in ("seq", "time_us", "source", "event", "group")]
    bad = f.col(_CORRUPT).isNotNull() | (lengths & f.col("positions").isNotNull())
    for condition in needed:
        bad = bad | condition
    seen = {row["run"]: row["bad"] for row in rows.groupBy("run").agg(f.max(bad).alias("bad")).collect()}
    for run, trace in traces.items():
        if run not in seen:
            raise InputError(f"{trace}: the trace has no rows")
        if seen[run]:
            _explain(trace)


def _explain(trace: Path) -> NoReturn:
    """Read a trace that Spark found fault with row by row, to say where the fault is."""
    before_us = 0
    for row in read_rows(trace):
        before_us, _, _ = read_row(row, before_us)
    raise InputError(f"{trace}: a row has no seq or no group")
