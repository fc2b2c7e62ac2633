"""Rows of a trace for tests of the checks, in few words: ``a`` is a process, ``a-1`` its member id."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.storms.checks.invariants import InvariantChecks
from groupstorm.storms.checks.verdicts import (
    COMMITS_KEPT,
    FENCED,
    NOTHING_SKIPPED,
    RECORDS_ADD_UP,
    TIMES_ADD_UP,
)
from groupstorm.trace.events import coordinator, member
from groupstorm.trace.rows import TracedEvent
from groupstorm.trace.schema import Source

#: These are in the verdicts only if they are violated.
LISTED_IF_VIOLATED = (COMMITS_KEPT, NOTHING_SKIPPED, FENCED, TIMES_ADD_UP, RECORDS_ADD_UP)

#: Microseconds, and what happens then.
Row = tuple[int, TracedEvent]


@dataclass
class Work:
    partitions: tuple[TopicPartition, ...] = ()


@dataclass
class Process:
    name: str
    work: Work
    started: bool = True


@dataclass
class World:
    """A world whose run is over, as the checks see it."""

    works: dict[str, tuple[TopicPartition, ...]] = field(default_factory=dict)
    settled: bool = True
    unanswered: Sequence[str] = ()
    left_behind: Sequence[str] = ()
    partitions: tuple[TopicPartition, ...] = ()
    topics: tuple[str, ...] = ("t", "u")

    @property
    def consumers(self) -> dict[str, Process]:
        return {name: Process(name, Work(partitions)) for name, partitions in self.works.items()}

    def reads(self, topic: str) -> bool:
        return topic in self.topics


def check(rows: Sequence[Row], silence_us: int | None = None) -> InvariantChecks:
    checks = InvariantChecks(silence_us=silence_us)
    for time_us, event in rows:
        checks.add(time_us, Source.WORLD, event)
    return checks


def state(
    before: str,
    after: str,
    generation: int = 1,
    cause: str = "assigned",
    member_id: str | None = None,
    leader: str | None = None,
) -> coordinator.GroupStateChanged:
    return coordinator.GroupStateChanged("g", before, after, generation, cause, member_id, None, leader, 1)


def name(member_id: str) -> str:
    return member_id.partition("-")[0]


def added(member_id: str) -> coordinator.MemberAdded:
    return coordinator.MemberAdded("g", name(member_id), member_id, None, 0, "new-member")


def removed(member_id: str) -> coordinator.MemberRemoved:
    return coordinator.MemberRemoved("g", name(member_id), member_id, None, 0, "left")


def replaced(old: str, new: str) -> coordinator.MemberReplaced:
    return coordinator.MemberReplaced("g", name(new), new, old, name(new), 1)


def join_parked(member_id: str) -> coordinator.JoinParked:
    return coordinator.JoinParked("g", name(member_id), member_id, 0)


def join_answered(member_id: str, error: str | None = None) -> coordinator.JoinAnswered:
    return coordinator.JoinAnswered("g", name(member_id), member_id, 1, error)


def sync_parked(member_id: str) -> coordinator.SyncParked:
    return coordinator.SyncParked("g", name(member_id), member_id, 1)


def sync_answered(
    member_id: str, *partitions: str, generation: int = 1, error: str | None = None
) -> coordinator.SyncAnswered:
    return coordinator.SyncAnswered("g", name(member_id), member_id, generation, error, partitions)


def reconciled(member_id: str, *partitions: str) -> coordinator.MemberReconciled:
    return coordinator.MemberReconciled("g", name(member_id), member_id, 1, "STABLE", partitions, ())


def started(process: str) -> member.MemberStarted:
    return member.MemberStarted("g", process, None, ("t",))


def taken(member_id: str, *partitions: str, generation: int = 1) -> member.PartitionsAssigned:
    return member.PartitionsAssigned("g", name(member_id), member_id, generation, partitions, (), 0)


def revoked(
    member_id: str, *partitions: str, generation: int = 1, cause: str = "rebalance"
) -> member.PartitionsRevoked:
    process = name(member_id)
    return member.PartitionsRevoked("g", process, member_id, generation, partitions, (), (), 0, cause)


def lost(process: str, *partitions: str) -> member.PartitionsLost:
    return member.PartitionsLost("g", process, "", -1, partitions, (), (), 0, "UNKNOWN_MEMBER_ID")


def rejoin(member_id: str, cause: str) -> member.RejoinRequested:
    return member.RejoinRequested("g", name(member_id), member_id, 1, cause)


def paused(member_id: str, cause: str = "pause") -> member.MemberPaused:
    return member.MemberPaused("g", name(member_id), member_id, (), (), 0, cause)


def resumed(member_id: str) -> member.MemberResumed:
    return member.MemberResumed("g", name(member_id), member_id, (), ())


def crashed(member_id: str) -> member.MemberCrashed:
    return member.MemberCrashed("g", name(member_id), member_id, 1, (), (), ())


def closed(member_id: str) -> member.MemberClosed:
    return member.MemberClosed("g", name(member_id), member_id, "left")
