"""The output of `groupstorm advise`: the changes that were tried, the advice, its price, lines to paste."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from groupstorm.report.grid import Grid, Row
from groupstorm.verdicts.measures import BY_FIGURE
from groupstorm.verdicts.requirements import Requirement
from groupstorm.verdicts.spread import Spread
from groupstorm.whatif.advising import UNOWNED, Advice, Tried
from groupstorm.whatif.client_settings import LIBRARIES, Lines
from groupstorm.wording import counted, number, seconds

#: Figures of the table, behind the goals' own: their medians alone.
_COLUMNS = (UNOWNED, "generations")
_OTHERS_NAMED_MAX = 3


def advice_grid(advice: Advice, goals: Sequence[Requirement], everything: bool) -> Grid:
    """A table of the changes that were tried: the best one of each knob, or all."""
    ranged = tuple(dict.fromkeys([advice.figure, *(goal.figure for goal in goals)]))
    figures = tuple(dict.fromkeys([*ranged, *_COLUMNS]))
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
        whole = " and ".join(map(str, goals))
        purpose = (
            f"the smallest change that meets {whole}" if goals else f"the least {_phrase(advice.figure)}"
        )
        yield f"Change {chosen.label}: {purpose}."
        before = advice.plain
        for one in advice.steps():
            yield f"{one.label} buys: {_bought(advice, goals, before, one)}."
        yield from _prices(advice.plain, chosen)
        yield from _others(advice)
    if advice.cut_short:
        yield "The budget of runs (--runs) ended the search: there may be a smaller change."


def _bought(advice: Advice, goals: Sequence[Requirement], before: Tried, after: Tried) -> str:
    figures = dict.fromkeys([advice.figure, *(goal.figure for goal in goals), UNOWNED])
    parts = []
    for figure in figures:
        old, new = before.spread(figure), after.spread(figure)
        if old is not None and new is not None:
            parts.append(f"{_phrase(figure)} {_shown(figure, old)} -> {_shown(figure, new)}")
    return "; ".join(parts)


def _prices(plain: Tried, chosen: Tried) -> Iterator[str]:
    prices = [f"{change.name}: {change.price}" for change in chosen.changes if change.price]
    for figure in ("records_duplicated", "generations", UNOWNED):
        old, new = plain.spread(figure), chosen.spread(figure)
        if old is not None and new is not None and new.least > old.most:
            parts = f"{_phrase(figure)} {_shown(figure, old)} -> {_shown(figure, new)}"
            prices.append(parts)
    yield f"It costs: {'; '.join(prices)}." if prices else "It costs nothing that the figures show."
    noticed, before = chosen.noticed_after_ms / 1000, plain.noticed_after_ms / 1000
    word = "as before" if noticed == before else f"as it is: {seconds(before)}"
    yield f"A dead member is noticed {seconds(noticed)} after its last heartbeat ({word})."


def _others(advice: Advice) -> Iterator[str]:
    if not advice.others:
        return
    named = ", ".join(one.label for one in advice.others[:_OTHERS_NAMED_MAX])
    more = len(advice.others) - _OTHERS_NAMED_MAX
    yield f"Others do it, too: {named}{f' and {more} more' if more > 0 else ''}."


def paste_lines(lines: Lines) -> Iterator[str]:
    """The settings, by client library, to be pasted as they stand."""
    for library in LIBRARIES:
        if library.name in lines.of_clients:
            yield f"# {library.name}"
            yield from lines.of_clients[library.name]
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
