"""One round of a classic group, as all logs together tell it: who joined, who was given what, and when."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Final

from groupstorm.imports.provenance import Why
from groupstorm.imports.source import Observation
from groupstorm.trace.events import coordinator as events
from groupstorm.trace.events.group_states import Cause, GroupState
from groupstorm.trace.rows import TracedEvent

ANSWERED_JOINS: Final = "the coordinator answers every JoinGroup when the join phase ends"
ANSWERED_SYNCS: Final = (
    "the coordinator answers every SyncGroup that waits when it has the leader's assignment"
)
FROM_RECORD: Final = "partitions: the group's record has the assignment of every member"
FROM_LEADER: Final = "partitions: the leader's log has the assignment of every member"
ROUND_OF_CLIENTS: Final = "clients' lines bound the time: no line of the coordinator says it"


_time: Final = attrgetter("time_us")


@dataclass(slots=True)
class Round:
    """``generation`` and its lines; the coordinator's are None if no log of it has them."""

    generation: int
    stabilized: Observation | None = None
    assigned: Observation | None = None
    finished: Observation | None = None
    #: The record of the generation in __consumer_offsets.
    written: Observation | None = None
    #: Without lines of the coordinator: the only member that is new in it, and how it came.
    began_by: str | None = None
    begin_cause: str = "unknown"
    end_cause: str = "unknown"
    end_rule: str = ""
    leader: str | None = None
    protocol: str | None = None
    count: int | None = None
    #: Member ids that the coordinator's lines name.
    named: tuple[str, ...] = ()
    joined: dict[str, Observation] = field(default_factory=dict)
    #: Those of them whose process had just started: the first line of joining, and the static id or None.
    new: dict[str, tuple[Observation, str | None]] = field(default_factory=dict)
    #: Those of them that are static and were answered at once.
    at_once: set[str] = field(default_factory=set)
    synced: dict[str, Observation] = field(default_factory=dict)
    #: Member id -> partitions that its own log says, and the line.
    told: dict[str, tuple[Observation, tuple[str, ...]]] = field(default_factory=dict)
    requested: Observation | None = None
    #: Member id -> the client id in the prefix of its lines.
    clients: dict[str, str] = field(default_factory=dict)

    @property
    def is_return(self) -> bool:
        """Whether only static members joined it that came back later, or nobody did."""
        if self.stabilized is not None or (self.assigned is not None and self.joined):
            return False
        return self.joined.keys() <= self.at_once

    @property
    def began(self) -> Observation | None:
        """When only clients tell of the round: the first line that asked for it, or at the latest the first
        of a member that was in it. None if the coordinator's lines tell of it, or nobody was in it."""
        if self.stabilized is not None or self.is_return:
            return None
        return self.requested or min(self.joined.values(), key=_time)

    @property
    def plan(self) -> Mapping[str, tuple[str, ...]]:
        """Member id -> partitions: by the group's record, else the leader's log, else each member's own."""
        if self.is_written:
            assert self.written is not None
            members = self.written.fields["members"]
            return {one["member_id"]: tuple(one["partitions"]) for one in members}
        if self.finished is not None:
            planned: Mapping[str, list[str]] = self.finished.fields["assignments"]
            return {member: tuple(partitions) for member, partitions in planned.items()}
        return {member: partitions for member, (_, partitions) in self.told.items()}

    @property
    def planned(self) -> Collection[str]:
        """The members that the leader's log names: all were there at once."""
        return () if self.finished is None else self.finished.fields["assignments"].keys()

    @property
    def size(self) -> int | None:
        """The number of members in the round: by the coordinator's count, or by the leader's assignment."""
        if self.count is None and (self.finished is not None or self.is_written):
            return len(self.plan) or None
        return self.count

    @property
    def is_written(self) -> bool:
        """Whether the group's record has the partitions of every member."""
        if self.written is None:
            return False
        return all(one["partitions"] is not None for one in self.written.fields["members"])

    @property
    def is_answered(self) -> bool:
        """Whether anybody got an assignment: another round may have begun before the leader's was there."""
        if self.stabilized is not None and self.assigned is None and self.written is None:
            return bool(self.synced)
        return bool(self.assigned or self.written or self.synced or self.told)

    @property
    def is_known(self) -> bool:
        """Whether the logs say who got which partition, of all members."""
        if self.finished is not None or self.is_written:
            return self.is_answered
        return self.count is not None and len(self.told) >= self.count > 0


#: Its line, step, event, why: a row that a round makes when all its lines are there.
RoundRow = tuple[Observation, int, TracedEvent, Why]


