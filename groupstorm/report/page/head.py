"""The part of a page that needs no script: the question, the answer, a bar for each run, the figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from groupstorm.visible import visible_xml

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


def table_html(names: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows of `facts` with a column for each run; "" if there are none."""
    if not rows:
        return ""
    several = (
        '<p class="note">Bold: the least, if a person would notice the difference. '
        "Below a median: its range over seeds.</p>"
    )
    head = "".join(f'<th scope="col">{visible_xml(name)}</th>' for name in names)
    body = "".join(f"<tr>{_row_head(row)}{''.join(_cells(row))}</tr>\n" for row in rows)
    return (
        f'<section class="figures"><h2>Figures</h2>{several if len(names) > 1 else ""}'
        '<div class="scroll" tabindex="0" role="region" aria-label="Figures"><table>'
        f"<thead><tr><td></td>{head}</tr></thead>\n<tbody>{body}</tbody></table></div></section>"
    )


def _row_head(row: Mapping[str, Any]) -> str:
    return f'<th scope="row" title="{row["figure"]}">{visible_xml(row["phrase"])}</th>'


def _cells(row: Mapping[str, Any]) -> Iterable[str]:
    for place, (value, below) in enumerate(zip(row["values"], row["ranges"], strict=True)):
        shown, small = visible_xml(value), f"<small>{visible_xml(below)}</small>" if below else ""
        is_best = place in row["best"]
        yield (
            f'<td class="best"><strong>{shown}</strong>{small}</td>'
            if is_best
            else f"<td>{shown}{small}</td>"
        )
