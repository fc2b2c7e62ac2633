"""Observations of all groups, from the order of time to one group after the other; within a group, every
observation goes to what reads its kind.

A cluster has hundreds of thousands of groups: only one at a time is held in memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from operator import itemgetter
from typing import Final

from groupstorm.imports.details import WORKER
from groupstorm.imports.groups_command import DESCRIBED, LOG_ENDS
from groupstorm.imports.line_owners import UNNAMED_GROUP
from groupstorm.imports.provenance import Rows
from groupstorm.imports.source import Observation
from groupstorm.imports.spill import Item, SpillingSorter
from groupstorm.imports.templates import APPEND_REFUSED, BROKER_CONFIG, BROKER_KINDS, WORKER_CONFIG
from groupstorm.imports.timeline.classic import ClassicRounds
from groupstorm.imports.timeline.client import ClientMember
from groupstorm.imports.timeline.group import GroupRecord
from groupstorm.imports.timeline.modern import ModernGroup
from groupstorm.imports.timeline.other_clients import OtherMember
from groupstorm.imports.timeline.part import GroupPart
from groupstorm.imports.timeline.records import WrittenGenerations
from groupstorm.imports.timeline.snapshots import DescribedGroup
from groupstorm.imports.timeline.streams import StreamsThreads

#: An observation of a group, the configuration that its broker has logged last, and the last line that says
#: that the group's partition of __consumer_offsets took no records.
Placed = tuple[Observation, Observation | None, Observation | None]
#: Kinds of lines that say enough without a group.
_TELLING: Final = frozenset({"fenced", "thread-fenced", "thread-died"})
_WORDS = re.compile(r"[^\s,;'\"()\[\]{}]+")


class ObservationsByGroup:
    """Takes all observations in the order of time; `groups` gives them group by group.

    ``ungrouped``: the member ids of lines that name a member and no group. They belong to the group of which
    an earlier line names the member. ``has_all``: no group is left out, to which others may belong.
    ``unnamed``: the group of lines that may be of any; "" leaves them out.
    """

    def __init__(self, ungrouped: Iterable[str], has_all: bool, unnamed: str = UNNAMED_GROUP) -> None:
        self._sorter = SpillingSorter(key=itemgetter(0, -1))
        self._has_all, self._unnamed = has_all, unnamed
        self._numbers: dict[str, int] = {}
        self._count = 0
        #: Lines of brokers about no group; by log the number of its last configuration, and by partition of
        #: __consumer_offsets that of the last line that says that it took no records.
        self._of_brokers: list[Observation] = []
        self._configured: dict[int, int] = {}
        self._refusing: dict[str, int] = {}
        #: The numbers of those lines that an observation goes with: of the others only the last is kept.
        self._referred: set[int] = set()
        self._groups_of = dict.fromkeys(ungrouped, "")
        self.began_us = self.ended_us = 0
        #: The brokers' lines at the time of the last one.
        self._said_us = -1
        self._said: set[tuple[str, str, str]] = set()

    def add(self, one: Observation) -> None:
        """Lines of a broker about no group count from the next line of a group on."""
        if one.kind in (BROKER_CONFIG, APPEND_REFUSED):
            self._add_of_broker(one)
            return
        if self._is_repeated(one):
            return
        order, self._count = self._count, self._count + 1
        self.began_us = one.time_us if order == 0 else self.began_us
        self.ended_us = one.time_us
        group = one.group or self._groups_of.get(one.fields.get("old_member_id", ""), "")
        if not group and one.kind in _TELLING:
            is_clear = self._has_all and len(self._numbers) == 1
            group = next(iter(self._numbers)) if is_clear else self._unnamed
        if not group:
            return
        if self._groups_of:
            named = self._groups_of.keys() & _WORDS.findall(str(one.fields))
            self._groups_of.update(dict.fromkeys(named, group))
        number = self._numbers.setdefault(group, len(self._numbers))
        refused = self._refusing.get(_offsets_partition(one)) if self._refusing else None
        if refused is not None:
            self._referred.add(refused)
        self._sorter.add((number, self._configured.get(one.source), refused, *one._replace(order=order)))

    def _is_repeated(self, one: Observation) -> bool:
        """Whether a broker's line was there at this time: files overlap, or each line is doubled."""
        if one.kind not in BROKER_KINDS:
            return False
        if one.time_us != self._said_us:
            self._said_us, self._said = one.time_us, set()
        said = one.kind, one.group, str(one.fields)
        is_repeated = said in self._said
        self._said.add(said)
        return is_repeated

    def _add_of_broker(self, one: Observation) -> None:
        number = len(self._of_brokers)
        if one.kind == BROKER_CONFIG:
            self._configured[one.source] = number
        else:
            partition = _offsets_partition(one)
            before = self._refusing.get(partition)
            if before is not None and before not in self._referred:
                self._of_brokers[before] = one
                return
            self._refusing[partition] = number
        self._of_brokers.append(one)

    def groups(self) -> Iterator[tuple[str, Iterator[Placed]]]:
        """The groups in the order of their first observations; to be called once."""
        names = iter(self._numbers)
        for _, items in groupby(self._sorter.sorted(), key=itemgetter(0)):
            yield next(names), map(self._placed, items)

    def _placed(self, item: Item) -> Placed:
        _, configured, refused, *said = item
        return Observation(*said), self._of_broker(configured), self._of_broker(refused)

    def _of_broker(self, number: int | None) -> Observation | None:
        return None if number is None else self._of_brokers[number]


