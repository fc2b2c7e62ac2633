"""Ten thousand members, twenty full rebalances, one virtual hour: how long it takes and where the time goes.

    ./dev bench storm                       the whole size, trace to Parquet
    python -m benchmarks.storm --small      a tenth of it, and exact against analytic heartbeats
    python -m benchmarks.storm --kind compiled    only with the modules that ./dev compile has compiled

Each run is a process of its own on one core, without and with Kafka's default commits
(enable.auto.commit), then with group.protocol=consumer; pure Python and compiled run in turns. Machines
differ, and busy ones differ by the minute: compare the ratios, not the seconds.
"""

from __future__ import annotations

import argparse
import heapq
import json
import os
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable
from cProfile import Profile
from pathlib import Path
from pstats import Stats
from tempfile import TemporaryDirectory
from typing import NamedTuple

import yaml

from groupstorm.storms.runs.run import run
from groupstorm.storms.scenario.files import ResolvedScenario, parse
from groupstorm.storms.scenario.setting_names import CLASSIC, CONSUMER
from groupstorm.storms.world import clock

REBALANCES = 20
HOUR_MS = 3_600_000

COMPILED = Path("build/compiled")
PURE_KIND, COMPILED_KIND = "pure Python", "compiled"
KINDS = {"pure": PURE_KIND, "compiled": COMPILED_KIND}

LINE = "{:<33}{:>7}{:>7}{:>13}{:>13}{:>7}{:>7}"


class Measured(NamedTuple):
    """One run: CPU seconds, the process's memory at its peak, rows of the trace and what its file takes."""

    kind: str
    commits: bool
    exact: bool
    protocol: str
    cpu_seconds: float
    memory_mib: int
    rows: int
    file_mb: float


def scenario(members: int, commits: bool = True, protocol: str = CLASSIC) -> ResolvedScenario:
    """Cooperative-sticky, or group.protocol=consumer; every three minutes a member leaves. With the classic
    protocol all others have to join again."""
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
            "group.protocol": protocol,
            "commits": "background" if commits else "never",
            "tail_ms": interval_ms - 10_000,
        },
        "steps": [{"at_ms": 0, "do": "start"}, *stops],
    }
    return parse(yaml.safe_dump(document), "yaml", "benchmark").resolve(None, 1, {})


def storm(members: int, commits: bool, exact: bool, protocol: str = CLASSIC) -> Measured:
    """Run it in this process, its trace written as Parquet."""
    with TemporaryDirectory(prefix="groupstorm-bench-") as folder:
        started = time.process_time()
        result = run(scenario(members, commits, protocol), Path(folder, "run"), "parquet", exact)
        cpu_seconds = time.process_time() - started
        file_mb = result.trace.stat().st_size / 1e6
    kind = PURE_KIND if str(clock.__file__).endswith(".py") else COMPILED_KIND
    memory_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return Measured(kind, commits, exact, protocol, cpu_seconds, memory_mib, result.events, file_mb)


