"""Both engines give the same figures, tables and summaries: of whole traces, of a window, of chosen groups.

Both read the rows of a group by one fold, and Spark sorts them; sums of the tables are compared with the
figures.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from groupstorm.figures import Figures
from groupstorm.figures.accumulator import WHOLE, Window
from groupstorm.pipeline.analysis import Engine, analyze
from groupstorm.pipeline.read import find_traces
from groupstorm.pipeline.results import EngineResult, Request
from groupstorm.problems import InputError
from groupstorm.trace.events import scenario as world_events
from groupstorm.trace.schema import Source
from tests.figures.synthetic import trace
from tests.figures.synthetic_rows import TracedRow
from tests.figures.synthetic_tasks import streams_trace
from tests.figures.tracing import Trace, consumer_group_trace, coordinator_trace
from tests.pipeline.both_engines import Tables, assert_the_engines_agree, locally
from tests.pipeline.traces import write_trace
from tests.soaking import in_soak
from tests.storms.storms_in_memory import storm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RATES = ((200_000, 700_000), (1_000_000, 700_000), (333_333, 1_000_000), (0, 100))
WINDOWS = (WHOLE, Window(300, None), Window(150, 700), Window(0, 400))


def deleted_and_created_again() -> list[TracedRow]:
    """A group whose members leave, which is deleted, created again, and unloaded at the end."""
    one = coordinator_trace("range")
    for at_s, member in ((20, "a"), (21, "b")):
        one.remove(at_s, member)
    one.state_to(21, "PreparingRebalance", 2)
    one.state_to(21, "Empty", 3)
    one.delete(25, "deleted")
    one.create(40, "join")
    one.start(41, "c")
    one.round(42, 4, {"c": ("t-0", "t-1")})
    one.remove(50, "c")
    one.delete(51, "unloaded")
    other = Trace("h", has_member_rows=False)
    other.start(0, "x")
    other.round(1, 1, {"x": ("u-0",)})
    other.state_to(70, "PreparingRebalance", 1)
    return sorted([*one.rows, *other.rows], key=lambda row: row[0])


@pytest.fixture
def served(tmp_path: Path) -> Path:
    write_trace(deleted_and_created_again(), tmp_path / "served")
    return tmp_path / "served"


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eager, cooperative and share groups, zombies, records, tasks, the coordinator's view; both formats."""
    pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'groupstorm[parquet]'")
    folder = tmp_path_factory.mktemp("traces")
    for seed in range(80):
        rows = trace(seed, rates=RATES[seed % 4], member_rows=seed % 5 != 0, rates_change=seed % 8 > 2)
        write_trace(rows, folder / str(seed), ("jsonl", "parquet")[seed % 2], with_figures=True)
    for seed in range(40):
        name = f"streams-{seed}"
        write_trace(streams_trace(seed), folder / name, ("jsonl", "parquet")[seed % 2], with_figures=True)
    for variant in ("implicit", "killed"):
        run = storm("share-deploy", 1, variant)
        rows = [(time_us, Source(source), event) for time_us, source, event in run.rows]
        write_trace(rows, folder / f"share-{variant}", with_figures=True)
    for name, partitions in (("nothing", ()), ("un-owned", ("t-0",))):
        start = world_events.ScenarioStarted("g", "{}", partitions, 10, 10)
        rows = [(0, Source.WORLD, start), (5, Source.WORLD, world_events.ScenarioEnded("g"))]
        write_trace(rows, folder / name, with_figures=True)
    write_trace(deleted_and_created_again(), folder / "served")
    write_trace(consumer_group_trace().rows, folder / "consumer-group")
    return folder


def assert_sums(result: EngineResult, tables: Tables) -> None:
    """The tables say what the figures say: un-owned time, generations and their latencies."""
    for (run, group), figures in result.figures.items():
        gaps = [row[5] for row in tables["handovers"] if row[:2] == (run, group)]
        if figures.unowned_partition_seconds is None:
            assert not gaps or "static members that restarted is not known" in figures.answer, run
        else:
            assert sum(gaps) == round(figures.unowned_partition_seconds * 1_000_000), run
            assert max(gaps, default=0) == round((figures.unowned_max_seconds or 0) * 1_000_000), run
        latencies = [row[13] for row in tables["rounds"] if row[:2] == (run, group) and row[13] is not None]
        longest = figures.rebalance_latency_max_ms
        assert max(latencies, default=None) == (None if longest is None else round(longest * 1000)), run


