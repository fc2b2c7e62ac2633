"""Share groups (KIP-932) as tests see them: the same on the emulator and on a real broker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import groupstorm
from groupstorm.clients.brokers import read_kind
from groupstorm.clients.share import AcknowledgeType, ShareConsumer
from groupstorm.explain.explanation import explain
from groupstorm.problems import InputError
from groupstorm.testing import EmulatorOnly, GroupTimeout
from groupstorm.testing.real import RealBroker
from tests.clients.share.members import Members, polled
from tests.testing.kinds import KINDS, sharing

DEADLINE_S = 30.0


@pytest.fixture(params=KINDS)
async def members(request: pytest.FixtureRequest) -> AsyncIterator[Members]:
    async with sharing(request.param, {"orders": 2}) as made:
        yield made


async def test_the_group_tells_its_members_and_what_is_left(members: Members) -> None:
    broker = members.broker
    group, orders = broker.group("billing"), broker.topic("orders")
    assert (group.type, group.state, dict(group.committed())) == (None, "Dead", {})
    with pytest.raises(InputError, match=r"share\.isolation\.level|Invalid value"):
        group.configure({"share.isolation.level": "none"})
    broker.produce("orders", *map(str, range(10)), partition=0)
    first = await members.explicit("orders", client_id="a")
    await group.stable(1, partitions=2, timeout_s=DEADLINE_S)
    assert (group.type, group.state, group.settled) == ("share", "Stable", True)
    assert group.owners == {f"{orders}-0": ("a",), f"{orders}-1": ("a",)}
    second = await members.explicit("orders", client_id="b")
    await group.until(lambda view: {one.client_id for one in view.members} == {"a", "b"})
    await group.stable(2, timeout_s=DEADLINE_S)
    assert {member.member_id for member in group.members} == {first.member_id, second.member_id}
    assert {(one.protocol, one.epoch) for one in group.members} == {("share", group.generation)}
    reader = first if group.owners[f"{orders}-0"] == ("a",) else second
    found = await polled(reader)
    assert len(found) == 10
    for record in found:
        reader.acknowledge(record, AcknowledgeType.RELEASE if record.offset == 3 else AcknowledgeType.ACCEPT)
    assert await reader.commit_sync() == {found[0].topic_partition: None}
    assert group.lag()[f"{orders}-0"] == 1
    with pytest.raises(GroupTimeout, match=r"orders-0: 1 record left"):
        await group.caught_up("orders", timeout_s=0)
    (again,) = await polled(reader)
    reader.acknowledge(again)
    reader.commit_async()
    await group.caught_up("orders", timeout_s=DEADLINE_S)
    assert group.committed("orders", 0) == 10
    await first.close()
    await second.close()
    await group.reaches("Empty", timeout_s=DEADLINE_S)
    assert (group.type, group.members) == ("share", ())


async def test_a_group_that_begins_behind_the_records_has_caught_up() -> None:
    """Its start is written with its first acknowledgement (share.auto.offset.reset=latest)."""
    async with sharing("emulator", {"orders": 1}) as members:
        broker = members.broker
        group = broker.group("billing")
        group.configure({"share.auto.offset.reset": "latest"})
        broker.produce("orders", "before", "the", "group")
        reader = await members.explicit("orders", client_id="a")
        polls = asyncio.create_task(polled(reader))
        await group.caught_up("orders", timeout_s=DEADLINE_S)
        broker.produce("orders", "of the group")
        await polls
        assert group.lag() == {"orders-0": 1}


async def test_no_time_without_an_owner_is_told_of_the_trace_of_a_share_group(tmp_path: Path) -> None:
    with groupstorm.broker({"orders": 2}, trace=tmp_path) as broker:
        async with ShareConsumer(
            "orders", bootstrap_servers=broker.bootstrap_servers, group_id="billing"
        ) as consumer:
            await consumer.poll(timeout_ms=100)
    (one,) = explain(tmp_path)
    assert one.history.is_shared


async def test_records_in_flight_have_a_holder_a_count_and_a_lock() -> None:
    """A released record comes again, to any member, and counts one delivery more."""
    async with sharing("emulator", {"orders": 2}) as members:
        broker = members.broker
        with pytest.raises(InputError, match="'billing': there is no such group"):
            broker.in_flight("billing")
        broker.produce("orders", *map(str, range(10)), partition=0)
        reader = await members.explicit("orders", client_id="a")
        found = await polled(reader)
        (held,) = broker.in_flight("billing")["orders-0"]
        assert held[:-1] == (0, 9, reader.member_id, "a", 1)
        assert 0 < held.lock_ms <= 30_000
        for record in found:
            again = AcknowledgeType.RELEASE if record.offset == 3 else AcknowledgeType.ACCEPT
            reader.acknowledge(record, again)
        await reader.commit_sync()
        assert broker.in_flight("billing") == {}
        await polled(reader)
        (held,) = broker.in_flight("billing")["orders-0"]
        assert held[:-1] == (3, 3, reader.member_id, "a", 2)
        await members.close()
        assert broker.in_flight("billing") == {}


async def test_a_real_broker_tells_no_records_in_flight() -> None:
    with pytest.raises(EmulatorOnly, match="in_flight"):
        RealBroker(read_kind("localhost:1"), allow_writes=True).in_flight("billing")


async def test_a_member_of_a_share_group_expires() -> None:
    """The emulator ends its session at once; it joins again by itself."""
    async with sharing("emulator", {"orders": 2}) as members:
        broker = members.broker
        consumer = await members.start("orders", client_id="a")
        group = broker.group("billing")
        await group.stable(1, timeout_s=DEADLINE_S)
        epoch = group.generation
        assert epoch is not None
        with pytest.raises(InputError, match="'c' is not in group billing"):
            broker.expire_member("billing", "c")
        broker.expire_member("billing", "a")
        await group.until(
            lambda view: len(view.members) == 1 and (view.generation or 0) > epoch + 1, timeout_s=DEADLINE_S
        )
        broker.produce("orders", "after")
        await polled(consumer)
