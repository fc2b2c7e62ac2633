"""Diagrams, tables and pages of docs/ and of the site on storms, traces and patterns, made from the code."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterable, Mapping, Sequence

from groupstorm.cli.presets import shown_values
from groupstorm.coordinator.classic.states import TRANSITIONS
from groupstorm.explain.findings import Pattern
from groupstorm.explain.patterns import PATTERNS
from groupstorm.storms.scenario.setting_names import SETTINGS
from groupstorm.storms.scenario.steps import STEP_KINDS, StepKind
from groupstorm.trace.events import coordinator, imported, member, scenario, share, streams
from groupstorm.trace.events.group_states import GroupState
from groupstorm.trace.rows import event_name
from groupstorm.trace.schema import COLUMNS, IMPORTED_VERSION, PROVENANCE_COLUMNS, SCHEMA_VERSION, Column


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
            table(("setting", "meaning (default; values)"), settings),
            "## Steps",
            table(("step", "meaning (fields; those in brackets may be left out)"), steps) + "\n",
        )
    )


def _fields(kind: StepKind) -> str:
    named = [f"`{name}`" for name in sorted(kind.required)]
    named += [f"[`{name}`]" for name in sorted(kind.optional)]
    return f" ({', '.join(named)})" if named else ""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in lines)


#: Event types by what they are about.
EVENTS: Mapping[str, Iterable[type]] = {
    "of the coordinator": coordinator.Event.__args__,
    "of members": member.Event.__args__,
    "of the threads of a Kafka Streams application": streams.Event.__args__,
    "of a share group": share.Event.__args__,
    "of the scenario": scenario.Event.__args__,
    "of imported traces": imported.Event.__args__,
}


def _columns_table(columns: Iterable[Column]) -> str:
    rows = [(f"`{column.name}`", column.type.value, column.meaning) for column in columns]
    return table(("column", "type", "meaning"), rows)


def events_page() -> str:
    """The site's page of columns and events: what each means, and which columns an event has."""
    told = "The columns of a [trace](trace.md), then its events, each with its columns beside the first five."
    columns = f"Schema version {SCHEMA_VERSION}.\n\n{_columns_table(COLUMNS)}"
    behind = f"Schema version {IMPORTED_VERSION} has them all, and behind them:"
    columns += f"\n\n{behind}\n\n{_columns_table(PROVENANCE_COLUMNS)}\n"
    sections = [f"## Events {source}\n\n{_events_table(types)}\n" for source, types in EVENTS.items()]
    return "\n".join(["# Columns and events of a trace", "", told, "", "## Columns", "", columns, *sections])


def _events_table(event_types: Iterable[type]) -> str:
    """Event types as a Markdown table: name, what it says, its columns."""
    rows = []
    for event_type in event_types:
        fields: tuple[str, ...] = event_type._fields  # type: ignore[attr-defined]  # a named tuple's
        summary = " ".join((event_type.__doc__ or "").split())
        if summary.startswith(f"{event_type.__name__}("):
            summary = ""  # a named tuple without a docstring of its own
        columns = ", ".join(f"`{field}`" for field in fields if field != "group")
        rows.append((f"`{event_name(event_type)}`", summary, columns))
    return table(("event", "what happened", "columns"), rows)


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


def state_diagram() -> str:
    """The transitions of classic groups as a Mermaid state diagram."""
    causes: dict[tuple[GroupState, GroupState], list[str]] = {}
    for before, row in TRANSITIONS.items():
        for cause, after in row.items():
            causes.setdefault((before, after), []).append(cause)
    arrows = [f"    {before} --> {after}: {'<br/>'.join(names)}" for (before, after), names in causes.items()]
    return "\n".join(["stateDiagram-v2", f"    [*] --> {GroupState.EMPTY}", *arrows]) + "\n"
