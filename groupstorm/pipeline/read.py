"""Trace files -> rows: where the traces of an analysis lie, and a DataFrame with the schema's columns and
``run``, the name of the trace."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

from groupstorm.problems import InputError
from groupstorm.trace.reader import check_version, read_rows, trace_files
from groupstorm.trace.rows import event_types
from groupstorm.trace.schema import COLUMNS, VERSION_KEY, ColumnType, Source, columns_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


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


#: Column types in Spark's DDL.
_SPARK_TYPES = {
    ColumnType.INT: "bigint",
    ColumnType.TEXT: "string",
    ColumnType.TEXTS: "array<string>",
    ColumnType.INTS: "array<bigint>",
}

_TEXTUAL = (ColumnType.TEXT, ColumnType.TEXTS)

#: Where Spark's JSON reader puts a line that is no row of the schema.
_CORRUPT = "_corrupt"

#: The beginning of a local file's URL.
_SCHEME = re.compile("^file:/+")

#: Characters that mean something in a path pattern of Hadoop.
_PATTERN_CHARACTERS = "\\{}[]*?"


class TraceRows(NamedTuple):
    """The rows of a set of traces, the groups that they have (run, group), and run -> its last row's time."""

    rows: DataFrame
    groups: Sequence[tuple[str, str]]
    last_us: Mapping[str, int]


def read_traces(spark: SparkSession, traces: Mapping[str, Path]) -> TraceRows:
    """All rows of the traces, those of JSON lines cached, without those of events that are not known.

    Raises InputError naming the place of a line that is not a row.
    """
    from pyspark import StorageLevel
    from pyspark.sql import DataFrame
    from pyspark.sql import functions as f

    runs = {str(file.resolve()): run for run, trace in traces.items() for file in trace_files(trace)}
    columns = columns_of(max(check_version(Path(file)) for file in runs))
    schema = ", ".join(f"`{column.name}` {_SPARK_TYPES[column.type]}" for column in columns)
    by_format = {
        suffix: [literal_path(file) for file in runs if file.endswith(suffix)]
        for suffix in (".jsonl", ".parquet")
    }
    frames = []
    if by_format[".jsonl"]:
        line = f"{schema}, `{VERSION_KEY}` bigint, {_CORRUPT} string"
        reader = spark.read.schema(line).option("columnNameOfCorruptRecord", _CORRUPT)
        lines = reader.json(by_format[".jsonl"])
        frames.append(lines.where(f"`{VERSION_KEY}` is null or event is not null").drop(VERSION_KEY))
    if by_format[".parquet"]:
        plain = spark.read.schema(schema).parquet(*by_format[".parquet"])
        frames.append(plain.withColumn(_CORRUPT, f.lit(None).cast("string")))
    rows = reduce(DataFrame.unionByName, [_with_run(spark, frame, runs) for frame in frames])
    if by_format[".jsonl"]:  # a line is parsed once; of Parquet each table reads the columns that it needs
        rows = rows.persist(StorageLevel.MEMORY_AND_DISK)
    groups, last_us = _check(rows, traces, bool(by_format[".jsonl"]))
    return TraceRows(rows.drop(_CORRUPT).where(f.col("event").isin(*event_types())), groups, last_us)


def _with_run(spark: SparkSession, rows: DataFrame, runs: Mapping[str, str]) -> DataFrame:
    """Add ``run``, from the file that a row was read from. ``runs``: file -> run.

    Spark has files as URLs: as file:///path in its list of them, as file:/path in a row.
    """
    from pyspark.sql import functions as f

    names = {url: runs[unquote(_SCHEME.sub("/", url))] for url in rows.inputFiles()}
    if len(set(names.values())) == 1:
        return rows.withColumn("run", f.lit(next(iter(names.values()))))
    urls = [
        (_SCHEME.sub(scheme, url), run) for url, run in names.items() for scheme in ("file:/", "file:///")
    ]
    named = spark.createDataFrame(urls, "file string, run string")
    return rows.withColumn("file", f.col("_metadata.file_path")).join(f.broadcast(named), "file").drop("file")


def literal_path(file: str) -> str:
    """The path, with a backslash before each character that means something in a pattern."""
    return "".join(f"\\{c}" if c in _PATTERN_CHARACTERS else c for c in file)


def _check(
    rows: DataFrame, traces: Mapping[str, Path], has_lines: bool
) -> tuple[list[tuple[str, str]], dict[str, int]]:
    """The groups and the last times of the traces. Raises InputError if a row does not fit the schema.

    ``has_lines``: some are JSON lines. Of Parquet no column is read that the other checks do not need.
    """
    from pyspark.sql import functions as f

    nothing = f.array().cast("array<bigint>")
    lengths = f.size(f.coalesce("positions", nothing)) != f.size(
        f.coalesce("partitions", nothing.cast("array<string>"))
    )
    bad = f.col(_CORRUPT).isNotNull() | (lengths & f.col("positions").isNotNull())
    bad = bad | ~f.coalesce(f.col("source").isin(*(str(source) for source in Source)), f.lit(False))
    for name in ("seq", "time_us", "event", "group"):
        bad = bad | f.col(name).isNull()
    # bytes that are no text: Spark puts this character in their place
    texts = f.concat_ws("", *(column.name for column in COLUMNS if column.type in _TEXTUAL and has_lines))
    found = rows.groupBy("run", "group").agg(
        f.max(bad).alias("bad"),
        f.max(texts.contains("\ufffd")).alias("odd"),
        f.max("time_us").alias("last_us"),
    )
    groups = sorted(found.collect(), key=lambda row: (row["run"], row["group"] or ""))
    for run, trace in traces.items():
        of_run = [row for row in groups if row["run"] == run]
        if not of_run:
            raise InputError(f"{trace}: the trace has no rows")
        if any(row["bad"] or row["odd"] for row in of_run):
            explain(trace)
        if any(row["bad"] for row in of_run):
            raise InputError(f"{trace}: a row does not fit the schema of traces")
    last_us: dict[str, int] = {}
    for row in groups:
        last_us[row["run"]] = max(row["last_us"], last_us.get(row["run"], 0))
    return [(row["run"], row["group"]) for row in groups], last_us


def explain(trace: Path) -> None:
    """Read a trace row by row, to raise InputError naming the place of what Spark found fault with."""
    for _ in read_rows(trace):
        pass
