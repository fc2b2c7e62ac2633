"""Sources of an import from a running cluster: the answers of coordinators about their groups, and the
records of the partition of `__consumer_offsets` that has a group, from its end on. Nothing here is a member
of a group."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import starmap
from typing import Any, ClassVar, Final

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.broker.log.batches import HEADER_BYTES, parse_stored
from groupstorm.clients.wire.admin import committed_offsets, describe_consumer_group, describe_group
from groupstorm.clients.wire.cluster import ClusterClient
from groupstorm.clients.wire.logs import FETCH, FetchSizes, OffsetReset, ask_leader, by_leader, fetch_request
from groupstorm.clients.wire.positions import Position
from groupstorm.coordinator.errors import Error
from groupstorm.imports.groups_command import DESCRIBED, LOG_ENDS
from groupstorm.imports.lines import Log
from groupstorm.imports.offsets_topic.meaning import CURRENT, RecordObserver, assigned_partitions
from groupstorm.imports.offsets_topic.segments import UnreadableBatch, announced, take_batch
from groupstorm.imports.prefixes import Writer
from groupstorm.imports.source import LogSource, Observation, topics_in
from groupstorm.imports.spill import SpillingSorter
from groupstorm.problems import InputError


class _Captured(LogSource):
    """Keeps observations on disk until the import asks for them."""

    def __init__(self, name: str, number: int) -> None:
        super().__init__(Log(name, ()), number)
        self._kept = SpillingSorter(key=lambda _: 0)  # in the order in which they come

    def observations(self) -> Iterator[Observation]:
        return starmap(Observation, self._kept.sorted())

    def place(self, line: int) -> str:
        return f"{self.log.name}:{line}"

    def keep(self, observations: Iterable[Observation]) -> None:
        """For the import, in this order."""
        for one in observations:
            self._kept.add(tuple(one))


class CapturedAnswers(_Captured):
    """Answers to DescribeGroups or ConsumerGroupDescribe, to OffsetFetch, and to ListOffsets. ``line``: the
    number of the poll."""

    unit: ClassVar[str] = "poll"

    def __init__(self, name: str, number: int) -> None:
        super().__init__(name, number)
        self.failed = 0
        self.writers.add(Writer.CAPTURE)

    def add(self, time_us: int, group: str, fields: dict[str, Any]) -> None:
        """A group is described."""
        self.lines += 1
        self.understood += 1
        self.see_time(time_us)
        self.keep([Observation(time_us, self.number, self.lines, DESCRIBED, group, fields)])

    def add_log_ends(self, time_us: int, group: str, ends: dict[str, int]) -> None:
        """The logs of a group's partitions end there."""
        self.see_time(time_us)
        self.keep([Observation(time_us, self.number, self.lines, LOG_ENDS, group, {"ends": ends})])

    def no_answer(self, why: str) -> None:
        """A poll has failed."""
        self.lines += 1
        self.failed += 1
        if self.failed == 1:
            self.damage.append(f"poll {self.lines} had no answer: {why}")


class CapturedRecords(_Captured):
    """Records of one partition of `__consumer_offsets`. ``line``: a record's offset."""

    unit: ClassVar[str] = "record"

    def __init__(self, name: str, number: int) -> None:
        super().__init__(name, number)
        self.observer = RecordObserver(self)
        #: The topics of assignments, which records of consumer groups name by their ids.
        self.assigned_topics: set[str] = set()

    def keep(self, observations: Iterable[Observation]) -> None:
        for one in observations:
            if one.kind == CURRENT:
                self.assigned_topics |= topics_in(one)
            super().keep([one])

    def finish(self) -> None:
        """No more records come."""
        self.keep(self.observer.finish())


TOPIC: Final = "__consumer_offsets"
#: A fetch waits so long for a record.
WAIT_MS: Final = 500
_SIZES: Final = FetchSizes(1, 16 << 20, WAIT_MS, 16 << 20)


class NotReadable(Exception):
    """The cluster does not let the offsets topic be read; the message says why."""


async def partitions_of_topic(cluster: ClusterClient) -> int:
    """Return the number of the topic's partitions. Raises NotReadable and ConnectionLost."""
    await cluster.refresh((TOPIC,))
    count = cluster.topics.get(TOPIC, 0)
    if not count:
        raise NotReadable(f"{TOPIC} is not there, or the user may not describe it")
    return count


