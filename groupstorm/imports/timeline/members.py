"""The members of a group, as far as lines name them; and those of a classic group that came and went without
a line of the coordinator, or under a new id.

The leader's log has the members of each generation: those that one has and the one before it has not came in
between. Any member's own log says when its process started and when it left.

Until Kafka 3.3 the line about a returning static member names its old id and its new one. Since 3.4 it names
the instance and the old id (GroupMetadataManager, "Replacing previously mapped member"). The new id is the
instance id and a UUID: the next line of the group that names such an id tells it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from groupstorm.imports.provenance import Rows, Why
from groupstorm.imports.source import Observation
from groupstorm.imports.timeline.reasons import UNKNOWN
from groupstorm.imports.timeline.rounds import Round
from groupstorm.trace.events import coordinator as events
from groupstorm.trace.events.group_states import Cause
from groupstorm.trace.schema import Source

#: What a coordinator, or a client of KIP-848, puts behind the client id or instance id in a member id.
_UUID = re.compile(r"-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
#: The client ids that libraries have where nobody gives them one: all processes have the same.
_OF_LIBRARY: Final = re.compile(
    r"rdkafka|sarama|kafkajs|kgo|ruby-kafka|(?:aiokafka|kafka-python|faust)-[\d.]+"
)
MEMBER_ID_RULE: Final = "member: the client id is what stands before the UUID in a member id"
INSTANCE_RULE: Final = "member: no line says the client id, group.instance.id stands in its place"
UNNAMED_RULE: Final = "member: no line says the client id, the member id stands in its place"
LIBRARY_RULE: Final = "member: its client id is the default of its library, the member id stands in its place"


@lru_cache(maxsize=1 << 14)  # each round names all members of its group
def name_before_uuid(member_id: str) -> str:
    """The client id or instance id that a member id begins with; the id itself if no UUID ends it."""
    return _UUID.sub("", member_id)


class Membership:
    """``members``: member id -> its static id, None if it has none or no line says it. ``pending``: ids that
    were given out. ``count``: how many there are by the coordinator's own count, None if not known."""

    def __init__(self) -> None:
        self.members: dict[str, str | None] = {}
        self.pending: dict[str, None] = {}
        self.count: int | None = None
        #: Ids of all members that lines have said to come.
        self.ever: set[str] = set()
        self._clients: dict[str, str] = {}

    def learn(self, member_id: str, client: str | None) -> None:
        """A line names the client id of a member."""
        if client:
            self._clients[member_id] = client

    def name(self, member_id: str, instance: str | None = None) -> str:
        """The client id: said by a line, else by the member id, else the member id itself."""
        return self.named(member_id, instance)[0]

    def named(self, member_id: str, instance: str | None) -> tuple[str, str]:
        """`name`, and the rule behind it; "" if a line says the client id."""
        if member_id in self._clients:
            return self._clients[member_id], ""
        instance = instance or self.members.get(member_id)
        if instance:
            return instance, INSTANCE_RULE
        name = name_before_uuid(member_id)
        if _OF_LIBRARY.fullmatch(name):
            return member_id, LIBRARY_RULE
        return name, UNNAMED_RULE if name == member_id else MEMBER_ID_RULE

    def add(self, member_id: str, instance: str | None) -> None:
        if member_id not in self.members and self.count is not None:
            self.count += 1
        self.members[member_id] = instance
        self.ever.add(member_id)
        self.pending.pop(member_id, None)

    def replace(self, old_member_id: str, member_id: str, instance: str | None) -> None:
        """A static member has another id now."""
        self.members.pop(old_member_id, None)
        self.ever.add(member_id)
        self.members[member_id] = instance

    def remove(self, member_id: str) -> str | None:
        """The static id of a member, if it is known. It was in the group in any case."""
        if self.count is not None:
            self.count = max(0, self.count - 1)
        if member_id not in self.members:
            self._clients.pop(member_id, None)
        return self.members.pop(member_id, None)

    @property
    def unnamed(self) -> int | None:
        """The number of members that no line names; None if the coordinator did not count."""
        return None if self.count is None else max(0, self.count - len(self.members))

    def clear(self) -> None:
        self.members.clear()
        self.pending.clear()
        self.count = None


STARTED: Final = "member: a process that had just started joined this generation, by its own log"
_LEFT: Final = "member: it said in its own log that it leaves"
_CAME: Final = "member: the leader's assignment has it, and that of the generation before has not"
_WENT: Final = "member: the leader's assignment before this generation had it, and this one has not"
#: Before the row with which the round begins.
_STEP: Final = -6


class _Row(NamedTuple):
    line: Observation
    event: events.MemberAdded | events.MemberRemoved
    rule: str


