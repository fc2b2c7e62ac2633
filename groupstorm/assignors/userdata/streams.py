"""The user data of Kafka Streams: SubscriptionInfo and AssignmentInfo, versions 1 to 11 and our 12.

Both begin with an int32 version; integers are big endian. Members of several versions work together: the
leader answers in the lowest version of any subscription, and a leader that meets an unknown version asks all
members to use a lower one (version probing).

A subscription names the active and the standby tasks up to version 6, from 7 on the offset sum of each task's
state (-2 for a running active task, -3 for unknown). Each version adds a field: the endpoint in 2, the latest
version that the member knows in 3, a number that makes every subscription differ in 8 (KAFKA-10455), an error
code in 9, named topologies in 10, client tags in 11.

In an assignment version 2 added the host that serves each partition's state, 3 the latest version that all
members know, 4 an error code, 5 a dictionary of topics, 6 the standbys' endpoints, 7 the time of the next
rebalance, 10 named topologies. Version 12 is not Kafka's: KIP-441's draft wanted to tell members of an
imbalance (error code 5) and perhaps which standbys to watch; an empty list means all of them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import IntEnum
from struct import Struct, error, pack
from typing import NamedTuple
from uuid import UUID

from groupstorm.assignors.userdata.wire import (
    INT16,
    INT32,
    TopicPartition,
    UserDataError,
    from_utf8,
    nullable_bytes,
    string,
    to_utf8,
)

#: StreamsAssignmentProtocolVersions.
LATEST_SUPPORTED_VERSION = 11
EARLIEST_PROBEABLE_VERSION = 3
MIN_NAMED_TOPOLOGY_VERSION = 10
#: Versions 1 and 2 do not state the latest version that the sender knows.
UNKNOWN_VERSION = -1

#: Ours, for KIP-441's draft: Kafka's version 11, the error code 5, and a list of standbys to watch.
WATCH_LIST_VERSION = 12

INT8 = Struct(">b")
INT64 = Struct(">q")
_UINT16 = Struct(">H")
_MAX_UTF_BYTES = 0xFFFF


class AssignorError(IntEnum):
    """Kafka's error codes of assignments, and that of KIP-441's draft (from our version 12)."""

    NONE = 0
    INCOMPLETE_SOURCE_TOPIC_METADATA = 1
    VERSION_PROBING = 2
    ASSIGNMENT_ERROR = 3
    SHUTDOWN_REQUESTED = 4
    IMBALANCED_ASSIGNMENT = 5


class TaskId(NamedTuple):
    """A partition of a sub-topology, ordered and printed as Kafka's; ``topology`` "" if it has no name."""

    topology: str
    subtopology: int
    partition: int

    def __str__(self) -> str:
        number = f"{self.subtopology}_{self.partition}"
        return f"{self.topology}__{number}" if self.topology else number


def array(elements: Collection[bytes]) -> bytes:
    """An array's bytes."""
    return INT32.pack(len(elements)) + b"".join(elements)


def _named_topologies_refused(version: int) -> UserDataError:
    """Kafka's error if a task of a named topology is written in a version below 10."""
    return UserDataError(f"Named topologies are not compatible with protocol version {version}")


def utf(text: str) -> bytes:
    """``DataOutput.writeUTF``: NUL takes two bytes, a character beyond 16 bits two surrogates of three."""
    halves = text.encode("utf-16-be", "surrogatepass")
    encoded = b"".join(
        chr(high << 8 | low).encode("utf-8", "surrogatepass")
        for high, low in zip(halves[::2], halves[1::2], strict=True)
    ).replace(b"\0", b"\xc0\x80")
    if len(encoded) > _MAX_UTF_BYTES:
        raise UserDataError(f"a string of {len(encoded)} bytes: at most {_MAX_UTF_BYTES} can be written")
    return _UINT16.pack(len(encoded)) + encoded


#: Task.LATEST_OFFSET: the offset sum, and the lag, of a task that is running as active.
LATEST_OFFSET = -2
#: SubscriptionInfo.UNKNOWN_OFFSET_SUM: somebody has the task and cannot say how far.
UNKNOWN_OFFSET_SUM = -3
_MIN_OFFSET_SUM_VERSION = 7
_UUID_BYTES = 16


class SubscriptionInfo(NamedTuple):
    """``endpoint`` None: no queries. Of a version above the latest only the two versions are known."""

    version: int
    latest_supported_version: int
    process: UUID = UUID(int=0)
    endpoint: str | None = None
    offset_sums: Mapping[TaskId, int] = {}
    unique_field: int = 0
    error_code: int = 0
    client_tags: Mapping[str, str] = {}


