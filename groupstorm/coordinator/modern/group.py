"""A group of one of the newer protocols: what the state of consumer, streams and share groups has in common,
and which member a request comes from.

Only records change a group (`take`). Every change leaves its inverse in ``undo``, so that a write which fails
can be taken back. Kafka: ModernGroup, which StreamsGroup repeats; GroupMetadataManager's throwIf... methods.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from operator import attrgetter
from typing import Any, ClassVar, Generic, TypeVar

from groupstorm.coordinator.config import Compatibility
from groupstorm.coordinator.errors import CoordinatorFault, Error, Refused
from groupstorm.coordinator.groups import GroupType
from groupstorm.coordinator.modern.member import JOIN_EPOCH, LEAVE_EPOCH, ModernMember
from groupstorm.coordinator.records import EntryRecord, WingTypes
from groupstorm.coordinator.topics import Topics
from groupstorm.javahash import TimelineHashMap

K = TypeVar("K")
V = TypeVar("V")
M = TypeVar("M", bound=ModernMember)
T = TypeVar("T")

#: The epochs of a new group (ModernGroup, TargetAssignmentMetadata.INITIAL).
FIRST_EPOCH = 1
#: The targets were never computed (Kafka: 0, which no clock of its shows).
NEVER = -1
#: The assignment epoch between the tombstone of the targets and that of the group.
_NO_TARGET = -1


class ModernGroup(ABC, Generic[M, T]):
    """The state of one group. ``M``: its members, ``T``: the target of one."""

    kind: ClassVar[GroupType]
    types: ClassVar[WingTypes]
    #: Whether offsets can be committed to the group. Only such a group expires.
    keeps_offsets: ClassVar[bool] = True

    def __init__(self, name: str) -> None:
        self.name = name
        self.assignment_epoch = FIRST_EPOCH
        #: When the targets were computed; `NEVER` if they were not.
        self.assignment_ms = NEVER
        #: Kafka's order decides how assignors deal partitions and tasks.
        self.members: TimelineHashMap[str, M] = TimelineHashMap()
        self.targets: TimelineHashMap[str, T] = TimelineHashMap()
        #: group.instance.id -> member id
        self.static_members: dict[str, str] = {}
        #: A record of the group is committed, so that reads see it.
        self.committed = False
        #: The inverse of every change since `take_undo`.
        self.undo: list[Callable[[], None]] = []

    @classmethod
    @abstractmethod
    def new(cls, name: str, compatibility: Compatibility) -> ModernGroup[M, T]:
        """An empty group, which no coordinator knows yet."""

    # to read

    @property
    @abstractmethod
    def state(self) -> StrEnum:
        """The state follows from the members and the epochs."""

    @property
    @abstractmethod
    def epoch(self) -> int:
        """The group epoch."""

    @property
    def generation(self) -> int:
        """The group epoch, under the name that all kinds of group share."""
        return self.epoch

    @property
    def is_simple(self) -> bool:
        """Whether only offsets were ever committed to the group."""
        return False

    @abstractmethod
    def is_subscribed_to(self, topic: str) -> bool:
        """Whether members read this topic."""

    @abstractmethod
    def assigned_at(self, member: M, topics: Topics, topic: str, number: int) -> int | None:
        """The epoch in which the member got the partition; None if it has it not."""

    @abstractmethod
    def names_of(self, assigned: Any, topics: Topics) -> tuple[str, ...]:
        """The names, as Kafka prints them, of what is assigned, exists and runs."""

    def static_member(self, instance: str | None) -> M | None:
        """The member that has this instance id.

        `Refused` (UNKNOWN_MEMBER_ID) if the id belonged to a member that has gone under another instance id:
        Kafka 4.3.1 forgets only the last instance id of a member of a consumer group.
        """
        member_id = None if instance is None else self.static_members.get(instance)
        if member_id is None:
            return None
        member = self.members.get(member_id)
        if member is None:
            raise Refused(Error.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of {self.name}.")
        return member

    def former(self, ids: Iterable[str]) -> dict[str, ModernMember]:
        """The members among these that the group has."""
        return {one: member for one in ids if (member := self.members.get(one)) is not None}

    def may_assign(self, now_ms: int, interval_ms: int) -> bool:
        """Whether enough time is over since the targets were computed."""
        return self.assignment_ms == NEVER or now_ms >= self.assignment_ms + interval_ms

    # to change

    def take_undo(self) -> list[Callable[[], None]]:
        """The inverses of the changes so far, the latest last; further ones start a new list."""
        undo, self.undo = self.undo, []
        return undo

    def set_fields(self, **values: Any) -> None:
        """Give fields of the group that nothing is counted from other values."""
        before = [(name, getattr(self, name)) for name in values]
        self.undo.append(lambda: self._put_fields(before))
        self._put_fields(values.items())

    def _put_fields(self, values: Iterable[tuple[str, Any]]) -> None:
        for name, value in values:
            setattr(self, name, value)

    def set_assignment_epoch(self, epoch: int, computed_at_ms: int) -> None:
        self.set_fields(assignment_epoch=epoch, assignment_ms=computed_at_ms)

    def set_target(self, member_id: str, target: T | None) -> None:
        """Set the member's target, or forget it (None)."""
        before = self.targets.get(member_id)
        self.undo.append(lambda: self._put_target(member_id, before))
        self._put_target(member_id, target)

    def _put_target(self, member_id: str, target: T | None) -> None:
        put(self.targets, member_id, target)

    @abstractmethod
    def set_member(self, member_id: str, member: M | None) -> None:
        """Add, replace or remove (None) a member."""

    # records

    def take(self, record: EntryRecord, now_ms: int) -> None:
        """Take one record in; `CoordinatorFault` if it does not fit. Tombstones that come out of order are
        refused, as in Kafka."""
        types, kind, value = self.types, type(record), record.value
        if kind is types.member:
            self._take_member(record[1], value)
        elif kind is types.current:
            self._take_current(record[1], value)
        elif kind is types.target:
            self.set_target(record[1], value)
        elif kind is types.target_epoch:
            if value is None and self.targets:
                raise CoordinatorFault(f"the targets of group {self.name!r} are not deleted")
            self.set_assignment_epoch(*(_NO_TARGET, NEVER) if value is None else (value, record[2]))
        elif kind is types.group and value is None:
            if self.members or self.targets or self.assignment_epoch != _NO_TARGET:
                raise CoordinatorFault(f"group {self.name!r} is deleted before its members and targets")
        else:
            self.take_own(record, now_ms)

    @abstractmethod
    def take_own(self, record: Any, now_ms: int) -> None:
        """Take in a record that only this kind of group has."""

    def _take_member(self, member_id: str, value: Any) -> None:
        member = self.members.get(member_id)
        if value is not None:
            known = member or self.types.new_member(member_id)
            self.set_member(member_id, self.with_facts(known, value))
        elif member is not None:
            if member.epoch != LEAVE_EPOCH or member_id in self.targets:
                raise CoordinatorFault(f"member {member_id!r} is deleted before its assignments")
            self.set_member(member_id, None)

    def _take_current(self, member_id: str, value: Any) -> None:
        member = self.members.get(member_id)
        if value is not None:
            known = member or self.types.new_member(member_id)
            self.set_member(member_id, known.with_current(value))
        elif member is not None:
            new = self.types.new_member(member_id)
            nothing = {"assigned": new.assigned, "revoking": new.revoking}
            left = replace(member, epoch=LEAVE_EPOCH, previous_epoch=LEAVE_EPOCH, **nothing)
            self.set_member(member_id, left)

    def removal(self, member_id: str) -> list[Any]:
        """The records that remove a member."""
        types = self.types
        return [kind(self.name, member_id, None) for kind in (types.current, types.target, types.member)]

    @abstractmethod
    def bump_without(self, members: Sequence[M], topics: Topics) -> list[Any]:
        """The records that count the group epoch up as these members go."""

    def up_to_date_without(self, members: Sequence[M], epoch: int, compatibility: Compatibility) -> list[Any]:
        """The record of the assignment epoch, if these members are the last: nobody is left to compute a
        target for, and the next member gets one at once. Kafka 4.3.1 leaves the assignment epoch behind."""
        is_last = compatibility.is_4_4 and len(members) == len(self.members)
        return [self.types.target_epoch(self.name, epoch, NEVER)] if is_last else []

    def tombstones_of_members(self, ids: Iterable[str]) -> list[Any]:
        """The records that remove all members, and the targets."""
        types, ids = self.types, list(ids)
        return [
            *(types.current(self.name, one, None) for one in ids),
            *(types.target(self.name, one, None) for one in ids),
            types.target_epoch(self.name, None),
            *(types.member(self.name, one, None) for one in ids),
        ]

    @abstractmethod
    def tombstones(self) -> list[Any]:
        """The records that delete the group."""

    @abstractmethod
    def target(self, member_id: str) -> T:
        """The member's target; empty if it has none yet."""

    def replaced(self, old: M, new_id: str, records: list[Any]) -> M:
        """Give the static member a new id, its target and what it holds; its old id is fenced from now on."""
        new = replace(old, member_id=new_id, epoch=JOIN_EPOCH, previous_epoch=JOIN_EPOCH)
        records += self.removal(old.member_id)
        records += [
            self.member_record(new),
            self.types.target(self.name, new_id, self.target(old.member_id)),
            self.current_record(new),
        ]
        return new

    def member_record(self, member: M) -> Any:
        """The record of what the member says of itself."""
        return self.types.member(self.name, member.member_id, self.facts_of(member))

    def facts_of(self, member: M) -> Any:
        """The part of the member that its own requests determine."""
        return part_of(member, self.types.facts)

    def with_facts(self, member: M, facts: Any) -> M:
        """The member with that part."""
        return replace(member, **facts._asdict())

    def current_record(self, member: M) -> Any:
        """The record of how far the member has come."""
        return self.types.current(self.name, member.member_id, part_of(member, self.types.progress))


def part_of(member: ModernMember, kind: type[Any]) -> Any:
    """The fields of a member that a named tuple of this kind has."""
    return kind(*attrgetter(*kind._fields)(member))


def put(table: TimelineHashMap[str, V], key: str, value: V | None) -> None:
    """Set an entry; None removes it."""
    if value is None:
        table.remove(key)
    else:
        table.put(key, value)


def entries(table: Mapping[K, V], keys: Iterable[K]) -> dict[K, V | None]:
    """The table's entries, None for those that are missing."""
    return {key: table.get(key) for key in keys}


def merge(table: dict[K, V], changes: Mapping[K, V | None]) -> None:
    """Take the changes into the table; None removes an entry."""
    for key, value in changes.items():
        if value is None:
            table.pop(key, None)
        else:
            table[key] = value