@pytest.mark.slow
@pytest.mark.parametrize("window", WINDOWS)
def test_tables_and_figures_of_the_local_engine(traces: Path, window: Window) -> None:
    result, tables = locally(Request(find_traces([traces]), window=window))
    assert_sums(result, tables)
    assert all(tables.values())


@pytest.mark.slow
def test_the_local_engine_confirms_every_run(traces: Path) -> None:
    analysis = analyze(Request(find_traces([traces])), Engine.LOCAL)
    assert not analysis.disagreements
    assert len(analysis.confirmed) == 124
    # figures that are null or zero everywhere would prove little
    names = ("lag_recovery_seconds", "dual_owner_seconds", "records_skipped", "moves_wasted", "moves")
    for name in (*names, "task_downtime_seconds", "converged_after_seconds", "cross_rack_usd"):
        assert sum(bool(getattr(figures, name)) for figures in analysis.figures.values()) >= 5, name


@pytest.mark.parametrize("window", [WINDOWS[0], *in_soak(*WINDOWS[1:-1]), WINDOWS[-1]])
def test_the_engines_agree(spark: SparkSession, traces: Path, window: Window) -> None:
    assert_the_engines_agree(spark, Request(find_traces([traces]), window=window, slowest=4))


def test_a_deleted_group_is_not_un_owned(served: Path) -> None:
    """Its partitions are un-owned until the deletion, from the next creation on, and until it is unloaded."""
    analysis = analyze(Request({"served": served}), Engine.LOCAL)
    assert list(analysis.figures) == ["served:g", "served:h"]
    figures = analysis.figures["served:g"]
    assert figures.unowned_partition_seconds == 1 + (5 + 2) + (13 + 2) + 1 + 1
    assert figures.unowned_max_seconds == 13 + 2
    assert figures.nobody_consuming_seconds == 1 + (5 + 2) + 1


def test_chosen_groups(served: Path, engine: str) -> None:
    run = {"served": served}
    chosen = analyze(Request(run, groups=("h",)), Engine(engine))
    assert list(chosen.figures) == ["served:h"]
    assert chosen.figures["served:h"] == analyze(Request(run), Engine(engine)).figures["served:h"]
    with pytest.raises(InputError, match="--group x: not in the traces; there are: g, h"):
        analyze(Request(run, groups=("x",)), Engine(engine))


def test_a_window_cuts_what_lasts(tmp_path: Path) -> None:
    """A gap from 10 s to 20 s, seen from 14 s on: 6 s, of which the callback of 7 s still takes 3 s."""
    one = Trace.begun("t-0")
    one.start(0, "a")
    one.round(0, 1, {"a": ("t-0",)})
    one.revoke(10, "a", 1, "t-0", callback_s=7)
    one.round(20, 2, {"b": ("t-0",)})
    one.end(30)
    write_trace(one.rows, tmp_path / "run")

    def figures(from_s: int, to_s: int | None) -> Figures:
        window = Window(from_s * 1_000_000, None if to_s is None else to_s * 1_000_000)
        [found] = analyze(Request({"run": tmp_path / "run"}, window=window), Engine.LOCAL).figures.values()
        return found

    assert figures(0, None).unowned_partition_seconds == 10
    assert figures(0, None).paused_partition_seconds == 7
    late = figures(14, None)
    assert (late.unowned_partition_seconds, late.paused_partition_seconds, late.generations) == (6, 3, 1)
    assert (late.moves, late.settled_after_ms) == (1, 6000)
    early = figures(0, 14)
    assert (early.unowned_partition_seconds, early.moves, early.generations) == (4, 0, 1)
    assert figures(25, None).unowned_partition_seconds == 0
    assert figures(25, None).moves == 0


def test_which_engine_is_chosen(served: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    request = Request({"served": served})
    assert analyze(request).engine == "local"
    with pytest.raises(InputError, match="--engine local: expected no --master"):
        analyze(request, Engine.LOCAL, "spark://127.0.0.1:7077")
    monkeypatch.setattr("groupstorm.pipeline.analysis.LOCAL_BYTES_MAX", 10)
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(InputError, match="--engine local"):
        analyze(request)
