"""The endpoints of a group's members and what can be asked there (KIP-1071's interactive queries).

Kafka: StreamsGroup.buildEndpointToPartitions, EndpointToPartitionsManager.
"""

from __future__ import annotations

from collections.abc import Iterable

from groupstorm.assignors.streams.groups import Task
from groupstorm.coordinator.errors import CoordinatorFault
from groupstorm.coordinator.shard import Shard
from groupstorm.coordinator.streams.group import StreamsGroup
from groupstorm.coordinator.streams.member import StreamsMember, listed
from groupstorm.coordinator.streams.messages import EndpointPartitions


def endpoints_of(
    shard: Shard, group: StreamsGroup, member: StreamsMember, replaced: StreamsMember | None
) -> tuple[EndpointPartitions, ...]:
    """One entry per member that has an endpoint, ``member`` as it is now; entries are kept until they change.

    `CoordinatorFault` while the numbers of tasks are unknown.
    """
    left_out = {member.member_id, *(() if replaced is None else (replaced.member_id,))}
    others = [one for one in group.members.values() if one.member_id not in left_out]
    entries = []
    for one in (*others, member):
        if one.endpoint is None:
            continue
        entry = group.endpoints.get(one.member_id)
        if entry is None:
            entry = group.endpoints[one.member_id] = _entry(shard, group, one, one.endpoint)
        entries.append(entry)
    return tuple(entries)


def _entry(
    shard: Shard, group: StreamsGroup, member: StreamsMember, endpoint: tuple[str, int]
) -> EndpointPartitions:
    others = member.assigned.standby | member.assigned.warmup
    return (
        *endpoint,
        _partitions(shard, group, member.assigned.active),
        _partitions(shard, group, others),
    )


def _partitions(shard: Shard, group: StreamsGroup, tasks: Iterable[Task]) -> dict[str, tuple[int, ...]]:
    """The partitions of source and repartition topics that these tasks read, by topic."""
    subtopologies = None if group.configured is None else group.configured.subtopologies
    if subtopologies is None:
        raise CoordinatorFault("the tasks of the topology are not known, so no endpoint can be listed")
    partitions: dict[str, tuple[int, ...]] = {}
    for name, numbers in listed(tasks):
        one = subtopologies[name]
        for topic in dict.fromkeys(one.topics.inputs):
            known = shard.topics.by_name.get(topic)
            if known is None:
                raise CoordinatorFault(f"Topic {topic} not found in metadata image")
            if shard.config.compatibility.is_4_4:
                read = tuple(number for number in numbers if number < known.partitions)
            else:  # Kafka 4.3.1 names partitions that do not exist
                read = numbers[: known.partitions] if known.partitions < len(numbers) else numbers
            if read or not shard.config.compatibility.is_4_4:
                partitions[topic] = read
    return partitions
