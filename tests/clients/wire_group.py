"""A group of the emulator whose members over TCP speak either protocol and end with a test."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, TypeVar

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.broker.assembly import make_broker
from groupstorm.broker.shell import Server
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.operations import Disconnected
from groupstorm.clients.profiles import GroupProtocol
from groupstorm.clients.wire.consumer import WireConsumer
from groupstorm.clients.wire.parts import ApplicationBehaviour
from groupstorm.coordinator.messages import ConsumerGroupHeartbeat, Request, Response
from groupstorm.protocol.endpoints import Endpoint
from groupstorm.trace.events import member as events
from tests.waiting import until

PATIENCE_S = 60.0
PARTITIONS = 6
ALL = frozenset(TopicPartition("t", number) for number in range(PARTITIONS))
OPTIONS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "100",
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.min.heartbeat.interval.ms": "20",
    "group.consumer.heartbeat.interval.ms": "20",
    "group.consumer.min.session.timeout.ms": "100",
}
E = TypeVar("E")


class Member:
    """A consumer, its events and the heartbeats that it has sent."""

    def __init__(
        self, name: str, bootstrap: Endpoint, application: ApplicationBehaviour | None, **settings: Any
    ) -> None:
        config = ConsumerConfig(
            "g", name, settings.pop("topics", ("t",)), **({"retry_backoff_ms": 10} | settings)
        )
        self.emitted: list[events.Event] = []
        self.heartbeats: list[ConsumerGroupHeartbeat] = []
        self.consumer = WireConsumer(
            config, [bootstrap], self._on_event, application=application, observer=self
        )
        self.life = asyncio.create_task(self.consumer.run())

    @property
    def owned(self) -> frozenset[TopicPartition]:
        return frozenset(self.consumer.membership.owned)

    def of(self, kind: type[E]) -> list[E]:
        return [event for event in self.emitted if isinstance(event, kind)]

    async def close(self) -> None:
        self.consumer.close()
        await asyncio.wait_for(self.life, PATIENCE_S)

    def request_sent(self, request: Request) -> None:
        if isinstance(request, ConsumerGroupHeartbeat):
            self.heartbeats.append(request)

    def response_received(self, request: Request, response: Response | Disconnected) -> None:
        pass

    def _on_event(self, _time_us: int, event: events.Event) -> None:
        self.emitted.append(event)


class EmulatedGroup:
    """``port``: of the first broker; 0: a free one, which others may take while it is stopped."""

    def __init__(self, options: dict[str, str], brokers: int = 1, port: int = 0) -> None:
        self.options = OPTIONS | options
        self.brokers = brokers
        self.topics = {"t": PARTITIONS, "tail": 2, "other": 1}
        self.seen: list[Any] = []
        self.members: list[Member] = []
        self.endpoint = Endpoint("127.0.0.1", port)
        self.server = self.new_server()

    def new_server(self) -> Server:
        return Server(make_broker(self.options, self.topics, self.brokers), self._on_events, lambda *_: None)

    async def start(self) -> None:
        self.endpoint = await self.server.start(self.endpoint.host, self.endpoint.port)

    async def restart(self) -> None:
        """Another broker at the same address: it knows no group."""
        await self.server.stop()
        self.server = self.new_server()
        await self.server.start(self.endpoint.host, self.endpoint.port)

    async def stop(self) -> None:
        for member in self.members:
            member.life.cancel()
        await asyncio.gather(*(member.life for member in self.members), return_exceptions=True)
        await self.server.stop()

    def member(self, name: str, application: ApplicationBehaviour | None = None, **settings: Any) -> Member:
        settings = {"group_protocol": GroupProtocol.CONSUMER} | settings
        member = Member(name, self.endpoint, application, **settings)
        self.members.append(member)
        return member

    def classic(self, name: str, application: ApplicationBehaviour | None = None, **settings: Any) -> Member:
        short: dict[str, Any] = {
            "partition_assignment_strategy": ("cooperative-sticky",),
            "heartbeat_interval_ms": 30,
            "session_timeout_ms": 30_000,
        }
        return self.member(name, application, group_protocol=GroupProtocol.CLASSIC, **(short | settings))

    async def until_shared(self, *members: Member) -> tuple[Member, ...]:
        """Return the members once all partitions of "t" are shared out and nothing is under way."""

        def is_shared() -> bool:
            parts = [member.owned for member in members]
            sizes = {len(part) for part in parts}
            return (
                sum(map(len, parts)) == PARTITIONS
                and frozenset().union(*parts) == ALL
                and max(sizes) - min(sizes) <= 1
                and all(member.consumer.membership.is_settled for member in members)
                and not any(member.consumer.positions.missing() for member in members)
            )

        await until(is_shared)
        return members

    def _on_events(self, _time_us: int, seen: Iterable[Any]) -> None:
        self.seen.extend(seen)
