"""Consumer groups (KIP-848) as tests see them: the same on the emulator and on a real broker."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest

import groupstorm
from groupstorm.problems import InputError
from groupstorm.testing import Broker, EmulatedBroker, GroupTimeout
from tests.broker import wire
from tests.broker.wire import CONSUMER_GROUP_HEARTBEAT, RawClient, milliseconds
from tests.testing.kinds import KINDS, opened

SETTINGS = {"group.consumer.assignment.interval.ms": 0, "group.initial.rebalance.delay.ms": 0}
DEADLINE_S = 60.0


class HeartbeatMember(RawClient):
    """A member whose every heartbeat the test sends."""

    def __init__(self, broker: Broker, group: str, name: str) -> None:
        host, _, port = broker.bootstrap_servers.rpartition(":")
        super().__init__((host, int(port)))
        self.name = name
        self.group = group
        self.epoch = 0
        self.owned: Any = ()

    def beat(self, **values: Any) -> Any:
        silent = {"subscribed_topic_names": None, "topic_partitions": None}
        fields = silent | {"group_id": self.group, "member_id": self.name, "member_epoch": self.epoch}
        self.send(wire.framed(wire.request(CONSUMER_GROUP_HEARTBEAT, 1, 1, self.name, **(fields | values))))
        answer = self.answer(CONSUMER_GROUP_HEARTBEAT, 1)
        assert not answer.error_code, answer
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            self.owned = tuple(
                {"topic_id": one.topic_id, "partitions": one.partitions}
                for one in answer.assignment.topic_partitions
            )
        return answer

    def join(self, topic: str, **values: Any) -> Any:
        joins = {"rebalance_timeout": milliseconds(30_000), "subscribed_topic_names": (topic,)}
        return self.beat(**joins, topic_partitions=(), **values)

    def acknowledge(self) -> Any:
        return self.beat(topic_partitions=self.owned)

    def join_with_partitions(self, topic: str) -> None:
        """A real coordinator learns of a new topic a moment later: join until it gives partitions."""
        deadline_s = time.monotonic() + DEADLINE_S
        while not self.join(topic).assignment.topic_partitions:
            assert time.monotonic() < deadline_s, "it gives no partitions"
            self.epoch = 0


@pytest.fixture(params=KINDS)
def broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    with opened(request.param, {"orders": 3}, SETTINGS) as running:
        yield running


def test_the_group_tells_who_owns_what_until_it_is_settled(broker: Broker) -> None:
    group, orders = broker.group("readers"), broker.topic("orders")
    assert (group.type, group.state, group.settled, group.generation) == (None, "Dead", False, None)
    with HeartbeatMember(broker, group.id, "a") as a, HeartbeatMember(broker, group.id, "b") as b:
        a.join_with_partitions(orders)
        group.wait_stable(1, partitions=3)
        assert (group.type, group.state, group.settled) == ("consumer", "Stable", True)
        assert group.owners == {f"{orders}-{number}": ("a",) for number in range(3)}
        epoch = group.generation
        b.join(orders)
        assert (group.state, group.settled) == ("Reconciling", False)
        with pytest.raises(GroupTimeout, match=r"it is Reconciling, epoch \d+, with 2 members") as failure:
            group.wait_stable(2, timeout_s=0)
        assert f"a (a): epoch {epoch}: " in str(failure.value)
        assert "; shall have " in str(failure.value)
        first = next(member for member in group.members if member.client_id == "a")
        assert (first.protocol, first.epoch, len(first.partitions), len(first.target)) == (
            "consumer",
            epoch,
            3,
            2,
        )
        a.beat()
        assert group.owners[f"{orders}-2"] == ("a",), "asked for, not given up yet"
        a.acknowledge()
        b.beat()
        b.acknowledge()
        group.wait_stable(2, partitions=3, timeout_s=DEADLINE_S)
        assert group.owners[f"{orders}-2"] == ("b",)
        assert {member.epoch for member in group.members} == {group.generation}
        b.beat(member_epoch=-1)
        a.beat(member_epoch=-1)
        group.wait_reaches("Empty")
        assert (group.type, group.members, dict(group.owners)) == ("consumer", (), {})


async def test_a_condition_of_the_tests_own_ends_the_wait(broker: Broker) -> None:
    group, orders = broker.group("readers"), broker.topic("orders")
    waiting = asyncio.ensure_future(
        group.until(lambda view: len(view.owners) == 3, "the owner of everything", timeout_s=DEADLINE_S)
    )
    with HeartbeatMember(broker, group.id, "a") as a:
        await asyncio.to_thread(a.join_with_partitions, orders)
        await waiting
        a.beat(member_epoch=-1)
    with pytest.raises(GroupTimeout, match="was not never within 0 s"):
        group.wait_until(lambda view: False, "never", timeout_s=0)
    with pytest.raises(ZeroDivisionError):
        group.wait_until(lambda view: 1 // len(view.members) > 0, timeout_s=DEADLINE_S)


def test_a_member_of_a_consumer_group_expires() -> None:
    with groupstorm.broker({"orders": 3}, SETTINGS) as broker:
        group = broker.group("readers")
        with HeartbeatMember(broker, group.id, "a") as a, HeartbeatMember(broker, group.id, "b") as b:
            a.join("orders")
            b.join("orders")
            with pytest.raises(InputError, match="'c' is not in group readers: in it is "):
                broker.expire_member("readers", "c")
            broker.expire_member("readers", "b")
            group.wait_until(lambda view: [one.client_id for one in view.members] == ["a"])


def test_faults_meet_heartbeats_of_consumer_groups() -> None:
    with groupstorm.broker({"orders": 3}, SETTINGS) as broker, HeartbeatMember(broker, "g", "a") as a:
        a.join("orders")
        fault = broker.fail("ConsumerGroupHeartbeat", "COORDINATOR_LOAD_IN_PROGRESS", group="g")
        with pytest.raises(AssertionError, match="coordinator_load_in_progress"):
            a.beat()
        fault.wait_used_up()
        a.beat()
        _cut(broker, a)


def _cut(broker: EmulatedBroker, member: HeartbeatMember) -> None:
    """The connection ends instead of the answer; the member is still in the group."""
    broker.disconnect("ConsumerGroupHeartbeat", client_id="a")
    with pytest.raises((AssertionError, ConnectionError, EOFError, socket.timeout)):
        member.beat()
    assert [one.member_id for one in broker.group("g").members] == ["a"]
