"""`groupstorm compare`: the variants of one scenario, side by side; with --on each beside a broker's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from groupstorm.cli.failed_runs import check_variants_meet, require_invariants, requirements_of
from groupstorm.cli.options import (
    ScenarioArgument,
    broker_kind,
    broker_options,
    clients_of,
    overrides,
    seed_range,
)
from groupstorm.cli.printing import (
    Shape,
    print_command,
    print_grid,
    print_json,
    print_line,
    print_made,
    print_paragraph,
    print_paragraphs,
    shape,
)
from groupstorm.cli.run import print_assignor_failures, print_files
from groupstorm.problems import InputError
from groupstorm.report.comparisons import comparison_content
from groupstorm.report.deployment_notes import notes_by_variant
from groupstorm.report.grid import Grid, Row
from groupstorm.report.progress import runs_progress
from groupstorm.report.tables import brief, figures_csv, figures_grid, seeds_named
from groupstorm.storms.runs.contradictions import contradictions
from groupstorm.storms.runs.run import Run
from groupstorm.storms.runs.run import run as run_scenario
from groupstorm.storms.runs.run_folder import folder_stem, free_folder, write_json
from groupstorm.storms.runs.several import (
    COMPARISON_FILE,
    SEEDS_DEFAULT,
    Order,
    check_variants,
    forget_other_runs,
    named_in_errors,
    orders_of,
    recommended,
    run_variants,
    scenario_files,
    sentences,
    weights_of,
)
from groupstorm.storms.scenario.files import ResolvedScenario, load
from groupstorm.verdicts.comparison import Judged, agreement_answer, judge

if TYPE_CHECKING:
    from groupstorm.clients.brokers import BrokerKind
    from groupstorm.storms.live.real_clients.libraries import Library


def compare(
    scenario: ScenarioArgument,
    variants: list[str] | None = None,
    seed: int | None = None,
    settings: list[str] | None = None,
    out: Path | None = None,
    trace_format: str = "jsonl",
    exact: bool = False,
    as_json: bool = False,
    as_csv: bool = False,
    as_markdown: bool = False,
    everything: bool = False,
    seeds: int | None = None,
    ranked_by: str | None = None,
    require: list[str] | None = None,
    no_remedies: bool = False,
    on: str | None = None,
    with_library: str | None = None,
    allow_writes: bool = False,
    client_config: Path | None = None,
) -> None:
    """Run the variants of a scenario and print what the difference is, and which variant is best.

    The answer and the table speak of medians over the seeds; the table has the ranges, too. Variants between
    which seeds alone may explain the difference are called that, and none of them wins.

    With --require the command says which variants meet it in every seed, and exits with 1 if none does.

    Files: one folder per variant and seed (as `groupstorm run` writes it) and comparison.json, in DIR:
    runs/<preset>-compare-<seeds> unless --out says otherwise.

    With --on every variant runs twice, in virtual time and in real time against a broker; the command prints
    which figures differ.

    Example: groupstorm compare rolling-deploy --set members=100 --rank unowned=2,duplicates=1
    """
    chosen_shape = shape(as_json, as_csv, as_markdown)
    kind = broker_kind(on, allow_writes, exact, client_config)
    if kind is not None and (seeds or 1) > 1:
        raise InputError("--on: one seed at a time, not --seeds")
    seeds = seeds or (SEEDS_DEFAULT if kind is None else 1)
    required = requirements_of(require)
    loaded = load(scenario)
    weights = weights_of(loaded, ranked_by or None)
    chosen = check_variants(scenario, variants or ())
    changed = overrides(settings)
    clients = clients_of(with_library, on, changed)
    resolved = {}
    for name in chosen:
        with named_in_errors(name):
            resolved[name] = loaded.resolve(name, seed, changed)
    first_seed = resolved[chosen[0]].seed
    stem = folder_stem(
        loaded.name,
        seed_range(first_seed, seeds),
        kind="compare" if kind is None else f"compare-on-{kind.name}",
        variants="-".join(variants or ()),
        changed=changed,
    )
    numbers = range(first_seed, first_seed + seeds)
    below: dict[str | None, str | Path] = {} if kind else {name: name for name in chosen}
    folder = out or free_folder(stem, scenario_files(scenario, below, numbers, changed))
    forget_other_runs(folder, chosen, numbers)
    if chosen_shape is Shape.TABLES:
        print_paragraph(" ".join(loaded.question.split()), emphasized=True)
        steps = {name: one.steps for name, one in resolved.items()}
        settings_of = {name: one.settings for name, one in resolved.items()}
        print_paragraphs(contradictions(settings_of, steps), "Before any run: ")
        print()
    if kind is not None and on is not None:
        options = broker_options(on, allow_writes, client_config, with_library)
        _compare_with_broker(resolved, kind, folder, trace_format, as_json, options, clients)
        return
    orders = orders_of(scenario, chosen, numbers, changed, folder, trace_format, exact)
    runs = run_compared(
        loaded.name, orders, folder, weights, chosen_shape, everything, look_for_remedies=not no_remedies
    )
    figures = {
        name: {f"seed {run.scenario.seed}": run.figures for run in each} for name, each in runs.items()
    }
    check_variants_meet(figures, required, chosen_shape is Shape.TABLES)


def run_compared(
    name: str,
    orders: Sequence[Order],
    folder: Path,
    weights: Mapping[str, float] | None,
    chosen_shape: Shape,
    everything: bool,
    look_for_remedies: bool = True,
) -> dict[str, list[Run]]:
    """Run the seeds of all variants, write comparison.json and print variants side by side, with an answer.

    Returns the runs of each variant. Raises CheckFailed if an invariant broke.
    """
    with runs_progress() as progress:
        done = count(1)
        runs = run_variants(orders, lambda _: progress(next(done), len(orders)))
    figures = {variant: [run.figures for run in each] for variant, each in runs.items()}
    every = [run for each in runs.values() for run in each]
    content = comparison_content(name, runs, weights)
    write_json(folder / COMPARISON_FILE, content)
    if chosen_shape is Shape.JSON:
        print_json(content)
    elif chosen_shape is Shape.CSV:
        rows = [((run.scenario.variant, run.scenario.seed), run.figures) for run in every]
        print_made(figures_csv(("variant", "seed"), rows))
    else:
        seeds = dict.fromkeys(run.scenario.seed for run in every)
        if chosen_shape is Shape.TABLES:
            print_paragraphs(recommended(runs, weights))
            print_paragraphs(sentences(runs, weights))
            _print_story_of_longest_gap(every)
            print_paragraphs(notes_by_variant(runs))
            print()
        print_grid(figures_grid(f"{name}, {seeds_named([*seeds])}", figures, everything), chosen_shape)
        print_files(every, folder)
        print_command("Their tables:", "analyze", str(folder))
    print_assignor_failures(every)
    require_invariants(every, look_for_remedies=look_for_remedies)
    return runs


def _print_story_of_longest_gap(runs: Sequence[Run]) -> None:
    """The command that prints the story of the partition that was un-owned the longest."""
    gaps = [(gap.to_us - gap.from_us, run, gap) for run in runs if (gap := run.reasons.longest) is not None]
    if not gaps:
        return
    _, run, gap = max(gaps, key=lambda found: found[0])
    window = ["--from", str(max(0, gap.from_us // 1_000_000 - 5)), "--to", str(gap.to_us // 1_000_000 + 5)]
    print_command("Its story:", "trace", str(run.folder), "--partition", gap.partition, *window)


FIDELITY_FILE = "fidelity.json"


def _compare_with_broker(
    variants: Mapping[str, ResolvedScenario],
    kind: BrokerKind,
    folder: Path,
    trace_format: str,
    as_json: bool,
    options: Sequence[str],
    clients: Library | None,
) -> None:
    """Run each variant both ways; files: one folder per variant and way, and fidelity.json.

    ``options``: the words of the command line that name the broker and the clients.
    """
    from groupstorm.storms.live.play import run_on

    content = {}
    for name, scenario in variants.items():
        virtual = run_scenario(scenario, folder / name / "virtual", trace_format)
        real = run_on(scenario, folder / name / "real", trace_format, kind, clients=clients)
        judged = judge(virtual.figures, real.figures)
        content[name] = {
            "virtual": virtual.figures.to_json(),
            "real": real.figures.to_json(),
            "agrees": {one.figure: one.agrees for one in judged},
            "answer": agreement_answer(judged),
        }
        if not as_json:
            print_grid(_grid(f"{scenario.name} ({name}), seed {scenario.seed}", kind, judged))
            print_paragraph(agreement_answer(judged))
        require_invariants([virtual])
        require_invariants([real], options)
    write_json(folder / FIDELITY_FILE, {"on": kind.name, "variants": content})
    if as_json:
        print_json({"on": kind.name, "variants": content})
    else:
        print()
        print_line(f"Files in {folder}")


def _grid(title: str, kind: BrokerKind, judged: list[Judged]) -> Grid:
    rows = [
        Row(
            one.figure,
            (brief(one.figure, one.virtual), brief(one.figure, one.real), "" if one.agrees else "differs"),
        )
        for one in judged
    ]
    return Grid(("figure", "virtual", kind.name, ""), rows, title, left=frozenset({2}))
