"""`groupstorm report`: runs, comparisons, sweeps and imports as a page that explains itself."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final
from urllib.parse import quote

from groupstorm.cli.printing import (
    command_line,
    print_made,
    print_paragraph,
    print_paragraphs,
    print_progress,
)
from groupstorm.figures.accumulator import Window
from groupstorm.pipeline.analysis import weight
from groupstorm.problems import InputError
from groupstorm.report.page import Report
from groupstorm.report.page.content import RunView
from groupstorm.report.page.sources import find_sources
from groupstorm.storms.runs.run_folder import real_time_options, write_text
from groupstorm.units import window_us
from groupstorm.visible import visible_markdown
from groupstorm.wording import size

_SUFFIXES: Final = {"html": (".html", ".htm"), "markdown": (".md", ".markdown"), "svg": (".svg",)}
#: Traces of more bytes (as JSON lines) take a while: the command says that it reads them.
_LARGE_BYTES: Final = 20_000_000


def report(
    paths: list[Path],
    out: Path | None = None,
    as_markdown: bool = False,
    as_svg: bool = False,
    group: list[str] | None = None,
    from_seconds: float = 0,
    to_seconds: float | None = None,
) -> None:
    """Write one HTML file that shows a run, a comparison, a sweep or an import, and needs no network.

    It begins with the question, the answer, a bar for each variant and the figures. Then each run has lanes
    over one time axis: the group's state and its rebalances with causes, partitions by owner with the times
    without one, members by phase, lag. Drag to zoom; filter by member, partition or generation; go from gap
    to gap. A sweep has its curve with the knee, and all figures can be drawn against each other.

    --markdown and --svg print to standard output without -o.

    Example: groupstorm report runs/rolling-deploy-compare-0-to-4 -o rollout.html
    """
    kind = _kind(out, as_markdown, as_svg)
    large = weight(find_sources(paths).traces)
    if large > _LARGE_BYTES:
        print_progress(f"reading traces of about {size(large)}")
    made = Report(paths, group or (), Window(*window_us(from_seconds, to_seconds)))
    commands = {view.name: command for view in made.views if (command := _command(view))}
    if kind == "html":
        file = out or Path(f"{paths[0].resolve().stem}-report.html")
        text = made.html(commands)
        write_text(file, text)
        print_paragraph(made.question, emphasized=True)
        print_paragraphs(made.answer[:3])
        print()
        print_paragraph(f"{file}: {size(len(text.encode()))}; open it in a browser.")
        _print_left_out(made)
    elif kind == "svg":
        _write(out, made.svg())
    elif out is None:
        print_made(made.markdown(made.svg(), [*commands.values()]))
    else:
        picture = out.with_suffix(".svg")
        write_text(picture, made.svg())
        link = f"![{visible_markdown(made.question)}]({quote(os.fsencode(picture.name))})"
        _write(out, made.markdown(link, [*commands.values()]))


def _kind(out: Path | None, as_markdown: bool, as_svg: bool) -> str:
    """The form to write. Raises InputError if the options contradict each other."""
    if as_markdown and as_svg:
        raise InputError("--markdown, --svg: one of them at a time")
    asked = "markdown" if as_markdown else "svg" if as_svg else None
    if out is None:
        return asked or "html"
    if out.is_dir():
        raise InputError(f"-o {out}: is a folder: expected the name of a file")
    named = next((kind for kind, suffixes in _SUFFIXES.items() if out.suffix.lower() in suffixes), None)
    if named is None or (asked is not None and named != asked):
        expected = _SUFFIXES[asked] if asked else [suffixes[0] for suffixes in _SUFFIXES.values()]
        raise InputError(f"-o {out}: expected a name that ends in {' or '.join(expected)}")
    return named


def _write(out: Path | None, text: str) -> None:
    if out is None:
        print_made(text)
    else:
        write_text(out, text)
        print_paragraph(f"{out}: {size(len(text.encode()))}")


def _command(view: RunView) -> str:
    """The command that runs the run again; "" for a trace that no storm has written."""
    folder = view.trace if view.trace.is_dir() else view.trace.parent
    if view.history.kind != "storm" or not (folder / "scenario.yaml").is_file():
        return ""
    options = real_time_options(folder)
    if options:
        return command_line("run", str(folder / "scenario.yaml"), *options)
    return command_line("replay", str(folder))


def _print_left_out(made: Report) -> None:
    if len(made.drawn) < len(made.views):
        print_paragraph(
            f"{len(made.views)} runs, {len(made.drawn)} of them with lanes: those with the most un-owned "
            "time. Name fewer runs, or --group, for the others."
        )
