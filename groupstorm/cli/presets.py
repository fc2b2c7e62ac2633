"""`groupstorm list` and `groupstorm find`: presets, settings, steps, patterns and commands."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from groupstorm.cli.printing import command_line, print_indented, print_json
from groupstorm.problems import CheckFailed
from groupstorm.storms.scenario.preset_files import preset_summaries
from groupstorm.visible import visible

if TYPE_CHECKING:
    from groupstorm.storms.scenario.setting_names import Setting


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
    from groupstorm.storms.scenario.setting_names import SETTINGS

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


class _Entry(NamedTuple):
    """``use``: the beginning of a command line that uses it."""

    kind: str
    name: str
    meaning: str
    use: str


def find(
    words: list[str],
    as_json: bool = False,
) -> None:
    """Find presets, settings, steps, patterns and commands by a word: hpa, gc, skew, canary.

    Names that have the words come first. Exit code 1 if nothing has all of them.

    Example: groupstorm find static
    """
    wanted = [part for word in words for part in word.casefold().replace("-", " ").split()]
    found = [
        one for one in _entries() if all(word in f"{one.name} {one.meaning}".casefold() for word in wanted)
    ]
    found.sort(key=lambda one: not all(word in one.name.casefold() for word in wanted))
    if as_json:
        print_json([one._asdict() for one in found])
    for one in () if as_json else found:
        _print_entry(f"{one.kind} {one.name}", one.meaning)
        print_indented(one.use, "    ", "      ")
    if not found:
        raise CheckFailed(
            f"find: nothing has {visible(' and '.join(words))}; `groupstorm list --settings` has all settings"
        )


def _entries() -> Iterator[_Entry]:
    from groupstorm.cli.commands import COMMANDS
    from groupstorm.explain.patterns import PATTERNS
    from groupstorm.storms.scenario.setting_names import SETTINGS
    from groupstorm.storms.scenario.steps import STEP_KINDS

    for preset in preset_summaries():
        meaning = f"{' '.join(preset.question.split())} Variants: {', '.join(preset.variants)}."
        yield _Entry("preset", preset.name, meaning, command_line("compare", preset.name))
    for row in SETTINGS:
        yield _Entry(
            "setting",
            row.name,
            f"{row.meaning} ({shown_values(row)})",
            command_line("compare", "...", "--set", f"{row.name}="),
        )
    for kind in STEP_KINDS:
        yield _Entry("step", kind.name, kind.meaning, f"steps: [{{at_ms: 60s, do: {kind.name}, ...}}]")
    for pattern in PATTERNS:
        yield _Entry(
            "pattern", pattern.name, f"{pattern.title}. {pattern.advice}", command_line("explain", "...")
        )
    for name, summary in COMMANDS.items():
        yield _Entry("command", name, summary, command_line(name, "--help"))
