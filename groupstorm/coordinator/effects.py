"""The effects of a call to the coordinator, which its driver carries out, and what waits for later calls:
replies, and the writes to the offsets topic that are under way. Plain state, on which `writes` works.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import Response
from groupstorm.coordinator.records import AppendCause, Record
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


#: Called once: with None when the records are committed, or with the error that ended the write.
Completion = Callable[[Error | None], None]


class Unwritten(NamedTuple):
    """A change that a read sees only after a write: ``back`` takes it back if that write fails, ``keep``
    shows it to reads."""

    back: Callable[[Error], None]
    keep: Callable[[], None] | None = None


class Write:
    """Records of one operation. ``apply`` makes the committed records visible to reads.

    An operation without records stands here, too, if there are writes before it: it ends as the last of them
    does.
    """

    __slots__ = (
        "apply",
        "behind",
        "cause",
        "complete",
        "created",
        "due_ms",
        "error",
        "group",
        "name",
        "records",
        "refuse",
        "revert",
    )

    def __init__(
        self,
        group: str,
        records: Sequence[Record],
        cause: AppendCause,
        complete: Completion | None = None,
        apply: Callable[[], None] | None = None,
    ) -> None:
        self.group = group
        self.records = records
        self.cause = cause
        self.complete = complete
        self.apply = apply
        #: Answers the request behind this write with an error, unless the request has its answer.
        self.refuse: Callable[[Error], None] | None = None
        #: Takes back what the records have changed already, if they cannot be written.
        self.revert: Callable[[], None] | None = None
        #: Groups that exist only if this write succeeds.
        self.created: list[Unwritten] = []
        #: The write that an operation without records waits for.
        self.behind: Write | None = None
        self.error: Error | None = None
        self.due_ms = 0
        self.name = ""

    def then(self, completion: Completion) -> None:
        """Call ``completion`` too, after the completion that the write has already."""
        first = self.complete

        def both(error: Error | None) -> None:
            if first is not None:
                first(error)
            completion(error)

        self.complete = both


class PendingWrites:
    """The writes under way, by group and in their order."""

    def __init__(self) -> None:
        self._by_group: dict[str, list[Write]] = {}
        self._names = 0
        self._numbers = 0
        #: Groups that no write covers yet: they exist only if the next write succeeds.
        self.created: list[Unwritten] = []

    def next_number(self) -> int:
        """Count a record, as its offset in the offsets topic does."""
        self._numbers += 1
        return self._numbers

    def of_group(self, group: str) -> Sequence[Write]:
        """The group's writes under way, the oldest first, and what waits for them."""
        return self._by_group.get(group, ())

    def last(self, group: str) -> Write | None:
        """The last write of the group that is under way; None if none is."""
        writes = self._by_group.get(group)
        return (writes[-1].behind or writes[-1]) if writes else None

    def __contains__(self, group: str) -> bool:
        """Whether a write of this group is under way."""
        return group in self._by_group

    def add(self, write: Write) -> None:
        """The write is under way, behind those of its group; it gets the name of its timer."""
        self._by_group.setdefault(write.group, []).append(write)
        self._names += 1
        write.name = str(self._names)

    def remove(self, write: Write) -> None:
        """The write has ended."""
        writes = self._by_group[write.group]
        writes.remove(write)
        if not writes:
            del self._by_group[write.group]
