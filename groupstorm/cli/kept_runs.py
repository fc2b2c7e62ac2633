"""The runs of `groupstorm sweep`: done here or on Spark, kept in the sweep's folder, read back from there."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from groupstorm import __version__
from groupstorm.cli.invocation import command_line
from groupstorm.cli.options import seed_range
from groupstorm.cli.printing import print_progress
from groupstorm.cli.stop_signals import Stopped
from groupstorm.problems import InputError
from groupstorm.report.progress import runs_progress
from groupstorm.report.sweeps import SWEEP_FILE
from groupstorm.storms.runs.run_folder import folder_stem, free_folder
from groupstorm.storms.runs.sweep_runs import (
    DEFINITION_FILE,
    Key,
    Plan,
    Result,
    RunOrders,
    SweepStore,
    definition_text,
    missing_orders,
    run_here,
)


def run_and_keep(plan: Plan, name: str, out: Path | None, master: str | None) -> SweepStore:
    """Do the runs that are not done yet; returns the store that has them all.

    Without ``out``, the folder that the sweep's name gives: a sweep that is finished there begins anew.
    """
    definition = definition_text(plan, __version__)
    store = SweepStore(out if out is not None else _named_folder(plan, name, definition))
    answer = store.folder / SWEEP_FILE
    with store.begun(definition):
        if out is None and answer.exists():
            answer.unlink()
            store.forget_runs()
        if missing := missing_orders(plan, store):
            total = len(plan.orders)
            earlier = total - len(missing)
            with runs_progress() as progress, _runner(master) as run, _told_how_to_go_on(plan, store, out):
                run(missing, store, lambda done: progress(earlier + done, total))
    return store


def read_back(plan: Plan, store: SweepStore) -> Mapping[Key, Result]:
    """All runs of a finished sweep. Raises InputError."""
    store.check(definition_text(plan, __version__))
    results = store.results()
    if len(results) < len(plan.orders):
        raise InputError(
            f"--read {store.folder}: {len(results)} of {len(plan.orders)} runs are done: "
            f"give the sweep's own command again, with --out {store.folder}"
        )
    return results


def _named_folder(plan: Plan, name: str, definition: str) -> Path:
    sweep = plan.sweep
    seeds = seed_range(sweep.first_seed, sweep.seeds)
    stem = folder_stem(name, seeds, kind="sweep", variants=sweep.variant or "", changed=sweep.overrides)
    return free_folder(stem, {DEFINITION_FILE: definition})


@contextmanager
def _runner(master: str | None) -> Iterator[RunOrders]:
    """The function that does the runs: in processes of this machine, or on Spark. Raises InputError."""
    if master is None:
        yield run_here
        return
    from groupstorm.pipeline.session import spark_session
    from groupstorm.pipeline.sweep_on_spark import repeating_tasks, run_on_spark

    with spark_session(master=repeating_tasks(master)) as spark:
        yield partial(run_on_spark, spark)


@contextmanager
def _told_how_to_go_on(plan: Plan, store: SweepStore, out: Path | None) -> Iterator[None]:
    """If the block is interrupted when runs are done, print the command that does the others."""
    try:
        yield
    except Stopped:
        if done := len(store.results()):
            command = command_line(*sys.argv[1:], *(() if out is not None else ("--out", str(store.folder))))
            print_progress(f"  {done} of {len(plan.orders)} runs are done; for the others: {command}")
        raise
