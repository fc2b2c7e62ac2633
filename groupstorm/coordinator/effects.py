"""What a call to the coordinator brings about, for its driver to carry out."""

from __future__ import annotations

from collections.abc import Hashable

from groupstorm.coordinator.events import Event
from groupstorm.coordinator.messages import Response
from groupstorm.coordinator.records import Record

#: A response for the request that came with the token, perhaps many calls ago.
Reply = tuple[Hashable, Response]


class Effects:
    """``replies`` in the order in which they were completed, ``events`` in the order of the changes,
    ``records`` handed to the append policy."""

    __slots__ = ("events", "records", "replies")

    def __init__(self, replies: list[Reply], events: list[Event], records: list[Record]) -> None:
        self.replies = replies
        self.events = events
        self.records = records

    def __repr__(self) -> str:
        return f"<Effects replies={self.replies} events={self.events} records={self.records}>"


class Answer:
    """The answer that one request is still due: given at most once."""

    __slots__ = ("done", "token")

    def __init__(self, token: Hashable) -> None:
        self.token = token
        self.done = False
