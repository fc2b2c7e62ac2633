"""`groupstorm report`: runs, comparisons, sweeps and imports in one of three forms (one HTML file,
Markdown, one SVG picture).

The figures come beside the runs: side by side, as points of a picture, and as the curves of a sweep.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from groupstorm.figures import Figures
from groupstorm.figures.accumulator import WHOLE, Window
from groupstorm.problems import InputError
from groupstorm.report.page import palette
from groupstorm.report.page.content import (
    CHANGES_MAX,
    DRAWN_MAX,
    RunView,
    answer_of,
    json_for_html,
    patterns_told,
    question_of,
    read_views,
    run_content,
)
from groupstorm.report.page.sources import Sources, find_sources
from groupstorm.report.page.svg import bars_svg, runs_svg, sweep_svg
from groupstorm.report.tables import bounds_note
from groupstorm.units import microseconds
from groupstorm.verdicts.measures import MEASURES, NOTICED_SHARE, Measure, spread_of
from groupstorm.verdicts.ranking import deciding_measure
from groupstorm.version import __version__
from groupstorm.visible import visible_markdown, visible_xml

#: The scripts of a page, in the order in which they are read. No library: a canvas with a hundred thousand
#: rectangles that is redrawn while one drags needs none, and plotly.js alone has 4 MB.
SCRIPTS: Final = ("data.js", "lanes.js", "rows.js", "pointer.js", "facts.js", "scatter.js", "main.js")


class Report:
    """Reads all sources once; each form is made from what was read."""

    def __init__(self, paths: Sequence[Path], groups: Sequence[str] = (), window: Window = WHOLE) -> None:
        """Raises InputError for a path that has nothing to report, or a group that no trace has."""
        self.sources: Sources = find_sources(paths)
        if self.sources.sweeps and (groups or window != WHOLE):
            raise InputError("--group, --from, --to: a sweep has no traces: name runs")
        self.views: list[RunView] = read_views(self.sources.traces, groups, window)
        self.question = " ".join(question_of(self.views, self.sources).split())  # YAML folds it into lines
        whole = window == WHOLE and not groups
        #: Run name -> its figures, of every seed if nothing of the traces is left out.
        self.runs: Mapping[str, Sequence[Figures]] = {
            view.name: self.sources.seeds.get(view.name, [view.figures]) if whole else [view.figures]
            for view in self.views
        }
        sweeps = [str(content["answer"]) for content in self.sources.sweeps.values()]
        self.answer = answer_of(self.views, self.runs, sweeps, self.sources.answer if whole else "")

    @property
    def drawn(self) -> list[RunView]:
        """The runs with lanes: if there are too many, those with the most un-owned time."""
        if len(self.views) <= DRAWN_MAX:
            return self.views
        costliest = sorted(self.views, key=lambda view: -(view.figures.unowned_partition_seconds or 0))
        kept = {id(view) for view in costliest[:DRAWN_MAX]}
        return [view for view in self.views if id(view) in kept]

    def html(self, commands: Mapping[str, str]) -> str:
        """One file that needs no other one. ``commands``: run name -> how it is run again."""
        drawn = self.drawn
        changes = [view.history.owners.changes + view.history.activities.changes for view in drawn]
        budget = CHANGES_MAX if sum(changes) <= CHANGES_MAX else CHANGES_MAX // max(1, len(drawn))
        every = points(self.runs)
        content: dict[str, Any] = {
            "version": __version__,
            "points": every,
            "measures": measures_of(every),
            "runs": [run_content(view, budget) | {"command": commands.get(view.name, "")} for view in drawn],
            "sweeps": [sweep_page(content) for content in self.sources.sweeps.values()],
            "palette": {
                "light": {**palette.LIGHT, "owners": palette.OWNERS_LIGHT},
                "dark": {**palette.DARK, "owners": palette.OWNERS_DARK},
            },
        }
        head = [
            head_html(self.question, self.answer, patterns_told(self.views)),
            self._chart(),
            table_html([*self.runs], facts(self.runs), bounds_note(self.runs)),
        ]
        return _page(self.question, "\n".join(filter(None, head)), json_for_html(content))

    def _chart(self) -> str:
        """A bar for each run by the figure that decides between them; "" if there is nothing to compare."""
        measure = deciding_measure(self.runs, self.sources.rank)
        if len(self.runs) < 2 or measure is None:
            return ""
        return f"<figure>{bars_svg(measure, self.runs)}</figure>"

    def svg(self) -> str:
        """The runs' lanes; of a sweep its curves."""
        if self.views:
            return runs_svg(self.drawn, self.question)
        return sweep_svg(sweep_page(next(iter(self.sources.sweeps.values()))), self.question)

    def markdown(self, picture: str, commands: Sequence[str]) -> str:
        """A report for a pull request: the question, the answer, the figures, and one picture.

        ``picture``: an SVG element, or a link to a file. ``commands``: those that do the runs again.
        """
        first = f"**{visible_markdown(self.answer[0])}**" if self.answer else ""
        lines = [f"### {visible_markdown(self.question)}", "", first, ""]
        lines += [f"* {visible_markdown(one)}" for one in [*self.answer[1:], *patterns_told(self.views)]]
        lines += _markdown_table([*self.runs], facts(self.runs))
        for note in bounds_note(self.runs):
            lines += ["", visible_markdown(note)]
        lines += ["", picture.rstrip()]
        if commands:
            details = "<details><summary>Run it again</summary>"
            lines += ["", details, "", "```sh", *commands, "```", "</details>"]
        return "\n".join(lines) + "\n"


