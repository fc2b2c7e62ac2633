"""Two recordings of one situation held against each other, and what is known to differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from tests.oracle.member.requests import Json


class Difference(NamedTuple):
    """``what``: ``requests`` (their number or order), a field as in JoinGroup.reason, or ``observed``."""

    what: str
    java: Json
    ours: Json

    def __str__(self) -> str:
        return f"{self.what}\n    Kafka: {self.java}\n    ours:  {self.ours}"


def differences(java: Mapping[str, Json], ours: Mapping[str, Json]) -> Iterator[Difference]:
    """Return what differs; requests are compared field by field up to the first that is another one."""
    for asked, answered in zip(java["requests"], ours["requests"], strict=False):
        if asked["api"] != answered["api"]:
            break
        for field in asked.keys() | answered.keys():
            if asked.get(field) != answered.get(field):
                yield Difference(f"{asked['api']}.{field}", asked.get(field), answered.get(field))
    orders = [[request["api"] for request in recording["requests"]] for recording in (java, ours)]
    if orders[0] != orders[1]:
        yield Difference("requests", *orders)
    if java["observed"] != ours["observed"]:
        yield Difference("observed", java["observed"], ours["observed"])