class OffsetsTail:
    """Follows one partition. ``source`` takes the records."""

    def __init__(self, cluster: ClusterClient, partition: int, source: CapturedRecords) -> None:
        self._cluster = cluster
        self._partition = TopicPartition(TOPIC, partition)
        self._source = source
        self._offset = 0

    async def open(self) -> None:
        """Begin at the end. Raises NotReadable and ConnectionLost."""
        asked = {self._partition: int(OffsetReset.LATEST)}
        timeout_ms = self._cluster.request_timeout_ms
        (found,) = await ask_leader(self._cluster, await self._leader(), asked, True, timeout_ms)
        self._check(found.error)
        self._offset = found.offset

    async def read(self) -> int:
        """Wait for records, and read them: how many. Raises NotReadable and ConnectionLost."""
        before = self._source.lines
        plan = {self._partition: Position(self._offset)}
        node_id, timeout_ms = await self._leader(), self._cluster.request_timeout_ms
        build = fetch_request(self._cluster, plan, _SIZES, read_committed=True)
        response = await self._cluster.ask_node(node_id, FETCH, build, timeout_ms)
        (found,) = response.responses[0].partitions
        error = Error(found.error_code)
        if error in (Error.NOT_LEADER_OR_FOLLOWER, Error.FENCED_LEADER_EPOCH, Error.UNKNOWN_LEADER_EPOCH):
            await self._cluster.refresh((TOPIC,))
            return 0
        self._check(error)
        self._take(bytes(found.records or b""))
        self._source.keep(self._source.observer.ready())
        return self._source.lines - before

    async def _leader(self) -> int:
        leader = self._cluster.leader(self._partition)
        if leader is None:
            await self._cluster.refresh((TOPIC,))
            leader = self._cluster.leader(self._partition)
        if leader is None:
            raise NotReadable(f"{self._partition} has no leader")
        return leader.node_id

    def _check(self, error: Error) -> None:
        if error is not Error.NONE:
            raise NotReadable(f"{self._partition}: {error.name}")

    def _take(self, data: bytes) -> None:
        """Whole batches; a fetch may end in the middle of one, and begin before the position."""
        at = 0
        while (batch := parse_stored(data[at : at + announced(data[at : at + HEADER_BYTES])[1]])) is not None:
            at += len(batch.data)
            next_offset = batch.last_offset + 1
            if next_offset <= self._offset:
                continue
            self._offset = next_offset
            try:
                take_batch(batch, self._source, self._source.observer)
            except UnreadableBatch as problem:
                self._source.damage.append(
                    f"{self._partition}: the batch at offset {batch.base_offset}: {problem}"
                )


#: The error of ConsumerGroupDescribe for a group of another kind.
_ANOTHER_KIND = frozenset({Error.GROUP_ID_NOT_FOUND, Error.UNSUPPORTED_VERSION})
_NONE_COMMITTED = -1
#: The state in the answer about a group that does not exist.
_NO_GROUP = "Dead"


class GroupPoll:
    """Polls one group. Every answer has the fields of a `described` observation."""

    def __init__(self, cluster: ClusterClient, group: str) -> None:
        self._cluster = cluster
        self._group = group
        self._knows_consumer_groups = True
        #: The partitions that members had or that had committed offsets, when the group was asked.
        self._partitions: set[str] = set()

    async def ask(self) -> dict[str, Any]:
        """Raises ConnectionLost, and InputError if the cluster refuses."""
        fields = await self._consumer_group() if self._knows_consumer_groups else None
        if fields is None:
            fields = await self._classic_group()
        committed = await committed_offsets(self._cluster, self._group)
        fields["committed"] = {
            partition: offset for partition, offset in committed.items() if offset != _NONE_COMMITTED
        }
        self._partitions.update(fields["committed"])
        for member in fields["members"]:
            self._partitions.update(member["partitions"] or ())
        return fields

    async def log_ends(self) -> dict[str, int]:
        """Partition, as Kafka prints it -> end of its log, of the group's partitions; without those that no
        leader tells. Raises ConnectionLost."""
        cluster, topics = self._cluster, (name.rpartition("-") for name in sorted(self._partitions))
        partitions = [TopicPartition(topic, int(number)) for topic, _, number in topics]
        if any(cluster.leader(partition) is None for partition in partitions):
            await cluster.refresh({partition.topic for partition in partitions})
        ends: dict[str, int] = {}
        for node_id, asked in by_leader(cluster, dict.fromkeys(partitions, int(OffsetReset.LATEST))).items():
            listed = await ask_leader(cluster, node_id, asked, False, cluster.request_timeout_ms)
            ends |= {str(partition): offset for partition, error, offset, _ in listed if error is Error.NONE}
        return ends

    async def _consumer_group(self) -> dict[str, Any] | None:
        """None for a group of another kind, and for a broker that has none of this kind."""
        try:
            found = await describe_consumer_group(self._cluster, self._group)
        except InputError:
            self._knows_consumer_groups = False  # a broker before Kafka 3.7 has no such request
            return None
        error = Error(found.error_code)
        if error in _ANOTHER_KIND:
            return None
        _check(error, self._group)
        return {
            "state": found.group_state,
            "protocol": found.assignor_name or None,
            "epoch": found.group_epoch,
            "members": [
                {
                    "member_id": member.member_id,
                    "instance": member.instance_id,
                    "client": member.client_id,
                    "partitions": _partitions(member.assignment.topic_partitions),
                    "epoch": member.member_epoch,
                    "target_epoch": found.assignment_epoch,
                    "target": _partitions(member.target_assignment.topic_partitions),
                }
                for member in found.members
            ],
        }

    async def _classic_group(self) -> dict[str, Any]:
        found = await describe_group(self._cluster, self._group)
        _check(found.error, self._group)
        is_consumer = found.protocol_type == "consumer"  # and not of Connect
        return {
            "state": None if found.state in ("", _NO_GROUP) else found.state,
            "protocol": found.protocol or None,
            "epoch": None,
            "members": [
                {
                    "member_id": member.member_id,
                    "instance": member.group_instance_id,
                    "client": member.client_id,
                    "partitions": assigned_partitions(member.assignment) if is_consumer else None,
                    "epoch": None,
                }
                for member in found.members
            ],
        }


def _check(error: Error, group: str) -> None:
    if error is not Error.NONE:
        raise InputError(f"group {group}: the cluster says {error.name}: expected the right to describe it")


def _partitions(topics: Iterable[Any]) -> list[str]:
    return [f"{topic.topic_name}-{number}" for topic in topics for number in sorted(topic.partitions)]
