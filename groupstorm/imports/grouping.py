"""Observations of all groups, from the order of time to one group after the other.

A cluster has hundreds of thousands of groups: only one at a time is held in memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import Final

from groupstorm.imports.line_owners import UNNAMED_GROUP
from groupstorm.imports.observation import Observation
from groupstorm.imports.spill import Item, SpillingSorter
from groupstorm.imports.templates.catalogues import APPEND_REFUSED, BROKER_CONFIG
from groupstorm.imports.timeline.appends import partition_of

#: An observation of a group, its place among all, the configuration that its broker has logged last, and the
#: last line that says that the group's partition of __consumer_offsets took no records.
Placed = tuple[Observation, int, Observation | None, Observation | None]
#: Kinds of lines that say enough without a group.
_TELLING: Final = frozenset({"fenced", "thread-fenced", "thread-died"})
_WORDS = re.compile(r"[^\s,;'\"()\[\]{}]+")


class ObservationsByGroup:
    """Takes all observations in the order of time; `groups` gives them group by group.

    ``ungrouped``: the member ids of lines that name a member and no group. They belong to the group of which
    an earlier line names the member.
    """

    def __init__(self, ungrouped: Iterable[str]) -> None:
        self._sorter = SpillingSorter(key=itemgetter(0, 1))
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

    def add(self, one: Observation) -> None:
        """Lines of a broker about no group count from the next line of a group on."""
        if one.kind in (BROKER_CONFIG, APPEND_REFUSED):
            self._add_of_broker(one)
            return
        order, self._count = self._count, self._count + 1
        self.began_us = one.time_us if order == 0 else self.began_us
        self.ended_us = one.time_us
        group = one.group or self._groups_of.get(one.fields.get("old_member_id", ""), "")
        if not group and one.kind in _TELLING:
            group = next(iter(self._numbers)) if len(self._numbers) == 1 else UNNAMED_GROUP
        if not group:
            return
        if self._groups_of:
            named = self._groups_of.keys() & _WORDS.findall(str(one.fields))
            self._groups_of.update(dict.fromkeys(named, group))
        number = self._numbers.setdefault(group, len(self._numbers))
        refused = self._refusing.get(partition_of(one)) if self._refusing else None
        if refused is not None:
            self._referred.add(refused)
        self._sorter.add((number, order, self._configured.get(one.source), refused, *one))

    def _add_of_broker(self, one: Observation) -> None:
        number = len(self._of_brokers)
        if one.kind == BROKER_CONFIG:
            self._configured[one.source] = number
        else:
            partition = partition_of(one)
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
        _, order, configured, refused, *said = item
        return Observation(*said), order, self._of_broker(configured), self._of_broker(refused)

    def _of_broker(self, number: int | None) -> Observation | None:
        return None if number is None else self._of_brokers[number]
