"""The table of what a scenario can set: name, kind, default, bounds, meaning.

Settings that Kafka has are spelled as Kafka spells them. A row in a file has the name, kind and default (as
Python writes it), the bounds, the values allowed, "unwritten" if it is not `Setting.in_files`, and the
meaning.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

from groupstorm.tables import rows

MAX_MEMBERS = 100_000
MAX_PARTITIONS = 1_000_000
INT_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of the table. ``kind`` chooses the function that reads its value (`settings._READERS`).

    ``in_files``: False if a resolved scenario names it only when it differs from its default: so the files of
    runs that do not use the setting stay as they were before there was such a setting.
    """

    name: str
    kind: str
    default: Any
    meaning: str
    least: int = 0
    most: int = INT_MAX
    allowed: tuple[str, ...] = ()
    in_files: bool = True


def settings_of(table: str) -> tuple[Setting, ...]:
    """The settings of one of the tables."""
    return tuple(_setting(row) for row in rows(__package__, f"tables/{table}"))


def _setting(row: list[str]) -> Setting:
    name, kind, default, bounds, allowed, unwritten, meaning = row
    least, _, most = bounds.partition("..")
    values = tuple(allowed.split(",")) if allowed else ()
    of_default = ast.literal_eval(default)
    return Setting(
        name, kind, of_default, meaning, int(least or 0), int(most or INT_MAX), values, not unwritten
    )


#: The settings of Kafka Streams applications (`application: streams`).
STREAMS_SETTINGS: tuple[Setting, ...] = settings_of("streams")

SETTINGS: tuple[Setting, ...] = (
    *settings_of("group"),
    *settings_of("consumer"),
    *settings_of("application"),
    *settings_of("consumer_groups"),
    *settings_of("share_groups"),
    *settings_of("world"),
    *settings_of("deployments"),
    *STREAMS_SETTINGS,
    *settings_of("steps"),
)
