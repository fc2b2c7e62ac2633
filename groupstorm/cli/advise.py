"""`groupstorm advise`: the smallest change of settings that meets a goal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from groupstorm.cli.advise_text import advice_content, advice_grid, advice_sentences, paste_lines
from groupstorm.cli.options import SeedOption, overrides, seed_range
from groupstorm.cli.printing import Shape, print_grid, print_json, print_line, print_paragraphs, shape
from groupstorm.cli.whatif import (
    print_agreement,
    replay_as_it_was,
    write_scenario,
)
from groupstorm.problems import CheckFailed, InputError, not_one_of
from groupstorm.report.progress import runs_progress
from groupstorm.report.sweeps import sweep_contradictions
from groupstorm.storms.runs.choices import defaults_among
from groupstorm.storms.runs.run_folder import free_folder
from groupstorm.storms.runs.several import SEEDS_DEFAULT
from groupstorm.storms.runs.sweep import Point, Sweep
from groupstorm.storms.scenario.files import load
from groupstorm.storms.scenario.preset_files import preset_names
from groupstorm.trace.reader import SUFFIXES
from groupstorm.verdicts.requirements import parse
from groupstorm.whatif.advising import AS_IT_IS, Advice, Search
from groupstorm.whatif.client_settings import Lines, lines_of
from groupstorm.whatif.drafting import AS_IT_WAS, scenario_text
from groupstorm.whatif.repeating import repeat


def advise(
    target: str,
    goal: list[str] | None = None,
    variant: str | None = None,
    settings: list[str] | None = None,
    known: list[str] | None = None,
    group: str | None = None,
    seed: SeedOption = None,
    seeds: int = SEEDS_DEFAULT,
    runs: int = 400,
    out: Path | None = None,
    as_json: bool = False,
    as_markdown: bool = False,
    everything: bool = False,
) -> None:
    """Name the smallest change of settings that meets a goal: what it buys and costs, and what to paste.

    The search tries every change alone (assignor and protocol, session timeout, heartbeats, static
    membership, poll interval and records, initial delay, surge and order of a rollout), then pairs of the
    best ones, over the same seeds and on all cores. The smallest change is that of the fewest settings, then
    of the least work, then the one whose number is nearest to what it was. A difference that the seeds may
    explain counts as none; the command then says that there is no winner. With --goal it exits with 1 if
    nothing meets it.

    A RUN becomes a scenario first, as with `groupstorm whatif`; if the replays of that do something else than
    the run did, the command ends there.

    Example: groupstorm advise deploy-and-crash --variant cooperative --goal 'unowned_max_seconds<20'
    """
    chosen_shape = shape(as_json, False, as_markdown)
    goals = [parse(text, "--goal") for text in goal or ()]
    changed = overrides(settings)
    first_seed = seed or 0
    if _is_run(target):
        if variant is not None:
            raise InputError("--variant: a run has none")
        file = _scenario_of_run(Path(target), group, known, first_seed, seeds, out, chosen_shape, everything)
        sweep = Sweep(str(file), AS_IT_WAS, (), first_seed, seeds, changed)
    else:
        of_a_run = {"--known": bool(known), "--group": group is not None, "--out": out is not None}
        if any(of_a_run.values()):
            given = ", ".join(option for option, is_given in of_a_run.items() if is_given)
            raise InputError(f"{given}: only with a RUN, and {target} is none")
        loaded = load(target)
        if variant is not None and variant not in loaded.variants:
            raise InputError(f"variant: {not_one_of(variant, loaded.variants)}")
        sweep = Sweep(target, variant, (), seed if seed is not None else loaded.seed or 0, seeds, changed)
    if chosen_shape is not Shape.JSON:
        print_paragraphs(sweep_contradictions(sweep, [Point((), {})]), "Before any run: ")
    with runs_progress() as progress:
        advice = Search(sweep, goals, runs, progress).advise()
    sentences = [*advice_sentences(advice, goals), *_cautions(sweep, advice)]
    lines = _lines(sweep, advice)
    if chosen_shape is Shape.JSON:
        print_json(advice_content(advice, goals, sentences, lines))
    else:
        if advice.tried:
            print_grid(advice_grid(advice, goals, everything), chosen_shape)
        print_paragraphs(sentences)
        if lines is not None:
            print()
            for line in [*paste_lines(lines)][:-1]:
                print_line(line)
    if goals and advice.chosen is None and advice.tried:
        raise CheckFailed(f"{target}: nothing that was tried meets the goal")


def _is_run(target: str) -> bool:
    """Whether the name is that of a trace or its folder, and of no preset."""
    path = Path(target)
    return target not in preset_names() and (path.is_dir() or path.suffix in SUFFIXES)


def _scenario_of_run(
    run: Path,
    group: str | None,
    known: Sequence[str] | None,
    first_seed: int,
    seeds: int,
    out: Path | None,
    chosen_shape: Shape,
    everything: bool,
) -> Path:
    """The file of the scenario that repeats the run. Raises CheckFailed if its replays do something else."""
    repeated = repeat(run, group, overrides(known, "--known"))
    stem = f"{repeated.scenario.name}-advise-{seed_range(first_seed, seeds)}"
    file = write_scenario(scenario_text(repeated.draft, str(run), {}), out or free_folder(stem, {}), None)
    found = replay_as_it_was(repeated, file, first_seed, seeds)
    if chosen_shape is not Shape.JSON:
        print_agreement(found, chosen_shape, everything)
    found.require(run)
    return file


def _cautions(sweep: Sweep, advice: Advice) -> list[str]:
    """The warnings for somebody who takes the advice."""
    chosen = advice.chosen
    if chosen is None:
        return []
    scenarios = {
        AS_IT_IS: sweep.scenario_of(Point((), {})),
        chosen.label: sweep.scenario_of(Point((), chosen.settings)),
    }
    defaults = defaults_among(scenarios)
    caution = "" if defaults is None else defaults.cautions.get(chosen.label, "")
    return [caution] if caution else []


def _lines(sweep: Sweep, advice: Advice) -> Lines | None:
    """The change that is advised, as the members' client libraries take it."""
    if advice.chosen is None:
        return None
    settings = sweep.scenario_of(Point((), advice.chosen.settings)).settings
    return lines_of(advice.chosen.settings, settings.names("client_profile"))
