"""What a ledger finds: the kinds of faults, each with the entries that show it."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple

from groupstorm.testing.ledger.entries import Entry


class Kind(StrEnum):
    """The kinds of findings. docs/ledger.md defines them."""

    LOST = "lost"
    UNPROCESSED = "not processed"
    COMMITTED_FIRST = "committed but not processed"
    TWICE = "processed twice"
    TWO_AT_ONCE = "processed by two at once"
    OUT_OF_ORDER = "out of order within a partition"
    TOO_OFTEN = "delivered too often"


#: What each kind of finding says of the records that it counts: one, and several.
MEANINGS: Final = {
    Kind.LOST: "the group has committed beyond it, and nobody has processed it",
    Kind.UNPROCESSED: "nobody has processed it, and the group has not committed beyond it",
    Kind.COMMITTED_FIRST: "the group had committed beyond it before it was processed",
    Kind.TWICE: "it was processed again",
    Kind.TWO_AT_ONCE: "an instance went on with the partition while another one had it",
    Kind.OUT_OF_ORDER: "it was processed after a record behind it, by the same instance",
    Kind.TOO_OFTEN: "it was given out more often than the share group allows",
}


class Allowed(StrEnum):
    """Whether at-least-once allows a double, or two at once.

    It allows a double if the group had not committed beyond the record when the second instance got the
    partition.
    """

    YES = "at-least-once allows it"
    NO = "at-least-once does not allow it"
    UNKNOWN = "the times are too close to tell whether at-least-once allows it"
    NEVER = "exactly-once does not allow it"
    UNNOTICED = "it had the record in hand, or could not have noticed yet that the partition had gone"


class Finding(NamedTuple):
    """A fault, or what at-least-once allows (``allowed``). ``shown_by``: the entries that show it."""

    kind: Kind
    partition: str
    offset: int
    number: int
    detail: str
    shown_by: tuple[Entry, ...]
    allowed: Allowed | None = None

    @property
    def is_fault(self) -> bool:
        return self.allowed in (None, Allowed.NO, Allowed.NEVER)
