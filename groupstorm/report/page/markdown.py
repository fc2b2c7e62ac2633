"""A report for a pull request: the question, the answer, the figures, and one picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from groupstorm.report.page.content import RunView, patterns_told
from groupstorm.visible import visible_markdown


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
    lines = [f"### {visible_markdown(question)}", "", f"**{visible_markdown(answer[0])}**" if answer else ""]
    lines += ["", *(f"* {visible_markdown(sentence)}" for sentence in answer[1:])]
    lines += [f"* {visible_markdown(sentence)}" for sentence in patterns_told(views)]
    if facts:
        lines += [
            "",
            f"| figure | {' | '.join(map(visible_markdown, names))} |",
            "|---" * (len(names) + 1) + "|",
        ]
        for row in facts:
            values = [*map(visible_markdown, row["values"])]
            cells = [f"**{value}**" if place in row["best"] else value for place, value in enumerate(values)]
            ranges = [f"<br>{visible_markdown(one)}" if one else "" for one in row["ranges"]]
            both = (f"{value}{below}" for value, below in zip(cells, ranges, strict=True))
            lines.append(f"| {visible_markdown(row['phrase'])} | {' | '.join(both)} |")
    lines += ["", picture.rstrip()]
    if commands:
        lines += ["", "<details><summary>Run it again</summary>", "", "```sh", *commands, "```", "</details>"]
    return "\n".join(lines) + "\n"
