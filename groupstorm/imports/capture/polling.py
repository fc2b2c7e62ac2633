"""Asks a group's coordinator how the group is: state, members, what they have, committed offsets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from groupstorm.assignors.userdata import TopicPartition, UserDataError
from groupstorm.assignors.userdata.consumer_protocol import decode_assignment
from groupstorm.clients.wire.admin import committed_offsets, describe_consumer_group, describe_group
from groupstorm.clients.wire.cluster import ClusterClient
from groupstorm.clients.wire.logs import OffsetReset, ask_leader, by_leader
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import DescribedMember
from groupstorm.problems import InputError

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
        return {
            "state": None if found.state in ("", _NO_GROUP) else found.state,
            "protocol": found.protocol or None,
            "epoch": None,
            "members": [
                {
                    "member_id": member.member_id,
                    "instance": member.group_instance_id,
                    "client": member.client_id,
                    "partitions": _assigned(member, found.protocol_type),
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


def _assigned(member: DescribedMember, protocol_type: str) -> list[str] | None:
    """None if the group is of another protocol (Connect)."""
    if protocol_type != "consumer":
        return None
    if not member.assignment:
        return []
    try:
        return [str(partition) for partition in decode_assignment(member.assignment).partitions]
    except UserDataError:
        return None
