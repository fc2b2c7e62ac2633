"""`groupstorm run` and `groupstorm replay`: one storm, its files and its figures, and the same once more."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from groupstorm.cli.failed_runs import check_all_meet, require_invariants, requirements_of
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
    print_indented,
    print_json,
    print_line,
    print_made,
    print_paragraph,
    print_paragraphs,
    shape,
)
from groupstorm.figures.reasons import reasons_sentences
from groupstorm.problems import InputError
from groupstorm.report.deployment_notes import deployment_notes
from groupstorm.report.progress import run_progress, runs_progress
from groupstorm.report.tables import figures_csv, figures_grid, seeds_named, spread
from groupstorm.storms.runs.contradictions import contradictions
from groupstorm.storms.runs.run import Run
from groupstorm.storms.runs.run import run as run_scenario
from groupstorm.storms.runs.run_folder import folder_stem, free_folder
from groupstorm.storms.runs.several import Order, run_all, scenario_files
from groupstorm.storms.runs.step_runner import Progress
from groupstorm.storms.scenario.files import ResolvedScenario, load
from groupstorm.trace.rows import TraceSink
from groupstorm.trace.writer import ROTATION_S, DirectorySink, Tee
from groupstorm.verdicts.comparison import compare_answer
from groupstorm.verdicts.ranking import consumers_ended

if TYPE_CHECKING:
    from groupstorm.clients.brokers import BrokerKind
    from groupstorm.storms.live.real_clients.libraries import Library


def run(
    scenario: ScenarioArgument,
    variant: str | None = None,
    seed: int | None = None,
    settings: list[str] | None = None,
    out: Path | None = None,
    trace_format: str = "jsonl",
    exact: bool = False,
    as_json: bool = False,
    as_csv: bool = False,
    as_markdown: bool = False,
    everything: bool = False,
    seeds: int = 1,
    log: bool = False,
    trace: Path | None = None,
    trace_to: str | None = None,
    on: str | None = None,
    with_library: str | None = None,
    allow_writes: bool = False,
    client_config: Path | None = None,
    require: list[str] | None = None,
    no_remedies: bool = False,
) -> None:
    """Storm a group and print what it cost: in virtual time, or with --on in real time against a broker.

    Files: DIR/trace.jsonl (or .parquet), scenario.yaml, figures.json, measured.json;
    DIR is runs/<preset>-<seed> unless --out says otherwise.

    Example: groupstorm run rolling-deploy --variant static --require 'unowned_max_seconds<60'
    """
    chosen_shape = shape(as_json, as_csv, as_markdown)
    kind = broker_kind(on, allow_writes, exact, client_config)
    one_run_only = (
        ("--log", log),
        ("--trace", trace is not None),
        ("--trace-to", trace_to is not None),
        ("--on", kind is not None),
    )
    for option, given in one_run_only:
        if given and seeds > 1:
            raise InputError(f"{option}: one run at a time, not --seeds")
    required = requirements_of(require)
    changed = overrides(settings)
    clients = clients_of(with_library, on, changed)
    resolved = load(scenario).resolve(variant, seed, changed)
    numbers = range(resolved.seed, resolved.seed + seeds)
    stem = folder_stem(
        resolved.name,
        seed_range(resolved.seed, seeds),
        kind="" if kind is None else f"on-{kind.name}",
        variants=variant or "",
        changed=changed,
    )
    files = {} if kind else scenario_files(scenario, {variant: Path()}, numbers, changed)
    folder = out or free_folder(stem, files)
    if trace is not None and trace.absolute() == folder.absolute():
        raise InputError(f"--trace {trace}: expected another folder than that of the run")
    if chosen_shape is Shape.TABLES:
        steps = {resolved.variant: resolved.steps}
        found = contradictions({resolved.variant: resolved.settings}, steps)
        print_paragraphs(found, "Before any run: ")
    if seeds == 1:
        with run_sinks(log, trace, trace_to) as sinks:
            runs = [_run_one(resolved, folder, trace_format, exact, sinks, log, kind, clients)]
    else:
        orders = [
            Order(scenario, variant, number, changed, folder / f"seed-{number}", trace_format, exact)
            for number in numbers
        ]
        runs = []
        with runs_progress() as progress:
            for finished in run_all(orders):
                runs.append(finished)
                progress(len(runs), seeds)
    if chosen_shape is Shape.JSON:
        _print_json(runs)
    elif chosen_shape is Shape.CSV:
        rows = [((run.scenario.variant, run.scenario.seed), run.figures) for run in runs]
        print_made(figures_csv(("variant", "seed"), rows))
    else:
        _print_tables(runs, folder, everything, chosen_shape)
    print_assignor_failures(runs)
    options = [] if on is None else broker_options(on, allow_writes, client_config, with_library)
    require_invariants(runs, options, not no_remedies)
    check_all_meet({f"seed {run.scenario.seed}": run.figures for run in runs}, required)


def _run_one(
    scenario: ResolvedScenario,
    folder: Path,
    trace_format: str,
    exact: bool,
    sinks: RunSinks,
    log: bool,
    kind: BrokerKind | None,
    clients: Library | None,
) -> Run:
    """Run with a line of progress on a terminal, unless ``sinks`` log every event there."""

    def start(shown: Progress | None) -> Run:
        progress = with_progress(sinks.on_progress, shown)
        if kind is None:
            return run_scenario(scenario, folder, trace_format, exact, progress, sinks.sink)
        from groupstorm.storms.live.play import run_on

        return run_on(scenario, folder, trace_format, kind, progress, sinks.sink, clients)

    if log:
        return start(None)
    with run_progress(f"{scenario.name} ({scenario.variant})", virtual=kind is None) as progress:
        return start(progress)


def print_assignor_failures(runs: Iterable[Run]) -> None:
    """Print on standard error why there were rounds without an assignment."""
    for run in runs:
        if run.assignor_failure is not None:
            ran = run.scenario
            sentence = (
                f"{ran.name} ({ran.variant}), seed {ran.seed}: an assignor failed, and with it the leader: "
                f"{run.assignor_failure}"
            )
            print_indented(sentence, more="  ", to_stderr=True)


def _print_json(runs: Sequence[Run]) -> None:
    if len(runs) == 1:
        print_json(runs[0].figures.to_json())
        return
    content = {
        "seeds": {str(run.scenario.seed): run.figures.to_json() for run in runs},
        "spread": spread([run.figures for run in runs]),
    }
    print_json(content)


def _print_tables(runs: Sequence[Run], folder: Path, everything: bool, chosen_shape: Shape) -> None:
    first = runs[0].scenario
    figures = [run.figures for run in runs]
    title = f"{first.name} ({first.variant}), {seeds_named([run.scenario.seed for run in runs])}"
    print_grid(figures_grid(title, {first.variant: figures}, everything), chosen_shape)
    print_paragraph(figures[0].answer if len(runs) == 1 else compare_answer({first.variant: figures}))
    ended = next(filter(None, map(consumers_ended, figures)), None)
    print_paragraphs([f"{ended[0].upper()}{ended[1:]}."] if ended else [])
    print_paragraphs(reasons_sentences({first.variant: [run.reasons for run in runs]}))
    print_paragraphs(deployment_notes(runs))
    print()
    print_files(runs, folder)
    if len(runs) == 1:
        print_command("The story of it:", "trace", str(folder))


def print_files(runs: Sequence[Run], folder: Path) -> None:
    """The last paragraph: how long it took, and where the files are."""
    events = sum(run.events for run in runs)
    seconds = sum(run.wall_seconds for run in runs)
    print_paragraph(f"{events:,} events in {seconds:.1f} s; files in {folder}")


class RunSinks(NamedTuple):
    """``sink``: takes every event; None if nothing was asked for. ``on_progress``: what the run calls now and
    then, so that the rows of a quiet time can be read, too."""

    sink: TraceSink | None
    on_progress: Callable[[], None]


@contextmanager
def run_sinks(
    log: bool, trace: Path | None, trace_to: str | None, clock_s: Callable[[], float] = time.monotonic
) -> Iterator[RunSinks]:
    """Open what was asked for.

    Raises InputError if the folder or the topic cannot take a trace, OutputError if it has not taken all rows
    at the end. After an error the folder keeps the files that were complete.
    """
    sinks: list[TraceSink] = []
    folder: DirectorySink | None = None
    if log:
        from groupstorm.trace.log import LogSink, configure

        configure(timestamps=False)
        sinks.append(LogSink())
    if trace is not None:
        folder = _folder(trace)
        sinks.append(folder)
    if trace_to is not None:
        from groupstorm.trace.topic import TopicSink, read_topic_address

        address = read_topic_address("--trace-to", trace_to)
        sinks.append(TopicSink(address, f"--trace-to {trace_to}", may_wait=True))
    with ExitStack() as unfinished:
        if folder is not None:
            unfinished.callback(folder.discard)
        yield RunSinks(Tee(*sinks) if sinks else None, _regularly(folder, clock_s))
        for sink in sinks:
            sink.close()
        unfinished.pop_all()


def with_progress(on_progress: Callable[[], None], shown: Progress | None) -> Progress:
    """A function that calls ``on_progress`` first, then ``shown``, if progress is shown."""

    def progress(now_us: int, phase: str) -> None:
        on_progress()
        if shown is not None:
            shown(now_us, phase)

    return progress


def _folder(trace: Path) -> DirectorySink:
    try:
        return DirectorySink(trace)
    except OSError as problem:
        raise InputError(f"--trace {trace}: cannot be written: {problem.strerror or problem}") from problem


def _regularly(folder: DirectorySink | None, clock_s: Callable[[], float]) -> Callable[[], None]:
    """Closes the folder's present file if `ROTATION_S` have passed since the last time."""
    last_s = clock_s()

    def rotate() -> None:
        nonlocal last_s
        if folder is not None and clock_s() - last_s >= ROTATION_S:
            folder.rotate()
            last_s = clock_s()

    return rotate


def replay(
    folder: Path,
    exact: bool = False,
    settings: list[str] | None = None,
) -> None:
    """Run a run again from its scenario.yaml and check that every event comes out the same.

    If one differs, the command prints it and exits with 1. With --exact it simulates each heartbeat: the
    trace must be the same. --set names an assignor of your own, which a scenario file cannot.
    """
    from groupstorm.storms.runs.several import replay as replay_run

    rows = replay_run(folder, exact, overrides(settings))
    print_line(f"{folder}: all {rows:,} rows came out the same")
