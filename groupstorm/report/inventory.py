"""The names that a trace has (groups, members, partitions), and the refusal of a name that it has not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from groupstorm.problems import InputError
from groupstorm.wording import some

_NEAR_MAX = 3


@dataclass(frozen=True, slots=True)
class Names:
    """The members (client ids and instances of Kafka Streams applications) and partitions of one group."""

    members: dict[str, None] = field(default_factory=dict)
    partitions: dict[str, None] = field(default_factory=dict)


def names_by_group(rows: Iterable[Mapping[str, Any]]) -> dict[str, Names]:
    """Group -> the names that its rows have, in the order of their appearance."""
    found: dict[str, Names] = {}
    for row in rows:
        names = found.get(row["group"])
        if names is None:
            names = found[row["group"]] = Names()
        for column in ("member", "process"):
            if column in row:
                names.members[row[column]] = None
        if "partitions" in row:
            names.partitions.update(dict.fromkeys(row["partitions"]))
    return found


def require(option: str, name: str, there: Iterable[str]) -> None:
    """Raise InputError naming near names, or else some, if ``name`` is not among those that are ``there``."""
    known = [*dict.fromkeys(there)]
    if name in known:
        return
    if near := get_close_matches(name, known, _NEAR_MAX):
        raise InputError(f"{option} {name}: not in the trace; near it: {', '.join(near)}")
    if not known:
        raise InputError(f"{option} {name}: not in the trace, which has none")
    raise InputError(f"{option} {name}: not in the trace; there are: {some(known)}")
