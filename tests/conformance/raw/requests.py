"""The requests of the cases, with the fields that most of them need.

Functions and arguments are called as the steps and fields of `groupstorm script` are. ``member`` and
``generation`` are written as there ("$", "$a", "$-1").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tests.conformance.raw.steps import GenerationOf, MemberOf, Producer, Request

#: Long enough that nobody's session ends in a case that is not about it.
SESSION_MS = 15_000
REBALANCE_MS = 15_000


class Subscribed(NamedTuple):
    """A subscription to the case's topic, in Kafka's format; ``owned``: partitions of it."""

    owned: tuple[int, ...] = ()


class Assigned(NamedTuple):
    """An assignment of partitions of the case's topic, in Kafka's format."""

    partitions: tuple[int, ...] = ()


#: (name, metadata) of the protocols that a member supports, the one it likes best first.
Protocols = Sequence[tuple[str, bytes | Subscribed]]
RANGE: Protocols = (("range", Subscribed()),)


def join(
    *,
    version: int = 9,
    group: str = "{group}",
    member: str = "$",
    instance: str | None = None,
    session: int = SESSION_MS,
    rebalance: int = REBALANCE_MS,
    protocol_type: str = "consumer",
    protocols: Protocols = RANGE,
) -> Request:
    return Request(
        "JoinGroup",
        version,
        {
            "group_id": group,
            "session_timeout": session,
            "rebalance_timeout": rebalance,
            "member_id": MemberOf(member),
            "group_instance_id": instance,
            "protocol_type": protocol_type,
            "protocols": [{"name": name, "metadata": metadata} for name, metadata in protocols],
        },
    )


def sync(
    *,
    version: int = 5,
    group: str = "{group}",
    member: str = "$",
    generation: str | int = "$",
    instance: str | None = None,
    protocol_type: str | None = "consumer",
    protocol: str | None = "range",
    assignments: Mapping[str, bytes | Assigned] | None = None,
) -> Request:
    """``assignments``: the leader's, client -> assignment."""
    entries = [
        {"member_id": MemberOf(f"${who}"), "assignment": given} for who, given in (assignments or {}).items()
    ]
    return Request(
        "SyncGroup",
        version,
        {
            "group_id": group,
            "generation_id": GenerationOf(generation),
            "member_id": MemberOf(member),
            "group_instance_id": instance,
            "protocol_type": protocol_type,
            "protocol_name": protocol,
            "assignments": entries,
        },
    )


def heartbeat(
    *,
    version: int = 4,
    group: str = "{group}",
    member: str = "$",
    generation: str | int = "$",
    instance: str | None = None,
) -> Request:
    fields = {
        "group_id": group,
        "generation_id": GenerationOf(generation),
        "member_id": MemberOf(member),
        "group_instance_id": instance,
    }
    return Request("Heartbeat", version, fields)


def leave(*members: tuple[str, str | None], version: int = 5, group: str = "{group}") -> Request:
    """``members``: (member, instance id); the sender alone if none are named."""
    batch = members or (("$", None),)
    fields = {
        "group_id": group,
        "member_id": MemberOf(batch[0][0]),
        "members": [
            {"member_id": MemberOf(member), "group_instance_id": instance} for member, instance in batch
        ],
    }
    return Request("LeaveGroup", version, fields)


def commit(
    offset: int = 5,
    *,
    version: int = 9,
    group: str = "{group}",
    member: str = "$",
    generation: str | int = "$",
    instance: str | None = None,
    topic: str = "{topic}",
    partition: int = 0,
    metadata: str | None = None,
) -> Request:
    committed = {"partition_index": partition, "committed_offset": offset, "committed_metadata": metadata}
    topics = [{"name": topic, "topic_id": "{topic_id}", "partitions": [committed]}]
    fields = {
        "group_id": group,
        "generation_id_or_member_epoch": GenerationOf(generation),
        "member_id": MemberOf(member),
        "group_instance_id": instance,
        "topics": topics,
    }
    return Request("OffsetCommit", version, fields)


def commit_from_outside(offset: int = 5, *, version: int = 9, **more: Any) -> Request:
    """As an administrator or a consumer that assigns its partitions itself commits."""
    return commit(offset, version=version, member="", generation=-1, **more)


def fetch_offsets(
    *partitions: int,
    version: int = 9,
    everything: bool = False,
    require_stable: bool = False,
    group: str = "{group}",
    topic: str = "{topic}",
) -> Request:
    """OffsetFetch; of partition 0 if none are named."""
    topics = [{"name": topic, "topic_id": "{topic_id}", "partition_indexes": partitions or (0,)}]
    wanted = None if everything else topics
    fields = {
        "group_id": group,
        "topics": wanted,
        "groups": [{"group_id": group, "topics": wanted}],
        "require_stable": require_stable,
    }
    return Request("OffsetFetch", version, fields)


def delete_offsets(*partitions: int, topic: str = "{topic}") -> Request:
    asked = [{"partition_index": index} for index in partitions]
    return Request(
        "OffsetDelete", 0, {"group_id": "{group}", "topics": [{"name": topic, "partitions": asked}]}
    )


def describe(*, version: int = 6) -> Request:
    return Request("DescribeGroups", version, {"groups": ["{group}"]})


def list_groups(*, version: int = 5, states: Sequence[str] = (), types: Sequence[str] = ()) -> Request:
    return Request("ListGroups", version, {"states_filter": states, "types_filter": types})


def delete_groups(*, version: int = 2, group: str = "{group}") -> Request:
    return Request("DeleteGroups", version, {"groups_names": [group]})


# -- transactions (KIP-447) ------------------------------------------------------------------------

_OWN = {"transactional_id": "{group}", "producer_id": Producer("producer_id")}
_EPOCH = {"producer_epoch": Producer("producer_epoch")}
_TRANSACTION = 1


def find_transaction_coordinator() -> Request:
    """The first time a cluster makes the topic that transactions are kept in."""
    return Request("FindCoordinator", 4, {"key_type": _TRANSACTION, "coordinator_keys": ["{group}"]})


def init_producer() -> Request:
    fields = {"transactional_id": "{group}", "transaction_timeout": 60_000}
    return Request("InitProducerId", 4, fields)


def add_offsets() -> Request:
    return Request("AddOffsetsToTxn", 3, {**_OWN, **_EPOCH, "group_id": "{group}"})


def commit_in_transaction(
    offset: int, *, member: str = "", generation: str | int = -1, instance: str | None = None
) -> Request:
    committed = {"partition_index": 0, "committed_offset": offset, "committed_metadata": None}
    fields = {
        **_OWN,
        **_EPOCH,
        "group_id": "{group}",
        "member_id": MemberOf(member),
        "generation_id": GenerationOf(generation),
        "group_instance_id": instance,
        "topics": [{"name": "{topic}", "partitions": [committed]}],
    }
    return Request("TxnOffsetCommit", 3, fields)


def end_transaction(*, commits: bool) -> Request:
    return Request("EndTxn", 3, {**_OWN, **_EPOCH, "committed": commits})
