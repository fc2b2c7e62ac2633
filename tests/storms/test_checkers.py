"""Checkers find what they are there for: storms with assignors that break their promises."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from groupstorm.assignors.contract import (
    AssignmentRefused,
    AssignmentResult,
    RebalanceProtocol,
    TopicMetadata,
)
from groupstorm.assignors.userdata import Subscription, TopicPartition
from groupstorm.coordinator import events
from groupstorm.storms.checkers import HELD, Checkers
from groupstorm.storms.simulation import simulate
from tests.storms.storming import FIXED, START, Memory, Storm, scenario

COOPERATIVE = (RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER)


class Dealer:
    """Deals all partitions to the members in turn, whoever owns them now."""

    needs_equal_subscriptions = False
    protocols = COOPERATIVE

    def __init__(self, name: str, leaves_out: int = 0, doubles: int = 0) -> None:
        self.name = name
        self._leaves_out = leaves_out
        self._doubles = doubles

    def user_data(self, owned: Sequence[TopicPartition] | None, generation: int) -> bytes | None:
        return None

    def assign(
        self, topics: Mapping[str, TopicMetadata], subscriptions: Mapping[str, Subscription]
    ) -> AssignmentResult:
        partitions = [TopicPartition(t, p) for t, topic in topics.items() for p in range(topic.partitions)]
        members = sorted(subscriptions)
        dealt = partitions[self._leaves_out :]
        return AssignmentResult(
            {
                member: sorted({*dealt[: self._doubles], *dealt[place :: len(members)]})
                for place, member in enumerate(members)
            }
        )


class Refuser(Dealer):
    def assign(
        self, topics: Mapping[str, TopicMetadata], subscriptions: Mapping[str, Subscription]
    ) -> AssignmentResult:
        raise AssignmentRefused("IllegalStateException", "will not")


STEPS = [START, {"at_ms": 60_000, "do": "add", "count": 2}]


def storm(assignor: Dealer) -> Storm:
    resolved = scenario(STEPS, members=3, partitions=12, settle_timeout_ms=20_000, **FIXED).resolve(
        None, 1, {}
    )
    sink = Memory()
    return Storm(sink.rows, simulate(resolved, [assignor], sink))


def verdict(result: Storm, invariant: str) -> str:
    assert result.figures.invariants is not None
    return result.figures.invariants[invariant]


def test_a_partition_with_two_owners_is_found() -> None:
    # Under this name the leader's client trusts the assignor, as Kafka's does.
    result = storm(Dealer("cooperative-sticky", doubles=1))
    assert verdict(result, "one_owner_per_generation").startswith("topic-0-0 is owned by member-")


def test_granting_before_revoking_ends_the_leader_as_kafkas_client_does() -> None:
    result = storm(Dealer("dealer"))
    failed = [event.error for _, event in result.events("member_failed")]
    assert "IllegalStateException" in failed
    assert verdict(result, "one_owner_per_generation") == HELD


def test_an_assignor_that_refuses_ends_the_leader() -> None:
    result = storm(Refuser("refuser"))
    assert {event.error for _, event in result.events("member_failed")} == {"IllegalStateException"}


def test_partitions_that_nobody_gets_are_found() -> None:
    result = storm(Dealer("cooperative-sticky", leaves_out=2))
    assert verdict(result, "every_partition_owned_at_end").startswith("2 partitions have no owner")


@pytest.mark.parametrize(
    ("changes", "broken"),
    [
        ([("Empty", "PreparingRebalance", 0), ("PreparingRebalance", "CompletingRebalance", 1)], set()),
        ([("Stable", "PreparingRebalance", 0)], {"states_follow"}),
        (
            [("Empty", "PreparingRebalance", 1), ("PreparingRebalance", "CompletingRebalance", 1),
             ("CompletingRebalance", "PreparingRebalance", 1),
             ("PreparingRebalance", "CompletingRebalance", 1)],
            {"generations_increase"},
        ),
    ],
)  # fmt: skip
def test_states_and_generations_are_watched(changes: list[tuple[str, str, int]], broken: set[str]) -> None:
    checkers = Checkers()
    for before, after, generation in changes:
        checkers.see(events.GroupStateChanged("g", before, after, generation, "x", None, None, None, 1))
    assert set(checkers.violations) == broken