def round_rows(group: str, one: Round, names: Mapping[str, str]) -> list[RoundRow]:
    """The coordinator's rows of a round. ``names``: client ids by member id."""
    return [
        *_preparing(group, one),
        *_completing(group, one),
        *_join_answers(group, one, names),
        *_sync_answers(group, one, names),
        *_stable(group, one),
    ]


def _preparing(group: str, one: Round) -> list[RoundRow]:
    """The beginning of a round that only clients tell."""
    line = one.began
    if line is None:
        return []
    begun = one.generation - 1, one.begin_cause, one.began_by
    event = events.GroupStateChanged(
        group, "unknown", GroupState.PREPARING_REBALANCE, *begun, None, None, None
    )
    why = Why([line], ROUND_OF_CLIENTS, None, line.time_us, inferred=True)
    return [(line, -5, event, why)]


def _completing(group: str, one: Round) -> list[RoundRow]:
    if one.stabilized is not None:
        line = one.stabilized
        why = Why([line], one.end_rule)
    elif not one.is_return:
        line = min(one.joined.values(), key=_time)
        earliest = None if one.requested is None else one.requested.time_us
        why = Why([line], ROUND_OF_CLIENTS, earliest, line.time_us, inferred=True)
    else:
        return []
    before, after = GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE
    chosen = one.protocol, one.leader, one.size
    event = events.GroupStateChanged(group, before, after, one.generation, one.end_cause, None, *chosen)
    return [(line, -3, event, why)]


def _join_answers(group: str, one: Round, names: Mapping[str, str]) -> list[RoundRow]:
    rows: list[RoundRow] = []
    for member_id in dict.fromkeys((*one.plan, *one.joined)):
        own, line = one.joined.get(member_id), one.stabilized
        if line is not None:
            evidence, latest = ([line], None) if own is None else ([line, own], own.time_us)
            at, why = line, Why(evidence, ANSWERED_JOINS, line.time_us, latest, inferred=True)
        elif own is not None:
            at, why = own, Why([own])
        else:
            continue
        event = events.JoinAnswered(group, names.get(member_id, member_id), member_id, one.generation, None)
        rows.append((at, -2, event, why))
    return rows


def _sync_answers(group: str, one: Round, names: Mapping[str, str]) -> list[RoundRow]:
    """At the coordinator's time if its log has it, else when the member says that it has the answer."""
    rows: list[RoundRow] = []
    for member_id, partitions in (one.plan if one.is_answered else {}).items():
        own, line = one.synced.get(member_id), one.assigned
        said, rules = _assignment_of(one, member_id)
        anchor = line or own or said
        latest = None if own is None else own.time_us
        earliest = None
        if line is not None:
            rules.insert(0, ANSWERED_SYNCS)
            earliest = line.time_us
        elif own is None:
            rules.insert(0, ROUND_OF_CLIENTS)
            earliest = said.time_us
        evidence = [seen for seen in (line, own, said) if seen is not None]
        inferred = line is not None or own is None
        event = events.SyncAnswered(
            group, names.get(member_id, member_id), member_id, one.generation, None, partitions
        )
        why = Why(evidence, "; ".join(rules), earliest, latest if inferred else None, inferred)
        rows.append((anchor, -1, event, why))
    return rows


def _assignment_of(one: Round, member_id: str) -> tuple[Observation, list[str]]:
    """The line that has a member's assignment, and the rule if it is not the member's own."""
    if one.written is not None and one.is_written:
        return one.written, [FROM_RECORD]
    if one.finished is not None:
        return one.finished, [FROM_LEADER]
    return one.told[member_id][0], []


def _stable(group: str, one: Round) -> list[RoundRow]:
    synced = min((*one.synced.values(), *(seen for seen, _ in one.told.values())), key=_time, default=None)
    if one.assigned is not None:
        line, why = one.assigned, Why([one.assigned])
    elif synced is not None and not (one.is_return and one.joined):
        line = synced
        last = one.finished or one.stabilized or min(one.joined.values(), key=_time, default=None)
        earliest = None if last is None else last.time_us
        why = Why([line], ROUND_OF_CLIENTS, earliest, line.time_us, inferred=True)
    else:
        return []
    before, after = GroupState.COMPLETING_REBALANCE, GroupState.STABLE
    chosen = one.leader, one.protocol, one.leader, one.size
    event = events.GroupStateChanged(group, before, after, one.generation, Cause.ASSIGNED, *chosen)
    return [(line, 0, event, why)]
