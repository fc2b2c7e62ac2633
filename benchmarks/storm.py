"""Ten thousand members, twenty full rebalances, one virtual hour: how long it takes and where the time goes.

    ./dev bench storm                    the whole size, trace to Parquet
    python -m benchmarks.storm --small   a tenth of it, and exact against analytic heartbeats
    python -m benchmarks.storm --compiled   with the modules that ./dev compile has compiled
    python -m benchmarks.storm --no-commits   enable.auto.commit=false: nothing but the group protocol

Times are of one process on one core. Machines differ: compare the ratios, not the seconds.
"""

from __future__ import annotations

import argparse
import heapq
import os
import resource
import sys
import time
from collections import Counter
from cProfile import Profile
from pathlib import Path
from pstats import Stats
from tempfile import TemporaryDirectory

import yaml

from groupstorm.storms import clock
from groupstorm.storms.run import run
from groupstorm.storms.scenario import ResolvedScenario, parse

REBALANCES = 20
HOUR_MS = 3_600_000

COMPILED = Path("build/compiled")


def use_compiled() -> None:
    """Begin anew with the compiled copy of the package; the process is replaced."""
    if not COMPILED.is_dir():
        sys.exit(f"{COMPILED} is not there: ./dev compile makes it")
    made = COMPILED.stat().st_mtime
    if any(source.stat().st_mtime > made for source in Path("groupstorm").rglob("*.py")):
        sys.exit(f"{COMPILED} is older than the sources: ./dev compile makes it anew")
    arguments = [each for each in sys.argv[1:] if each != "--compiled"]
    os.environ["PYTHONPATH"] = os.pathsep.join((str(COMPILED), "."))
    os.execv(sys.executable, [sys.executable, "-P", "-m", "benchmarks.storm", *arguments])


def is_compiled() -> bool:
    return not str(clock.__file__).endswith(".py")


def scenario(members: int, commits: bool = True) -> ResolvedScenario:
    """Cooperative-sticky; every three minutes a member leaves and all others have to join again."""
    interval_ms = HOUR_MS // (REBALANCES + 1)
    stops = [
        {"at_ms": number * interval_ms, "do": "stop", "members": [number * members // (REBALANCES + 1)]}
        for number in range(1, REBALANCES + 1)
    ]
    document = {
        "name": "ten-thousand",
        "settings": {
            "members": members,
            "partitions": members,
            "partition.assignment.strategy": ["cooperative-sticky"],
            "enable.auto.commit": commits,
            "tail_ms": interval_ms - 10_000,
        },
        "steps": [{"at_ms": 0, "do": "start"}, *stops],
    }
    return parse(yaml.safe_dump(document), "yaml", "benchmark").resolve(None, 1, {})


def heap_events_per_second(events: int = 500_000) -> float:
    """The upper bound: a bare heap of callbacks that do nothing."""
    heap: list[tuple[int, int]] = []
    started = time.process_time()
    for number in range(events):
        heapq.heappush(heap, (number * 7919 % 1_000_003, number))
    while heap:
        heapq.heappop(heap)
    return events / (time.process_time() - started)


def storm(members: int, folder: Path, exact: bool = False, commits: bool = True) -> tuple[float, int]:
    """CPU seconds and rows of one run, its trace written as Parquet."""
    started = time.process_time()
    result = run(scenario(members, commits), folder, "parquet", exact)
    return time.process_time() - started, result.events


def where_the_time_goes(members: int, folder: Path, commits: bool) -> list[tuple[str, float]]:
    """Shares of the time by room, under the profiler."""
    profile = Profile()
    profile.enable()
    run(scenario(members, commits), folder, "parquet")
    profile.disable()
    shares: Counter[str] = Counter()
    entries = Stats(profile).stats  # type: ignore[attr-defined]  # filled by the constructor
    for (file, _, _), (_, _, own_seconds, _, _) in entries.items():
        parts = Path(file).parts
        room = parts[parts.index("groupstorm") + 1] if "groupstorm" in parts else "python and libraries"
        shares[room] += own_seconds
    total = sum(shares.values())
    return [(room, seconds / total) for room, seconds in shares.most_common(8)]


def main() -> None:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--members", type=int, default=10_000)
    arguments.add_argument("--small", action="store_true", help="a tenth of the size, exact mode as well")
    arguments.add_argument("--compiled", action="store_true", help="use what ./dev compile has made")
    arguments.add_argument("--no-commits", action="store_true", help="enable.auto.commit=false")
    chosen = arguments.parse_args()
    if chosen.compiled:
        use_compiled()
    members = chosen.members // 10 if chosen.small else chosen.members
    bound = heap_events_per_second()
    with TemporaryDirectory(prefix="groupstorm-bench-") as temporary:
        folder = Path(temporary)
        seconds, rows = storm(members, folder / "analytic", commits=not chosen.no_commits)
        memory_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        print(f"{members:,} members, {members:,} partitions, {REBALANCES} full rebalances, one virtual hour")
        kind = "compiled" if is_compiled() else "pure Python"
        print(f"  {kind}, {'without' if chosen.no_commits else 'with'} commits")
        print(f"  {seconds:.1f} s of CPU, {memory_mib:,} MiB at the peak, {rows:,} rows to Parquet")
        print(f"  {seconds / (members * REBALANCES) * 1e6:.0f} us per member and rebalance")
        print(
            f"  one row per {bound * seconds / rows:.0f} events of a bare heap ({bound:,.0f} events/s here)"
        )
        if chosen.small:
            exact_seconds, _ = storm(members, folder / "exact", exact=True, commits=not chosen.no_commits)
            print(f"  exact heartbeats take {exact_seconds / seconds:.1f} times as long")
        print("where the time goes (own time, under the profiler, a tenth of the members):")
        tenth = max(100, members // 10)
        for room, share in where_the_time_goes(tenth, folder / "profile", not chosen.no_commits):
            print(f"  {share:5.1%}  {room}")


if __name__ == "__main__":
    main()
