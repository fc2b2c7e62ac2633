"""What a call to the coordinator brings about, for its driver to carry out."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

from groupstorm.coordinator.events import Event
from groupstorm.coordinator.messages import Response
from groupstorm.coordinator.records import Record

#: A response for the request that came with the token, perhaps many calls ago.
Reply = tuple[Hashable, Response]


class Effects(NamedTuple):
    """``replies`` in the order in which they were completed, ``events`` in the order of the changes,
    ``records`` handed to the append policy."""

    replies: list[Reply]
    events: list[Event]
    records: list[Record]


class Answer:
    """The answer that one request is still due: given at most once."""

    __slots__ = ("done", "token")

    def __init__(self, token: Hashable) -> None:
        self.token = token
        self.done = False
