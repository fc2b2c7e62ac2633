"""The forwarder between client libraries and a broker: it observes requests and cuts members off."""

from __future__ import annotations

import asyncio
from typing import Any

import groupstorm
from groupstorm.clients.brokers.contract import read_addresses
from groupstorm.clients.operations import Disconnected
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import Heartbeat, HeartbeatResponse, JoinGroup
from groupstorm.protocol.endpoints import Endpoint
from groupstorm.storms.live.forwarding import MemberForwarder
from tests.broker import wire
from tests.broker.test_connections import join
from tests.broker.wire import RawClient
from tests.waiting import wait_until

HEARTBEAT = wire.framed(wire.request(wire.HEARTBEAT, 4, group_id="g", member_id="m"))


class Seen(list[Any]):
    """The requests and responses that the forwarder has seen, as pairs; a request with None."""

    def request_sent(self, request: Any) -> None:
        self.append((type(request), None))

    def response_received(self, request: Any, response: Any) -> None:
        self.append((type(request), type(response)))


async def test_a_member_that_is_cut_off_gets_no_answer_until_it_may_reconnect() -> None:
    with groupstorm.broker(settings={"group.initial.rebalance.delay.ms": 60_000}) as cluster:
        forwarder = MemberForwarder(read_addresses(cluster.bootstrap_servers))
        forwarder.observer = seen = Seen()
        await forwarder.start()
        (at,) = forwarder.bootstrap
        assert await asyncio.to_thread(answered, at)
        assert seen == [(Heartbeat, None), (Heartbeat, HeartbeatResponse)]
        with RawClient((at.host, at.port)) as parked:
            parked.send(join("g"))
            await asyncio.to_thread(wait_until, lambda: (JoinGroup, None) in seen)
            forwarder.cut_off("raw")
            assert await asyncio.to_thread(parked.is_closed_by_server)
        await asyncio.to_thread(wait_until, lambda: (JoinGroup, Disconnected) in seen)
        assert not await asyncio.to_thread(answered, at)
        assert len(seen) == 4, "the broker gets nothing"
        forwarder.reconnect("raw")
        assert await asyncio.to_thread(answered, at)
        await forwarder.stop()


def answered(at: Endpoint) -> bool:
    """Whether a heartbeat is answered; the connection is closed if not."""
    with RawClient((at.host, at.port)) as client:
        client.send(HEARTBEAT)
        try:
            return bool(client.answer(wire.HEARTBEAT, 4).error_code == Error.UNKNOWN_MEMBER_ID)
        except ConnectionError:
            return False
