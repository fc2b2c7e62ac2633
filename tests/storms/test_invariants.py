"""Invariants are checked: storms with assignors that break their promises fail."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from groupstorm.assignors.contract import (
    AssignmentRefused,
    AssignmentResult,
    RebalanceProtocol,
    TopicMetadata,
)
from groupstorm.assignors.userdata import Subscription
from groupstorm.storms.checks.verdicts import HELD
from groupstorm.storms.world.simulation import simulate
from tests.storms.planted_faults import Dealer, a_round_breaks_off
from tests.storms.storms_in_memory import FIXED, START, MemorySink, Storm, scenario


class Refuser(Dealer):
    def assign(
        self, topics: Mapping[str, TopicMetadata], subscriptions: Mapping[str, Subscription]
    ) -> AssignmentResult:
        raise AssignmentRefused("IllegalStateException", "will not")


class Polite(Dealer):
    """Keeps to the eager protocol, in which a deal like this one is allowed."""

    protocols = (RebalanceProtocol.EAGER, RebalanceProtocol.EAGER)


STEPS = [START, {"at_ms": 60_000, "do": "add", "count": 2}]


def storm(assignor: Dealer) -> Storm:
    resolved = scenario(STEPS, members=3, partitions=12, settle_timeout_ms=20_000, **FIXED).resolve(
        None, 1, {}
    )
    sink = MemorySink()
    return Storm(sink.rows, simulate(resolved, [assignor], sink))


def verdict(result: Storm, invariant: str) -> str:
    assert result.figures.invariants is not None
    return result.figures.invariants[invariant]


def test_granting_before_revoking_ends_the_leader_as_kafkas_client_does() -> None:
    result = storm(Dealer("dealer"))
    failed = [event.error for _, event in result.events("member_failed")]
    assert "IllegalStateException" in failed
    assert verdict(result, "one_owner_per_generation") == HELD


def test_an_assignor_that_refuses_ends_the_leader() -> None:
    result = storm(Refuser("refuser"))
    assert {event.error for _, event in result.events("member_failed")} == {"IllegalStateException"}


def test_an_operation_of_the_coordinator_that_fails_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The group recovers, and every other invariant holds: the run fails all the same."""
    assert "no_operation_failed" not in (storm(Polite("range")).figures.invariants or {})
    a_round_breaks_off(monkeypatch)
    result = storm(Polite("range"))
    broken = {name for name, said in (result.figures.invariants or {}).items() if said != HELD}
    assert broken == {"no_operation_failed"}
    assert "RuntimeError: out of order" in verdict(result, "no_operation_failed")
