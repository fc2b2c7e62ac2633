"""The records of consumer and streams groups, as far as both are alike: each is one entry of a group's state.

Each wing has record classes of its own, whose names and fields stand in the journal of `serve --data`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any, NamedTuple, Protocol


class EntryRecord(Protocol):
    """One entry of a group's state. The fields in front of ``value`` name it; ``value`` None is a
    tombstone."""

    @property
    def _fields(self) -> tuple[str, ...]: ...

    @property
    def group(self) -> str: ...

    @property
    def value(self) -> Any: ...

    def __getitem__(self, index: int, /) -> Any: ...

    def __iter__(self) -> Iterator[Any]: ...


class WingTypes(NamedTuple):
    """The classes of which a wing makes what every group of the newer protocols has.

    ``new_member``: a member. ``facts``: the part of it that its own requests determine; ``progress``: the
    part that reconciliation determines. The others are records: of these parts, of a member's target, of the
    group epoch for which the targets were computed, and of what is true of the whole group.
    """

    new_member: type[Any]
    facts: type[Any]
    progress: type[Any]
    member: type[Any]
    current: type[Any]
    target: type[Any]
    target_epoch: type[Any]
    group: type[Any]


def key_of(record: EntryRecord) -> Hashable:
    """The entry that the record is about, within its group."""
    named = record._fields.index("value")
    return type(record), *(record[index] for index in range(1, named))
