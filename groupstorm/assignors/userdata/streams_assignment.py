"""AssignmentInfo, the leader's message to each member of a Streams group, in versions 1 to 11 and our 12.

Version 2 added the host that serves each partition's state, 3 the latest version that all members know, 4
an error code, 5 a dictionary of topics, 6 the standbys' endpoints, 7 the time of the next rebalance, 10
named topologies. Version 12 is not Kafka's: KIP-441's draft wanted to tell members of an imbalance (error
code 5) and perhaps which standbys to watch; an empty list means all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from struct import pack
from typing import NamedTuple

from groupstorm.assignors.userdata.streams import (
    INT64,
    UNKNOWN_VERSION,
    WATCH_LIST_VERSION,
    AssignorError,
    FieldReader,
    StreamsTask,
    read_task,
    read_utf,
    task_bytes,
    task_id_bytes_min,
    utf,
)
from groupstorm.assignors.userdata.wire import TopicPartition, UserDataError, read_int32

#: ``nextRebalanceMs`` if no rebalance is scheduled; 0 means at once.
NO_REBALANCE_MS = (1 << 63) - 1
_MIN_HOST_BYTES = 10
_MIN_PARTITION_BYTES = 6


class HostInfo(NamedTuple):
    """The endpoint at which a member serves queries."""

    host: str
    port: int


Hosts = Mapping[HostInfo, Sequence[TopicPartition]]
Standbys = Mapping[StreamsTask, Sequence[TopicPartition]]

_NO_HOSTS: Hosts = {}
_NO_STANDBYS: Standbys = {}


class AssignmentInfo(NamedTuple):
    """``active``: one task for each assigned partition, in their order, so a task with two partitions is
    listed twice.

    ``standby``: task -> its input partitions. ``next_rebalance_ms``: when the member asks for a rebalance,
    in milliseconds since the epoch.
    """

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
    parts = [pack(">i", version)]
    if version >= 3:
        parts.append(pack(">i", info.commonly_supported_version))
    parts.append(_tasks(info.active, version))
    parts.append(pack(">i", len(info.standby)))
    parts += [task_bytes(task, version) + _partitions(own) for task, own in info.standby.items()]
    if 2 <= version <= 4:
        parts.append(pack(">i", len(info.hosts)))
        parts += [_host(host) + _partitions(own) for host, own in info.hosts.items()]
    elif version == 5:
        parts += _with_dictionary(info.hosts)
    elif version >= 6:
        parts += _with_dictionary(info.hosts, info.standby_hosts)
    if version >= 4:
        parts.append(pack(">i", info.error_code))
    if version >= 7:
        parts.append(INT64.pack(info.next_rebalance_ms))
    if version >= WATCH_LIST_VERSION:
        parts.append(_tasks(info.watch, version))
    return b"".join(parts)


def _tasks(tasks: Sequence[StreamsTask], version: int) -> bytes:
    return pack(">i", len(tasks)) + b"".join(task_bytes(task, version) for task in tasks)


def _partitions(partitions: Sequence[TopicPartition]) -> bytes:
    return pack(">i", len(partitions)) + b"".join(
        utf(topic) + pack(">i", partition) for topic, partition in partitions
    )


def _host(host: HostInfo) -> bytes:
    return utf(host.host) + pack(">i", host.port)


def _with_dictionary(*maps: Hosts) -> Iterable[bytes]:
    """Topics by number, then each map of hosts with these numbers."""
    topics = dict.fromkeys(topic for hosts in maps for own in hosts.values() for topic, _ in own)
    numbers = {topic: number for number, topic in enumerate(topics)}
    yield pack(">i", len(numbers)) + b"".join(
        pack(">i", number) + utf(topic) for topic, number in numbers.items()
    )
    for hosts in maps:
        yield pack(">i", len(hosts))
        for host, own in hosts.items():
            yield _host(host) + pack(">i", len(own))
            yield b"".join(pack(">ii", numbers[topic], partition) for topic, partition in own)


def decode_assignment_info(data: bytes) -> AssignmentInfo:
    """The assignment; `UserDataError` for a version that is neither Kafka's nor ours."""
    version, at = read_int32(data, 0)
    if not 1 <= version <= WATCH_LIST_VERSION:
        raise UserDataError(
            f"Unable to decode assignment data: used version: {version}; "
            f"latest supported version: {WATCH_LIST_VERSION}"
        )
    return _AssignmentReader(data, at, version).read()


class _AssignmentReader(FieldReader):
    def read(self) -> AssignmentInfo:
        version = self._version
        common = self._int32() if version >= 3 else UNKNOWN_VERSION
        active = self._tasks()
        standby = {}
        for _ in range(self._count(task_id_bytes_min(version) + 4)):
            task = self._task()
            standby[task] = self._partitions()
        hosts: dict[HostInfo, list[TopicPartition]] = {}
        standby_hosts: dict[HostInfo, list[TopicPartition]] = {}
        if 2 <= version <= 4:
            for _ in range(self._count(_MIN_HOST_BYTES)):
                host = self._host()
                hosts[host] = self._partitions()
        elif version >= 5:
            topics = self._topics()
            hosts = self._hosts(topics)
            standby_hosts = self._hosts(topics) if version >= 6 else {}
        code = self._int32() if version >= 4 else int(AssignorError.NONE)
        following = self._int64() if version >= 7 else NO_REBALANCE_MS
        watch = self._tasks() if version >= WATCH_LIST_VERSION else []
        return AssignmentInfo(version, common, active, standby, hosts, standby_hosts, code, following, watch)

    def _utf(self) -> str:
        text, self._at = read_utf(self._data, self._at)
        return text

    def _task(self) -> StreamsTask:
        task, self._at = read_task(self._data, self._at, self._version)
        return task

    def _tasks(self) -> list[StreamsTask]:
        return [self._task() for _ in range(self._count(task_id_bytes_min(self._version)))]

    def _host(self) -> HostInfo:
        return HostInfo(self._utf(), self._int32())

    def _partitions(self) -> list[TopicPartition]:
        count = self._count(_MIN_PARTITION_BYTES)
        return [TopicPartition(self._utf(), self._int32()) for _ in range(count)]

    def _topics(self) -> dict[int, str]:
        topics: dict[int, str] = {}
        for _ in range(self._count(_MIN_PARTITION_BYTES)):
            number = self._int32()
            topics[number] = self._utf()
        return topics

    def _hosts(self, topics: Mapping[int, str]) -> dict[HostInfo, list[TopicPartition]]:
        hosts: dict[HostInfo, list[TopicPartition]] = {}
        for _ in range(self._count(_MIN_HOST_BYTES)):
            host = self._host()
            own = hosts[host] = []
            for _ in range(self._count(8)):
                number, partition = self._int32(), self._int32()
                if number not in topics:
                    raise UserDataError(f"topic number {number} at {self._at - 8} is not in the dictionary")
                own.append(TopicPartition(topics[number], partition))
        return hosts
