"""`groupstorm whatif`: the hours of a trace again, under other settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from groupstorm.cli.compare import run_compared
from groupstorm.cli.options import overrides, seed_range
from groupstorm.cli.printing import Shape, print_command, print_grid, print_json, print_paragraph, shape
from groupstorm.problems import InputError
from groupstorm.report.grid import Grid, Row
from groupstorm.report.progress import runs_progress
from groupstorm.storms.runs.run_folder import as_folder, free_folder, write_text
from groupstorm.storms.runs.several import forget_other_runs, orders_of
from groupstorm.storms.scenario.files import parse
from groupstorm.verdicts.ranking import parse_ranking
from groupstorm.whatif.agreement import Agreement, Line, Repeated, RoundLine, repeat
from groupstorm.whatif.drafting import scenario_text
from groupstorm.whatif.knobs import variants_of
from groupstorm.wording import number

SCENARIO_FILE = "whatif.yaml"

#: So many rounds are shown without --all: those whose replays differ most.
ROUNDS_SHOWN = 8


def whatif(
    run: Path,
    settings: list[str] | None = None,
    over: list[str] | None = None,
    known: list[str] | None = None,
    group: str | None = None,
    scenario: Path | None = None,
    seed: int | None = None,
    seeds: int = 5,
    out: Path | None = None,
    trace_format: str = "jsonl",
    ranked_by: str | None = None,
    as_json: bool = False,
    as_csv: bool = False,
    as_markdown: bool = False,
    everything: bool = False,
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
        whole.resolve(name, first_seed, {})  # refuses settings before any run
    folder = out or free_folder(f"{whole.name}-whatif-{seed_range(first_seed, seeds)}", {})
    numbers = range(first_seed, first_seed + seeds)
    forget_other_runs(folder, whole.variants, numbers)
    file = write_scenario(text, folder, scenario)
    found = replay_as_it_was(repeated, file, first_seed, seeds)
    if chosen_shape in (Shape.TABLES, Shape.MARKDOWN):
        print_agreement(found, chosen_shape, everything)
    elif chosen_shape is Shape.JSON and not variants:
        print_json(agreement_content(found, file))
    found.require(run)
    if not variants:
        if chosen_shape in (Shape.TABLES, Shape.MARKDOWN):
            print_command("Change its settings and run", "compare", str(file))
        return
    orders = orders_of(str(file), whole.variants, numbers, {}, folder, trace_format)
    run_compared(whole.name, orders, folder, weights, chosen_shape, everything)


def write_scenario(text: str, folder: Path, also: Path | None) -> Path:
    """Write the scenario into ``folder``, and to ``also`` if that is named. Returns the former."""
    file = as_folder(folder) / SCENARIO_FILE
    for path in (file, also):
        if path is not None:
            write_text(path, text)
    return file


def replay_as_it_was(repeated: Repeated, file: Path, first_seed: int, seeds: int) -> Agreement:
    """Replay the scenario in ``file`` as it was, and compare the replays with the run."""
    with runs_progress() as progress:
        return repeated.agreement(file, range(first_seed, first_seed + seeds), progress)


def print_agreement(found: Agreement, chosen_shape: Shape, everything: bool) -> None:
    """The run beside its replays."""
    print_grid(rounds_grid(found, everything), chosen_shape)
    print_grid(agreement_grid(found), chosen_shape)
    for sentence in found.not_compared:
        print_paragraph(f"Not compared: {sentence}.")


def agreement_grid(found: Agreement) -> Grid:
    """A row for each value that is compared, with its tolerance."""
    rows = [
        Row(
            line.what,
            [
                _shown(line, line.observed),
                _shown(line, line.replayed.median),
                f"{_shown(line, line.replayed.least)} to {_shown(line, line.replayed.most)}",
                line.tolerance,
            ],
            mark="" if line.agrees else " !",
        )
        for line in found.lines
    ]
    headings = ("", "run", "replay", "range", "tolerance")
    apart = "! further apart than the tolerance, and outside the range of the seeds"
    notes = () if found.agrees else (apart,)
    return Grid(headings, rows, "The run, and its replays (median and range of the seeds)", notes)


def agreement_content(found: Agreement, scenario: Path) -> dict[str, Any]:
    """The content of --json. Times are in seconds."""
    return {
        "scenario": str(scenario),
        "agrees": found.agrees,
        "compared": [
            {
                "what": line.what,
                "run": line.observed,
                "replay_least_median_most": list(line.replayed),
                "tolerance": line.tolerance,
                "agrees": line.agrees,
            }
            for line in found.lines
        ],
        "not_compared": list(found.not_compared),
        "rounds": [
            {
                "began_s": line.seen.began_us / 1e6,
                "took_s": line.seen.duration_us / 1e6,
                "cause": line.seen.cause,
                "replay_began_s": None if line.began_us is None else line.began_us / 1e6,
                "replay_took_s": None if line.duration_us is None else line.duration_us / 1e6,
                "replay_causes": list(line.causes),
            }
            for line in found.rounds
        ],
    }


def rounds_grid(found: Agreement, everything: bool) -> Grid:
    """The rounds of the run beside their partners in the replays."""
    shown = list(found.rounds)
    notes = []
    if not everything and len(shown) > ROUNDS_SHOWN:
        kept = sorted(shown, key=_difference, reverse=True)[:ROUNDS_SHOWN]
        shown = [line for line in shown if line in kept]
        notes = [f"{ROUNDS_SHOWN} of {len(found.rounds)} rounds, those that differ most; --all has all"]
    rows = [
        Row(
            f"{line.seen.began_us / 1e6:,.1f} s",
            [
                line.seen.cause,
                "-" if line.began_us is None else f"{(line.began_us - line.seen.began_us) / 1e6:+.1f} s",
                f"{line.seen.duration_us / 1e6:,.1f} s",
                "-" if line.duration_us is None else f"{line.duration_us / 1e6:,.1f} s",
                _cause(line),
            ],
        )
        for line in shown
    ]
    headings = ("began", "because", "replay began", "took", "replay took", "replay's cause")
    return Grid(headings, rows, "Rounds", notes, frozenset({0, 4}))


def _cause(line: RoundLine) -> str:
    if not line.causes:
        return "no such round"
    return "the same" if line.causes == (line.seen.cause,) else " or ".join(line.causes)


def _difference(line: RoundLine) -> float:
    """The distance of a replay from a round, in microseconds."""
    if line.began_us is None or line.duration_us is None:
        return float("inf")
    return abs(line.began_us - line.seen.began_us) + abs(line.duration_us - line.seen.duration_us)


def _shown(line: Line, value: float) -> str:
    if line.unit == "s":
        return f"{value:,.1f} s"
    return f"{value:.0f} %" if line.unit == "%" else number(value)
