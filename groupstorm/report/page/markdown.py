"""A report for a pull request: the question, the answer, the figures, and one picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from groupstorm.report.page.content import RunView, patterns_told


def markdown(
    question: str,
    answer: Sequence[str],
    names: Sequence[str],
    facts: Sequence[Mapping[str, Any]],
    views: Sequence[RunView],
    picture: str,
    commands: Sequence[str],
) -> str:
    """``picture``: an SVG element, or a link to a file. ``commands``: how the runs are run again."""
    lines = [f"### {escaped(question)}", "", f"**{escaped(answer[0])}**" if answer else ""]
    lines += ["", *(f"* {escaped(sentence)}" for sentence in answer[1:])]
    lines += [f"* {escaped(sentence)}" for sentence in patterns_told(views)]
    if facts:
        lines += ["", f"| figure | {' | '.join(map(cell, names))} |", "|---" * (len(names) + 1) + "|"]
        for row in facts:
            cells = [
                f"**{value}**" if place in row["best"] else value for place, value in enumerate(row["values"])
            ]
            ranges = [f"<br>{one}" if one else "" for one in row["ranges"]]
            both = (f"{value}{below}" for value, below in zip(cells, ranges, strict=True))
            lines.append(f"| {cell(row['phrase'])} | {' | '.join(both)} |")
    lines += ["", picture.rstrip()]
    if commands:
        lines += ["", "<details><summary>Run it again</summary>", "", "```sh", *commands, "```", "</details>"]
    return "\n".join(lines) + "\n"


def escaped(text: str) -> str:
    """Text in which nothing is markup."""
    for mark in "\\`*_[]<>":
        text = text.replace(mark, f"\\{mark}")
    return text


def cell(text: str) -> str:
    return escaped(text).replace("|", "\\|")
