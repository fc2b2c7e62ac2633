"""The lines of a trace on their way to a watch, whatever writes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Protocol


class Line(NamedTuple):
    """A line of a trace, where it stands, and when it came there: seconds since 1970."""

    text: str
    place: str
    came: float


#: The part of a source that comes in batches, which are numbered.
BATCHES: Final = ""


class Progress(NamedTuple):
    """A part of a source was read up to ``position``: bytes of a file, or the number of a batch."""

    part: str
    position: int


#: Takes some lines, and how far the source has been read with them.
Take = Callable[[Progress, Sequence[Line]], None]


class Feed(Protocol):
    """Hands the lines of a source on."""

    def catch_up(self, most_seconds: float) -> bool:
        """Read lines that are there, for so long at most; returns whether there are more."""
        ...

    def follow(self, seconds: float) -> None:
        """Read for so long whatever comes."""
        ...