class Comings:
    """Takes the rounds of one group in their order, and the members that say that they leave."""

    def __init__(self, group: str) -> None:
        self._group = group
        self._members: frozenset[str] | None = None
        #: Every member of the rounds so far -> its client id.
        self._known: dict[str, str] = {}
        #: Members that said that they leave: no row is made of one before a later round shows them gone.
        self._left: dict[str, _Row] = {}
        self._rows: list[_Row] = []

    def left(self, line: Observation, client: str, member_id: str, generation: int) -> None:
        """A member's own log says that it leaves."""
        event = events.MemberRemoved(self._group, client, member_id, None, generation, Cause.LEFT)
        self._left[member_id] = _Row(line, event, _LEFT)

    def round(self, one: Round, names: Mapping[str, str]) -> list[tuple[str, Observation]]:
        """A round is over, or no more lines of it are expected: which members went without a word, by which
        line. ``names``: client ids of its members."""
        line, gone = one.began, list[str]()
        if line is None:
            return []
        just_left = [row for row in self._left.values() if row.event.generation == one.generation - 1]
        first = min(just_left, key=lambda row: row.line.time_us, default=None)
        left = self._gone_by(one, line)
        before, now = self._members, frozenset(one.plan) if one.finished is not None else None
        came = {member_id for member_id in one.new if member_id not in self._known}
        if before is not None and now is not None:
            came |= now - before - self._known.keys()
            gone = sorted(before - now - left)
            for member_id in gone:
                self._add(one, line, member_id, UNKNOWN, is_gone=True)
        self._known.update({member_id: names[member_id] for member_id in (*one.plan, *one.joined)})
        all_told = before is not None and now is not None and not gone
        for member_id in sorted(came):
            cause = self._cause(one, member_id, before)
            self._add(one, line, member_id, cause, is_gone=False)
            is_later = member_id in one.new and one.new[member_id][0].time_us > line.time_us
            if len(came) == 1 and (one.generation == 1 or (all_told and not is_later)):
                one.began_by, one.begin_cause = member_id, cause
        if all_told and first is not None and first.line.time_us <= line.time_us:
            # others learn of it with their next heartbeats
            one.requested, one.began_by, one.begin_cause = first.line, first.event.member_id, Cause.LEFT
        self._members = now
        return [(member_id, line) for member_id in gone]

    def _gone_by(self, one: Round, line: Observation) -> set[str]:
        """Make the rows of members that had left before this round. Its partitions had no owner from then on
        only if this is the next generation: another one would have given them to others."""
        last = {member_id: row.event.generation or 0 for member_id, row in self._left.items()}
        gone = {member_id for member_id, generation in last.items() if generation < one.generation}
        for member_id in sorted(gone):
            row = self._left.pop(member_id)
            is_next = last[member_id] == one.generation - 1
            self._rows.append(row if is_next else row._replace(line=line))
        return gone

    def _cause(self, one: Round, member_id: str, before: frozenset[str] | None) -> str:
        """A static member that is back may have another id, too: only its own log tells them apart."""
        if member_id in one.new:
            return str(Cause.STATIC_MEMBER if one.new[member_id][1] else Cause.NEW_MEMBER)
        name = name_before_uuid(member_id)
        return UNKNOWN if name in map(name_before_uuid, before or ()) else str(Cause.NEW_MEMBER)

    def _add(self, one: Round, line: Observation, member_id: str, cause: str, *, is_gone: bool) -> None:
        kind = events.MemberRemoved if is_gone else events.MemberAdded
        rule, instance = _WENT if is_gone else _CAME, None
        if member_id in one.new:  # it may have come after another one began the round
            joined, instance = one.new[member_id]
            rule, line = STARTED, max(line, joined, key=lambda seen: seen.time_us)
        event = kind(self._group, self._known[member_id], member_id, instance, one.generation - 1, cause)
        self._rows.append(_Row(line, event, rule))

    def tell(self, rows: Rows) -> None:
        """No more lines come."""
        for line, event, rule in self._rows:
            why = Why([line], rule, None, line.time_us, inferred=True)
            rows.add(line, Source.COORDINATOR, event, why, _STEP)


#: Stands behind the instance id in the place of a UUID that no line says.
UNKNOWN_ID: Final = "unknown"
_BY_INSTANCE: Final = "member_id: the next member id that is the instance id and a UUID"
_NO_LINE: Final = "member_id: no line says it: add the log of the static member itself"


class ReturningMembers:
    """Takes lines about returned static members of one group, and the member ids of all later lines."""

    def __init__(self, group: str, rows: Rows, members: Membership) -> None:
        self._group, self._rows, self._members = group, rows, members
        #: By instance id: the line, and the generation then.
        self._waiting: dict[str, tuple[Observation, int | None]] = {}

    def returned(self, line: Observation, generation: int | None) -> None:
        """A static member is back; its new id may come in a later line."""
        instance = line.fields["instance"]
        if instance in self._waiting:
            self._without_id(instance)
        self._waiting[instance] = line, generation

    def seen(self, member_id: str, line: Observation) -> None:
        """A line names a member id."""
        instance = name_before_uuid(member_id)
        if instance not in self._waiting or instance == member_id or member_id in self._members.members:
            return
        first, generation = self._waiting[instance]
        if member_id == first.fields["old_member_id"]:
            return
        del self._waiting[instance]
        self._members.learn(member_id, line.fields.get("client"))
        self._members.replace(first.fields["old_member_id"], member_id, instance)
        self._add(first, generation, member_id, Why([first, line], _BY_INSTANCE, inferred=True))

    def finish(self) -> None:
        """No more lines come."""
        for instance in [*self._waiting]:
            self._without_id(instance)

    def _without_id(self, instance: str) -> None:
        first, generation = self._waiting.pop(instance)
        why = Why([first], _NO_LINE, missing=True)
        self._add(first, generation, f"{instance}-{UNKNOWN_ID}", why)

    def _add(self, line: Observation, generation: int | None, member_id: str, why: Why) -> None:
        instance = line.fields["instance"]
        name = self._members.name(member_id, instance)
        old = line.fields["old_member_id"]
        event = events.MemberReplaced(self._group, name, member_id, old, instance, generation)
        self._rows.add(line, Source.COORDINATOR, event, why)
