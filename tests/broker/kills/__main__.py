"""`python -m tests.broker.kills --count N --seed N`: kill -9 of `groupstorm serve --data` under load."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.broker.kills import real_clients, word_count
from tests.broker.kills.killing import KILLS_PER_FOLDER, kill_repeatedly


def main() -> int:
    """Raises AssertionError, with what is missing, if something that was acknowledged is."""
    parser = argparse.ArgumentParser(prog="python -m tests.broker.kills", description=__doc__)
    parser.add_argument("--count", type=int, default=100, help="how many kills")
    parser.add_argument("--seed", type=int, default=0, help="of the moments of the kills")
    parser.add_argument("--librdkafka", action="store_true", help="its clients, which live through all kills")
    parser.add_argument("--streams", action="store_true", help="a Kafka Streams application, which does, too")
    options = parser.parse_args()
    if options.streams:
        return _kill_under_streams(options.count, options.seed)
    if options.librdkafka:
        return _kill_under_librdkafka(options.count, options.seed)
    kills = records = commits = transactions = generations = written = kept = epochs = accepted = 0
    began_s = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        for told in kill_repeatedly(Path(folder), options.count, options.seed):
            kills = min(options.count, kills + KILLS_PER_FOLDER)
            records += len(told.records)
            commits += sum(told.commits.values())
            transactions += len(told.committed) + len(told.aborted)
            generations += told.generation
            epochs += told.group_epoch + told.shared.epoch
            accepted += len(told.shared.accepted)
            written += told.compacted.written
            kept += told.compacted.kept
            print(
                f"{kills:,} kills in {time.monotonic() - began_s:,.0f} s: {records:,} records,"
                f" {commits:,} commits, {transactions:,} transactions, {generations:,} generations,"
                f" {epochs:,} epochs of streams and share groups, {accepted:,} records accepted,"
                f" {written:,} records with keys acknowledged, none lost; {kept:,} with keys are left",
                flush=True,
            )
    return 0


def _kill_under_librdkafka(count: int, seed: int) -> int:
    began_s = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        told = real_clients.kill_repeatedly(Path(folder), count, seed)
    print(
        f"{count:,} kills in {time.monotonic() - began_s:,.0f} s: {len(told.plain):,} records and as many"
        f" with keys, {len(told.committed):,} transactions committed and {len(told.aborted):,} aborted,"
        f" {told.position:,} records processed and committed by a group, {len(told.accepted):,} accepted"
        " by a share group: none lost, none twice"
    )
    return 0


def _kill_under_streams(count: int, seed: int) -> int:
    began_s = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        counted = word_count.kill_repeatedly(Path(folder), count, seed)
    print(f"{count:,} kills in {time.monotonic() - began_s:,.0f} s: {counted:,} words, each counted once")
    return 0


if __name__ == "__main__":
    sys.exit(main())
