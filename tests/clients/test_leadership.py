"""A leader's check of a cooperative plan (ConsumerCoordinator.validateCooperativeAssignment)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pytest

from groupstorm.assignors.contract import (
    COOPERATIVE,
    EAGER,
    AssignmentRefused,
    AssignmentResult,
    RebalanceProtocol,
    TopicMetadata,
)
from groupstorm.assignors.userdata import Subscription, decode_assignment, encode_subscription
from groupstorm.clients.leadership import lead
from groupstorm.clients.operations import AssignmentFailed
from groupstorm.coordinator.messages import JoinGroupMember
from tests.clients.scripted_consumer import T0, T1, T2


class Planned(NamedTuple):
    """An assignor whose answer is given."""

    name: str
    plan: Mapping[str, Sequence[tuple[str, int]]] | None
    protocols: tuple[RebalanceProtocol, ...] = (COOPERATIVE, EAGER)
    needs_equal_subscriptions: bool = False

    def user_data(self, owned: object, generation: int) -> bytes | None:
        return None

    def assign(
        self, topics: Mapping[str, TopicMetadata], subscriptions: Mapping[str, Subscription]
    ) -> AssignmentResult:
        if self.plan is None:
            raise AssignmentRefused("NullPointerException", None)
        return AssignmentResult(self.plan)  # type: ignore[arg-type]


def member(name: str, *owned: tuple[str, int]) -> JoinGroupMember:
    return JoinGroupMember(name, None, encode_subscription(Subscription(("t",), None, owned, 1), 3))  # type: ignore[arg-type]


#: a owns partitions 0 and 1, b owns nothing; the plan moves partition 1 at once.
GROUP = (member("a", T0, T1), member("b"))
MOVES_AT_ONCE = {"a": (T0,), "b": (T1, T2)}
GIVES_UP_FIRST = {"a": (T0,), "b": (T2,)}


@pytest.mark.parametrize(
    ("name", "protocol", "plan", "refused"),
    [
        ("own", COOPERATIVE, MOVES_AT_ONCE, True),
        ("own", COOPERATIVE, GIVES_UP_FIRST, False),
        ("own", EAGER, MOVES_AT_ONCE, False),
        ("cooperative-sticky", COOPERATIVE, MOVES_AT_ONCE, False),
        ("cooperative-sticky", EAGER, MOVES_AT_ONCE, False),
    ],
)
def test_a_cooperative_plan_that_moves_a_partition_at_once_is_refused(
    name: str, protocol: RebalanceProtocol, plan: Mapping[str, Sequence[tuple[str, int]]], refused: bool
) -> None:
    answer = lead(Planned(name, plan), protocol, {"t": 3}, GROUP)
    if refused:
        assert isinstance(answer, AssignmentFailed)
        assert answer.error == "IllegalStateException"
        assert answer.message.startswith("own assigned t-1 ")
    else:
        assert not isinstance(answer, AssignmentFailed)
        assert {name: tuple(decode_assignment(each).partitions) for name, each in answer} == plan


def test_an_assignor_that_refuses_and_garbage_end_the_round_with_javas_exception() -> None:
    assert lead(Planned("own", None), EAGER, {"t": 3}, GROUP) == AssignmentFailed("NullPointerException", "")
    garbage = lead(Planned("own", {}), EAGER, {"t": 3}, [JoinGroupMember("a", None, b"\0")])
    assert isinstance(garbage, AssignmentFailed)
    assert garbage.error == "SchemaException"
    assert garbage.message
