"""Observations of all groups, from the order of time to one group after the other.

A cluster has hundreds of thousands of groups: only one at a time is held in memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter

from groupstorm.imports.observation import Observation
from groupstorm.imports.spill import Item, SpillingSorter
from groupstorm.imports.templates.bare import BROKER_CONFIG

#: An observation of a group, its place among all, and the configuration that its broker has logged last.
Placed = tuple[Observation, int, Observation | None]
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
        #: Configurations that brokers have logged, and by log the number of the last one.
        self._configurations: list[Observation] = []
        self._configured: dict[int, int] = {}
        self._groups_of = dict.fromkeys(ungrouped, "")
        self.began_us = self.ended_us = 0

    def add(self, one: Observation) -> None:
        """The configuration of a broker counts from the next line of a group on."""
        if one.kind == BROKER_CONFIG:
            self._configured[one.source] = len(self._configurations)
            self._configurations.append(one)
            return
        order, self._count = self._count, self._count + 1
        self.began_us = one.time_us if order == 0 else self.began_us
        self.ended_us = one.time_us
        group = one.group or self._groups_of.get(one.fields.get("old_member_id", ""), "")
        if not group:
            return
        if self._groups_of:
            named = self._groups_of.keys() & _WORDS.findall(str(one.fields))
            self._groups_of.update(dict.fromkeys(named, group))
        number = self._numbers.setdefault(group, len(self._numbers))
        self._sorter.add((number, order, self._configured.get(one.source), *one))

    def groups(self) -> Iterator[tuple[str, Iterator[Placed]]]:
        """The groups in the order of their first observations; to be called once."""
        names = iter(self._numbers)
        for _, items in groupby(self._sorter.sorted(), key=itemgetter(0)):
            yield next(names), map(self._placed, items)

    def _placed(self, item: Item) -> Placed:
        _, order, configured, *said = item
        return Observation(*said), order, None if configured is None else self._configurations[configured]
