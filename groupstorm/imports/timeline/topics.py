"""Topics that a group had and has no more: no log says that one was deleted, complete assignments show it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from groupstorm.history.coordinator_view import is_cooperative
from groupstorm.history.unknown import TOPICS
from groupstorm.imports.provenance import Rows, Why
from groupstorm.imports.source import Observation
from groupstorm.trace.events.imported import EvidenceMissing
from groupstorm.trace.events.scenario import PartitionsDeleted
from groupstorm.trace.schema import Source

_GONE: Final = (
    "no complete assignment has the topic any more, so it was deleted, or nobody subscribes to it; members "
    "that had it"
)
_STILL_THERE, _AWAY = f"{_GONE} are still there", f"{_GONE} have gone"


@dataclass(slots=True)
class _Topic:
    """``owners``, ``had_us``: the members that had some of it in the last assignment with it, and when.

    ``lack``: the first complete assignment without it. ``is_sure``: it is no first half of a
    handover, in which a cooperative member gives up what its successor gets later.
    """

    #: Its partitions, and whether a complete assignment has had each.
    partitions: dict[str, bool] = field(default_factory=dict)
    owners: set[str] = field(default_factory=set)
    had_us: int = 0
    taken_us: int = 0
    lack: Observation | None = None
    is_sure: bool = False
    has_owner_there: bool = False
    #: The first line by which a member gave it up since a member has taken it.
    given_up: Observation | None = None


def _topic_of(partition: str) -> str:
    return partition.rpartition("-")[0]


class LostTopics:
    """Takes the complete assignments of one group in their order, and what its members take and give up."""

    def __init__(self) -> None:
        self._topics: dict[str, _Topic] = {}

    def taken(self, partitions: Iterable[str], line: Observation) -> None:
        for topic in self._of(partitions):
            topic.given_up, topic.taken_us = None, line.time_us

    def given_up(self, partitions: Iterable[str], line: Observation) -> None:
        for topic in self._of(partitions):
            if topic.given_up is None or topic.given_up.time_us <= topic.had_us:
                topic.given_up = line

    def assigned(
        self, plan: Mapping[str, Sequence[str]], protocol: str | None, line: Observation
    ) -> list[str]:
        """Return the partitions that are new: earlier assignments had none of them, if there was any.

        ``plan``: member id -> partitions, of every member of the group.
        """
        owners: dict[int, set[str]] = {}
        new, is_first = [], not any(topic.owners for topic in self._topics.values())
        for member_id, partitions in plan.items():
            for topic in self._of(partitions):
                owners.setdefault(id(topic), set()).add(member_id)
            for partition in partitions:
                known = self._topics[_topic_of(partition)].partitions
                if not known[partition] and not is_first:
                    new.append(partition)
                known[partition] = True
        for topic in self._topics.values():
            if id(topic) in owners:
                topic.owners, topic.had_us, topic.lack = owners[id(topic)], line.time_us, None
            elif topic.lack is not None:
                topic.is_sure = True
            else:
                topic.lack, topic.is_sure = line, not is_cooperative(protocol)
                topic.has_owner_there = bool(owners) and not topic.owners.isdisjoint(plan)
        return new

    def finish(self, group: str, rows: Rows) -> str:
        """No more lines come: the sentence on topics of which nobody knows whether they need an owner."""
        unknown = ""
        for name, topic in self._topics.items():
            if topic.lack is None or topic.taken_us > topic.lack.time_us:
                continue
            at, known_us = topic.lack, topic.lack.time_us
            if topic.given_up is not None and topic.had_us < topic.given_up.time_us < known_us:
                at = topic.given_up
            elif not topic.is_sure:
                continue
            event = PartitionsDeleted(group, (name,), tuple(topic.partitions))
            rule = _STILL_THERE if topic.has_owner_there else _AWAY
            why = Why([at, topic.lack], rule, None, known_us, inferred=True)
            rows.add(at, Source.WORLD, event, why, -4)
            if not topic.has_owner_there:
                unknown = unknown or (
                    f"whether {name} still needs an owner (no assignment has it any more, and members that "
                    "had it have gone), so its time without an owner counts until then"
                )
                missing = EvidenceMissing(group, TOPICS, None, unknown)
                rows.add(at, Source.WORLD, missing, Why([topic.lack], missing=True), -4)
        return unknown

    def _of(self, partitions: Iterable[str]) -> Iterable[_Topic]:
        """The topics of these partitions, each once."""
        found: dict[str, _Topic] = {}
        for partition in partitions:
            name = _topic_of(partition)
            topic = found[name] = self._topics.setdefault(name, _Topic())
            topic.partitions.setdefault(partition, False)
        return found.values()
