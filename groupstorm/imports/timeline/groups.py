"""All groups of the logs: every observation goes to its group, and there to what reads its kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from groupstorm.imports.details import WORKER
from groupstorm.imports.groups_command.snapshot import DESCRIBED, LOG_ENDS
from groupstorm.imports.observation import Observation
from groupstorm.imports.provenance import Rows
from groupstorm.imports.source import LogSource
from groupstorm.imports.templates.bare import BROKER_CONFIG, WORKER_CONFIG
from groupstorm.imports.timeline.classic import ClassicRounds
from groupstorm.imports.timeline.client import ClientMember
from groupstorm.imports.timeline.group import GroupRecord
from groupstorm.imports.timeline.modern import ModernGroup
from groupstorm.imports.timeline.other_clients import OtherMember
from groupstorm.imports.timeline.records import WrittenGenerations
from groupstorm.imports.timeline.snapshots import DescribedGroup
from groupstorm.imports.timeline.streams import StreamsFollowUps

Handler = Callable[[Observation], None]

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
        self._groups: dict[str, tuple[GroupRecord, dict[str, Handler]]] = {}
        self._modern: list[ModernGroup] = []
        self._classic: list[ClassicRounds] = []
        self._clients: dict[tuple[str, int, str], ClientMember] = {}
        #: Log of a broker -> its configuration, as it has logged it last.
        self._configurations: dict[int, Observation] = {}

    def configures(self, one: Observation) -> bool:
        """Whether this is the configuration of a broker, which counts from the next line of a group on."""
        if one.kind == BROKER_CONFIG:
            self._configurations[one.source] = one
        return one.kind == BROKER_CONFIG

    def add(self, one: Observation, order: int) -> None:
        name = one.group or self._group_of(one)
        if not name:
            return
        found = self._groups.get(name)
        if found is None:
            record = GroupRecord(name, self._rows)
            for member_id, client in self._client_ids.get(name, ()):
                record.members.learn(member_id, client)
            modern, rounds = ModernGroup(record), ClassicRounds(record)
            self._modern.append(modern)
            self._classic.append(rounds)
            classic = rounds.handlers
            written = WrittenGenerations(record, classic)
            parts = (modern, written, DescribedGroup(record), StreamsFollowUps(record))
            handlers = dict(classic)
            for part in parts:
                handlers |= part.handlers
            found = self._groups[name] = record, handlers
        record, handlers = found
        record.is_only_described = record.is_only_described and one.kind in (DESCRIBED, LOG_ENDS)
        record.is_connect = record.is_connect or one.kind == WORKER_CONFIG or WORKER in one.fields
        handler = handlers.get(one.kind)
        if handler is not None:
            record.begin(one, order)
            record.coordinated(one, self._configurations.get(one.source))
            handler(one)
        elif one.fields.get("client"):
            self._add_to_client(record, one, order)

    def finish(self) -> list[GroupRecord]:
        """Close what is open. Groups of which lines say nothing that makes a row are left out."""
        for rounds in self._classic:
            rounds.finish()
        for client in self._clients.values():
            client.finish()
        for modern in self._modern:
            modern.finish()
        records = [record for record, _ in self._groups.values() if record.first_us is not None]
        for record in records:
            record.finish()
        return records

    def _add_to_client(self, record: GroupRecord, one: Observation, order: int) -> None:
        key = (record.name, one.source, one.fields.get("process") or one.fields["client"])
        client = self._clients.get(key)
        if client is None:
            kind = OtherMember if one.fields.get("other") else ClientMember
            client = self._clients[key] = kind(record, one.fields["client"])
            record.on_removal.append(client.removed_id)
        handler = client.handlers.get(one.kind)
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
