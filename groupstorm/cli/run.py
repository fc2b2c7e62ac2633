"""`groupstorm run`: one scenario, stormed."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from groupstorm.cli.options import (
    AllowWritesOption,
    ClientConfigOption,
    ExactOption,
    FormatOption,
    JsonOption,
    OnOption,
    OutOption,
    ScenarioArgument,
    SeedOption,
    SetOption,
    broker_kind,
    overrides,
    seed_range,
)
from groupstorm.clients.brokers import BrokerKind
from groupstorm.problems import CheckFailed, InputError
from groupstorm.report.tables import figures_table, spread, spread_table
from groupstorm.storms import requirements
from groupstorm.storms.ending import Progress as RunProgress
from groupstorm.storms.live.run import run_on
from groupstorm.storms.requirements import Requirement
from groupstorm.storms.run import Run, require_invariants
from groupstorm.storms.run import run as run_scenario
from groupstorm.storms.scenario import ResolvedScenario, load
from groupstorm.storms.several import Order, run_all
from groupstorm.trace.log import LogSink, configure


def run(
    scenario: ScenarioArgument,
    variant: Annotated[
        str | None, typer.Option("--variant", help="Which variant. [default: the first]")
    ] = None,
    seed: SeedOption = None,
    settings: SetOption = None,
    out: OutOption = None,
    trace_format: FormatOption = "jsonl",
    exact: ExactOption = False,
    as_json: JsonOption = False,
    seeds: Annotated[
        int, typer.Option("--seeds", min=1, help="So many seeds from --seed on, in parallel.")
    ] = 1,
    log: Annotated[bool, typer.Option("--log", help="Log every event to standard error.")] = False,
    on: OnOption = None,
    allow_writes: AllowWritesOption = False,
    client_config: ClientConfigOption = None,
    require: Annotated[
        list[str] | None,
        typer.Option(
            "--require", metavar="FIGURE<NUMBER", help="Exit 1 where a figure does not meet it. Repeatable."
        ),
    ] = None,
) -> None:
    """Storm a group and print what it cost: in virtual time, or with --on in real time against a broker.

    Files: DIR/trace.jsonl (or .parquet), scenario.yaml, figures.json, measured.json;
    DIR is runs/<preset>-<seed> unless --out says otherwise.

    Example: groupstorm run rolling-deploy --variant static --require 'unowned_max_seconds<60'
    """
    kind = broker_kind(on, allow_writes, exact, client_config)
    for option, given in (("--log", log), ("--on", kind is not None)):
        if given and seeds > 1:
            raise InputError(f"{option}: one run at a time, not --seeds")
    required = [requirements.parse(text) for text in require or ()]
    changed = overrides(settings)
    resolved = load(scenario).resolve(variant, seed, changed)
    folder = out or Path("runs") / f"{resolved.name}-{seed_range(resolved.seed, seeds)}"
    if seeds == 1:
        runs = [_run_one(resolved, folder, trace_format, exact, log, kind)]
    else:
        orders = [
            Order(scenario, variant, number, changed, folder / f"seed-{number}", trace_format, exact)
            for number in range(resolved.seed, resolved.seed + seeds)
        ]
        runs = list(run_all(orders))
    if as_json:
        _print_json(runs)
    else:
        _print_tables(runs, folder)
    tell_assignor_failures(runs)
    for finished in runs:
        require_invariants(finished)
    _require(runs, required)


def _run_one(
    scenario: ResolvedScenario,
    folder: Path,
    trace_format: str,
    exact: bool,
    log: bool,
    kind: BrokerKind | None,
) -> Run:
    """With a line of progress for whoever sits in front of it, or with all there is to log."""

    def start(progress: RunProgress | None, sink: LogSink | None) -> Run:
        if kind is None:
            return run_scenario(scenario, folder, trace_format, exact, progress, sink)
        return run_on(scenario, folder, trace_format, kind, progress, sink)

    if log:
        configure(timestamps=False)
        return start(None, LogSink())
    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not sys.stderr.isatty()) as display:
        task = display.add_task(f"{scenario.name} ({scenario.variant})", total=None)

        def progress(now_us: int, phase: str) -> None:
            seconds = f"{now_us / 1e6:,.0f} {'virtual ' if kind is None else ''}seconds"
            text = f"{scenario.name} ({scenario.variant}): {seconds}, {phase}"
            display.update(task, description=text)

        return start(progress, None)


def tell_assignor_failures(runs: Iterable[Run]) -> None:
    """On standard error: why there were rounds without an assignment."""
    for run in runs:
        if run.assignor_failure is not None:
            ran = run.scenario
            print(
                f"{ran.name} ({ran.variant}), seed {ran.seed}: an assignor failed, and with it the leader: "
                f"{run.assignor_failure}",
                file=sys.stderr,
            )


def _print_json(runs: Sequence[Run]) -> None:
    if len(runs) == 1:
        print(json.dumps(runs[0].figures.to_json(), ensure_ascii=False))
        return
    content = {
        "seeds": {str(run.scenario.seed): run.figures.to_json() for run in runs},
        "spread": spread([run.figures for run in runs]),
    }
    print(json.dumps(content, ensure_ascii=False))


def _print_tables(runs: Sequence[Run], folder: Path) -> None:
    console = Console()
    first = runs[0].scenario
    if len(runs) == 1:
        title = f"{first.name} ({first.variant}), seed {first.seed}"
        console.print(figures_table(title, {first.variant: runs[0].figures}))
        console.print(runs[0].figures.answer)
    else:
        title = f"{first.name} ({first.variant}), seeds {first.seed} to {runs[-1].scenario.seed}"
        console.print(spread_table(title, [run.figures for run in runs]))
    events = sum(run.events for run in runs)
    seconds = sum(run.wall_seconds for run in runs)
    console.print(f"\n{events:,} events in {seconds:.1f} s; files in {folder}", highlight=False)
    if len(runs) == 1:
        console.print(f"The story of it: groupstorm trace {folder}", highlight=False)


def _require(runs: Sequence[Run], required: Sequence[Requirement]) -> None:
    unmet = [
        f"seed {run.scenario.seed}: {sentence}"
        for run in runs
        for requirement in required
        if (sentence := requirement.unmet(run.figures)) is not None
    ]
    if unmet:
        raise CheckFailed("; ".join(unmet))
