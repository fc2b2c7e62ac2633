"""Eager assignors in aiokafka.

    AIOKafkaConsumer("clicks", "impressions", group_id="joins",
                     partition_assignment_strategy=[assignor_class("stream-join-sticky")])

aiokafka (0.14) calls its assignors as classes, so the class keeps the consumer's last assignment: **make
one for every consumer**. aiokafka passes no generation to an assignor. An assignor that reads one, as
Kafka's sticky does, cannot tell the older of two claims to a partition, and neither claim counts, as in
aiokafka's own sticky assignor. The epoch of ``stream-join-sticky`` travels with the assignment and needs
none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from aiokafka.cluster import ClusterMetadata
from aiokafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment, ConsumerProtocolMemberMetadata

from groupstorm.assignors.userdata import Subscription, encode_subscription
from groupstorm.clients.adapters import AssignorRole, chosen, is_cooperative
from groupstorm.problems import InputError

#: aiokafka writes and reads version 0 of subscriptions: neither owned partitions nor generation.
_VERSION = 0


def _as_read(metadata: ConsumerProtocolMemberMetadata) -> bytes:
    """The fields that aiokafka reads of a subscription: those of version 0, whichever version was sent."""
    return encode_subscription(
        Subscription(topics=tuple(metadata.subscription), user_data=metadata.user_data), _VERSION
    )


def assignor_class(assignor: str | object) -> type[AbstractPartitionAssignor]:
    """A class for the ``partition_assignment_strategy`` of one consumer.

    ``assignor``: a name, ``module:attribute``, or a function or object of your own. Raises `InputError` for
    a cooperative assignor: aiokafka sends no owned partitions, so such an assignor could not keep
    partitions with their owners.
    """
    wanted = chosen(assignor)
    if is_cooperative(wanted):
        raise InputError(
            f"assignor {wanted.name!r}: cooperative assignors need the owned partitions, which aiokafka "
            "does not send: expected an eager one, such as sticky"
        )
    role = AssignorRole(wanted)

    # The base is untyped where aiokafka is not installed, and mypy must say the same either way.
    class Adapted(AbstractPartitionAssignor):  # type: ignore[misc, unused-ignore]
        name = wanted.name

        @classmethod
        def assign(
            cls, cluster: ClusterMetadata, members: Mapping[str, ConsumerProtocolMemberMetadata]
        ) -> dict[str, ConsumerProtocolMemberAssignment]:
            asked = [(member, None, _as_read(metadata)) for member, metadata in members.items()]
            return {
                member: ConsumerProtocolMemberAssignment.decode(assignment)
                for member, assignment in role.assign(cluster.partitions_for_topic, asked).items()
            }

        @classmethod
        def metadata(cls, topics: Iterable[str]) -> ConsumerProtocolMemberMetadata:
            return ConsumerProtocolMemberMetadata.decode(role.subscription(topics, _VERSION))

        @classmethod
        def on_assignment(cls, assignment: ConsumerProtocolMemberAssignment) -> None:
            role.assigned(assignment.encode())

    return Adapted
