"""`groupstorm import` and `groupstorm explain` of a broker's log: megabytes per second, and memory.

    ./dev bench imports                      logs of 30 MB
    python -m benchmarks.imports --megabytes 300

Of the lines 2 %, 20 % or all are about groups; the others are as Kafka writes them. The last log has a line
for each of 3,000 groups a megabyte. Each log has a process of its own on one core. Machines differ, and busy
ones differ by the minute: compare logs of one run.
"""

from __future__ import annotations

import argparse
import random
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from groupstorm.explain.explanation import explain
from groupstorm.imports.importing import Options, import_logs
from groupstorm.imports.lines import find_logs

MEGABYTE: Final = 1_000_000
#: Log -> the share of lines about groups, and the number of groups; 0: each line has another one.
LOGS: Final = {"2 %": (0.02, 200), "20 %": (0.2, 200), "all": (1.0, 200), "many groups": (1.0, 0)}
OTHERS: Final = (
    "INFO [LocalLog partition=orders-{n}, dir=/data] Rolled new log segment at offset {at} in 3 ms. "
    "(kafka.log.LocalLog)",
    "INFO [ProducerStateManager partition=orders-{n}] Wrote producer snapshot at offset {at} with 0 producer "
    "ids in 2 ms. (org.apache.kafka.storage.internals.log.ProducerStateManager)",
    "INFO [Partition payments-{n} broker=1] ISR updated to 1,2,3 and version updated to {at} "
    "(kafka.cluster.Partition)",
    "INFO Deleted log /data/orders-{n}/0000000000{at:010}.log.deleted. (kafka.log.LogSegment)",
)
LOGGER: Final = "kafka.coordinator.group.GroupCoordinator"
LINE: Final = "{:<14}{:>9}{:>9}{:>14}{:>14}{:>9}"


def of_group(group: str, generation: int, member_id: str) -> tuple[str, ...]:
    """A round that a new member begins."""
    return (
        f"Preparing to rebalance group {group} in state PreparingRebalance with old generation {generation} "
        f"(__consumer_offsets-7) (reason: Adding new member {member_id} with group instance id None; client "
        "reason: not provided)",
        f"Stabilized group {group} generation {generation + 1} (__consumer_offsets-7) with 3 members",
        f"Assignment received from leader {member_id} for group {group} for generation {generation + 1}. The "
        "group has 3 members, 0 of which are static.",
    )


def lines(share: float, groups: int) -> Iterator[str]:
    choose = random.Random(1)
    now, number, generations = datetime(2026, 11, 1), 0, dict[int, int]()
    while True:
        now += timedelta(milliseconds=choose.randrange(1, 30))
        time_ = now.isoformat(sep=" ", timespec="milliseconds").replace(".", ",")
        number += 1
        if choose.random() * (3 - 2 * share) > share:
            other = choose.choice(OTHERS).format(n=choose.randrange(100), at=choose.randrange(10**9))
            yield f"[{time_}] {other}\n"
            continue
        group = choose.randrange(groups) if groups else number
        generation = generations.get(group, 0)
        if groups:
            generations[group] = generation + 1
        member_id = f"app-{number % 5}-3f6a1e9c-0a51-4f6b-8d7c-{number:012x}"
        said = of_group(f"group-{group}", generation, member_id)
        for message in said if groups else said[:1]:
            yield f"[{time_}] INFO [GroupCoordinator 1]: {message} ({LOGGER})\n"


def write(path: Path, log: str, size: int) -> None:
    with path.open("w", encoding="utf-8") as file:
        for line in lines(*LOGS[log]):
            size -= file.write(line)
            if size <= 0:
                return


def measure(log: str, size: int, folder: Path) -> None:
    """Print the line of one log."""
    write(folder / "server.log", log, size)
    began = time.process_time()
    done = import_logs(find_logs([str(folder / "server.log")]), folder / "out", Options())
    imported = time.process_time()
    memory_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    explain(folder / "out")
    explained = time.process_time()
    speeds = [f"{size / MEGABYTE / took:,.1f} MB/s" for took in (imported - began, explained - imported)]
    print(LINE.format(log, f"{len(done.groups):,}", f"{done.rows:,}", *speeds, f"{memory_mib} MiB"))


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure imports of a broker's log.")
    parser.add_argument("--megabytes", type=int, default=30)
    parser.add_argument("--log", choices=[*LOGS], help="only this one, in this process")
    chosen = parser.parse_args()
    if chosen.log is not None:
        with TemporaryDirectory() as folder:
            measure(chosen.log, chosen.megabytes * MEGABYTE, Path(folder))
        return
    print(LINE.format("about groups", "groups", "rows", "import", "explain", "memory"), flush=True)
    for log in LOGS:
        words = ["--megabytes", str(chosen.megabytes), "--log", log]
        subprocess.run([sys.executable, "-m", "benchmarks.imports", *words], check=True)


if __name__ == "__main__":
    main()
