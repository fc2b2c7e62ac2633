"""What one line of a log says, before it is known how the logs go together."""

from __future__ import annotations

from typing import Any, NamedTuple


class Observation(NamedTuple):
    """``time_us``: since 1970, on the log's own clock as UTC. ``source`` and ``line``: the log, by its
    number, and the line in it. ``fields``: what stood in the template's holes and in the prefix of the
    message: texts, numbers and lists of texts. Only such values can be put on disk while logs are read
    (`spill`)."""

    time_us: int
    source: int
    line: int
    kind: str
    group: str
    fields: dict[str, Any]
