"""Members that came and went in a classic group of which no line of the coordinator is there.

The leader's log has the members of each generation: those that one has and the one before it has not came in
between. Any member's own log says when its process started and when it left.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from groupstorm.imports.observation import Observation
from groupstorm.imports.provenance import Rows, Why
from groupstorm.imports.timeline.members import name_before_uuid
from groupstorm.imports.timeline.reasons import UNKNOWN
from groupstorm.imports.timeline.rounds import Round
from groupstorm.trace.events import coordinator as events
from groupstorm.trace.events.group_states import Cause
from groupstorm.trace.schema import Source

_STARTED: Final = "member: a process that had just started joined this generation, by its own log"
_LEFT: Final = "member: it said in its own log that it leaves"
_CAME: Final = "member: the leader's assignment has it, and that of the generation before has not"
_WENT: Final = "member: the leader's assignment before this generation had it, and this one has not"
#: Before the row with which the round begins.
_STEP: Final = -6


class _Row(NamedTuple):
    line: Observation
    order: int
    event: events.MemberAdded | events.MemberRemoved
    rule: str
    #: The generation that the member had last, or before it came.
    generation: int


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

    def left(self, line: Observation, order: int, client: str, member_id: str, generation: int) -> None:
        """A member's own log says that it leaves."""
        event = events.MemberRemoved(self._group, client, member_id, None, generation, Cause.LEFT)
        self._left[member_id] = _Row(line, order, event, _LEFT, generation)

    def round(self, one: Round, names: Mapping[str, str]) -> None:
        """A round is over, or no more lines of it are expected. ``names``: client ids of its members."""
        line = one.began
        if line is None:
            return
        left = self._gone_by(one, line)
        before, now = self._members, frozenset(one.plan) if one.finished is not None else None
        came = {member_id for member_id in one.new if member_id not in self._known}
        if before is not None and now is not None:
            came |= now - before - self._known.keys()
            for member_id in sorted(before - now - left):
                self._add(one, line, member_id, UNKNOWN, is_gone=True)
        self._known.update({member_id: names[member_id] for member_id in (*one.plan, *one.joined)})
        for member_id in sorted(came):
            cause = self._cause(one, member_id, before)
            self._add(one, line, member_id, cause, is_gone=False)
            is_alone = len(came) == 1 and before is not None and now is not None and before - left <= now
            if is_alone or one.generation == 1 == len(came):
                one.began_by, one.begin_cause = member_id, cause
        self._members = now

    def _gone_by(self, one: Round, line: Observation) -> set[str]:
        """Make the rows of members that had left before this round. Its partitions had no owner from then on
        only if this is the next generation: another one would have given them to others."""
        gone = {member_id for member_id, row in self._left.items() if row.generation < one.generation}
        for member_id in sorted(gone):
            row = self._left.pop(member_id)
            is_next = row.generation == one.generation - 1
            self._rows.append(row if is_next else row._replace(line=line, order=one.order(line)))
        return gone

    def _cause(self, one: Round, member_id: str, before: frozenset[str] | None) -> str:
        """A static member that is back may have another id, too: only its own log tells them apart."""
        if member_id in one.new:
            return str(Cause.STATIC_MEMBER if one.new[member_id][1] else Cause.NEW_MEMBER)
        name = name_before_uuid(member_id)
        return UNKNOWN if name in map(name_before_uuid, before or ()) else str(Cause.NEW_MEMBER)

    def _add(self, one: Round, line: Observation, member_id: str, cause: str, *, is_gone: bool) -> None:
        kind = events.MemberRemoved if is_gone else events.MemberAdded
        rule = _WENT if is_gone else _STARTED if member_id in one.new else _CAME
        instance = one.new[member_id][1] if member_id in one.new else None
        event = kind(self._group, self._known[member_id], member_id, instance, one.generation - 1, cause)
        self._rows.append(_Row(line, one.order(line), event, rule, one.generation - 1))

    def tell(self, rows: Rows) -> None:
        """No more lines come."""
        for line, order, event, rule, _ in self._rows:
            why = Why([line], rule, None, line.time_us, inferred=True)
            rows.add(line.time_us, order, Source.COORDINATOR, event, why, _STEP)
