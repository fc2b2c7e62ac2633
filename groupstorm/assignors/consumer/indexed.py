"""The optional half of an assignor's contract: to assign on partition numbers instead of names.

A leader reads partitions as bytes and writes them as bytes. For an assignor that works on the numbers of a
`PartitionIndex` anyway, names in between are most of the leader's work. Such an assignor offers
`IndexedAssignor.assign_indexed`, and the leader (`groupstorm.assignors.leader`) asks for that instead of
`contract.Assignor.assign`. Both must give the same answer; the tests hold one against the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol, TypeGuard

from groupstorm.assignors.consumer.claims import Claim
from groupstorm.assignors.consumer.index import PartitionIndex
from groupstorm.assignors.contract import Assignor, MapOrder, TopicMetadata


class OwnedFrom(NamedTuple):
    """Which part of a subscription says what a member owned.

    ``field``: the subscription's own fields; ``user_data``: the user data, in StickyAssignor's form. Both:
    the user data if the field is empty. Neither: the assignor does not ask.
    """

    field: bool
    user_data: bool


class IndexedAssignor(Assignor, Protocol):
    """An assignor that also assigns on partition numbers, and sends its members no user data.

    ``order`` is the order of its hash tables. ``owned_from`` says what `Claim.owned` is read from.
    ``reads_nonexistent``: its answer may depend on owned partitions that do not exist although their topic
    does. These have no numbers, so the leader falls back on `assign` if it meets one.
    """

    @property
    def order(self) -> MapOrder: ...

    @property
    def owned_from(self) -> OwnedFrom: ...

    @property
    def reads_nonexistent(self) -> bool: ...

    def assign_indexed(
        self,
        index: PartitionIndex,
        topics: Mapping[str, TopicMetadata],
        claims: Sequence[Claim],
        visit: Sequence[int],
    ) -> list[list[int]]:
        """The partition numbers of every member, in the order of ``claims``.

        ``topics`` are those of the index; ``visit`` is the order in which a hash table of the members
        yields them. The caller does not change the lists afterwards, and neither may the assignor.
        """
        ...


def is_indexed(assignor: Assignor) -> TypeGuard[IndexedAssignor]:
    """Whether the assignor offers `assign_indexed`; with it, it must have the whole protocol."""
    return hasattr(assignor, "assign_indexed")
