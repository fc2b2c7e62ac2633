"""What a classic member's process does for the operations of its membership, worked out by hand.

Times of one member as in `test_positions_by_hand`: its JoinGroup is answered at 3006 ms, its SyncGroup at
3008, and it has its partition at 3010.
"""

from __future__ import annotations

from typing import Any

import pytest

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.member_session import MemberState
from groupstorm.storms.run import chosen_assignors
from groupstorm.storms.world.consumer import VirtualConsumer
from groupstorm.storms.world.consumers import PlainConsumers
from groupstorm.storms.world.environment import Environment
from groupstorm.storms.world.periodic_requests import PeriodicRequests
from groupstorm.storms.world.world import World
from tests.storms.storms_in_memory import START, MemorySink, scenario, storm
from tests.storms.test_positions_by_hand import ALONE, CRASH, played, requests
from tests.storms.test_world import TP, begun, consumer, until
from tests.storms.transcript import WORLD

MS = 1_000


def test_a_process_waits_for_a_poll_only_when_its_membership_does() -> None:
    """Its JoinGroup is parked at 1 s; at 30 s it is in the group."""
    world = begun(START)
    assert not consumer(until(world, 1_000)).waits_for_poll
    assert consumer(until(world, 30_000)).waits_for_poll
    consumer(world).stop()
    assert not consumer(world).waits_for_poll


def test_a_member_without_partitions_joins_again_at_its_next_poll() -> None:
    """Two initial delays: member-1 has its assignment, which is empty, at 6008. It polls then and every 25 s,
    at 56008 and 81008. A newcomer joins at 60005, and the heartbeat of 60006 says so."""
    add = {"at_ms": 60_000, "do": "add"}
    world = begun(START, add, members=2, start_ms=0, poll_interval_ms=25_000)
    assert until(world, 70_000).unanswered == ["member-2"]
    assert until(world, 81_007).unanswered == ["member-2"]
    assert until(world, 81_009).unanswered == ["member-1", "member-2"]


def test_heartbeats_follow_the_work_of_a_member_from_its_first_poll_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = begun(START)
    followed: list[float] = []
    monkeypatch.setattr(PeriodicRequests, "follow_work", lambda _: followed.append(world.clock.now_us / MS))
    until(world, 30_000)
    assert followed == [3_008]


@pytest.mark.parametrize("exact", [True, False])
def test_every_poll_of_a_member_is_an_event_in_exact_mode_alone(
    monkeypatch: pytest.MonkeyPatch, exact: bool
) -> None:
    """It looks every 50 ms, at 4010 too."""
    polled: list[float] = []
    resolved = scenario([START], **WORLD | ALONE).resolve(None, 1, {})
    environment = Environment(resolved, MemorySink(), exact)
    world = World(environment, PlainConsumers(environment, chosen_assignors(resolved)))
    monkeypatch.setattr(VirtualConsumer, "polled", lambda self: polled.append(self.clock.now_us / MS))
    world.new_process(0, "member-0").start()
    until(world, 4_200)
    assert [at_ms for at_ms in polled if at_ms >= 4_000] == ([4_010, 4_060, 4_110, 4_160] if exact else [])


@pytest.mark.parametrize(("assign_ms", "heartbeats"), [(1_000, 18), (3_000, 18), (10_000, 16)])
def test_the_heartbeat_that_is_overdue_behind_the_assignor_leaves_at_once(
    assign_ms: int, heartbeats: int
) -> None:
    """The assignor begins at 3006. 3 s later a heartbeat is due; it leaves then or when the assignor is done,
    at 13006 if that takes 10 s, and from then on one every 3 s. The process dies at 60 s."""
    settings: dict[str, Any] = {"assign_ms": assign_ms}
    result = played({"at_ms": 60_000, **CRASH}, **settings)
    assert requests(result)["Heartbeat"] == heartbeats


def test_a_member_of_librdkafka_keeps_an_interval_between_its_own_join_groups() -> None:
    """member-1 leaves its JoinGroup at 10004. The first round has no delay; the second ends at 12013, and a
    newcomer joins at 12014. The heartbeat that member-1 sends at once says so at 12016: its JoinGroup is
    there at 12017, since more than 1 s has passed."""
    settings = {"client_profile": "librdkafka", "members": 1, "partitions": 3, "start_ms": 0}
    steps = [START, {"at_ms": 10_000, "do": "add"}, {"at_ms": 12_009, "do": "add"}]
    result = storm(scenario(steps, **WORLD | settings | {"group.initial.rebalance.delay.ms": 0}))
    parked = [at_us / MS for at_us, _ in result.events("join_parked", member="member-1")]
    assert parked[:2] == [10_005, 12_017]


def test_a_member_whose_application_is_busy_too_long_leaves() -> None:
    """The slow batch is handed out at 60 s; max.poll.interval.ms is over 20 s later."""
    busy = {"at_ms": 60_000, "do": "busy", "members": [0], "for_ms": 40_000}
    settings: dict[str, Any] = {"tail_ms": 50_000, "max.poll.interval.ms": 20_000}
    result = played(busy, **settings)
    [(left_us, _)] = result.events("member_removed")
    assert left_us == 80_001_000


def test_a_member_that_goes_on_with_what_it_paused_says_where_it_is() -> None:
    """kafka-python hands out nothing during a round. member-1 leaves; member-0 gets its partition, too. It
    goes on with its own at once, and begins the other one when it knows its offset, 2 ms later."""
    settings: dict[str, Any] = {
        "client_profile": "kafka-python",
        "members": 2,
        "partitions": 2,
        "partition.assignment.strategy": ["cooperative-sticky"],
    }
    result = played({"at_ms": 60_000, "do": "stop", "members": [1]}, **settings)
    of_member = {"member": "member-0"}
    (resumed_us, resumed) = result.events("partitions_resumed", **of_member)[-1]
    assert resumed_us > 60_000_000
    rows = [(at_us, row) for at_us, row in result.events("processing_rates_changed", **of_member)]
    assert [(at_us, row.partitions) for at_us, row in rows if at_us >= resumed_us] == [
        (resumed_us, resumed.partitions),
        (resumed_us + 2 * MS, ("topic-0-0", "topic-0-1")),
    ]


@pytest.mark.parametrize(
    "what", ["polls", "state", "rejoins", "stands still", "is cut off", "looks up its positions"]
)
def test_a_member_is_not_settled_while_anything_is_under_way(what: str) -> None:
    world = until(begun(START), 30_000)
    member = consumer(world)
    assert member.settled
    match what:
        case "polls":
            member.waits_for_poll = False
        case "state":
            member.membership.state = MemberState.COMPLETING_REBALANCE
        case "rejoins":
            member.membership.rejoin_needed = True
        case "stands still":
            member.pauses.until_us = 31_000_000
        case "is cut off":
            member.connection.broken_until_us = 31_000_000
        case "looks up its positions":
            member.membership.owned = (TP, TopicPartition("topic-0", 1))
    assert not member.settled