def encode_subscription_info(info: SubscriptionInfo) -> bytes:
    """The bytes of a version from 1 to 11, without fields that the version lacks."""
    version = info.version
    if not 1 <= version <= LATEST_SUPPORTED_VERSION:
        raise UserDataError(f"version must be between 1 and {LATEST_SUPPORTED_VERSION}; was: {version}")
    if version < MIN_NAMED_TOPOLOGY_VERSION and any(task.topology for task in info.offset_sums):
        raise _named_topologies_refused(version)
    parts = [INT32.pack(version)]
    if version >= 3:
        parts.append(INT32.pack(info.latest_supported_version))
    parts.append(info.process.bytes)
    if version < _MIN_OFFSET_SUM_VERSION:
        parts += _previous_tasks(info.offset_sums)
    if version >= 2:
        parts.append(_text(info.endpoint or ""))
    if version >= MIN_NAMED_TOPOLOGY_VERSION:
        parts.append(_named_offset_sums(info.offset_sums))
    elif version >= _MIN_OFFSET_SUM_VERSION:
        parts.append(_grouped_offset_sums(info.offset_sums))
    if version >= 8:
        parts.append(INT8.pack(info.unique_field))
    if version >= 9:
        parts.append(INT32.pack(info.error_code))
    if version >= 11:
        parts.append(array([_text(key) + _text(value) for key, value in info.client_tags.items()]))
    return b"".join(parts)


def _text(text: str) -> bytes:
    return nullable_bytes(to_utf8(text))


def _previous_tasks(sums: Mapping[TaskId, int]) -> list[bytes]:
    """The active tasks, then the standbys."""
    kinds: tuple[list[bytes], list[bytes]] = ([], [])
    for task, offset in sums.items():
        kinds[offset != LATEST_OFFSET].append(pack(">ii", task.subtopology, task.partition))
    return [array(kind) for kind in kinds]


def _named_offset_sums(sums: Mapping[TaskId, int]) -> bytes:
    return array(
        [
            pack(">iiq", task.subtopology, task.partition, offset)
            + (string(task.topology) if task.topology else INT16.pack(-1))
            for task, offset in sums.items()
        ]
    )


def _grouped_offset_sums(sums: Mapping[TaskId, int]) -> bytes:
    groups: dict[int, list[bytes]] = {}
    for task, offset in sums.items():
        groups.setdefault(task.subtopology, []).append(pack(">iq", task.partition, offset))
    return array([INT32.pack(subtopology) + array(tasks) for subtopology, tasks in groups.items()])


def decode_subscription_info(data: bytes) -> SubscriptionInfo:
    """The subscription. Of an unknown version only the fields that all versions share are read."""
    reader = _Reader(data)
    version = reader.number()
    latest = UNKNOWN_VERSION if version < 3 else reader.number()
    if version < 1 or (version >= 3 and latest < version):
        highest = LATEST_SUPPORTED_VERSION if version < 1 else latest
        raise UserDataError(f"version must be between 1 and {highest}; was: {version}")
    if version > LATEST_SUPPORTED_VERSION:
        return SubscriptionInfo(version, latest)
    process = UUID(bytes=reader.bytes(_UUID_BYTES))
    sums: dict[TaskId, int] = {}
    if version < _MIN_OFFSET_SUM_VERSION:
        sums.update(dict.fromkeys(reader.tasks(version), LATEST_OFFSET))
        sums.update(dict.fromkeys(reader.tasks(version), UNKNOWN_OFFSET_SUM))
    endpoint = reader.text() if version >= 2 else ""
    if version >= MIN_NAMED_TOPOLOGY_VERSION:
        sums = reader.named_offset_sums()
    elif version >= _MIN_OFFSET_SUM_VERSION:
        sums = reader.grouped_offset_sums()
    unique = reader.number(INT8) if version >= 8 else 0
    code = reader.number() if version >= 9 else 0
    tags = {reader.text(): reader.text() for _ in reader.array(8)} if version >= 11 else {}
    return SubscriptionInfo(version, latest, process, endpoint or None, sums, unique, code, tags)


#: ``nextRebalanceMs`` if no rebalance is scheduled; 0 means at once.
NO_REBALANCE_MS = (1 << 63) - 1
_MIN_TASK_BYTES = 8
_MIN_HOST_BYTES = 10
_MIN_PARTITION_BYTES = 6


class HostInfo(NamedTuple):
    host: str
    port: int


Hosts = Mapping[HostInfo, Sequence[TopicPartition]]
_NO_HOSTS: Hosts = {}


