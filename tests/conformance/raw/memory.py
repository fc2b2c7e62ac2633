"""The memory of one case's clients, which fills in requests and names ids in answers.

Member ids and generations are remembered and referred to as in `groupstorm script` (`Clients`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple
from uuid import UUID

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.assignors.userdata.consumer_protocol import (
    Subscription,
    encode_assignment,
    encode_subscription,
)
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import ConsumerGroupHeartbeatResponse, JoinGroupResponse
from groupstorm.coordinator.script.clients import Clients, Names
from groupstorm.coordinator.streams.messages import StreamsGroupHeartbeatResponse
from groupstorm.protocol.endpoints import Endpoint
from tests.conformance.raw.normal import plain
from tests.conformance.raw.requests import Assigned, Subscribed
from tests.conformance.raw.steps import GenerationOf, MemberEpochOf, MemberOf, OwnedBy, OwnMemberId, Producer


class Ids(NamedTuple):
    """The names of a case's group and topic in a run."""

    group: str
    topic: str
    topic_id: str


class Memory:
    """Member ids, generations and producer ids of all clients, and who coordinates transactions."""

    def __init__(self, ids: Ids, coordinator: Endpoint) -> None:
        self.transaction_coordinator = coordinator
        self._ids = ids
        self._clients = Clients(Names("conformance"))
        #: The ids that each client was given: an answer shows the second id of client a as ``{a'}``.
        self._given: dict[str, list[str]] = {}
        #: The ids that clients chose themselves.
        self._chosen: set[str] = set()
        self._producers: dict[str, dict[str, int]] = {}

    def remember(self, who: str, answer: Any) -> None:
        """Take from an answer what later requests need."""
        match type(answer).__name__:
            case "FindCoordinatorResponse":
                (found,) = answer.coordinators
                self.transaction_coordinator = Endpoint(found.host, found.port)
            case "InitProducerIdResponse":
                given = {"producer_id": answer.producer_id, "producer_epoch": answer.producer_epoch}
                self._producers[who] = given
            case "JoinGroupResponse":
                joined = JoinGroupResponse(Error(answer.error_code), answer.generation_id, answer.member_id)
                self._clients.get(who).answered("join", None, joined, by_members=False)
                self._remember_id(who, answer.member_id)
            case "ConsumerGroupHeartbeatResponse":
                told = ConsumerGroupHeartbeatResponse(
                    Error(answer.error_code),
                    answer.member_id,
                    answer.member_epoch,
                    assignment=_assigned(answer.assignment),
                )
                self._clients.get(who).answered("heartbeat", None, told, by_members=False)
                self._remember_id(who, answer.member_id)
            case "StreamsGroupHeartbeatResponse":
                at = StreamsGroupHeartbeatResponse(
                    Error(answer.error_code), answer.member_id, answer.member_epoch
                )
                self._clients.get(who).answered("streams", None, at, by_members=False)

    def shown(self, who: str, answer: Any) -> dict[str, Any]:
        """The answer as plain values. Only at the end of a case does every member id have its client."""
        shown = {"who": who, "answer": type(answer).__name__, **plain(answer, self._names())}
        if shown["answer"] == "ListGroupsResponse":  # with those of other cases
            shown["groups"] = [group for group in shown["groups"] if group["group_id"] == "<group>"]
        return shown

    def filled(self, who: str, value: Any) -> Any:
        """The fields of a request of ``who``, every placeholder replaced."""
        match value:
            case MemberOf():
                found: Any = self._clients.member_id(who, value.text)
            case GenerationOf():
                found = self._clients.number("generation", who, value.value, lambda client: client.generation)
            case MemberEpochOf():
                found = self._clients.number("epoch", who, value.value, lambda client: client.epoch)
            case OwnMemberId():
                self._chosen.add(who)
                found = who
            case OwnedBy():
                has = self._clients.get(value.client or who).owned
                found = [{"topic_id": str(topic), "partitions": held} for topic, held in has.items()]
            case Producer():
                found = self._producers[who][value.field]
            case Subscribed():
                owned = tuple(TopicPartition(self._ids.topic, partition) for partition in value.owned)
                found = encode_subscription(Subscription((self._ids.topic,), None, owned))
            case Assigned():
                found = encode_assignment((self._ids.topic, partition) for partition in value.partitions)
            case str():
                found = self._text(value)
            case Mapping():
                found = {name: self.filled(who, one) for name, one in value.items()}
            case tuple() | list():
                found = [self.filled(who, one) for one in value]
            case _:
                found = value
        return found

    def _remember_id(self, who: str, member_id: str | None) -> None:
        known = {one for given in self._given.values() for one in given}
        if member_id and member_id not in known | self._chosen:
            self._given.setdefault(who, []).append(member_id)

    def _names(self) -> dict[str, str]:
        """The names that only this run has -> the names that every run shows for them."""
        names = {self._ids.group: "<group>", self._ids.topic: "<topic>", self._ids.topic_id: "<topic id>"}
        for who, given in self._given.items():
            for count, member_id in enumerate(given):
                names[member_id] = "{" + who + "'" * count + "}"
        return names

    def _text(self, text: str) -> str:
        for name, value in self._ids._asdict().items():
            text = text.replace("{" + name + "}", value)
        return text


def _assigned(assignment: Any) -> Mapping[UUID, tuple[int, ...]] | None:
    if assignment is None:
        return None
    return {topic.topic_id: topic.partitions for topic in assignment.topic_partitions}
