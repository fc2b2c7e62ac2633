"""`groupstorm list`: what there is to storm, and what can be set."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from groupstorm.cli.options import JsonOption
from groupstorm.storms.scenario import presets
from groupstorm.storms.setting import Setting
from groupstorm.storms.settings import SETTINGS
from groupstorm.storms.steps import STEP_KINDS


def list_presets(
    as_json: JsonOption = False,
    settings: Annotated[bool, typer.Option("--settings", help="The settings of scenarios instead.")] = False,
    steps: Annotated[
        bool, typer.Option("--steps", help="The steps that a scenario file can have instead.")
    ] = False,
) -> None:
    """The presets: name, question, variants."""
    if settings:
        _settings(as_json)
    elif steps:
        _steps(as_json)
    else:
        _presets(as_json)


def _table(*headings: str) -> Table:
    """A table whose first column, the name to type, is never broken."""
    table = Table(header_style="bold")
    for number, heading in enumerate(headings):
        table.add_column(heading, no_wrap=number == 0)
    return table


def _presets(as_json: bool) -> None:
    found = [{"name": p.name, "question": p.question, "variants": list(p.variants)} for p in presets()]
    if as_json:
        print(json.dumps(found, ensure_ascii=False))
        return
    table = _table("preset", "question", "variants")
    for preset in presets():
        table.add_row(preset.name, preset.question, "\n".join(preset.variants))
    Console().print(table)


def _settings(as_json: bool) -> None:
    if as_json:
        print(json.dumps([{"name": s.name, "default": s.default, "meaning": s.meaning} for s in SETTINGS]))
        return
    table = _table("setting", "default", "values", "meaning")
    for row in SETTINGS:
        table.add_row(row.name, json.dumps(row.default), _values(row), row.meaning)
    Console().print(table)


def _values(row: Setting) -> str:
    if row.kind == "choice":
        return " | ".join(row.allowed)
    if row.kind == "integer":
        return f"{row.least} to {row.most}"
    return row.kind


def _steps(as_json: bool) -> None:
    found = [
        {"do": kind.name, "fields": sorted(kind.required | kind.optional), "meaning": kind.meaning}
        for kind in STEP_KINDS
    ]
    if as_json:
        print(json.dumps(found))
        return
    table = _table("do", "fields", "meaning")
    for kind in STEP_KINDS:
        fields = [*sorted(kind.required), *(f"[{name}]" for name in sorted(kind.optional))]
        table.add_row(kind.name, " ".join(fields).replace("[", r"\["), kind.meaning)
    Console().print(table)
