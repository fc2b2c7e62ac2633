"""AssignmentInfo, the leader's message to each member of a Streams group, in versions 1 to 11 and our 12.

Version 2 added the host that serves each partition's state, 3 the latest version that all members know, 4
an error code, 5 a dictionary of topics, 6 the standbys' endpoints, 7 the time of the next rebalance, 10
named topologies. Version 12 is not Kafka's: KIP-441's draft wanted to tell members of an imbalance (error
code 5) and perhaps which standbys to watch; an empty list means all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from struct import pack
from typing import NamedTuple

from groupstorm.assignors.userdata.streams import (
    INT64,
    MIN_NAMED_TOPOLOGY_VERSION,
    UNKNOWN_VERSION,
    WATCH_LIST_VERSION,
    AssignorError,
    FieldReader,
    StreamsTask,
    array,
    named_topologies_refused,
    utf,
)
from groupstorm.assignors.userdata.wire import INT32, TopicPartition, UserDataError

#: ``nextRebalanceMs`` if no rebalance is scheduled; 0 means at once.
NO_REBALANCE_MS = (1 << 63) - 1
_MIN_TASK_BYTES = 8
_MIN_HOST_BYTES = 10
_MIN_PARTITION_BYTES = 6


class HostInfo(NamedTuple):
    host: str
    port: int


Hosts = Mapping[HostInfo, Sequence[TopicPartition]]
Standbys = Mapping[StreamsTask, Sequence[TopicPartition]]

_NO_HOSTS: Hosts = {}
_NO_STANDBYS: Standbys = {}


class AssignmentInfo(NamedTuple):
    """``active``: the task of each assigned partition; ``standby``: task -> its input partitions."""

    version: int
    commonly_supported_version: int = UNKNOWN_VERSION
    active: Sequence[StreamsTask] = ()
    standby: Standbys = _NO_STANDBYS
    hosts: Hosts = _NO_HOSTS
    standby_hosts: Hosts = _NO_HOSTS
    error_code: int = AssignorError.NONE
    next_rebalance_ms: int = NO_REBALANCE_MS
    watch: Sequence[StreamsTask] = ()


def encode_assignment_info(info: AssignmentInfo) -> bytes:
    """The bytes in the assignment's version, without fields that the version lacks."""
    version = info.version
    if not 1 <= version <= WATCH_LIST_VERSION:
        raise UserDataError(f"version must be between 1 and {WATCH_LIST_VERSION}; was: {version}")
    parts = [INT32.pack(version)]
    if version >= 3:
        parts.append(INT32.pack(info.commonly_supported_version))
    parts.append(array([_task(task, version) for task in info.active]))
    parts.append(array([_task(task, version) + _partitions(own) for task, own in info.standby.items()]))
    if 2 <= version <= 4:
        parts.append(array([_host(host) + _partitions(own) for host, own in info.hosts.items()]))
    elif version >= 5:
        parts += _with_dictionary(*((info.hosts,) if version == 5 else (info.hosts, info.standby_hosts)))
    if version >= 4:
        parts.append(INT32.pack(info.error_code))
    if version >= 7:
        parts.append(INT64.pack(info.next_rebalance_ms))
    if version >= WATCH_LIST_VERSION:
        parts.append(array([_task(task, version) for task in info.watch]))
    return b"".join(parts)


def _task(task: StreamsTask, version: int) -> bytes:
    """A task id (ConsumerProtocolUtils): from version 10 on with the UTF-16 units of its named topology."""
    if version < MIN_NAMED_TOPOLOGY_VERSION:
        if task.topology is not None:
            raise named_topologies_refused(version)
        return pack(">ii", task.subtopology, task.partition)
    name = (task.topology or "").encode("utf-16-be", "surrogatepass")
    return pack(">iii", task.subtopology, task.partition, len(name) // 2) + name


def _partitions(partitions: Sequence[TopicPartition]) -> bytes:
    return array([utf(topic) + INT32.pack(partition) for topic, partition in partitions])


def _host(host: HostInfo) -> bytes:
    return utf(host.host) + INT32.pack(host.port)


def _with_dictionary(*maps: Hosts) -> list[bytes]:
    """Topics by number, then each map of hosts with these numbers."""
    topics = dict.fromkeys(topic for hosts in maps for own in hosts.values() for topic, _ in own)
    numbers = {topic: number for number, topic in enumerate(topics)}
    return [
        array([INT32.pack(number) + utf(topic) for topic, number in numbers.items()]),
        *(
            array(
                [
                    _host(host) + array([pack(">ii", numbers[topic], number) for topic, number in own])
                    for host, own in hosts.items()
                ]
            )
            for hosts in maps
        ),
    ]


def decode_assignment_info(data: bytes) -> AssignmentInfo:
    """The assignment; `UserDataError` for a version that is neither Kafka's nor ours."""
    reader = _AssignmentReader(data)
    version = reader.number()
    if not 1 <= version <= WATCH_LIST_VERSION:
        raise UserDataError(
            f"Unable to decode assignment data: used version: {version}; "
            f"latest supported version: {WATCH_LIST_VERSION}"
        )
    common = reader.number() if version >= 3 else UNKNOWN_VERSION
    active = reader.tasks(version)
    standby = {reader.task(version): reader.partitions() for _ in reader.array(_MIN_TASK_BYTES)}
    hosts: dict[HostInfo, list[TopicPartition]] = {}
    standby_hosts: dict[HostInfo, list[TopicPartition]] = {}
    if 2 <= version <= 4:
        hosts = {reader.host(): reader.partitions() for _ in reader.array(_MIN_HOST_BYTES)}
    elif version >= 5:
        topics = {reader.number(): reader.utf() for _ in reader.array(_MIN_PARTITION_BYTES)}
        hosts = reader.hosts(topics)
        standby_hosts = reader.hosts(topics) if version >= 6 else {}
    code = reader.number() if version >= 4 else int(AssignorError.NONE)
    following = reader.number(INT64) if version >= 7 else NO_REBALANCE_MS
    watch = reader.tasks(version) if version >= WATCH_LIST_VERSION else []
    return AssignmentInfo(version, common, active, standby, hosts, standby_hosts, code, following, watch)


class _AssignmentReader(FieldReader):
    def task(self, version: int) -> StreamsTask:
        subtopology, partition = self.number(), self.number()
        if version < MIN_NAMED_TOPOLOGY_VERSION:
            return StreamsTask(subtopology, partition)
        name = self.bytes(2 * len(self.array(2))).decode("utf-16-be", "surrogatepass")
        return StreamsTask(subtopology, partition, name or None)

    def tasks(self, version: int) -> list[StreamsTask]:
        return [self.task(version) for _ in self.array(_MIN_TASK_BYTES)]

    def host(self) -> HostInfo:
        return HostInfo(self.utf(), self.number())

    def partitions(self) -> list[TopicPartition]:
        return [TopicPartition(self.utf(), self.number()) for _ in self.array(_MIN_PARTITION_BYTES)]

    def hosts(self, topics: Mapping[int, str]) -> dict[HostInfo, list[TopicPartition]]:
        return {
            self.host(): [self._partition_of(topics) for _ in self.array(8)]
            for _ in self.array(_MIN_HOST_BYTES)
        }

    def _partition_of(self, topics: Mapping[int, str]) -> TopicPartition:
        topic, partition = self.number(), self.number()
        if topic not in topics:
            raise UserDataError(f"topic number {topic} is not in the dictionary")
        return TopicPartition(topics[topic], partition)
