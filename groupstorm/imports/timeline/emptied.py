"""Members of a classic group that is empty now: how they went may stand in the lines that follow."""

from __future__ import annotations

from typing import Final

from groupstorm.imports.observation import Observation
from groupstorm.imports.provenance import Why
from groupstorm.imports.timeline.group import GroupRecord
from groupstorm.trace.events import coordinator as events
from groupstorm.trace.schema import Source

_UNKNOWN: Final = "unknown"
_EMPTY = "cause: the group is empty, and no line says how the member went"
_SAID = "time: the group is empty by then; the line that says how the member went comes after it"


class EmptiedGroup:
    """Takes the members that a group had when its coordinator found it empty.

    Before Kafka 4 the coordinator logs that the group is empty, and then who has left.
    """

    def __init__(self, group: GroupRecord) -> None:
        self._group = group
        #: Member id -> the line about the empty group, its place, and the static id.
        self._gone: dict[str, tuple[Observation, int, str | None]] = {}

    def took(self, member_id: str, instance: str | None, line: Observation) -> None:
        """The group is empty, so the member is out of it."""
        self._gone[member_id] = line, self._group.order, instance

    def said(self, member_id: str, line: Observation, cause: str) -> bool:
        """A line says how a member went; whether it is one of these."""
        if member_id not in self._gone:
            return False
        self._remove(member_id, line, str(cause), _SAID)
        return True

    def settle(self) -> None:
        """No line says how the others went."""
        for member_id in [*self._gone]:
            self._remove(member_id, None, _UNKNOWN, _EMPTY)

    def _remove(self, member_id: str, said: Observation | None, cause: str, rule: str) -> None:
        group, (line, order, instance) = self._group, self._gone.pop(member_id)
        name = group.members.name(member_id, instance)
        event = events.MemberRemoved(group.name, name, member_id, instance, group.generation, cause)
        why = Why([line] if said is None else [line, said], rule, inferred=True)
        group.rows.add(line.time_us, order, Source.COORDINATOR, event, why, step=-1)
        for tell in group.on_removal:
            tell(member_id, line, cause)
