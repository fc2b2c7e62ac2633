"""`python -m tests.broker.soak --minutes N --hours N`: does a broker that runs for long hold ever more?"""

from __future__ import annotations

import argparse
import sys
import time

from tests.broker.soak.soaking import minutes, virtual_hours


def main() -> int:
    """Prints a line per sample; no judgement."""
    parser = argparse.ArgumentParser(prog="python -m tests.broker.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=2.0, help="of real time, with sockets")
    parser.add_argument("--hours", type=int, default=5, help="of virtual time, without sockets")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for hour, objects in enumerate(virtual_hours(options.hours, options.seed), start=1):
        print(f"virtual hour {hour}: {objects:,} objects", flush=True)
    began_s = time.monotonic()
    length_s = options.minutes * 60
    for sample in minutes(length_s, length_s / 8, options.seed):
        print(
            f"{time.monotonic() - began_s:5.0f} s: {sample.objects:,} objects, {sample.tasks} tasks,"
            f" {sample.timers} timers, {sample.files} files, {sample.rss_kib // 1024} MiB",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
