"""A draft as a scenario file that a person can read and change: every value with how it is known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import yaml

from groupstorm.whatif.drafting import Draft

#: The variant that changes nothing.
AS_IT_WAS: Final = "as-it-was"

_HEAD: Final = """\
# Made by `groupstorm whatif` from {source}.
# observed: a row of the trace says it. inferred: a rule says it. assumed: nothing says it, check it.
# given: --known says it. Times are milliseconds{lead}.
"""
_LEAD: Final = "; the trace begins at {lead_ms}, until then its first members join"


def scenario_text(draft: Draft, source: str, variants: Mapping[str, Mapping[str, Any]]) -> str:
    """The file. ``variants``: further settings by name, beside `AS_IT_WAS`, which has none."""
    lead = _LEAD.format(lead_ms=draft.lead_ms) if draft.lead_ms else ""
    lines = [_HEAD.format(source=source, lead=lead).rstrip("\n")]
    lines += [f"name: {draft.name}", f"question: {_flow(draft.question)}"]
    if draft.figures_from_ms:
        lines.append(f"figures_from: {draft.figures_from_ms}")
    lines.append("settings:")
    for name, known in draft.settings.items():
        if name == "member_settings":
            lines += [f"  # {_comment(known.comment)}", f"  {name}:"]
            lines += [f"    - {_flow(rule)}" for rule in known.value]
        else:
            lines.append(f"  {name}: {_flow(known.value)}  # {_comment(known.comment)}")
    lines.append("variants:")
    lines += [f"  {name}: {_flow(dict(overlay))}" for name, overlay in {AS_IT_WAS: {}, **variants}.items()]
    lines.append("steps:")
    lines += [f"  - {_flow(dict(one.step))}  # {_comment(one.comment)}" for one in draft.steps]
    return "\n".join([*lines, ""])


def _flow(value: Any) -> str:
    """A value on one line of YAML."""
    written = yaml.safe_dump(value, default_flow_style=True, width=2**31, sort_keys=False, allow_unicode=True)
    return written.removesuffix("...\n").strip()


def _comment(text: str) -> str:
    return " ".join(text.split())
