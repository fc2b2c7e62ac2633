"""The assignor of a generation's leader in virtual time: how long it takes, and what becomes known of it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from groupstorm.assignors.contract import EAGER, AssignmentRefused, AssignmentResult
from groupstorm.assignors.userdata import Subscription, encode_subscription
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.member_session import Generation
from groupstorm.clients.operations import Assign, AssignmentFailed
from groupstorm.coordinator.errors import NO_ERROR
from groupstorm.coordinator.messages import JoinGroupMember, JoinGroupResponse
from groupstorm.storms.assignor_work import AssignorWork
from groupstorm.storms.world.assignor_run import run_assignor
from groupstorm.storms.world.draws import ASSIGN
from groupstorm.trace.events import member as events


class Leader:
    """The process that leads three members. ``assign_ms`` is 20; ``said``: what happened, in order."""

    def __init__(self, ns_per_member_partition: int = 0, refuses: bool = False) -> None:
        self.said: list[Any] = []
        self.name, self.config = "m", ConsumerConfig("g", "m", ("t",))
        self.draws: Any = SimpleNamespace(
            duration_us=lambda ms, purpose: ms * 1_000 if purpose == ASSIGN else -1
        )
        self.settings: Any = SimpleNamespace(
            distribution=lambda name: {"assign_ms": 20}[name],
            integer=lambda name: {"assign_ns_per_member_partition": ns_per_member_partition}[name],
        )
        self.membership: Any = SimpleNamespace(
            generation=Generation(7, "m-1"),
            rebalance_protocol=EAGER,
            assignor_begins=lambda: self.said.append("assignor begins"),
        )
        self.assignor: Any = SimpleNamespace(name="mine", assign=self._assign)
        self.environment: Any = SimpleNamespace(assignor_work=AssignorWork(), leader_memory=None)
        self._refuses = refuses

    def _assign(self, topics: Any, subscriptions: Any) -> AssignmentResult:
        self.said.append(f"{len(subscriptions)} members, {sum(each.partitions for each in topics.values())}")
        if self._refuses:
            raise AssignmentRefused("MyException", "too few")
        return AssignmentResult(dict.fromkeys(subscriptions, ()))

    def emit(self, event: events.Event) -> None:
        self.said.append(event)

    def run(self, protocol: str | None = "range") -> tuple[Any, int]:
        """Topics of 4 and 3 partitions."""
        metadata = encode_subscription(Subscription(("t", "u")))
        members = tuple([JoinGroupMember(f"m-{number}", None, metadata) for number in (1, 2, 3)])
        response = JoinGroupResponse(
            NO_ERROR, 7, "m-1", "m-1", protocol_type="consumer", protocol=protocol, members=members
        )
        return run_assignor(self, Assign(response, self.assignor), {"t": 4, "u": 3}, self.environment)


def computed(duration_us: int, protocol: str = "range") -> events.Event:
    return events.AssignmentComputed("g", "m", "m-1", 7, protocol, duration_us, 3)


def test_the_assignor_runs_on_the_topics_that_the_leader_knows_then() -> None:
    leader = Leader()
    plan, duration_us = leader.run()
    assert sorted(member for member, _ in plan) == ["m-1", "m-2", "m-3"]
    assert duration_us == 20_000
    assert leader.said == ["assignor begins", "3 members, 7", computed(20_000)]
    assert leader.environment.assignor_work.assignments == 1
    assert leader.environment.assignor_work.failure is None


@pytest.mark.parametrize(
    ("ns", "duration_us"), [(1_000, 20_021), (47, 20_000), (48, 20_001), (47_667, 21_001)]
)
def test_an_assignor_takes_longer_for_more_members_and_partitions(ns: int, duration_us: int) -> None:
    """3 x 7 = 21 pairs, whose nanoseconds are rounded down: 47 ns make 987 ns, 47,667 ns 1,001,007 ns."""
    leader = Leader(ns)
    assert leader.run()[1] == duration_us
    assert leader.said[-1] == computed(duration_us)


def test_an_assignor_that_fails_takes_as_long_and_its_message_is_kept() -> None:
    leader = Leader(1_000, refuses=True)
    assert leader.run() == (AssignmentFailed("MyException", "too few"), 20_021)
    assert leader.said[-1] == computed(20_021)
    assert leader.environment.assignor_work.failure == "MyException: too few"


def test_an_assignment_by_no_protocol_has_no_name() -> None:
    leader = Leader()
    leader.run(protocol=None)
    assert leader.said[-1] == computed(20_000, "")
