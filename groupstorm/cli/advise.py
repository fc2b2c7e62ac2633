"""`groupstorm advise`: the smallest change of settings that meets a goal, its price, and lines to paste."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from groupstorm.cli.failed_runs import requirements_of
from groupstorm.cli.options import overrides, seed_range
from groupstorm.cli.printing import Shape, print_grid, print_json, print_line, print_paragraphs, shape
from groupstorm.cli.whatif import (
    print_agreement,
    replay_as_it_was,
    write_scenario,
)
from groupstorm.problems import CheckFailed, InputError, not_one_of
from groupstorm.report.grid import Grid, Row
from groupstorm.report.progress import runs_progress
from groupstorm.report.sweeps import sweep_contradictions
from groupstorm.storms.runs.choices import AS_IT_WAS, defaults_among
from groupstorm.storms.runs.run_folder import free_folder
from groupstorm.storms.runs.several import SEEDS_DEFAULT
from groupstorm.storms.runs.sweep import Point, Sweep
from groupstorm.storms.scenario.files import load
from groupstorm.storms.scenario.preset_files import preset_names
from groupstorm.trace.reader import SUFFIXES
from groupstorm.verdicts.measures import BY_FIGURE, Spread
from groupstorm.verdicts.recommendation import Change, changes, differ
from groupstorm.verdicts.requirements import Requirement
from groupstorm.whatif.advising import AS_IT_IS, UNOWNED, Advice, Search, Tried
from groupstorm.whatif.agreement import repeat
from groupstorm.whatif.client_settings import Lines, lines_of
from groupstorm.whatif.drafting import scenario_text
from groupstorm.wording import counted, number, seconds


def advise(
    target: str,
    goal: list[str] | None = None,
    variant: str | None = None,
    settings: list[str] | None = None,
    known: list[str] | None = None,
    group: str | None = None,
    seed: int | None = None,
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
    goals = requirements_of(goal, "--goal")
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
    if goals and advice.chosen is None and not advice.is_met:
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
    return lines_of(advice.chosen.settings, settings)


#: Figures of the table, behind the goals' own: their medians alone.
_COLUMNS = (UNOWNED, "generations")
_OTHERS_NAMED_MAX = 3


def advice_grid(advice: Advice, goals: Sequence[Requirement], everything: bool) -> Grid:
    """A table of the changes that were tried: the best one of each knob, or all."""
    ranged = tuple(dict.fromkeys([advice.figure, *(goal.figure for goal in goals)]))
    told = dict.fromkeys([*ranged, *_COLUMNS])
    figures = tuple(figure for figure in told if figure in ranged or advice.plain.spread(figure))
    shown = advice.tried if everything else _best_of_knobs(advice)
    rows = []
    for one in [advice.plain, *shown]:
        if one.refused is not None:
            rows.append(Row(one.label, ["refused", *[""] * len(figures)]))
            continue
        cells = [_shown(figure, one.spread(figure), figure in ranged) for figure in figures]
        cells.append(seconds(one.noticed_after_ms / 1000))
        rows.append(Row(one.label, cells, mark=" *" if one is advice.chosen else ""))
    hidden = len(advice.tried) - len(shown)
    notes = [f"{counted(hidden, 'more change')} tried: --all has all"] if hidden else []
    notes += [f"Refused: {one.label}: {one.refused}" for one in shown if one.refused is not None]
    return Grid(
        ("change", *figures, "death noticed after"),
        rows,
        f"Changes, medians of {counted(len(advice.plain.figures), 'seed')} with their range",
        notes,
    )


def _best_of_knobs(advice: Advice) -> list[Tried]:
    """The change of each knob with least of the figure, and the changes that the sentences name."""
    best: dict[str, Tried] = {}
    for one in advice.tried:
        spread = one.spread(advice.figure)
        if len(one.changes) != 1 or spread is None:
            continue
        known = best.get(one.changes[0].knob)
        least = None if known is None else known.spread(advice.figure)
        if least is None or spread.median < least.median:
            best[one.changes[0].knob] = one
    told = [*advice.steps(), *advice.others[:_OTHERS_NAMED_MAX]]
    return [one for one in advice.tried if one in best.values() or one in told]


def advice_sentences(advice: Advice, goals: Sequence[Requirement]) -> Iterator[str]:
    """The advice in sentences: the change, the gain of each step, and the price."""
    chosen = advice.chosen
    if chosen is None:
        yield f"{advice.reason[0].upper()}{advice.reason[1:]}."
    else:
        least = _phrase(advice.figure)
        purpose = f"the least {'time with ' if least.startswith('tasks') else ''}{least}"
        if goals:
            purpose = f"the smallest change that meets {' and '.join(map(str, goals))}"
        elif advice.others:  # with a little less, perhaps
            purpose = f"the smallest change among those with {purpose}, as far as a person would notice"
        yield f"Change {chosen.label}: {purpose}."
        before = advice.plain
        for one in advice.steps():
            yield f"{one.label} buys: {_bought(advice, goals, before, one)}."
        yield from _prices(advice.plain, chosen)
        yield from _others(advice)
    if advice.cut_short:
        yield "The budget of runs (--runs) ended the search: there may be a smaller change."


def _bought(advice: Advice, goals: Sequence[Requirement], before: Tried, after: Tried) -> str:
    asked = [advice.figure, *(goal.figure for goal in goals)]
    parts = []
    for figure in dict.fromkeys([*asked, UNOWNED]):
        old, new = before.spread(figure), after.spread(figure)
        if old is None or new is None or old == new:
            continue
        if figure in asked or new.median <= old.median:
            parts.append(f"{_phrase(figure)} {_shown(figure, old)} -> {_shown(figure, new)}")
    return "; ".join(parts) or "nothing by itself"


def _prices(plain: Tried, chosen: Tried) -> Iterator[str]:
    prices = [f"{change.name}: {change.price}" for change in chosen.changes if change.price]
    worse: dict[str, str] = {}
    for figure in ("records_duplicated", "generations", UNOWNED):
        old, new = plain.spread(figure), chosen.spread(figure)
        if old is not None and new is not None and new.least > old.most:
            worse[BY_FIGURE[figure].family] = (
                f"{_phrase(figure)} {_shown(figure, old)} -> {_shown(figure, new)}"
            )
    for change in _worse(plain, chosen):
        worse.setdefault(change.measure.family, change.sentence)
    prices += worse.values()
    yield f"It costs: {'; '.join(prices)}." if prices else "It costs nothing that the figures show."
    noticed, before = chosen.noticed_after_ms / 1000, plain.noticed_after_ms / 1000
    word = "as before" if noticed == before else f"as it is: {seconds(before)}"
    yield f"A dead member is noticed {seconds(noticed)} after its last heartbeat ({word})."


def _worse(plain: Tried, one: Tried) -> list[Change]:
    """The figures that get worse by more than the seeds vary and by more than people notice."""
    every = [*plain.figures, *one.figures]
    found = [change for change in changes(plain.figures, one.figures, every) if not change.is_better]
    measure, old, new = BY_FIGURE[UNOWNED], plain.spread(UNOWNED), one.spread(UNOWNED)
    if old is not None and new is not None and old.median < new.median and differ(measure, old, new, every):
        found.insert(0, Change(measure, old, new))
    return found


def _others(advice: Advice) -> Iterator[str]:
    if not advice.others:
        return
    others = []
    for one in advice.others[:_OTHERS_NAMED_MAX]:
        costs = [
            f" (but {measure.phrase} {measure.show(old.median)} -> {measure.show(new.median)})"
            for measure, old, new in _worse(advice.plain, one)[:1]
        ]
        others.append("".join([one.label, *costs]))
    more = len(advice.others) - _OTHERS_NAMED_MAX
    yield f"Others do it, too: {', '.join(others)}{f' and {more} more' if more > 0 else ''}."


def paste_lines(lines: Lines) -> Iterator[str]:
    """The settings, by client library, to be pasted as they stand."""
    for library, found in lines.of_clients.items():
        yield f"# {library}"
        yield from found
        yield ""
    for where, found in (("broker, server.properties", lines.of_broker), ("deployment", lines.of_deployment)):
        if found:
            yield f"# {where}"
            yield from found
            yield ""


def advice_content(
    advice: Advice, goals: Sequence[Requirement], sentences: Sequence[str], lines: Lines | None
) -> dict[str, Any]:
    """The content of --json. ``lines``: of the change that is advised."""
    chosen = advice.chosen
    return {
        "goals": [str(goal) for goal in goals],
        "figure": advice.figure,
        "as_it_is": _content(advice.plain, advice.figure),
        "tried": [_content(one, advice.figure) for one in advice.tried],
        "chosen": None if chosen is None else _content(chosen, advice.figure),
        "settings": {} if chosen is None else chosen.settings,
        "clients": {} if lines is None else _lists(lines.of_clients),
        "cut_short": advice.cut_short,
        "answer": " ".join(sentences),
    }


def _lists(found: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    return {name: list(lines) for name, lines in found.items()}


def _content(one: Tried, figure: str) -> dict[str, Any]:
    spread = one.spread(figure)
    return {
        "change": one.label,
        "settings": one.settings,
        "refused": one.refused,
        "least_median_most": None if spread is None else list(spread),
        "noticed_after_ms": one.noticed_after_ms,
    }


def _phrase(figure: str) -> str:
    measure = BY_FIGURE.get(figure)
    return figure if measure is None else measure.phrase


def _shown(figure: str, spread: Spread | None, with_range: bool = True) -> str:
    if spread is None:
        return "-"
    measure = BY_FIGURE.get(figure)
    show = number if measure is None else measure.show
    if spread.least == spread.most or not with_range:
        return show(spread.median)
    return f"{show(spread.median)} ({show(spread.least)} to {show(spread.most)})"
