"""One group of the logs: every observation goes to what reads its kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from groupstorm.imports.details import WORKER
from groupstorm.imports.groups_command import DESCRIBED, LOG_ENDS
from groupstorm.imports.observation import Observation
from groupstorm.imports.provenance import Rows
from groupstorm.imports.templates.catalogues import WORKER_CONFIG
from groupstorm.imports.timeline.classic import ClassicRounds
from groupstorm.imports.timeline.client import ClientMember
from groupstorm.imports.timeline.group import GroupPart, GroupRecord
from groupstorm.imports.timeline.modern import ModernGroup
from groupstorm.imports.timeline.other_clients import OtherMember
from groupstorm.imports.timeline.records import WrittenGenerations
from groupstorm.imports.timeline.snapshots import DescribedGroup
from groupstorm.imports.timeline.streams import StreamsThreads

#: The parts of one group, by their types.
_Parts = dict[type[GroupPart], GroupPart]
#: Kind of an observation -> the part of a group that takes it.
_PARTS: Final[Mapping[str, type[GroupPart]]] = {
    kind: part
    for part in (ClassicRounds, ModernGroup, WrittenGenerations, DescribedGroup, StreamsThreads)
    for kind in part.HANDLERS
}
#: Kinds of lines that say the client id of the member whose id they have.
OWN_MEMBER_ID: Final = frozenset(
    {
        "joined",
        "synced",
        "learned",
        "transition",
        "rd-joined",
        "rd-member-id",
        "rd-epoch",
        "left-described",
        "loaded-member",
    }
)


class GroupTimeline:
    """Takes all observations of one group in the order of time. ``clients``: member id -> the client id, as
    any line says it."""

    def __init__(self, name: str, rows: Rows, clients: Mapping[str, str]) -> None:
        self._record = GroupRecord(name, rows)
        for member_id, client in clients.items():
            self._record.members.learn(member_id, client)
        self._parts: _Parts = {}
        self._clients: dict[tuple[int, str], ClientMember] = {}

    def add(
        self, one: Observation, order: int, configuration: Observation | None, refused: Observation | None
    ) -> None:
        """``configuration``: that of the broker whose log it is, as it was logged last. ``refused``: the last
        line that says that the group's partition of __consumer_offsets took no records."""
        record = self._record
        record.is_only_described = record.is_only_described and one.kind in (DESCRIBED, LOG_ENDS)
        record.is_connect = record.is_connect or one.kind == WORKER_CONFIG or WORKER in one.fields
        kind = _PARTS.get(one.kind)
        if kind is not None:
            record.begin(one, order)
            record.coordinated(one, configuration)
            record.append_refused = refused or record.append_refused
            _part(record, self._parts, kind).take(one)
        elif one.fields.get("client"):
            self._add_to_client(one, order)

    def finish(self) -> GroupRecord | None:
        """Close what is open. None if the lines say nothing that makes a row."""
        self._finish(ClassicRounds)
        for client in self._clients.values():
            client.finish()
        self._finish(ModernGroup)
        self._finish(StreamsThreads)
        if self._record.first_us is None:
            return None
        self._record.finish()
        return self._record

    def _finish(self, kind: type[ClassicRounds] | type[ModernGroup] | type[StreamsThreads]) -> None:
        part = self._parts.get(kind)
        if isinstance(part, kind):
            part.finish()

    def _add_to_client(self, one: Observation, order: int) -> None:
        record = self._record
        key = (one.source, one.fields.get("process") or one.fields["client"])
        client = self._clients.get(key)
        if client is None:
            kind = OtherMember if one.fields.get("other") else ClientMember
            client = self._clients[key] = kind(record, one.fields["client"])
            record.on_removal.append(client.removed_id)
        handler = client.HANDLERS.get(one.kind)
        if handler is not None:
            if not one.kind.startswith("thread-"):  # alone they say nothing of the group
                record.begin(one, order)
            client.take(one, handler)


def _part(record: GroupRecord, parts: _Parts, kind: type[GroupPart]) -> GroupPart:
    """The part of a group, which is made when it is needed first."""
    if kind not in parts:
        if kind is WrittenGenerations:
            parts[kind] = WrittenGenerations(record, _part(record, parts, ClassicRounds))
        else:
            parts[kind] = kind(record)
    return parts[kind]
