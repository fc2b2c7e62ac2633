"""Static members that come back under a member id that their coordinator does not log.

Until Kafka 3.3 the line about a returning static member names its old id and its new one. Since 3.4 it names
the instance and the old id (GroupMetadataManager, "Replacing previously mapped member"). The new id is the
instance id and a UUID: the next line of the group that names such an id tells it.
"""

from __future__ import annotations

from typing import Final

from groupstorm.imports.observation import Observation
from groupstorm.imports.provenance import Rows, Why
from groupstorm.imports.timeline.members import Membership, name_before_uuid
from groupstorm.trace.events import coordinator as events
from groupstorm.trace.schema import Source

#: Stands behind the instance id in the place of a UUID that no line says.
UNKNOWN_ID: Final = "unknown"
_BY_INSTANCE: Final = "member_id: the next member id that is the instance id and a UUID"
_NO_LINE: Final = "member_id: no line says it: add the log of the static member itself"


class ReturningMembers:
    """Takes lines about returned static members of one group, and the member ids of all later lines."""

    def __init__(self, group: str, rows: Rows, members: Membership) -> None:
        self._group, self._rows, self._members = group, rows, members
        #: By instance id: the line, its order, and the generation then.
        self._waiting: dict[str, tuple[Observation, int, int | None]] = {}

    def returned(self, line: Observation, order: int, generation: int | None) -> None:
        """A static member is back; its new id may come in a later line."""
        instance = line.fields["instance"]
        if instance in self._waiting:
            self._without_id(instance)
        self._waiting[instance] = line, order, generation

    def seen(self, member_id: str, line: Observation) -> None:
        """A line names a member id."""
        instance = name_before_uuid(member_id)
        if instance not in self._waiting or instance == member_id or member_id in self._members.members:
            return
        first, order, generation = self._waiting[instance]
        if member_id == first.fields["old_member_id"]:
            return
        del self._waiting[instance]
        self._members.learn(member_id, line.fields.get("client"))
        self._members.replace(first.fields["old_member_id"], member_id, instance)
        self._add(first, order, generation, member_id, Why([first, line], _BY_INSTANCE, inferred=True))

    def finish(self) -> None:
        """No more lines come."""
        for instance in [*self._waiting]:
            self._without_id(instance)

    def _without_id(self, instance: str) -> None:
        first, order, generation = self._waiting.pop(instance)
        why = Why([first], _NO_LINE, missing=True)
        self._add(first, order, generation, f"{instance}-{UNKNOWN_ID}", why)

    def _add(self, line: Observation, order: int, generation: int | None, member_id: str, why: Why) -> None:
        instance = line.fields["instance"]
        name = self._members.name(member_id, instance)
        old = line.fields["old_member_id"]
        event = events.MemberReplaced(self._group, name, member_id, old, instance, generation)
        self._rows.add(line.time_us, order, Source.COORDINATOR, event, why)
