"""The site's page of settings and steps. docs/ has no copy: `groupstorm list` prints the same."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from groupstorm.cli.presets import shown_values
from groupstorm.storms.scenario.setting_names import SETTINGS
from groupstorm.storms.scenario.steps import STEP_KINDS, StepKind


def settings_page() -> str:
    """Every setting and every step of scenarios, as Markdown."""
    settings = [
        (f"`{s.name}`", f"{s.meaning} (`{json.dumps(s.default)}`; {shown_values(s)})") for s in SETTINGS
    ]
    steps = [(f"`{kind.name}`", f"{kind.meaning}{_fields(kind)}") for kind in STEP_KINDS]
    return "\n\n".join(
        (
            "# Settings and steps",
            "[Scenarios](scenarios.md) have these settings, and `--set NAME=VALUE` changes one. The defaults "
            "are those of Kafka's Java client; other [client profiles](scenarios.md#client-profiles) have "
            "their own.",
            _table(("setting", "meaning (default; values)"), settings),
            "## Steps",
            _table(("step", "meaning (fields; those in brackets may be left out)"), steps) + "\n",
        )
    )


def _fields(kind: StepKind) -> str:
    named = [f"`{name}`" for name in sorted(kind.required)]
    named += [f"[`{name}`]" for name in sorted(kind.optional)]
    return f" ({', '.join(named)})" if named else ""


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in lines)
