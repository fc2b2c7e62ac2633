"""Kafka's assignors of single releases: the members' subscriptions are built here, the answers come from
outside.

Releases differ in the content of subscriptions. The assignor of a release asks an `Answerer` (Kafka's own
classes or a recording of them) one case of `groupstorm assign` per round.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from groupstorm.assignors.contract import (
    AssignmentRefused,
    AssignmentResult,
    RebalanceProtocol,
    TopicMetadata,
)
from groupstorm.assignors.userdata import (
    Subscription,
    TopicPartition,
    encode_generation,
    encode_sticky,
)

#: A case of `groupstorm assign`, and its answer.
Case = dict[str, Any]
Answerer = Callable[[Case], Mapping[str, Any]]

COOPERATIVE_STICKY = "cooperative-sticky"
KAFKAS = ("range", "roundrobin", "sticky", COOPERATIVE_STICKY)


def version_of(release: str) -> tuple[int, ...]:
    """``3.4.1`` -> (3, 4, 1). ValueError if it is no release."""
    return tuple(int(number) for number in release.split("."))


def subscription_version(release: str) -> int:
    """The version of the consumers' ConsumerProtocol bytes: KIP-429: 2.4, KIP-792 and KIP-881: 3.4."""
    version = version_of(release)
    if version < (2, 4):
        return 0
    return 1 if version < (3, 4) else 3


@dataclass(frozen=True)
class ReleasedAssignor:
    """The assignor called ``name`` of a release of kafka-clients. It is an `Assignor`."""

    name: str
    release: str
    answerer: Answerer

    needs_equal_subscriptions: ClassVar[bool] = False

    @property
    def protocols(self) -> tuple[RebalanceProtocol, ...]:
        if self.name == COOPERATIVE_STICKY:
            return (RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER)
        return (RebalanceProtocol.EAGER,)

    def user_data(self, owned: Sequence[TopicPartition] | None, generation: int) -> bytes | None:
        """As the release's: sticky has a generation since 2.3 (KIP-341), cooperative-sticky since 2.8.1."""
        version = version_of(self.release)
        if self.name == "sticky" and owned is not None:
            return encode_sticky(owned, generation if version >= (2, 3) else None)
        if self.name == COOPERATIVE_STICKY and version >= (2, 8, 1):
            return encode_generation(-1 if owned is None else generation)
        return None

    def assign(
        self, topics: Mapping[str, TopicMetadata], subscriptions: Mapping[str, Subscription]
    ) -> AssignmentResult:
        """The release's answer; `AssignmentRefused` with the exception that it threw."""
        answer = self.answerer(self.case(topics, subscriptions))
        if "error" in answer:
            raise AssignmentRefused(answer["error"], answer["message"])
        return AssignmentResult(
            {
                member: [TopicPartition(topic, number) for topic, number in partitions]
                for member, partitions in answer["assignment"].items()
            }
        )

    def case(self, topics: Mapping[str, TopicMetadata], subscriptions: Mapping[str, Subscription]) -> Case:
        """The question as a case of `groupstorm assign`."""
        described: dict[str, Any] = {}
        for name, topic in topics.items():
            described[name] = {"partitions": topic.partitions}
            if topic.racks is not None:
                described[name]["racks"] = [sorted(replicas) for replicas in topic.racks]
        members = [self._member(name, subscription) for name, subscription in subscriptions.items()]
        version = subscription_version(self.release)
        return {"assignor": self.name, "version": version, "topics": described, "members": members}

    def _member(self, name: str, subscription: Subscription) -> dict[str, Any]:
        member: dict[str, Any] = {"id": name, "topics": list(subscription.topics)}
        if subscription.rack is not None:
            member["rack"] = subscription.rack
        if subscription.owned:
            member["owned"] = [list(partition) for partition in subscription.owned]
        if subscription.generation >= 0:
            member["generation"] = subscription.generation
        if subscription.user_data is not None:
            member["userdata_hex"] = subscription.user_data.hex()
        return member
