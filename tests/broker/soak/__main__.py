"""`python -m tests.broker.soak --frames N --hours N`: does a broker that runs for long hold ever more?"""

from __future__ import annotations

import argparse
import sys
import time

from tests.broker.soak.soaking import rounds, virtual_hours


def main() -> int:
    """Prints a line per sample; no judgement."""
    parser = argparse.ArgumentParser(prog="python -m tests.broker.soak", description=__doc__)
    parser.add_argument("--frames", type=int, default=500, help="in each of eight rounds with sockets")
    parser.add_argument("--hours", type=int, default=5, help="of virtual time, without sockets")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for hour, objects in enumerate(virtual_hours(options.hours, options.seed), start=1):
        print(f"virtual hour {hour}: {objects:,} objects", flush=True)
    began_s = time.monotonic()
    for sample in rounds(8, options.frames, options.seed):
        print(
            f"{time.monotonic() - began_s:5.0f} s: {sample.objects:,} objects, {sample.tasks} tasks,"
            f" {sample.timers} timers, {sample.files} files, {sample.rss_kib // 1024} MiB",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
