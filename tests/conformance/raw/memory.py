"""What the clients of one case remember, and what it makes of placeholders and of answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.assignors.userdata.consumer_protocol import Subscription, encode_subscription
from groupstorm.coordinator.server.config import Endpoint
from tests.conformance.raw.normal import plain
from tests.conformance.raw.requests import Subscribed
from tests.conformance.raw.steps import GenerationOf, Producer


class Ids(NamedTuple):
    """What the group and topic of a case are called in a run."""

    group: str
    topic: str
    topic_id: str


@dataclass
class _Client:
    member_ids: list[str] = field(default_factory=list)
    generation: int = -1
    producer: dict[str, int] = field(default_factory=dict)


class Memory:
    """Member ids, generations and producer ids of all clients, and who coordinates transactions."""

    def __init__(self, ids: Ids, coordinator: Endpoint) -> None:
        self.transaction_coordinator = coordinator
        self._ids = ids
        self._clients: dict[str, _Client] = {}

    def remember(self, who: str, answer: Any) -> None:
        """Take from an answer what later requests need."""
        client = self._client(who)
        match type(answer).__name__:
            case "FindCoordinatorResponse":
                (found,) = answer.coordinators
                self.transaction_coordinator = Endpoint(found.host, found.port)
            case "InitProducerIdResponse":
                given = {"producer_id": answer.producer_id, "producer_epoch": answer.producer_epoch}
                client.producer = given
            case "JoinGroupResponse":
                self._remember_member(client, answer)

    def shown(self, who: str, answer: Any) -> dict[str, Any]:
        """As plain values. At the end of a case every member id has its client, before it may not yet."""
        shown = {"who": who, "answer": type(answer).__name__, **plain(answer, self._names())}
        if shown["answer"] == "ListGroupsResponse":  # with those of other cases
            shown["groups"] = [group for group in shown["groups"] if group["group_id"] == "<group>"]
        return shown

    def filled(self, who: str, value: Any) -> Any:
        """The fields of a request of ``who``, every placeholder replaced."""
        match value:
            case GenerationOf():
                of = who if value.who == "me" else value.who
                found: Any = self._client(of).generation + value.plus
            case Producer():
                found = self._client(who).producer[value.field]
            case Subscribed():
                owned = tuple(TopicPartition(self._ids.topic, partition) for partition in value.owned)
                found = encode_subscription(Subscription((self._ids.topic,), None, owned))
            case str():
                found = self._text(who, value)
            case Mapping():
                found = {name: self.filled(who, one) for name, one in value.items()}
            case tuple() | list():
                found = [self.filled(who, one) for one in value]
            case _:
                found = value
        return found

    def _client(self, who: str) -> _Client:
        return self._clients.setdefault(who, _Client())

    def _remember_member(self, client: _Client, answer: Any) -> None:
        known = {one for other in self._clients.values() for one in other.member_ids}
        if answer.member_id and answer.member_id not in known:
            client.member_ids.append(answer.member_id)
        if answer.generation_id >= 0:
            client.generation = answer.generation_id

    def _names(self) -> dict[str, str]:
        """What a run has made up -> what it is: a second id of client a is ``{a'}``."""
        names = {self._ids.group: "<group>", self._ids.topic: "<topic>", self._ids.topic_id: "<topic id>"}
        for who, client in self._clients.items():
            for count, member_id in enumerate(client.member_ids):
                names[member_id] = "{" + who + "'" * count + "}"
        return names

    def _text(self, who: str, text: str) -> str:
        if "{" not in text:
            return text
        ids = self._client(who).member_ids
        text = text.replace("{me}", ids[-1] if ids else "")
        for real, shown in self._names().items():
            if shown.startswith("{"):
                text = text.replace(shown, real)
        for name, value in self._ids._asdict().items():
            text = text.replace("{" + name + "}", value)
        return text
