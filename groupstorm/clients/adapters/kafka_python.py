"""Eager and cooperative assignors in kafka-python.

    KafkaConsumer("clicks", "impressions", group_id="joins",
                  partition_assignment_strategy=[assignor_class("stream-join-sticky")])

kafka-python makes an object of the class for every consumer, so one class serves many consumers. All
assignors of a consumer must be eager, or all cooperative, as for kafka-python's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from kafka.cluster import ClusterMetadata
from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor, RebalanceProtocol
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from groupstorm.clients.adapters import AssignorRole, chosen, is_cooperative

#: Has owned partitions and their generation (KIP-429, KIP-792), and all that kafka-python reads.
_VERSION = 3


def assignor_class(assignor: str | object) -> type[AbstractPartitionAssignor]:
    """A class for ``partition_assignment_strategy``.

    ``assignor``: a name, ``module:attribute``, or a function or object of your own. Raises `InputError` for
    anything else.
    """
    wanted = chosen(assignor)

    # The base is untyped where kafka-python is not installed, and mypy must say the same either way.
    class Adapted(AbstractPartitionAssignor):  # type: ignore[misc, unused-ignore]
        name = wanted.name

        def __init__(self) -> None:
            self._role = AssignorRole(wanted)

        def supported_protocols(self) -> list[RebalanceProtocol]:
            cooperative = is_cooperative(wanted)
            return [RebalanceProtocol.COOPERATIVE if cooperative else RebalanceProtocol.EAGER]

        def assign(
            self, cluster: ClusterMetadata, members: Sequence[Any]
        ) -> dict[str, ConsumerProtocolAssignment]:
            asked = [
                (member.member_id, member.group_instance_id, member.metadata.encode()) for member in members
            ]
            return {
                member: ConsumerProtocolAssignment.decode(assignment)
                for member, assignment in self._role.assign(cluster.partitions_for_topic, asked).items()
            }

        def metadata(self, topics: Iterable[str]) -> ConsumerProtocolSubscription:
            return ConsumerProtocolSubscription.decode(self._role.subscription(topics, _VERSION))

        def on_assignment(self, assignment: ConsumerProtocolAssignment, generation: int) -> None:
            self._role.assigned(assignment.encode(), generation)

    return Adapted
