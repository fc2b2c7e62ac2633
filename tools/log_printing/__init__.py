"""Prints traces as logs of Kafka's broker or Java clients, which `groupstorm import` reads again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

Row = Mapping[str, Any]


class Line(NamedTuple):
    """``logger``: the class that writes it."""

    time_us: int
    message: str
    logger: str
    level: str = "INFO"