class AssignmentInfo(NamedTuple):
    """``active``: the task of each assigned partition; ``standby``: task -> its input partitions."""

    version: int
    commonly_supported_version: int = UNKNOWN_VERSION
    active: Sequence[TaskId] = ()
    standby: Mapping[TaskId, Sequence[TopicPartition]] = {}
    hosts: Hosts = _NO_HOSTS
    standby_hosts: Hosts = _NO_HOSTS
    error_code: int = AssignorError.NONE
    next_rebalance_ms: int = NO_REBALANCE_MS
    watch: Sequence[TaskId] = ()


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


def _task(task: TaskId, version: int) -> bytes:
    """A task id (ConsumerProtocolUtils): from version 10 on with the UTF-16 units of its named topology."""
    if version < MIN_NAMED_TOPOLOGY_VERSION:
        if task.topology:
            raise _named_topologies_refused(version)
        return pack(">ii", task.subtopology, task.partition)
    name = task.topology.encode("utf-16-be", "surrogatepass")
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
    reader = _Reader(data)
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


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def number(self, kind: Struct = INT32) -> int:
        """A number of this size."""
        try:
            number: int = kind.unpack_from(self._data, self._at)[0]
        except error:
            end = len(self._data)
            raise UserDataError(
                f"the bytes end at {end}, within a number of {kind.size} bytes at {self._at}"
            ) from None
        self._at += kind.size
        return number

    def bytes(self, length: int) -> bytes:
        """The next ``length`` bytes."""
        start, left = self._at, len(self._data) - self._at
        if not 0 <= length <= left:
            raise UserDataError(f"{length} bytes at {start}, with {left} bytes left")
        self._at += length
        return self._data[start : self._at]

    def array(self, element_bytes: int) -> range:
        """A number for each element; every element takes at least ``element_bytes``."""
        count, left = self.number(), len(self._data) - self._at
        if not 0 <= count <= left // element_bytes:
            raise UserDataError(f"{count} elements at {self._at - INT32.size}, with {left} bytes left")
        return range(count)

    def utf(self) -> str:
        """``DataInput.readUTF``: an unsigned int16 length and Java's modified UTF-8."""
        data = self.bytes(self.number(_UINT16))
        try:
            units = data.replace(b"\xc0\x80", b"\0").decode("utf-8", "surrogatepass")
            return units.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "surrogatepass")
        except UnicodeDecodeError as problem:
            raise UserDataError(f"a malformed string before {self._at}: {problem.reason}") from problem

    def text(self) -> str:
        return from_utf8(self.bytes(self.number()))

    def named_offset_sums(self) -> dict[TaskId, int]:
        sums = {}
        for _ in self.array(8 + INT64.size + 2):
            subtopology, partition, offset = self.number(), self.number(), self.number(INT64)
            length = self.number(INT16)
            name = from_utf8(self.bytes(max(length, 0)))
            sums[TaskId(name, subtopology, partition)] = offset
        return sums

    def grouped_offset_sums(self) -> dict[TaskId, int]:
        sums = {}
        for _ in self.array(8):
            subtopology = self.number()
            for _ in self.array(4 + INT64.size):
                task = TaskId("", subtopology, self.number())
                sums[task] = self.number(INT64)
        return sums

    def task(self, version: int) -> TaskId:
        subtopology, partition = self.number(), self.number()
        if version < MIN_NAMED_TOPOLOGY_VERSION:
            return TaskId("", subtopology, partition)
        name = self.bytes(2 * len(self.array(2))).decode("utf-16-be", "surrogatepass")
        return TaskId(name, subtopology, partition)

    def tasks(self, version: int) -> list[TaskId]:
        return [self.task(version) for _ in self.array(_MIN_TASK_BYTES)]

    def host(self) -> HostInfo:
        return HostInfo(self.utf(), self.number())

    def partitions(self) -> list[TopicPartition]:
        return [TopicPartition(self.utf(), self.number()) for _ in self.array(_MIN_PARTITION_BYTES)]

    def hosts(self, topics: Mapping[int, str]) -> dict[HostInfo, list[TopicPartition]]:
        return {
            self.host(): [self.partition_of(topics) for _ in self.array(8)]
            for _ in self.array(_MIN_HOST_BYTES)
        }

    def partition_of(self, topics: Mapping[int, str]) -> TopicPartition:
        topic, partition = self.number(), self.number()
        if topic not in topics:
            raise UserDataError(f"topic number {topic} is not in the dictionary")
        return TopicPartition(topics[topic], partition)
