"""`groupstorm compare`: the variants of one scenario, side by side."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from groupstorm.cli.fidelity import compare_with_broker
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
from groupstorm.cli.run import tell_assignor_failures
from groupstorm.problems import InputError
from groupstorm.report.tables import figures_table, spread, spread_table
from groupstorm.storms.run import Run, require_invariants
from groupstorm.storms.scenario import load
from groupstorm.storms.several import (
    Order,
    check_variants,
    comparison,
    forget_other_variants,
    run_all,
    write_comparison,
)


def compare(
    scenario: ScenarioArgument,
    variants: Annotated[
        list[str] | None, typer.Option("--variant", help="Which variant; repeatable. [default: all]")
    ] = None,
    seed: SeedOption = None,
    settings: SetOption = None,
    out: OutOption = None,
    trace_format: FormatOption = "jsonl",
    exact: ExactOption = False,
    as_json: JsonOption = False,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="So many seeds of every variant.")] = 1,
    on: OnOption = None,
    allow_writes: AllowWritesOption = False,
    client_config: ClientConfigOption = None,
) -> None:
    """Run the variants of a scenario with one seed and say what the difference is.

    Files: one folder per variant (as `groupstorm run` writes it) and comparison.json, in DIR:
    runs/<preset>-compare-<seed> unless --out says otherwise.

    With --on every variant is run twice, in virtual time and in real time against a broker, and what
    differs between the two is said.
    """
    kind = broker_kind(on, allow_writes, exact, client_config)
    if kind is not None and seeds > 1:
        raise InputError("--on: one seed at a time, not --seeds")
    loaded = load(scenario)
    chosen = check_variants(scenario, variants or ())
    changed = overrides(settings)
    resolved = {name: loaded.resolve(name, seed, changed) for name in chosen}
    first_seed = resolved[chosen[0]].seed
    folder = out or Path("runs") / f"{loaded.name}-compare-{seed_range(first_seed, seeds)}"
    forget_other_variants(folder, chosen)
    console = Console(stderr=as_json)
    console.print(loaded.question, style="bold", highlight=False)
    if kind is not None:
        compare_with_broker(resolved, kind, folder, trace_format, console, as_json)
        return
    orders = [
        Order(scenario, name, number, changed, _folder(folder, name, number, seeds), trace_format, exact)
        for name in chosen
        for number in range(first_seed, first_seed + seeds)
    ]
    runs: dict[str, list[Run]] = {}
    for finished in run_all(orders):
        ran = finished.scenario
        runs.setdefault(ran.variant, []).append(finished)
        console.print(
            f"  {ran.variant}, seed {ran.seed}: {finished.events:,} events in {finished.wall_seconds:.1f} s",
            highlight=False,
        )
    content = comparison(loaded.name, first_seed, {name: each[0].figures for name, each in runs.items()})
    if seeds > 1:
        content["spread"] = {name: spread([run.figures for run in each]) for name, each in runs.items()}
    write_comparison(folder, content)
    if as_json:
        print(json.dumps(content, ensure_ascii=False))
    else:
        _print_tables(console, loaded.name, runs, folder, str(content["answer"]))
    tell_assignor_failures(run for each in runs.values() for run in each)
    for each in runs.values():
        for finished in each:
            require_invariants(finished)


def _folder(folder: Path, variant: str, seed: int, seeds: int) -> Path:
    return folder / variant if seeds == 1 else folder / variant / f"seed-{seed}"


def _print_tables(console: Console, name: str, runs: dict[str, list[Run]], folder: Path, answer: str) -> None:
    first: Sequence[Run] = next(iter(runs.values()))
    if len(first) == 1:
        title = f"{name}, seed {first[0].scenario.seed}"
        console.print(figures_table(title, {variant: each[0].figures for variant, each in runs.items()}))
    else:
        for variant, each in runs.items():
            console.print(
                spread_table(f"{name} ({variant}), {len(each)} seeds", [run.figures for run in each])
            )
    console.print(answer)
    console.print(f"\nFiles in {folder}; with Spark: groupstorm analyze {folder}", highlight=False)