def in_its_own_process(kind: str, members: int, commits: bool, exact: bool, protocol: str) -> Measured:
    """Run it with a fresh interpreter."""
    path = os.pathsep.join((str(COMPILED), ".")) if kind == COMPILED_KIND else "."
    options = [
        f"--members={members}",
        f"--protocol={protocol}",
        *["--commits"] * commits,
        *["--exact"] * exact,
    ]
    done = subprocess.run(
        [sys.executable, "-P", "-m", "benchmarks.storm", "--one", *options],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    measured = Measured(*json.loads(done.stdout))
    if measured.kind != kind:
        sys.exit(f"{kind} was to be measured, and {measured.kind} ran")
    return measured


def why_not_compiled() -> str | None:
    """Return what is wrong with the compiled copy; None where it is there and up to date."""
    if not COMPILED.is_dir():
        return f"{COMPILED} is not there: ./dev compile makes it"
    made = COMPILED.stat().st_mtime
    if any(source.stat().st_mtime > made for source in Path("groupstorm").rglob("*.py")):
        return f"{COMPILED} is older than the sources: ./dev compile makes it anew"
    return None


def heap_events_per_second(events: int = 500_000) -> float:
    """The upper bound: a bare heap of callbacks that do nothing."""
    heap: list[tuple[int, int]] = []
    started = time.process_time()
    for number in range(events):
        heapq.heappush(heap, (number * 7919 % 1_000_003, number))
    while heap:
        heapq.heappop(heap)
    return events / (time.process_time() - started)


def where_the_time_goes(members: int) -> list[tuple[str, float]]:
    """Shares of the time by room, under the profiler, in pure Python and with commits."""
    profile = Profile()
    with TemporaryDirectory(prefix="groupstorm-bench-") as folder:
        profile.enable()
        run(scenario(members), Path(folder, "run"), "parquet")
        profile.disable()
    shares: Counter[str] = Counter()
    entries = Stats(profile).stats  # type: ignore[attr-defined]  # filled by the constructor
    for (file, _, _), (_, _, own_seconds, _, _) in entries.items():
        parts = Path(file).parts
        room = parts[parts.index("groupstorm") + 1] if "groupstorm" in parts else "python and libraries"
        shares[room] += own_seconds
    total = sum(shares.values())
    return [(room, seconds / total) for room, seconds in shares.most_common(8)]


def compare(members: int, kinds: Iterable[str], exact_too: bool) -> None:
    """Run all, and print each line as soon as it is known."""
    bound = heap_events_per_second()
    print(f"{members:,} members, {members:,} partitions, {REBALANCES} full rebalances, one virtual hour")
    print(f"a bare heap does {bound:,.0f} events/s here\n")
    headings = ("", "CPU s", "ratio", "us a member", "heap events", "peak", "file")
    units = ("", "", "", "and round", "a row", "MiB", "MB")
    for cells in (headings, units):
        print(LINE.format(*cells))
    first: float | None = None
    for protocol, commits in ((CLASSIC, False), (CLASSIC, True), (CONSUMER, True)):
        for kind in kinds:
            for exact in (False, True) if exact_too else (False,):
                one = in_its_own_process(kind, members, commits, exact, protocol)
                first = first or one.cpu_seconds
                what = f"{'with' if commits else 'no'} commits" if protocol == CLASSIC else protocol
                cells = (
                    f"{kind}, {what}" + ", exact" * exact,
                    f"{one.cpu_seconds:.1f}",
                    f"{one.cpu_seconds / first:.2f}",
                    f"{one.cpu_seconds / (members * REBALANCES) * 1e6:.0f}",
                    f"{bound * one.cpu_seconds / one.rows:.0f}",
                    f"{one.memory_mib:,}",
                    f"{one.file_mb:.1f}",
                )
                print(LINE.format(*cells), flush=True)


def main() -> None:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--members", type=int, default=10_000)
    arguments.add_argument("--small", action="store_true", help="a tenth of the size, exact mode as well")
    arguments.add_argument("--kind", choices=KINDS, help="only this (default: what there is)")
    only_one = arguments.add_argument_group("one run in this process, its figures as JSON")
    only_one.add_argument("--one", action="store_true")
    only_one.add_argument("--commits", action="store_true", help="enable.auto.commit=true")
    only_one.add_argument("--protocol", choices=(CLASSIC, CONSUMER), default=CLASSIC)
    only_one.add_argument("--exact", action="store_true", help="heartbeats one by one")
    chosen = arguments.parse_args()
    if chosen.one:
        print(json.dumps(storm(chosen.members, chosen.commits, chosen.exact, chosen.protocol)))
        return
    kinds = [PURE_KIND, COMPILED_KIND] if chosen.kind is None else [KINDS[chosen.kind]]
    obstacle = why_not_compiled() if COMPILED_KIND in kinds else None
    if obstacle is not None:
        kinds.remove(COMPILED_KIND)
    if not kinds:
        sys.exit(obstacle)
    members = chosen.members // 10 if chosen.small else chosen.members
    compare(members, kinds, exact_too=chosen.small)
    if obstacle is not None:
        print(f"\nnot measured, compiled: {obstacle}")
    print("\nwhere the time goes (pure Python, own time under the profiler, a tenth of the members):")
    for room, share in where_the_time_goes(max(100, members // 10)):
        print(f"  {share:5.1%}  {room}")


if __name__ == "__main__":
    main()
