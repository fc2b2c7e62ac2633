"""The content of one line of a log, before it is known how the logs go together."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

#: The field of an observation whose time is a bound: a `TimeRule`.
TIME_RULE: Final = "time_rule"


#: The field of an observation that names the pod or container whose log the line is of.
POD: Final = "pod"


class TimeRule(NamedTuple):
    """``bound``: "earliest" or "latest", what an observation's time is. ``sentence``: by which rule."""

    bound: str
    sentence: str


class Observation(NamedTuple):
    """``time_us``: since 1970, on the log's own clock as UTC. ``source`` and ``line``: the log, by its
    number, and the line in it. ``fields``: what stood in the template's holes and in the prefix of the
    message: texts, numbers, and lists and dicts of them. Only such values can be put on disk while logs are
    read (`spill`)."""

    time_us: int
    source: int
    line: int
    kind: str
    group: str
    fields: dict[str, Any]
