"""Steps that the scripts of several situations have in common."""

from __future__ import annotations

from collections.abc import Mapping

from groupstorm.assignors.userdata import Subscription, TopicPartition, encode_assignment, encode_subscription
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import JoinGroupMember
from tests.oracle.member.scripted_broker import On, Reaction
from tests.oracle.member.situation import Act, After, Situation

NOTHING: Mapping[On, Reaction] = {}
AS_EVER: Mapping[str, str | int] = {}
STATIC: Mapping[str, str | int] = {"group.instance.id": "i"}
EAGER: Mapping[str, str | int] = {"partition.assignment.strategy": "range"}
COMMITS_SOON: Mapping[str, str | int] = {"auto.commit.interval.ms": 250}

REBALANCE: Mapping[On, Reaction] = {("Heartbeat", 1): Reaction(error=Error.REBALANCE_IN_PROGRESS)}

OTHER_METADATA = encode_subscription(Subscription(("t",), None, (TopicPartition("t", 0),), 0), 3)
OTHER_TOPIC_METADATA = encode_subscription(Subscription(("t", "u"), None, (), -1), 3)


def assigned(*partitions: TopicPartition) -> Mapping[str, bytes]:
    return {"assignment": encode_assignment(partitions)}


def joined_by(metadata: bytes) -> Mapping[str, object]:
    """The answer to the leader: itself and one more."""
    own = encode_subscription(Subscription(("t",), None, (), -1), 3)
    return {"members": (JoinGroupMember("c-1", None, own), JoinGroupMember("other", None, metadata))}


def closes_in(generation: int) -> tuple[After, ...]:
    """It closes when it has settled: after a heartbeat of that generation."""
    return (After("Heartbeat", 1, Act.CLOSE, generation),)


def refused(
    name: str,
    on: On,
    errors: str,
    acts: tuple[After, ...],
    script: Mapping[On, Reaction] = NOTHING,
    config: Mapping[str, str | int] = AS_EVER,
) -> list[Situation]:
    """A variant per word of ``errors``; ``script``: what happens besides."""
    return [
        Situation(name, error, {**script, on: Reaction(error=Error[error])}, acts, config)
        for error in errors.split()
    ]


T0, T1, T2 = (TopicPartition("t", partition) for partition in range(3))
FOLLOWER: Mapping[str, object] = {"leader": "other", "members": ()}
