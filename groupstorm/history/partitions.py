"""The state of one partition at the present row: its owners, and since when it has none."""

from __future__ import annotations

from dataclasses import dataclass, field

from groupstorm.history.causes import Origin
from groupstorm.history.record_model import Line


class Owner:
    """One open owner interval: the offset at which it began, and how its owner goes on from where.

    ``counted_from``: its offset at the beginning of the window, if it began before.
    """

    __slots__ = ("counted_from", "first_position", "line", "member", "paused")

    member: str
    first_position: int
    line: Line
    paused: bool
    counted_from: int | None

    def __init__(
        self,
        member: str,
        first_position: int,
        line: Line,
        paused: bool = False,
        counted_from: int | None = None,
    ) -> None:
        self.member = member
        self.first_position = first_position
        self.line = line
        self.paused = paused
        self.counted_from = counted_from


@dataclass(slots=True, eq=False)
class Partition:
    """The state of one partition at the present row."""

    name: str
    accounted_us: int
    owners: list[Owner] = field(default_factory=list)  # in the order in which they were assigned
    processing: int = 0
    gap_from_us: int | None = None
    #: The same, whatever part of it counts.
    gap_since_us: int = 0
    gap_member: str | None = None
    gap_callback_us: int = 0
    gap_origin: Origin = Origin.OTHER
    longest_gap_us: int = 0
    #: Members that gave it up since it was assigned last.
    revoked_from: list[str] = field(default_factory=list)
