"""Members that send raw requests: the test makes each of their steps."""

from __future__ import annotations

from typing import Any

from groupstorm.assignors.userdata import encode_assignment
from groupstorm.testing import Broker
from tests.broker import wire
from tests.broker.wire import RawClient, milliseconds

GROUP = "readers"
AT_ONCE = {"group.initial.rebalance.delay.ms": 0}


def address(broker: Broker, number: int = 0) -> tuple[str, int]:
    host, _, port = broker.bootstrap_servers.split(",")[number].rpartition(":")
    return host, int(port)


def topics_of(broker: Broker) -> dict[str, int]:
    """The topics of the users: name -> partitions."""
    with RawClient(address(broker)) as client:
        topics = client.ask(wire.METADATA, 9, topics=None).topics
        return {topic.name: len(topic.partitions) for topic in topics if not topic.is_internal}


class RawMember(RawClient):
    """A connection that joins and syncs; version 3 of JoinGroup needs no second request for an id."""

    def __init__(self, broker: Broker, client_id: str = "raw", number: int = 0) -> None:
        """``number``: of the broker that the member connects to."""
        super().__init__(address(broker, number))
        self.client_id = client_id
        #: The group of its requests, unless they name another one.
        self.group = broker.group(GROUP).id
        self.member_id = ""
        self.generation = -1

    def request(self, api_key: int, version: int, **values: Any) -> None:
        self.send(wire.framed(wire.request(api_key, version, 1, self.client_id, **values)))

    def send_join(self, group: str | None = None) -> None:
        protocol = {"name": "range", "metadata": b""}
        self.request(
            wire.JOIN_GROUP,
            3,
            group_id=group or self.group,
            session_timeout=milliseconds(10_000),
            rebalance_timeout=milliseconds(60_000),
            member_id=self.member_id,
            protocol_type="consumer",
            protocols=(protocol,),
        )

    def joined(self) -> Any:
        answer = self.answer(wire.JOIN_GROUP, 3)
        self.member_id, self.generation = answer.member_id, answer.generation_id
        return answer

    def sync(
        self, plan: dict[str, list[int]] | None = None, group: str | None = None, topic: str = "orders"
    ) -> Any:
        """``plan``: the leader's, member id -> partitions."""
        assignments = tuple(
            {"member_id": member_id, "assignment": encode_assignment((topic, number) for number in numbers)}
            for member_id, numbers in (plan or {}).items()
        )
        self.request(
            wire.SYNC_GROUP,
            3,
            group_id=group or self.group,
            generation_id=self.generation,
            member_id=self.member_id,
            assignments=assignments,
        )
        return self.answer(wire.SYNC_GROUP, 3)

    def join_alone(self, partitions: list[int]) -> None:
        """The only member of the group, with these partitions of ``orders``."""
        self.send_join()
        self.joined()
        assert self.sync({self.member_id: partitions}).error_code == 0

    def send_heartbeat(self, group: str | None = None) -> None:
        self.request(
            wire.HEARTBEAT,
            3,
            group_id=group or self.group,
            generation_id=self.generation,
            member_id=self.member_id,
        )

    def heartbeat(self, group: str | None = None) -> int:
        self.send_heartbeat(group)
        return int(self.answer(wire.HEARTBEAT, 3).error_code)

    def leave(self, group: str | None = None) -> None:
        self.request(wire.LEAVE_GROUP, 2, group_id=group or self.group, member_id=self.member_id)
        assert self.answer(wire.LEAVE_GROUP, 2).error_code == 0