#: Kind of an observation -> the part of a group that takes it.
_PARTS: Final[Mapping[str, type[GroupPart]]] = {
    kind: part
    for part in (ClassicRounds, ModernGroup, WrittenGenerations, DescribedGroup, StreamsThreads)
    for kind in part.HANDLERS
}
#: Kinds of lines that say the client id of the member whose id they have.
OWN_MEMBER_ID: Final = frozenset(
    {
        *("joined", "synced", "learned", "transition", "rd-joined", "rd-member-id", "rd-epoch"),
        *("left-described", "loaded-member"),
    }
)


def _offsets_partition(line: Observation) -> str:
    """The number of the group's partition of __consumer_offsets, as far as a coordinator's line says it."""
    said = line.fields.get("partition") or str(line.fields.get("place", "")).partition("partition=")[2]
    return str(said)


class GroupTimeline:
    """Takes all observations of one group in the order of time. ``clients``: member id -> the client id, as
    any line says it."""

    def __init__(self, name: str, rows: Rows, clients: Mapping[str, str]) -> None:
        self._record = GroupRecord(name, rows)
        for member_id, client in clients.items():
            self._record.members.learn(member_id, client)
        self._parts: dict[type[GroupPart], GroupPart] = {}
        self._clients: dict[tuple[int, str], ClientMember] = {}

    def add(self, one: Observation, configuration: Observation | None, refused: Observation | None) -> None:
        """``configuration``: that of the broker whose log it is, as it was logged last. ``refused``: the last
        line that says that the group's partition of __consumer_offsets took no records."""
        record = self._record
        record.summary.is_only_described &= one.kind in (DESCRIBED, LOG_ENDS)
        record.is_connect = record.is_connect or one.kind == WORKER_CONFIG or WORKER in one.fields
        kind = _PARTS.get(one.kind)
        if kind is not None:
            record.begin(one)
            record.coordinated(one, configuration)
            record.append_refused = refused or record.append_refused
            self._part(kind).take(one)
        elif one.fields.get("client"):
            self._add_to_client(one)

    def finish(self) -> GroupRecord | None:
        """Close what is open. None if the lines say nothing that makes a row."""
        parts = self._parts
        last = parts.get(ModernGroup), parts.get(StreamsThreads)
        if ClassicRounds in parts:
            parts[ClassicRounds].finish()
        self._record.close_rounds()  # of classic members only the next rounds may tell that they went
        for part in (*self._clients.values(), *last):
            if part is not None:
                part.finish()
        if self._record.last is None:
            return None
        self._record.finish()
        return self._record

    def _add_to_client(self, one: Observation) -> None:
        record = self._record
        key = (one.source, one.fields.get("process") or one.fields["client"])
        client = self._clients.get(key)
        if client is None:
            kind = OtherMember if one.fields.get("other") else ClientMember
            client = self._clients[key] = kind(record, one.fields["client"])
            record.on_removal.append(client.removed_id)
        handler = client.HANDLERS.get(one.kind)
        if handler is not None:
            if one.kind.startswith("thread-"):  # alone they say nothing of the group
                one = record.here(one)
            else:
                record.begin(one)
            client.take(one, handler)

    def _part(self, kind: type[GroupPart]) -> GroupPart:
        """The part of a group, which is made when it is needed first."""
        if kind not in self._parts:
            others = [self._part(ClassicRounds)] if kind is WrittenGenerations else []
            self._parts[kind] = kind(self._record, *others)
        return self._parts[kind]
