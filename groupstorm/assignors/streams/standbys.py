"""Placement of standby replicas: on the least loaded clients, or on clients with other tags (KIP-708).

DefaultStandbyTaskAssignor and ClientTagAwareStandbyTaskAssignor. If there are too few clients, fewer
standbys are placed; Kafka logs a warning.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from groupstorm.assignors.streams.balancing import LeastLoaded
from groupstorm.assignors.streams.model import Config, Placement, StreamsGroup, TagsOrRacks
from groupstorm.javahash import hash_order

Tags = Mapping[str, str]


def standby_assignor(group: StreamsGroup, config: Config) -> LoadAware:
    """StandbyTaskAssignorFactory: by tags if any are configured, by racks only with ``tags_or_racks``."""
    if config.tags_or_racks is TagsOrRacks.RACKS and all(client.rack for client in group.clients):
        return ClientTagAware(group, [{"rack": client.rack or ""} for client in group.clients], ("rack",))
    if config.rack_aware_tags:
        return ClientTagAware(group, [client.tags for client in group.clients], config.rack_aware_tags)
    return LoadAware()


class LoadAware:
    """DefaultStandbyTaskAssignor."""

    def assign(self, placement: Placement, tasks: Sequence[int], replicas: int) -> None:
        """Place ``replicas`` standbys of each task; the active ones are placed already."""
        queue = LeastLoaded(placement.load, placement.clients)
        for task in tasks:
            _place_on_least_loaded(placement, queue, task, replicas)

    def may_balance(self, source: int, destination: int) -> bool:
        """Whether a task may be moved so that loads become more even."""
        return True

    def may_move(self, source: int, destination: int, task: int, placement: Placement) -> bool:
        """Whether this task may be moved for less traffic."""
        return True


def _place_on_least_loaded(placement: Placement, queue: LeastLoaded, task: int, replicas: int) -> None:
    """Standbys of a task on clients that do not have it; fewer if there are too few clients."""
    for _ in range(replicas):
        client = queue.poll(lambda candidate: not placement.has(candidate, task))
        if client is None:
            return
        placement.standby[client].add(task)
        queue.offer(client)


class ClientTagAware(LoadAware):
    """ClientTagAwareStandbyTaskAssignor: no two copies of a task on clients that share a tag's value.

    A tag counts until a task has as many copies as the tag has values. Standbys without a place go to
    the least loaded clients, in the order of a HashMap by task.
    """

    def __init__(self, group: StreamsGroup, tags: Sequence[Tags], names: Sequence[str]) -> None:
        self._group = group
        self._tags = tags
        self._names = frozenset(names)
        self._values: dict[str, set[str]] = {}
        self._having: dict[tuple[str, str], set[int]] = {}
        for client, own in enumerate(tags):
            for entry in own.items():
                self._values.setdefault(entry[0], set()).add(entry[1])
                self._having.setdefault(entry, set()).add(client)

    def assign(self, placement: Placement, tasks: Sequence[int], replicas: int) -> None:
        owners = placement.owners()
        queue = LeastLoaded(placement.load)
        missing: dict[int, int] = {}
        for task in tasks:
            left = replicas
            if task in owners:
                left = self._place(placement, queue, task, owners[task], replicas)
            if left:
                missing[task] = left
        for client in placement.clients:
            queue.offer(client)
        for task in hash_order(tasks, self._group.task_hash):
            if task in missing:
                _place_on_least_loaded(placement, queue, task, missing[task])

    def _place(self, placement: Placement, queue: LeastLoaded, task: int, owner: int, replicas: int) -> int:
        """Standbys on clients of unused tags; returns how many found no place."""
        for client in placement.clients:
            queue.offer(client)
        used: dict[tuple[str, str], set[int]] = {}
        copy_on = owner
        for placed in range(replicas):
            self._use(copy_on, placed + 1, used)
            found = queue.poll(
                lambda candidate: (
                    not placement.has(candidate, task)
                    and not any(candidate in clients for clients in used.values())
                )
            )
            if found is None:
                return replicas - placed
            placement.standby[found].add(task)
            copy_on = found
        return 0

    def _use(self, client: int, copies: int, used: dict[tuple[str, str], set[int]]) -> None:
        """A copy is on this client: mark its tags as used, and stop looking at tags with too few values."""
        for tag, value in self._tags[client].items():
            if tag not in self._names:
                continue
            if len(self._values[tag]) <= copies:
                for other in self._values[tag]:
                    used.pop((tag, other), None)
            else:
                used[tag, value] = self._having[tag, value]

    def may_balance(self, source: int, destination: int) -> bool:
        """The destination has all tags of the source."""
        return self._tags[source].items() <= self._tags[destination].items()

    def may_move(self, source: int, destination: int, task: int, placement: Placement) -> bool:
        """The copies of the task would not be on fewer different tags than now."""
        others = {
            entry
            for client in placement.clients
            if client not in {source, destination} and placement.has(client, task)
            for entry in self._tags[client].items()
        }
        before = others | self._tags[source].items()
        after = others | self._tags[destination].items()
        return len(after) >= len(before)
