"""All groups of the logs: every observation goes to its group, and there to what reads its kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from groupstorm.imports.details import WORKER
from groupstorm.imports.groups_command.snapshot import DESCRIBED, LOG_ENDS
from groupstorm.imports.observation import Observation
from groupstorm.imports.provenance import Rows
from groupstorm.imports.source import LogSource
from groupstorm.imports.templates.bare import APPEND_REFUSED, BROKER_CONFIG, WORKER_CONFIG
from groupstorm.imports.timeline.appends import partition_of
from groupstorm.imports.timeline.classic import ClassicRounds
from groupstorm.imports.timeline.client import ClientMember
from groupstorm.imports.timeline.group import GroupPart, GroupRecord
from groupstorm.imports.timeline.modern import ModernGroup
from groupstorm.imports.timeline.other_clients import OtherMember
from groupstorm.imports.timeline.records import WrittenGenerations
from groupstorm.imports.timeline.snapshots import DescribedGroup
from groupstorm.imports.timeline.streams import StreamsFollowUps

#: The parts of one group, by their types.
_Parts = dict[type[GroupPart], GroupPart]
#: Kind of an observation -> the part of a group that takes it.
_PARTS: Final[Mapping[str, type[GroupPart]]] = {
    kind: part
    for part in (ClassicRounds, ModernGroup, WrittenGenerations, DescribedGroup, StreamsFollowUps)
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


class Groups:
    """Takes all observations in the order of time; `finish` gives the groups in the order of their
    appearance. ``clients``: the client ids that any line says, by group and member id."""

    def __init__(
        self, rows: Rows, parsers: Sequence[LogSource], clients: Mapping[tuple[str, str], str]
    ) -> None:
        self._rows = rows
        self._parsers = parsers
        self._client_ids: dict[str, list[tuple[str, str]]] = {}
        for (name, member_id), client in clients.items():
            self._client_ids.setdefault(name, []).append((member_id, client))
        self._groups: dict[str, tuple[GroupRecord, _Parts]] = {}
        self._clients: dict[tuple[str, int, str], ClientMember] = {}
        #: Log of a broker -> its configuration, as it has logged it last.
        self._configurations: dict[int, Observation] = {}
        #: Partition of __consumer_offsets -> the last line that says that it took no records.
        self._refusing: dict[str, Observation] = {}

    def configures(self, one: Observation) -> bool:
        """Whether this is the configuration of a broker, which counts from the next line of a group on."""
        if one.kind == BROKER_CONFIG:
            self._configurations[one.source] = one
        return one.kind == BROKER_CONFIG

    def add(self, one: Observation, order: int) -> None:
        if one.kind == APPEND_REFUSED:
            self._refusing[partition_of(one)] = one
            return
        name = one.group or self._group_of(one)
        if not name:
            return
        found = self._groups.get(name)
        if found is None:
            record = GroupRecord(name, self._rows)
            for member_id, client in self._client_ids.get(name, ()):
                record.members.learn(member_id, client)
            found = self._groups[name] = record, {}
        record, parts = found
        record.is_only_described = record.is_only_described and one.kind in (DESCRIBED, LOG_ENDS)
        record.is_connect = record.is_connect or one.kind == WORKER_CONFIG or WORKER in one.fields
        kind = _PARTS.get(one.kind)
        if kind is not None:
            record.begin(one, order)
            record.coordinated(one, self._configurations.get(one.source))
            if self._refusing:
                record.append_refused = self._refusing.get(partition_of(one), record.append_refused)
            _part(record, parts, kind).take(one)
        elif one.fields.get("client"):
            self._add_to_client(record, one, order)

    def finish(self) -> list[GroupRecord]:
        """Close what is open. Groups of which lines say nothing that makes a row are left out."""
        self._finish(ClassicRounds)
        for client in self._clients.values():
            client.finish()
        self._finish(ModernGroup)
        records = [record for record, _ in self._groups.values() if record.first_us is not None]
        for record in records:
            record.finish()
        return records

    def _finish(self, kind: type[ClassicRounds] | type[ModernGroup]) -> None:
        for _, parts in self._groups.values():
            part = parts.get(kind)
            if isinstance(part, kind):
                part.finish()

    def _add_to_client(self, record: GroupRecord, one: Observation, order: int) -> None:
        key = (record.name, one.source, one.fields.get("process") or one.fields["client"])
        client = self._clients.get(key)
        if client is None:
            kind = OtherMember if one.fields.get("other") else ClientMember
            client = self._clients[key] = kind(record, one.fields["client"])
            record.on_removal.append(client.removed_id)
        handler = client.HANDLERS.get(one.kind)
        if handler is not None:
            record.begin(one, order)
            client.take(one, handler)

    def _group_of(self, one: Observation) -> str:
        """The group of a line that names only a member."""
        member_id = one.fields.get("old_member_id")
        for name, (record, _) in self._groups.items():
            if member_id in record.members.members:
                return name
        return ""


def _part(record: GroupRecord, parts: _Parts, kind: type[GroupPart]) -> GroupPart:
    """The part of a group, which is made when it is needed first."""
    if kind not in parts:
        if kind is WrittenGenerations:
            parts[kind] = WrittenGenerations(record, _part(record, parts, ClassicRounds))
        else:
            parts[kind] = kind(record)
    return parts[kind]
