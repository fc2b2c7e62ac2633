"""`./dev fuzz`: random scenarios with faults, checked, shrunk and kept."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path
from typing import Annotated

import typer

from groupstorm.cli.options import overrides
from groupstorm.cli.printing import command_line, print_line, print_made, print_paragraph, print_progress
from groupstorm.problems import CheckFailed
from groupstorm.storms.scenario.files import MAX_SEED, parse
from tools.command import run_tool
from tools.fuzz.campaign import MANY, Corpus, Orders, Outcome, campaign
from tools.fuzz.trial import EQUAL_TRACES

PROGRESS_EVERY_S = 10.0


def fuzz(
    minutes: Annotated[
        float | None, typer.Option(min=0.01, help="Draw scenarios for so long. [default: 1, without --count]")
    ] = None,
    count: Annotated[int | None, typer.Option(min=1, help="Draw so many scenarios.")] = None,
    seed: Annotated[
        int, typer.Option(min=0, max=MAX_SEED, help="The same seed draws the same scenarios.")
    ] = 0,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="The corpus: scenarios that fail are written here.")
    ] = Path("fuzz-corpus"),
    settings: list[str] | None = None,
    processes: Annotated[
        int | None, typer.Option(min=1, help="Worker processes. [default: the cores of this machine]")
    ] = None,
) -> None:
    """Draw scenarios with faults, and check that every invariant holds during the faults and after them.

    A scenario is a small group with settings within reason: members, partitions, assignors, client libraries,
    static ids, timeouts, latencies, drifting clocks. Its faults (crashes, restarts, pauses, slow batches,
    lost connections, partitions of the network, reconnect storms, slow and failing writes, failovers,
    deployments, new partitions) are a random choice of kinds, at random times. After the last fault the
    group has to settle, nothing may stay parked, and every partition has to have an owner. One in four
    scenarios also runs with --exact, and must give the same trace.

    What fails is made smaller as long as it fails, printed with the command that runs it again, and written
    to DIR. The scenarios of DIR are tried first. The command exits with 1 if something failed.

    Example: ./dev fuzz --count 20 --seed 7
    """
    fixed = overrides(settings)
    parse("steps: [{at_ms: 0, do: start}]", "yaml", "fuzz").resolve(None, None, fixed)  # they fit at all
    corpus = Corpus(out)
    known = [document for _, document in corpus.files()]
    limit_s = None if minutes is None and count is not None else (minutes or 1.0) * 60
    orders = Orders(seed, count if count is not None else MANY, fixed, known)
    workers = processes or os.cpu_count() or 1
    set_again = [word for setting in settings or () for word in ("--set", setting)]
    began = shown = time.monotonic()
    done = 0
    failed: dict[str, int] = {}
    kafkas_own: dict[str, int] = {}
    runs = campaign(orders, min(workers, len(orders)))
    try:
        for outcome in runs:
            done += 1
            if outcome.found:
                failed[outcome.kind] = failed.get(outcome.kind, 0) + 1
                _print(outcome, corpus, set_again, first=failed[outcome.kind] == 1)
            if outcome.kafkas_own:
                what = re.split(" for |:", outcome.kafkas_own, maxsplit=1)[0]
                if what not in kafkas_own:
                    print_line(f"{outcome.scenario['name']}: a real group does this, too")
                    print_line(f"  {outcome.kafkas_own}")
                kafkas_own[what] = kafkas_own.get(what, 0) + 1
            now = time.monotonic()
            if now - shown >= PROGRESS_EVERY_S:
                shown = now
                print_progress(f"  {done:,} scenarios, {sum(failed.values())} failed, {now - began:.0f} s")
            if limit_s is not None and now - began >= limit_s:
                break
    finally:
        runs.close()
    seconds = time.monotonic() - began
    tried = f"{done:,} scenarios in {seconds:.0f} s, seed {seed}"
    if kafkas_own:
        kinds = ", ".join(f"{what} ({number})" for what, number in sorted(kafkas_own.items()))
        print_paragraph(f"Kafka itself: {kinds}.")
    if failed:
        kinds = ", ".join(f"{name} ({number})" for name, number in sorted(failed.items()))
        raise CheckFailed(f"{tried}: {sum(failed.values())} failed: {kinds}; kept in {out}")
    print_paragraph(f"{tried}: every invariant held.")


def _print(outcome: Outcome, corpus: Corpus, set_again: list[str], first: bool) -> None:
    """Print the failure, its size, and how to run it again; of a kind that is known, only the file."""
    path = corpus.keep(outcome.smallest, outcome.kind, outcome.found)
    if not first:
        print_line(f"{outcome.kind}: {path}")
        return
    smallest = outcome.smallest
    settings = smallest["settings"]
    size = (
        f"{settings.get('members', 10)} members, {settings.get('topics', 1)} topics of "
        f"{settings.get('partitions', 20)} partitions, {len(smallest['steps'])} steps, "
        f"{len(set(settings) - {'members', 'topics', 'partitions'})} other settings"
    )
    print_line(f"{outcome.scenario['name']}: {outcome.kind}")
    for name, sentence in outcome.found.items():
        print_line(f"  {name}: {sentence}")
    print_line(f"  smallest: {size} (drawn: {len(outcome.scenario['steps'])} steps)")
    for step in smallest["steps"]:
        print_line(f"    {step}")
    print_made(f"  again: {command_line('run', str(path), *set_again)}\n")
    if outcome.kind == EQUAL_TRACES:
        print_line("  then:  the command's folder with `groupstorm replay DIR --exact`")


if __name__ == "__main__":
    run_tool("fuzz", fuzz)
