"""`groupstorm whatif`: the hours of a trace again, under other settings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from groupstorm.cli.compare import run_compared
from groupstorm.cli.options import FormatOption, OutOption, RankOption, SeedOption, overrides, seed_range
from groupstorm.cli.output_options import AllOption, CsvOption, JsonOption, MarkdownOption
from groupstorm.cli.printing import Shape, print_command, print_grid, print_json, print_paragraph, shape
from groupstorm.cli.whatif_tables import agreement_content, agreement_grid, rounds_grid
from groupstorm.problems import CheckFailed, InputError
from groupstorm.report.progress import runs_progress
from groupstorm.storms.runs.run_folder import as_folder, free_folder, write_text
from groupstorm.storms.runs.several import Order, folder_of, forget_other_variants
from groupstorm.storms.scenario.files import Scenario, parse
from groupstorm.verdicts.ranking import parse_ranking
from groupstorm.whatif.agreement import Agreement, agreement
from groupstorm.whatif.changes import check_change, variants_of
from groupstorm.whatif.drafting import Draft, draft_of
from groupstorm.whatif.reading import Reading, read_run
from groupstorm.whatif.replaying import replay_seeds
from groupstorm.whatif.writing import AS_IT_WAS, scenario_text

SCENARIO_FILE = "whatif.yaml"
_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")

RunArgument = Annotated[
    Path,
    typer.Argument(metavar="RUN", help="A trace or its folder: of an import, of serve, of a storm."),
]
GroupOption = Annotated[str | None, typer.Option("--group", help="The group, if the trace has several.")]
KnownOption = Annotated[
    list[str] | None,
    typer.Option(
        "--known",
        metavar="NAME=VALUE",
        help="A setting that the run had and its trace does not say. Repeatable.",
    ),
]
SeedsOption = Annotated[
    int, typer.Option("--seeds", min=1, help="Replay with so many seeds, from --seed on.")
]


class Repeated(NamedTuple):
    """A run, and the scenario that repeats it."""

    reading: Reading
    draft: Draft
    scenario: Scenario


def whatif(
    run: RunArgument,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="A setting that would have been another (`groupstorm list --settings`). Repeatable.",
        ),
    ] = None,
    over: Annotated[
        list[str] | None,
        typer.Option(
            "--over",
            metavar="NAME=A..B:STEP|NAME=V1,V2",
            help="A setting and several values: each of them side by side. Repeatable: all combinations.",
        ),
    ] = None,
    known: KnownOption = None,
    group: GroupOption = None,
    scenario: Annotated[
        Path | None, typer.Option("--scenario", metavar="FILE", help="Write the scenario to this file, too.")
    ] = None,
    seed: SeedOption = None,
    seeds: SeedsOption = 5,
    out: OutOption = None,
    trace_format: FormatOption = "jsonl",
    ranked_by: RankOption = None,
    as_json: JsonOption = False,
    as_csv: CsvOption = False,
    as_markdown: MarkdownOption = False,
    everything: AllOption = False,
) -> None:
    """Run the hours of a trace again: first as they were, then under other settings, side by side.

    The trace becomes a scenario file: members, when each started, stopped, died and stood still, topics,
    timeouts, each with a comment that says how it is known. The file is replayed over --seeds; the command
    prints what the run did beside what the replays do. If they are further apart than a stated tolerance, it
    ends there, with 1: advice from such a replay would be a guess. What no trace says, --known says; what the
    file says, you may change (`groupstorm compare FILE`).

    Files: whatif.yaml, and of the comparison a folder per variant, in DIR: runs/<run>-whatif-<seeds> unless
    --out says otherwise.

    Example: groupstorm whatif imported --over session.timeout.ms=10s,45s --known max.poll.interval.ms=5m
    """
    chosen_shape = shape(as_json, as_csv, as_markdown)
    weights = None if ranked_by is None else parse_ranking(ranked_by)
    if chosen_shape is Shape.CSV and not (settings or over):
        raise InputError("--csv: means something only with --set or --over: a row per run")
    repeated = repeat(run, group, overrides(known, "--known"))
    variants = variants_of(repeated.scenario, overrides(settings), over or ())
    first_seed = seed or 0
    text = scenario_text(repeated.draft, str(run), variants)
    whole = parse(text, "yaml", SCENARIO_FILE)
    for name in whole.variants:
        check_change(whole.resolve(name, first_seed, {}))
    folder = out or free_folder(f"{whole.name}-whatif-{seed_range(first_seed, seeds)}", {})
    forget_other_variants(folder, tuple(whole.variants))
    file = write_scenario(text, folder, scenario)
    found = check_agreement(repeated, file, first_seed, seeds)
    if chosen_shape in (Shape.TABLES, Shape.MARKDOWN):
        print_agreement(found, chosen_shape, everything)
    elif chosen_shape is Shape.JSON and not variants:
        print_json(agreement_content(found, file))
    refuse_if_apart(run, found)
    if not variants:
        if chosen_shape in (Shape.TABLES, Shape.MARKDOWN):
            print_command("Change its settings and run", "compare", str(file))
        return
    orders = [
        Order(str(file), name, number, {}, folder_of(folder, name, number, seeds), trace_format)
        for name in whole.variants
        for number in range(first_seed, first_seed + seeds)
    ]
    run_compared(whole.name, orders, folder, weights, chosen_shape, everything)


def repeat(run: Path, group: str | None, given: Mapping[str, Any]) -> Repeated:
    """The scenario that repeats a run. Raises InputError if no scenario can repeat what the trace says."""
    reading = read_run(run, group)
    name = _UNSAFE.sub("-", run.resolve().name.removesuffix(run.suffix)).lstrip("-_.")[:60] or "run"
    draft = draft_of(reading, name, given)
    if draft.problems:
        raise InputError(f"{run}: no scenario repeats this run: {'; '.join(draft.problems)}")
    return Repeated(reading, draft, parse(scenario_text(draft, str(run), {}), "yaml", str(run)))


def write_scenario(text: str, folder: Path, also: Path | None) -> Path:
    """Write the scenario into ``folder``, and to ``also`` if that is named. Returns the former."""
    file = as_folder(folder) / SCENARIO_FILE
    for path in (file, also):
        if path is not None:
            write_text(path, text)
    return file


def check_agreement(repeated: Repeated, file: Path, first_seed: int, seeds: int) -> Agreement:
    """Replay the scenario in ``file`` as it was and hold the replays against the run."""
    numbers = range(first_seed, first_seed + seeds)
    with runs_progress() as progress:
        replays = replay_seeds(str(file), AS_IT_WAS, numbers, progress)
    return agreement(repeated.reading, repeated.draft, replays)


def print_agreement(found: Agreement, chosen_shape: Shape, everything: bool) -> None:
    """The run beside its replays."""
    print_grid(rounds_grid(found, everything), chosen_shape)
    print_grid(agreement_grid(found), chosen_shape)
    for sentence in found.not_compared:
        print_paragraph(f"Not compared: {sentence}.")


def refuse_if_apart(run: Path, found: Agreement) -> None:
    """Raise CheckFailed if the replays do something else than the run did."""
    apart = [line for line in found.lines if not line.agrees]
    if not apart:
        return
    words = "; ".join(
        f"{line.what}: {_value(line.unit, line.observed)} in the run, "
        f"{_value(line.unit, line.replayed.median)} in its replays (tolerance {line.tolerance})"
        for line in apart
    )
    raise CheckFailed(
        f"{run}: the replays do not do what the run did, so nothing follows from other settings: {words}. "
        "Check what whatif.yaml assumes, and say what you know with --known"
    )


def _value(unit: str, value: float) -> str:
    return f"{value:,.1f} {unit}" if unit else f"{value:,g}"
