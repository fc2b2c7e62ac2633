"""The state on which every decision of the coordinator works: groups, offsets, timers, writes, the time of
this call, and the effects that the call collects. Kafka: GroupCoordinatorShard."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar, cast
from uuid import UUID

from groupstorm.coordinator.config import CoordinatorConfig
from groupstorm.coordinator.effects import Effects, PendingReply, PendingWrites, Reply, Unwritten, Write
from groupstorm.coordinator.groups import Group
from groupstorm.coordinator.messages import Response
from groupstorm.coordinator.modern.config import GroupOptions
from groupstorm.coordinator.modern.group import ModernGroup
from groupstorm.coordinator.offsets import Offsets, PendingOffsets
from groupstorm.coordinator.records import (
    AppendPolicy,
    EntryRecord,
    GroupMetadataRecord,
    GroupTombstone,
    Record,
    key_of,
)
from groupstorm.coordinator.share.persister import ConfirmingPersister, Persister
from groupstorm.coordinator.streams.description_plugin import DescriptionPlugin, DescriptionWaits
from groupstorm.coordinator.timers import Timers
from groupstorm.coordinator.topics import Topics
from groupstorm.javahash import TimelineHashMap
from groupstorm.trace.events.coordinator import Event
from groupstorm.turns import Turns

_G = TypeVar("_G")


class Wings(NamedTuple):
    """The parts of the wings for classic, consumer and streams groups that every kind of group may come to.

    ``of_record``: the kind of group whose entry a record is, by the record's class. ``rescue``: lets a group
    fail that an operation has broken; True: only if the group would wait for ever.
    """

    of_record: Mapping[type, type[ModernGroup[Any, Any]]]
    rescue: Callable[[Shard, str, bool], Write | None]


class Shard:
    """State and effects; `GroupCoordinator` sets ``now_ms`` with every call."""

    def __init__(
        self,
        config: CoordinatorConfig,
        member_ids: Callable[[str], str],
        append: AppendPolicy,
        whole_records: bool,
        wings: Wings,
    ) -> None:
        self.wings = wings
        self.config = config
        self.member_ids = member_ids
        self.append = append
        self.whole_records = whole_records
        self.groups: TimelineHashMap[str, Group] = TimelineHashMap()
        self.topics = Topics()
        #: Groups that are gone without a record: Kafka 4.3.1's reads see them until the next write succeeds.
        self.still_read: dict[str, Group] = {}
        #: Options of single groups.
        self.group_options = GroupOptions(config.consumer, config.streams, config.share)
        #: Regular expressions to resolve after this call, each with its group and `may_match`.
        self.background: list[tuple[str, tuple[str, ...], Callable[[str], bool] | None]] = []
        #: Which topics the regular expressions of this request may match; None: every one.
        self.may_match: Callable[[str], bool] | None = None
        #: Carries out work on a group that is behind a request, and submits its write.
        self.carry_out: Callable[[str, Turns[Write | None]], None]
        self.offsets = Offsets()
        self.pending_offsets = PendingOffsets()
        #: The last written record of each group, which another coordinator would read. Kept only with
        #: ``whole_records``.
        self.written: dict[str, GroupMetadataRecord] = {}
        #: The written records of consumer and streams groups: the last one of each of a group's entries.
        self.written_entries: dict[str, dict[Hashable, EntryRecord]] = {}
        #: Groups that were removed without a record, and written again as groups of another kind: nobody can
        #: load them any more.
        self.misfits: set[str] = set()
        #: The changes without a record since the last write, the latest last.
        self.since_written: list[Unwritten] = []
        #: Keeps the descriptions of topologies; None: the broker has no such plugin.
        self.description_plugin: DescriptionPlugin | None = None
        self.description_waits = DescriptionWaits()
        #: Keeps the state of the partitions of share groups.
        self.persister: Persister = ConfirmingPersister()
        self.timers = Timers()
        self.writes = PendingWrites()
        self.now_ms = 0
        self._replies: list[Reply] = []
        self._events: list[Event] = []
        #: Records that this call has given to the append policy, which took them.
        self.records: list[Record] = []

    def take_effects(self) -> Effects:
        """The effects since the last call."""
        effects = Effects(self._replies, self._events, self.records)
        self._replies, self._events, self.records = [], [], []
        return effects

    def emit(self, event: Event) -> None:
        self._events.append(event)

    def answer(self, reply: PendingReply, response: Response) -> None:
        """Answer the request, unless it has its answer."""
        if not reply.done:
            reply.done = True
            self._replies.append((reply.token, response))

    def exists(self, group: Group) -> bool:
        """Whether the group of that name is still this one: a write may outlive its group."""
        return self.groups.get(group.name) is group

    def group_as(self, name: str, kind: type[_G]) -> _G | None:
        """The group, if it is of this kind."""
        group = self.groups.get(name)
        return group if isinstance(group, kind) else None

    def draw_uuid(self) -> str:
        """A member id of a consumer group: a UUID as Kafka prints it (Uuid.randomUuid)."""
        while True:
            drawn = self.member_ids("").removeprefix("-")
            try:
                text = urlsafe_b64encode(UUID(drawn).bytes).decode().rstrip("=")
            except ValueError:
                return drawn  # a driver that counts its ids
            if "-" not in (text if self.config.compatibility.is_4_4 else text[0]):
                return text

    def committed_group(self, name: str) -> Group | None:
        """The group as reads see it."""
        group = self.groups.get(name) or self.still_read.get(name)
        return group if group is not None and group.committed else None

    def note_written(self, records: Sequence[Record]) -> None:
        """Records are committed: a coordinator that loads the groups will find these."""
        for record in records:
            if isinstance(record, GroupMetadataRecord):
                self.written[record.group] = record
                self.written_entries.pop(record.group, None)
            elif isinstance(record, GroupTombstone):
                self.written.pop(record.group, None)
                self.written_entries.pop(record.group, None)
            elif type(record) in self.wings.of_record:
                self._note_entry(cast("EntryRecord", record))

    def _note_entry(self, record: EntryRecord) -> None:
        entries = self.written_entries.setdefault(record.group, {})
        of_record, first = self.wings.of_record, next(iter(entries.values()), record)
        if of_record[type(first)] is not of_record[type(record)]:
            self.misfits.add(record.group)
        entries.pop(key_of(record), None)
        if record.value is not None:
            entries[key_of(record)] = record
        elif not entries:
            del self.written_entries[record.group]
