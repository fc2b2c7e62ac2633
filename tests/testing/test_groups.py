"""Waiting for groups, and the messages of waits that fail."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

import groupstorm
from groupstorm.problems import InputError
from groupstorm.testing import EmulatedBroker, GroupTimeout, GroupView, MemberView
from groupstorm.testing.groups import GroupCondition
from tests.testing.members import AT_ONCE, GROUP, RawMember

#: Long enough for a slow machine; nobody waits so long.
DEADLINE_S = 60.0


@pytest.fixture
def broker() -> Iterator[EmulatedBroker]:
    with groupstorm.broker({"orders": 3}, AT_ONCE) as running:
        yield running


def view(state: str, *owned: int, settled: bool = True) -> GroupView:
    members = tuple(
        MemberView("c", f"m{number}", None, "/127.0.0.1", tuple(f"t-{one}" for one in range(count)))
        for number, count in enumerate(owned)
    )
    return GroupView(state, 1, members, settled)


@pytest.mark.parametrize(
    ("wanted", "group", "is_met"),
    [
        (GroupCondition("Stable"), view("Stable", 3), True),
        (GroupCondition("Stable"), view("Stable", 3, settled=False), False),
        (GroupCondition("Stable"), view("PreparingRebalance", 3), False),
        (GroupCondition("Stable", members=2), view("Stable", 3), False),
        (GroupCondition("Stable", members=2), view("Stable", 3, 0), True),
        (GroupCondition("Stable", partitions=6), view("Stable", 3, 2), False),
        (GroupCondition("Stable", 2, 6), view("Stable", 3, 3), True),
        (GroupCondition("PreparingRebalance"), view("PreparingRebalance", settled=False), True),
        (GroupCondition("Empty", members=0), view("Empty"), True),
    ],
)
def test_when_a_group_is_what_is_waited_for(wanted: GroupCondition, group: GroupView, is_met: bool) -> None:
    assert wanted.is_met(group) is is_met


def test_a_group_is_stable_when_everybody_has_its_assignment(broker: EmulatedBroker) -> None:
    group = broker.group(GROUP)
    with RawMember(broker, "one") as one, RawMember(broker, "other") as other:
        one.join_alone([0, 1, 2])
        other.send_join()
        group.wait_reaches("PreparingRebalance")
        one.send_join()
        one.joined()
        other.joined()
        one.sync({one.member_id: [0], other.member_id: [1, 2]})
        assert group.state == "Stable"
        with pytest.raises(GroupTimeout, match=r"was not Stable with 2 members within 0 s"):
            group.wait_stable(2, timeout_s=0)
        other.sync()
        group.wait_stable(2, partitions=3, timeout_s=DEADLINE_S)
        assert group.generation == 2
        assert dict(group.assignment) == {
            one.member_id: ("orders-0",),
            other.member_id: ("orders-1", "orders-2"),
        }
        first, second = sorted(group.members, key=lambda member: member.client_id)
        assert (first.client_id, second.client_id) == ("one", "other")
        assert first.client_host == "/127.0.0.1"


async def test_waiting_ends_with_the_event_that_is_waited_for(broker: EmulatedBroker) -> None:
    """Without polling: one event ends two waits."""
    group = broker.group(GROUP)
    waiting = [asyncio.ensure_future(group.stable(members=1, timeout_s=DEADLINE_S)) for _ in range(2)]
    await asyncio.sleep(0)
    with RawMember(broker) as member:
        await asyncio.to_thread(member.join_alone, [0])
        await asyncio.gather(*waiting)
        assert group.state == "Stable"


def test_a_test_that_blocks_waits_on_its_thread(broker: EmulatedBroker) -> None:
    with RawMember(broker) as member:
        joining = threading.Thread(target=member.join_alone, args=([0],))
        joining.start()
        broker.group(GROUP).wait_stable(members=1, timeout_s=DEADLINE_S)
        joining.join()


async def test_a_group_nobody_has_asked_for(broker: EmulatedBroker) -> None:
    with pytest.raises(GroupTimeout) as late:
        await broker.group("raeders").stable(members=3, timeout_s=0.01)
    assert str(late.value) == (
        "group raeders was not Stable with 3 members within 0.01 s\n"
        "it is Dead, with 0 members\n"
        "no client has joined it: does your application use this group.id, subscribe(), a topic that exists,"
        " and the broker's security?"
    )


async def test_the_failure_tells_what_the_group_is_and_what_happened(broker: EmulatedBroker) -> None:
    with RawMember(broker, "one") as one, RawMember(broker, "other") as other:
        one.join_alone([0, 1])
        other.send_join()
        await broker.group(GROUP).reaches("PreparingRebalance", timeout_s=DEADLINE_S)
        with pytest.raises(GroupTimeout) as late:
            await broker.group(GROUP).stable(2, partitions=3, timeout_s=0.01)
    lines = str(late.value).splitlines()
    assert lines[:2] == [
        "group readers was not Stable with 2 members and 3 partitions assigned within 0.01 s",
        "it is PreparingRebalance, generation 1, with 2 members",
    ]
    assert f"  one ({one.member_id}): orders-0, orders-1" in lines
    last = lines[lines.index("its last events:") + 1 :]
    assert 0 < len(last) <= 12
    assert any("group state changed: previous_state=Stable state=PreparingRebalance" in line for line in last)


async def test_a_cancelled_wait_leaves_nothing_behind(broker: EmulatedBroker) -> None:
    waiting = asyncio.ensure_future(broker.group(GROUP).stable(members=9))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    with RawMember(broker) as member:
        member.join_alone([0])
        broker.group(GROUP).wait_stable(1, timeout_s=DEADLINE_S)


async def test_a_wait_that_blocks_an_async_test_says_so(broker: EmulatedBroker) -> None:
    """Its clients, on the same event loop, could do nothing meanwhile."""
    with pytest.raises(GroupTimeout) as failed:
        broker.group(GROUP).wait_stable(timeout_s=0.1)
    assert "this thread's event loop stood still meanwhile" in failed.value.__notes__[0]
    with pytest.raises(GroupTimeout) as failed:
        await asyncio.to_thread(broker.group(GROUP).wait_stable, timeout_s=0.1)
    assert not hasattr(failed.value, "__notes__")


def test_a_coroutine_is_no_condition(broker: EmulatedBroker) -> None:
    """It is always true."""
    group = broker.group(GROUP)
    with pytest.raises(InputError, match="condition: expected a function that is not async"):
        group.wait_until(lambda _view: group.caught_up("orders"))  # type: ignore[arg-type,return-value]


def test_a_fulfilled_condition_is_not_waited_for(broker: EmulatedBroker) -> None:
    broker.group("nobody").wait_reaches("Dead", timeout_s=0)
