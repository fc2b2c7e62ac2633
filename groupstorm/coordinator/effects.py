"""The effects of a call to the coordinator, which its driver carries out."""

from __future__ import annotations

from collections.abc import Hashable

from groupstorm.coordinator.messages import Response
from groupstorm.coordinator.records import Record
from groupstorm.trace.events.coordinator import Event

#: The token of a request, perhaps of many calls ago, and its response.
Reply = tuple[Hashable, Response]


class Effects:
    """``replies`` in the order in which they were completed, ``events`` in the order of the changes,
    ``records`` in the order in which the append policy got them."""

    __slots__ = ("events", "records", "replies")

    def __init__(self, replies: list[Reply], events: list[Event], records: list[Record]) -> None:
        self.replies = replies
        self.events = events
        self.records = records

    def __repr__(self) -> str:
        return f"<Effects replies={self.replies} events={self.events} records={self.records}>"


class PendingReply:
    """The reply that the request with this token waits for. It is given at most once."""

    __slots__ = ("done", "token")

    def __init__(self, token: Hashable) -> None:
        self.token = token
        self.done = False
