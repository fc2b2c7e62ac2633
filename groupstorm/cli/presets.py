"""`groupstorm list`: presets, settings, steps."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from groupstorm.cli.printing import print_indented, print_json
from groupstorm.storms.scenario.preset_files import preset_summaries

if TYPE_CHECKING:
    from groupstorm.storms.scenario.setting_types import Setting


def list_presets(
    as_json: bool = False,
    settings: bool = False,
    steps: bool = False,
) -> None:
    """List the presets: name, question, variants."""
    if settings:
        _settings(as_json)
    elif steps:
        _steps(as_json)
    else:
        _presets(as_json)


def _print_entry(name: str, *paragraphs: str) -> None:
    """A line that begins with the name to type, and below it what it is; no word is cut."""
    print_indented(name, more="  ")
    for paragraph in paragraphs:
        print_indented(paragraph, "    ", "    ")


def _presets(as_json: bool) -> None:
    found = [*preset_summaries()]
    if as_json:
        print_json([preset._asdict() for preset in found])
        return
    for preset in found:
        _print_entry(preset.name, preset.question, f"variants: {', '.join(preset.variants)}")


def _settings(as_json: bool) -> None:
    from groupstorm.storms.scenario.settings_table import SETTINGS

    if as_json:
        print_json([{"name": s.name, "default": s.default, "meaning": s.meaning} for s in SETTINGS])
        return
    for row in SETTINGS:
        _print_entry(f"{row.name} = {json.dumps(row.default)}", f"{row.meaning} ({shown_values(row)})")


def shown_values(row: Setting) -> str:
    """The values that a setting can have, for people."""
    if row.kind == "choice":
        return " | ".join(row.allowed)
    if row.kind == "integer":
        return f"{row.least} to {row.most}"
    return row.kind


def _steps(as_json: bool) -> None:
    from groupstorm.storms.scenario.steps import STEP_KINDS

    found = [
        {"do": kind.name, "fields": sorted(kind.required | kind.optional), "meaning": kind.meaning}
        for kind in STEP_KINDS
    ]
    if as_json:
        print_json(found)
        return
    for kind in STEP_KINDS:
        fields = [*sorted(kind.required), *(f"[{name}]" for name in sorted(kind.optional))]
        _print_entry(" ".join([kind.name, *fields]), kind.meaning)
