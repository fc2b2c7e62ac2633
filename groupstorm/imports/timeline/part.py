"""A part of a group's timeline: what reads some kinds of observations about one group."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from groupstorm.imports.provenance import Why
from groupstorm.imports.source import Observation
from groupstorm.imports.timeline.group import GroupRecord
from groupstorm.trace.events import coordinator as events

#: Kind of an observation -> the method of a part of a group, or of a member, that takes it.
Handlers = Mapping[str, Callable[[Any, Observation], None]]


class GroupPart:
    """Takes the observations of some kinds about one group, in the order of time.

    A group has the parts whose kinds have come: most groups of a large cluster need one.
    """

    HANDLERS: ClassVar[Handlers]

    def __init__(self, group: GroupRecord) -> None:
        self._group = group

    def _named(
        self,
        line: Observation,
        member_id: str,
        instance: str | None = None,
        rule: str = "",
        inferred: bool = False,
    ) -> Why:
        """Why a row is about this member, and how its client id is known."""
        rules = rule, self._group.members.named(member_id, instance)[1]
        return Why([line], "; ".join(filter(None, rules)), inferred=inferred)

    def id_handed_out(self, line: Observation) -> None:
        name, member_id = self._group.name, line.fields["member_id"]
        event = events.MemberPending(name, self._group.members.name(member_id), member_id)
        self._group.emit(line, event, self._named(line, member_id))

    def take(self, line: Observation) -> None:
        self.HANDLERS[line.kind](self, line)

    def finish(self) -> None:
        """No more observations come."""
