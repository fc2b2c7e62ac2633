"""The type of a row in the table of settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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
