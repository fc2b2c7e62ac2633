"""The site's page of patterns: their rules and advice."""

from __future__ import annotations

import inspect

from groupstorm.explain.findings import Pattern
from groupstorm.explain.patterns.table import PATTERNS


def patterns_page() -> str:
    """The rule of each pattern, with its thresholds, and what to turn."""
    told = "The rules by which [`groupstorm explain`](explain.md) knows each pattern, and what it advises."
    sections = [
        f"## {one.name}\n\n{one.title} (a {one.kind.name.lower()}).\n\n{_rule(one)}\n\n{one.advice}\n"
        for one in PATTERNS
    ]
    return "\n".join(["# Patterns", "", told, "", *sections])


def _rule(pattern: Pattern) -> str:
    """The rule's docstring, which states its thresholds."""
    return " ".join((inspect.getdoc(pattern.rule) or "").split())