def _markdown_table(names: Sequence[str], found: Sequence[Mapping[str, Any]]) -> list[str]:
    """A row per measure; no table if there is none. The least values are bold, ranges stand below."""
    if not found:
        return []
    lines = ["", f"| figure | {' | '.join(map(visible_markdown, names))} |", "|---" * (len(names) + 1) + "|"]
    for row in found:
        values = [*map(visible_markdown, row["values"])]
        cells = [f"**{value}**" if place in row["best"] else value for place, value in enumerate(values)]
        ranges = [f"<br>{visible_markdown(one)}" if one else "" for one in row["ranges"]]
        both = (f"{value}{below}" for value, below in zip(cells, ranges, strict=True))
        lines.append(f"| {visible_markdown(row['phrase'])} | {' | '.join(both)} |")
    return lines


def _page(title: str, head: str, content: str) -> str:
    """Styles, content and scripts in one document; its policy lets it load nothing. ``head``: HTML."""
    policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data: blob:"
    scripts = "\n".join(_asset(name) for name in SCRIPTS)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{visible_xml(title)}</title>
<style>
{palette.css()}{_asset("page.css")}</style>
</head>
<body>
<main>
{head}
<noscript>The lanes over time need JavaScript: please allow it. It loads nothing from the network.</noscript>
<div id="page"></div>
</main>
<script type="application/json" id="content">{content}</script>
<script>
"use strict";
{scripts}</script>
</body>
</html>
"""


def _asset(name: str) -> str:
    return (files("groupstorm.report.page") / "assets" / name).read_text("utf-8")


#: So many sentences of the answer are seen at once, beside the first one.
SENTENCES_SHOWN: Final = 4


def head_html(question: str, answer: Sequence[str], patterns: Sequence[str]) -> str:
    """The question, and the answer in sentences: the first one stands out."""
    first, shown = answer[:1], answer[1 : 1 + SENTENCES_SHOWN]
    more = _list(answer[1 + SENTENCES_SHOWN :])
    parts = [
        f"<h1>{visible_xml(question)}</h1>",
        *(f'<p class="answer">{visible_xml(one)}</p>' for one in first),
        _list(shown),
        more and f"<details><summary>More of the answer</summary>{more}</details>",
        _list(patterns, "patterns"),
    ]
    return f"<header>{''.join(parts)}</header>"


def _list(sentences: Iterable[str], name: str = "") -> str:
    items = "".join(f"<li>{visible_xml(one)}</li>" for one in sentences)
    return items and f'<ul class="{name}">{items}</ul>'


def table_html(names: Sequence[str], rows: Sequence[Mapping[str, Any]], notes: Sequence[str] = ()) -> str:
    """The rows of `facts` with a column for each run, below ``notes``; "" if there are none."""
    if not rows:
        return ""
    several = (
        "Bold: the least, if a person would notice the difference. Below a median: its range over seeds."
    )
    above = [*([several] if len(names) > 1 else []), *notes]
    said = "".join(f'<p class="note">{visible_xml(one)}</p>' for one in above)
    head = "".join(f'<th scope="col">{visible_xml(name)}</th>' for name in names)
    body = "".join(f"<tr>{''.join(_cells(row))}</tr>\n" for row in rows)
    return (
        f'<section class="figures"><h2>Figures</h2>{said}'
        '<div class="scroll" tabindex="0" role="region" aria-label="Figures"><table>'
        f"<thead><tr><td></td>{head}</tr></thead>\n<tbody>{body}</tbody></table></div></section>"
    )


def _cells(row: Mapping[str, Any]) -> Iterable[str]:
    yield f'<th scope="row" title="{row["figure"]}">{visible_xml(row["phrase"])}</th>'
    for place, (value, below) in enumerate(zip(row["values"], row["ranges"], strict=True)):
        shown, small = visible_xml(value), f"<small>{visible_xml(below)}</small>" if below else ""
        is_best = place in row["best"]
        yield (
            f'<td class="best"><strong>{shown}</strong>{small}</td>'
            if is_best
            else f"<td>{shown}{small}</td>"
        )


#: Run name -> its figures, one of each seed.
Runs = Mapping[str, Sequence[Figures]]


def facts(runs: Runs) -> list[dict[str, Any]]:
    """A row per measure that says something of some run: medians, the range over seeds, and which is least.

    ``best``: the runs that are within what a person would notice of the least one, if not all are.
    """
    every = [figures for each in runs.values() for figures in each]
    rows = []
    for measure in MEASURES:
        if not any(measure.read(figures) for figures in every):
            continue
        spreads = [spread_of(map(measure.read, each)) for each in runs.values()]
        medians = [None if one is None else one.median for one in spreads]
        rows.append(
            {
                "figure": measure.figure,
                "phrase": measure.phrase,
                "values": ["-" if median is None else measure.show(median) for median in medians],
                "ranges": [
                    ""
                    if one is None or one.least == one.most
                    else f"{measure.show(one.least)} to {measure.show(one.most)}"
                    for one in spreads
                ],
                "best": _best(measure, medians, every),
            }
        )
    return rows


def _best(measure: Measure, medians: Sequence[float | None], every: Sequence[Figures]) -> list[int]:
    known = [median for median in medians if median is not None]
    if len(known) < 2:
        return []
    least, most = min(known), max(known)
    enough = max(measure.noticed_among(every), NOTICED_SHARE * most)
    near = [n for n, median in enumerate(medians) if median is not None and median - least < enough]
    return [] if len(near) == len(known) else near


def points(runs: Runs) -> list[dict[str, Any]]:
    """One point per run and seed: the numbers that `measures` has."""
    return [{"run": name, "values": values_of(figures)} for name, each in runs.items() for figures in each]


def values_of(figures: Figures | Mapping[str, Any]) -> dict[str, float]:
    """The figures that people compare runs by, as far as the run has them."""
    found = figures if isinstance(figures, Mapping) else figures.to_json()
    values = {measure.figure: found.get(measure.figure) for measure in MEASURES}
    return {name: value for name, value in values.items() if isinstance(value, int | float)}


def measures_of(all_points: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """The measures of which some point has a value that is not 0: name, words, unit."""
    return [
        {"figure": one.figure, "phrase": one.phrase, "unit": str(one.unit)}
        for one in MEASURES
        if any(point["values"].get(one.figure) for point in all_points)
    ]


def sweep_page(content: Mapping[str, Any]) -> dict[str, Any]:
    """The curves of a `sweep.json` for the page's scripts, over the first setting that has numbers."""
    over: Mapping[str, Sequence[str]] = content["over"]
    axis = next((name for name, labels in over.items() if len(labels) > 1 and all_numbers(labels)), None)
    axis = axis or next(iter(over))
    numbers = all_numbers(over[axis])
    curves: dict[str, list[dict[str, Any]]] = {}
    points = []
    for point in content["points"]:
        label = point["settings"][axis]
        others = ", ".join(f"{name}={value}" for name, value in point["settings"].items() if name != axis)
        if "refused" in point:
            continue
        curves.setdefault(others, []).append(
            {
                "x": _number(label) if numbers else over[axis].index(label),
                "label": label,
                "spread": {
                    name: point["spread"].get(name) for name in values_of(point["runs"][0]["figures"])
                },
                "goalMet": point.get("goal_met"),
                "command": point["runs"][0]["command"],
            }
        )
        whole = ", ".join(f"{name}={value}" for name, value in point["settings"].items())
        points += [{"run": whole, "values": values_of(run["figures"])} for run in point["runs"]]
    knees = [knee for knee in content["knees"] if knee["setting"] == axis]
    return {
        "preset": content["preset"],
        "variant": content.get("variant"),
        "seeds": content.get("seeds", []),
        "axis": axis,
        "isNumeric": numbers,
        "figure": content["figure"],
        "curves": [{"others": others, "points": curve} for others, curve in curves.items()],
        "knees": {knee["others"]: knee["value"] for knee in knees},
        "points": points,
        "measures": measures_of(points),
        "refused": [
            {"settings": one["settings"], "why": one["refused"]}
            for one in content["points"]
            if "refused" in one
        ],
    }


def all_numbers(labels: Sequence[str]) -> bool:
    """Whether all values are numbers or durations."""
    return all(_number(label) is not None for label in labels)


def _number(label: str) -> float | None:
    """A number, or a duration in seconds; None if it is neither."""
    try:
        return float(label)
    except ValueError:
        found = microseconds(label)
        return None if found is None else float(found) / 1e6
