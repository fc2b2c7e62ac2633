"""Storms for the page of the playground, in Pyodide: presets, their knobs, a comparison with its report."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

import groupstorm
from groupstorm.problems import InputError
from groupstorm.storms.scenario.files import load
from groupstorm.storms.scenario.member_rules import STRATEGY, named_code
from groupstorm.storms.scenario.preset_files import preset_summaries
from groupstorm.storms.scenario.setting_names import SETTINGS
from groupstorm.yaml_documents import parse_yaml

#: Knobs that every preset has, in front of those that it sets itself.
EVERYWHERE = ("members", "partitions", "record_rate", "session.timeout.ms")
#: A first answer within seconds: a preset's own size where it is smaller.
AT_FIRST = {"members": 20, "partitions": 100}

REPORT = Path("report.html")


def presets() -> str:
    """Return JSON: the presets with question, variants and knobs, and all settings with their meaning."""
    found = [
        {
            "name": summary.name,
            "question": summary.question,
            "variants": summary.variants,
            "knobs": _knobs(summary.name),
        }
        for summary in preset_summaries()
    ]
    return json.dumps({"presets": found, "settings": {row.name: row.meaning for row in SETTINGS}})


def _knobs(preset: str) -> list[dict[str, Any]]:
    """Return what a preset's form shows: each value as the preset has it, and as the form begins with it."""
    scenario = load(preset)
    own = scenario.settings
    meanings = {row.name: (row.meaning, row.default) for row in SETTINGS}
    knobs = []
    for name in dict.fromkeys((*EVERYWHERE, *own)):
        meaning, default = meanings[name]
        usual = own.get(name, default)
        first = min(usual, AT_FIRST[name]) if name in AT_FIRST and isinstance(usual, int) else usual
        knobs.append({"name": name, "usual": _written(usual), "first": _written(first), "meaning": meaning})
    return knobs


def _written(value: Any) -> str:
    """Return a value as --set takes it: one line of YAML."""
    return yaml.safe_dump(value, default_flow_style=True, width=1000).removesuffix("\n").removesuffix("\n...")


def get_ready() -> None:
    """Import what a comparison and its report need, which takes seconds in a browser."""
    for name in ("groupstorm.library", "groupstorm.report.page"):
        importlib.import_module(name)


def compare(preset: str, settings: str, seeds: int, progress: Callable[[int, int], None]) -> str:
    """Run all variants of a preset. ``settings``: JSON, names with values as --set takes them.

    Returns JSON: ``report``, the page of `groupstorm report`; or ``error``, the command's own line.
    """
    try:
        given = {
            name: parse_yaml(value, f"{name}: {value!r}") for name, value in json.loads(settings).items()
        }
        if (code := named_code(given)) is not None:  # a link may be anybody's
            raise InputError(f"{STRATEGY}: {code}: your own assignors run in a terminal, not here")
        report = groupstorm.compare(preset, seeds=seeds, settings=given, progress=progress).report(REPORT)
    except InputError as problem:
        return json.dumps({"error": str(problem).removeprefix("settings: ")})
    return json.dumps({"report": report.read_text("utf-8")})
