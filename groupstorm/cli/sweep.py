"""`groupstorm sweep`: one scenario with every combination of some settings, as one table."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from groupstorm.cli.options import (
    OutOption,
    RankOption,
    ScenarioArgument,
    SeedOption,
    SetOption,
    overrides,
    seed_range,
)
from groupstorm.cli.output_options import AllOption, CsvOption, JsonOption, MarkdownOption
from groupstorm.cli.printing import Shape, print_grid, print_paragraph, shape
from groupstorm.cli.progress import runs_progress
from groupstorm.figures.ranking import parse_ranking
from groupstorm.figures.requirements import Requirement, parse
from groupstorm.problems import InputError
from groupstorm.report.sweeps import (
    check_figure,
    figure_of_interest,
    sweep_content,
    sweep_csv,
    sweep_grid,
    sweep_notes,
    sweep_recommendation,
    sweep_sentences,
)
from groupstorm.storms.run_folder import json_text, write_text
from groupstorm.storms.run_names import as_folder, folder_stem, free_folder
from groupstorm.storms.scenario.files import load
from groupstorm.storms.sweep import Outcome, Sweep, parse_axis, run_sweep

SWEEP_FILE = "sweep.json"


def sweep(
    scenario: ScenarioArgument,
    over: Annotated[
        list[str],
        typer.Option(
            "--over",
            metavar="NAME=A..B:STEP|NAME=V1,V2",
            help="A setting and its values: session.timeout.ms=10s..120s:10s, members=20,60, or "
            "variant=eager,static. Repeatable: all combinations.",
        ),
    ],
    variant: Annotated[
        str | None, typer.Option("--variant", help="Which variant. [default: the first]")
    ] = None,
    seed: SeedOption = None,
    settings: SetOption = None,
    seeds: Annotated[
        int, typer.Option("--seeds", min=1, help="Run this many seeds of every point, from --seed on.")
    ] = 5,
    goal: Annotated[
        list[str] | None,
        typer.Option(
            "--goal",
            metavar="EXPR",
            help="What a point has to meet: 'generations==0 for 99%' (of its seeds; without `for`: all). "
            "Repeatable.",
        ),
    ] = None,
    figure: Annotated[
        str | None,
        typer.Option(
            "--figure",
            help="Whose knee to look for without --goal. [default: unowned_partition_seconds, for Kafka "
            "Streams task_downtime_seconds]",
        ),
    ] = None,
    ranked_by: RankOption = None,
    out: OutOption = None,
    as_json: JsonOption = False,
    as_csv: CsvOption = False,
    as_markdown: MarkdownOption = False,
    everything: AllOption = False,
) -> None:
    """Run a scenario with every combination of some settings, on all cores, and print one table.

    A row per point: medians over the seeds, the share of seeds that meet the goal, the cost of a crash beside
    the cost of a deploy. Then the knee of the first --over that has numbers: with a goal the smallest value
    from which on all meet it; without one the point of --figure's curve that lies furthest from the line
    between its ends. Points that the scenario refuses are listed with the reason. At the end: which point to
    take (--rank says what it costs least of), with its spread, and what that buys against the defaults.

    Files: sweep.json in DIR, with the figures of every seed and the command that runs it with its trace; DIR
    is a new folder runs/<preset>-sweep-<seeds> unless --out says otherwise. Nothing is written
    before the last point is done.

    Example: groupstorm sweep rolling-deploy --variant static --over session.timeout.ms=20s..80s:20s --seeds 3
    """
    chosen_shape = shape(as_json, as_csv, as_markdown)
    loaded = load(scenario)
    goals = [parse(text, "--goal") for text in goal or ()]
    check_figure(figure)
    ranking = ranked_by or loaded.rank
    weights = None if ranking is None else parse_ranking(ranking)
    axes = tuple(parse_axis(text, loaded) for text in over)
    names = [axis.name for axis in axes]
    if len(set(names)) != len(names):
        raise InputError(f"--over: {next(n for n in names if names.count(n) > 1)} stands twice")
    changed = overrides(settings)
    for name in changed:
        if name in names:
            raise InputError(f"--set {name}: it is swept over with --over")
    if variant is not None and variant not in loaded.variants:
        raise InputError(f"variant: {variant!r} is not one of {', '.join(loaded.variants)}")
    wanted = Sweep(scenario, variant, axes, seed if seed is not None else loaded.seed or 0, seeds, changed)
    with runs_progress() as progress:
        outcomes = [*run_sweep(wanted, progress)]
    if all(outcome.refused for outcome in outcomes):
        raise InputError(f"--over: every point is refused: {outcomes[0].refused}")
    figure = figure_of_interest(figure, goals, outcomes)
    content = sweep_content(loaded.name, wanted, outcomes, goals, figure, weights)
    folder = _written(loaded.name, wanted, content, out)
    if chosen_shape is Shape.JSON:
        print(json.dumps(content, ensure_ascii=False))
    elif chosen_shape is Shape.CSV:
        print(sweep_csv(wanted, outcomes), end="")
    else:
        _print(loaded.question, wanted, outcomes, goals, figure, chosen_shape, everything)
        recommended = sweep_recommendation(wanted, outcomes, goals, weights)
        for paragraph in [*sweep_notes(wanted, outcomes), *recommended]:
            print_paragraph(paragraph)
        print()
        print_paragraph(f"All figures, and a command for each run: {folder / SWEEP_FILE}")


def _written(name: str, wanted: Sweep, content: Mapping[str, Any], out: Path | None) -> Path:
    """Write sweep.json; returns its folder."""
    text = json_text(content)
    if out is None:
        stem = folder_stem(
            name,
            seed_range(wanted.first_seed, wanted.seeds),
            kind="sweep",
            variants=wanted.variant or "",
            changed=wanted.overrides,
        )
        out = free_folder(stem, {SWEEP_FILE: text})
    write_text(as_folder(out) / SWEEP_FILE, text)
    return out


def _print(
    question: str,
    wanted: Sweep,
    outcomes: Sequence[Outcome],
    goals: Sequence[Requirement],
    figure: str,
    chosen_shape: Shape,
    everything: bool,
) -> None:
    if chosen_shape is Shape.TABLES:
        print_paragraph(question, emphasized=True)
        print()
    print_grid(sweep_grid(wanted, outcomes, goals, everything), chosen_shape)
    for sentence in sweep_sentences(wanted, outcomes, goals, figure):
        print_paragraph(sentence)
