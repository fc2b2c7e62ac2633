"""`groupstorm find`: presets, settings, steps, patterns and commands by a word."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from groupstorm.cli.commands import COMMANDS
from groupstorm.cli.presets import shown_values
from groupstorm.cli.printing import print_indented, print_json
from groupstorm.explain.patterns.table import PATTERNS
from groupstorm.problems import CheckFailed
from groupstorm.storms.scenario.preset_files import preset_summaries
from groupstorm.storms.scenario.settings_table import SETTINGS
from groupstorm.storms.scenario.steps import STEP_KINDS
from groupstorm.visible import visible


class Entry(NamedTuple):
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
        print_indented(f"{one.kind} {one.name}", more="  ")
        print_indented(one.meaning, "    ", "    ")
        print_indented(one.use, "    ", "      ")
    if not found:
        raise CheckFailed(
            f"find: nothing has {visible(' and '.join(words))}; `groupstorm list --settings` has all settings"
        )


def _entries() -> Iterator[Entry]:
    for preset in preset_summaries():
        meaning = f"{' '.join(preset.question.split())} Variants: {', '.join(preset.variants)}."
        yield Entry("preset", preset.name, meaning, f"groupstorm compare {preset.name}")
    for row in SETTINGS:
        yield Entry(
            "setting",
            row.name,
            f"{row.meaning} ({shown_values(row)})",
            f"groupstorm compare ... --set {row.name}=",
        )
    for kind in STEP_KINDS:
        yield Entry("step", kind.name, kind.meaning, f"steps: [{{at_ms: 60s, do: {kind.name}, ...}}]")
    for pattern in PATTERNS:
        yield Entry("pattern", pattern.name, f"{pattern.title}. {pattern.advice}", "groupstorm explain ...")
    for name, summary in COMMANDS.items():
        yield Entry("command", name, summary, f"groupstorm {name} --help")
