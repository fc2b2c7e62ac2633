"""`python -m tests.broker.frames --count N --seed N`: mutated frames against the broker's connection code."""

from __future__ import annotations

import argparse
import sys
import time

from tests.broker.frames.trying import ROUND, Tally, run_round


def main() -> int:
    """Exit code 1 if a frame has failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.broker.frames", description=__doc__)
    parser.add_argument("--count", type=int, default=100_000, help="how many frames")
    parser.add_argument("--seed", type=int, default=0, help="the first round's seed")
    options = parser.parse_args()
    tally = Tally()
    began_s = time.monotonic()
    seed = options.seed * 1_000_000
    while tally.tried < options.count and len(tally.failures) < 20:
        run_round(seed, tally, lambda line: print(line, flush=True))
        seed += 1
        if seed % 25 == 0:
            print(summary(tally, time.monotonic() - began_s), flush=True)
    print(summary(tally, time.monotonic() - began_s))
    return 1 if tally.failures else 0


def summary(tally: Tally, seconds: float) -> str:
    """One line: how many frames were tried, what became of them, how fast, and the memory."""
    outcomes = ", ".join(f"{count:,} {name}" for name, count in sorted(tally.outcomes.items()))
    first, last = (tally.rss_kib or [0])[0], (tally.rss_kib or [0])[-1]
    return (
        f"{tally.tried:,} tried: {outcomes}; {tally.tried / seconds:,.0f} per second;"
        f" {first // 1024} MiB after the first {ROUND:,}, {last // 1024} MiB now;"
        f" {len(tally.failures)} failures"
    )


if __name__ == "__main__":
    sys.exit(main())
