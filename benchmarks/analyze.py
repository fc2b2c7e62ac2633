"""`groupstorm analyze` on Spark beside DuckDB: the same traces, tables and figures, in one run.

    python -m benchmarks.analyze [--events 10000000] [--runs 4] [--memory-mib 2048]
        [--duckdb-memory-mib 8192] [--duckdb-run-by-run]

A rolling deployment is copied until there are so many events: in each of the runs its copies follow each
other in time. Both engines write the tables intervals, handovers, rounds and members as Parquet; then their
rows are compared. Spark computes all figures of groupstorm, too, DuckDB (`benchmarks/analyze.sql`) some that
follow from the tables. DuckDB has as many threads as Spark, and as much memory unless it is given another
limit. For a hundred million events it must take each run by itself (`--duckdb-run-by-run`): with 8192 MiB it
spilled 51 GB in its first half hour, and had no table. Spark always takes all runs at once.

Seconds are without the start of Spark's session, of the wall and of the processors. Compare ratios, not
seconds; on a busy machine, those of the processors.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from groupstorm.pipeline.analysis import Engine, analyze, weight
from groupstorm.pipeline.read import find_traces
from groupstorm.pipeline.results import MEMBER_EVENTS, TABLES, Request
from groupstorm.pipeline.session import spark_session
from groupstorm.storms.runs.run import run
from groupstorm.storms.scenario.files import load

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

SQL = Path(__file__).with_suffix(".sql")
COLUMNS: Mapping[str, tuple[str, ...]] = {
    name: ("run", "group", *columns) for name, columns in TABLES.items()
}


def make_traces(database: DuckDBPyConnection, events: int, runs: int, size: int, folder: Path) -> int:
    """Write the traces of so many runs below ``folder``; returns how many events they have."""
    settings = {"members": size, "partitions": 10 * size}
    base = run(load("rolling-deploy").resolve("eager", 1, settings), folder / ".base", "parquet")
    source = f"read_parquet('{base.trace}')"
    found = database.execute(
        f"SELECT max(seq) + 1, max(time_us) + 1, max(record_rate) FROM {source}"
    ).fetchone()
    assert found is not None
    seqs, time_us, record_rate = found
    copies = max(1, events // runs // base.events)
    # the log goes on through all copies, so that the owners of each go on where those of the last one stood
    records = f"copy * ({record_rate} * {time_us} // 1000000)"
    for number in range(runs):
        one = folder / "traces" / f"run-{number}"
        one.mkdir(parents=True)
        database.execute(
            f"COPY (SELECT t.* REPLACE (seq + copy * {seqs} AS seq, time_us + copy * {time_us} AS time_us, "
            f"list_transform(positions, lambda p: p + {records}) AS positions) "
            f"FROM range({copies}) c(copy), {source} t ORDER BY copy, t.seq) TO '{one}/trace.parquet'"
        )
    return copies * runs * base.events


def on_duckdb(database: DuckDBPyConnection, traces: Path, out: Path, run_by_run: bool) -> None:
    """Compute and write every table, as one file or as a file for each run."""
    patterns = sorted(one.name for one in traces.iterdir()) if run_by_run else ["*"]
    for number, pattern in enumerate(patterns):
        with database.cursor() as connection:  # with temporary tables of its own
            connection.execute(
                "CREATE TEMP VIEW rows AS SELECT *, parse_path(filename)[-2] AS run "
                f"FROM read_parquet('{traces}/{pattern}/trace.parquet', filename = true)"
            )
            for statement in SQL.read_text("utf-8").split(";\n"):
                named = {"member_events": [*MEMBER_EVENTS]} if "$member_events" in statement else None
                connection.execute(statement, named)
            for name, columns in COLUMNS.items():
                chosen = ", ".join(f'"{column}"' for column in columns)
                connection.execute(
                    f"COPY (SELECT {chosen} FROM {name}) TO '{out / name}/{number}.parquet' (FORMAT parquet)"
                )


def differences(database: DuckDBPyConnection, one: Path, other: Path) -> Iterator[str]:
    """The tables whose rows are not the same, by their numbers and the sums of their hashes."""
    for name, columns in COLUMNS.items():
        chosen = ", ".join(f'"{column}"' for column in columns)
        one_side, other_side = (
            f"SELECT '{folder.name}' AS side, {chosen} FROM read_parquet('{folder / name}/*.parquet')"
            for folder in (one, other)
        )
        found = database.execute(
            f"SELECT count(*), sum(hash({chosen})::HUGEINT) "
            f"FROM ({one_side} UNION ALL {other_side}) GROUP BY side"  # the union gives both the same types
        ).fetchall()
        if len({*found}) != 1 or len(found) != 2:
            yield f"{name}: number and hash of the rows are {found}"
        print(f"  {name}: {found[0][0] if found else 0:,} rows", flush=True)


@contextmanager
def timed(name: str, measured: list[tuple[float, float]]) -> Iterator[None]:
    """Measure the block, and print it beside the first one that was measured."""
    begin_s, begin_cpu_s = time.monotonic(), cpu_seconds()
    yield
    measured.append((time.monotonic() - begin_s, cpu_seconds() - begin_cpu_s))
    columns = [f"{one:11.1f}{one / first:7.2f}" for one, first in zip(measured[-1], measured[0], strict=True)]
    print(f"{name:24}{''.join(columns)}", flush=True)


def cpu_seconds() -> float:
    """Return the CPU time of this process and all that it and they have started: Spark's JVM and its Python
    workers."""
    found: dict[int, tuple[int, float]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended meanwhile
            numbers = (folder / "stat").read_text().rpartition(")")[2].split()
            found[int(folder.name)] = (
                int(numbers[1]),
                sum(map(int, numbers[11:15])) / os.sysconf("SC_CLK_TCK"),
            )
    family, together = {os.getpid()}, found[os.getpid()][1]
    while more := {pid for pid, (parent, _) in found.items() if parent in family} - family:
        family |= more
        together += sum(found[pid][1] for pid in more)
    return together


def connect(memory_mib: int, folder: Path) -> DuckDBPyConnection:
    """DuckDB in memory, with as many threads as Spark has; what does not fit goes into ``folder``."""
    try:
        import duckdb
    except ImportError:
        sys.exit("DuckDB is not installed: pip install duckdb")
    options: dict[str, Any] = {
        "threads": len(os.sched_getaffinity(0)),
        "memory_limit": f"{memory_mib}MiB",
        "temp_directory": str(folder / "duckdb"),
    }
    return duckdb.connect(config=options)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--members", type=int, default=50, help="of the deployment that is copied")
    parser.add_argument("--memory-mib", type=int, default=4096, help="of Spark's driver")
    parser.add_argument("--duckdb-memory-mib", type=int, help="as much as Spark's unless given")
    parser.add_argument("--duckdb-run-by-run", action="store_true", help="DuckDB takes each run by itself")
    given = parser.parse_args()
    measured: list[tuple[float, float]] = []
    with TemporaryDirectory(prefix="groupstorm-bench-") as name:
        folder = Path(name)
        for table in COLUMNS:
            (folder / "duckdb-tables" / table).mkdir(parents=True)
        duckdb_memory_mib = given.duckdb_memory_mib or given.memory_mib
        database = connect(duckdb_memory_mib, folder)
        events = make_traces(database, given.events, given.runs, given.members, folder)
        traces = folder / "traces"
        print(
            f"{events:,} events of {given.runs} runs; "
            f"DuckDB has {duckdb_memory_mib} MiB, Spark {given.memory_mib} MiB\n"
            f"{'':31}wall  ratio processors  ratio",
            flush=True,
        )
        with timed("DuckDB", measured):
            on_duckdb(database, traces, folder / "duckdb-tables", given.duckdb_run_by_run)
        trace_bytes = weight(find_traces([traces]))
        request = Request(find_traces([traces]), out=folder / "spark-tables")
        with spark_session(trace_bytes, driver_memory_mib=given.memory_mib), timed("Spark", measured):
            analyze(request, Engine.SPARK)
        found = [*differences(database, folder / "duckdb-tables", folder / "spark-tables")]
    print("\n".join(found) or "both have the same rows")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
