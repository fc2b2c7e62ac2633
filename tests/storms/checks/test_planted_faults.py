"""Each check finds a planted fault that no other check finds, and says so in a sentence."""

from __future__ import annotations

from typing import Any

import pytest

from groupstorm.assignors.contract import (
    RebalanceProtocol,
)
from groupstorm.coordinator.classic import rebalances
from groupstorm.storms.checks import verdicts
from groupstorm.storms.world.simulation import simulate
from tests.storms.checks.rows import LISTED_IF_VIOLATED
from tests.storms.planted_faults import PLANT, Dealer
from tests.storms.storms_in_memory import FIXED, START, MemorySink, Storm, scenario, storm

COOPERATIVE = {"partition.assignment.strategy": "cooperative-sticky"}


class Polite(Dealer):
    """Keeps to the eager protocol, in which a deal like this one is allowed."""

    protocols = (RebalanceProtocol.EAGER, RebalanceProtocol.EAGER)


def with_assignor(assignor: Dealer, steps: list[dict[str, Any]], **settings: Any) -> Storm:
    resolved = scenario(steps, **settings, **FIXED).resolve(None, 1, {})
    sink = MemorySink()
    return Storm(sink.rows, simulate(resolved, [assignor], sink))


ADD = [START, {"at_ms": 60_000, "do": "add"}]
BY_ASSIGNORS: list[tuple[Dealer, list[dict[str, Any]], dict[str, Any], str, str]] = [
    (
        # under this name the leader's client trusts the assignor, as Kafka's does
        Dealer("cooperative-sticky", doubles=1, owners=2),
        [START],
        {},
        verdicts.ONE_OWNER,
        "topic-0-0 is owned by member-0 and member-1 in generation 1",
    ),
    (Dealer("cooperative-sticky", leaves_out=2), [START], {}, verdicts.OWNED_AT_END,
     "2 partitions have no owner at the end, topic-0-0 among them"),
]  # fmt: skip


@pytest.mark.parametrize(("assignor", "steps", "settings", "invariant", "sentence"), BY_ASSIGNORS)
def test_an_assignor_that_is_wrong_is_found(
    assignor: Dealer, steps: list[dict[str, Any]], settings: dict[str, Any], invariant: str, sentence: str
) -> None:
    found = with_assignor(assignor, steps, members=3, partitions=6, **settings).broken
    assert found == {invariant: sentence}


#: What breaks besides, since the fault never ends: a zombie is never at rest.
CONSEQUENCES = {"zombie_ignores_on_partitions_lost": {verdicts.SETTLES}}

CRASH = [START, {"at_ms": 60_000, "do": "crash", "members": [1]}]

BY_RULES: list[tuple[str, list[dict[str, Any]], dict[str, Any], str, str]] = [
    ("keeps_what_it_lost", ADD, {"start_ms": 0}, verdicts.ASSIGNED_ONLY,
     "member-0 owns topic-0-9 in generation 2, which assigns it to others or to nobody"),
    ("zombie_never_loses", [START, {"at_ms": 60_000, "do": "disconnect", "members": [1], "for_ms": 100_000}],
     {}, verdicts.LOST_IS_GONE,
     "member-1 revoked topic-0-1, topic-0-10, topic-0-4 and 1 more, which it had lost "
     "before (UNKNOWN_MEMBER_ID)"),
    ("zombie_ignores_on_partitions_lost",
     [START, {"at_ms": 60_000, "do": "disconnect", "members": [1], "for_ms": 100_000}], {},
     verdicts.WORKS_ON_OWN,
     "member-1 processes topic-0-1, topic-0-4, topic-0-7 and 1 more, but does not own them"),
    ("paused_process_heartbeats", [START, {"at_ms": 60_000, "do": "pause", "members": [1], "for_ms": 60_000}],
     {}, verdicts.SILENCE,
     "member-1 was silent for 60 s and still in the group: session.timeout.ms and the "
     "way of a request are 45.002 s"),
    ("strangers_count_as_settled",
     [START, {"at_ms": 60_000, "do": "disconnect", "members": [1], "for_ms": 100_000}], {"tail_ms": 0},
     verdicts.MEMBERS_LIVE, "member-1 runs at the end, but is not in the group"),
    ("one_join_is_never_answered", ADD, {"start_ms": 0, "max.poll.interval.ms": 60_000}, verdicts.PARKED,
     "the coordinator never answered the JoinGroup of member-3"),
    ("joins_for_ever", [START], {"settle_timeout_ms": 20_000}, verdicts.SETTLES,
     "never at rest: 668 rounds in 105 seconds"),
    ("generation_stands_still", ADD, {"start_ms": 0}, verdicts.GENERATIONS,
     "generation 1 came after generation 1"),
    ("wrong_previous_state", ADD, {"start_ms": 0}, verdicts.STATES,
     "the group went from Stable to PreparingRebalance, but was Empty"),
    ("a_change_that_kafka_does_not_know", ADD, {"start_ms": 0}, verdicts.TRANSITIONS,
     "the group went from Stable to PreparingRebalance because of rebalance-timeout"),
    ("commits_are_forgotten", ADD, {"start_ms": 0}, verdicts.COMMITS_KEPT,
     "at 60.160 s 5591 of topic-0-9 is committed when member-0 gives it up, but the commit of 5996 had "
     "been accepted"),
    ("owners_begin_too_far", ADD, {"start_ms": 0}, verdicts.NOTHING_SKIPPED,
     "at 63.114 s member-3 begins topic-0-9 at 6001, 5 records beyond the committed 5996"),
    ("fenced_commits_count", ADD, {"start_ms": 0}, verdicts.FENCED,
     "after 60.008 s a commit of member-0-8d5c816f-1ebe-40ba-a867-1b92db010ecb in generation 0 for "
     "topic-0-0, topic-0-3, topic-0-6 and 1 more was accepted: the group is in generation 1"),
    ("gaps_are_a_second_short", CRASH, {"start_ms": 0}, verdicts.TIMES_ADD_UP,
     "unowned_partition_seconds is 236.768, and the rows of the owners add up to 252.768000 s"),
    ("former_generations_commit", ADD, {"start_ms": 0}, verdicts.FENCED,
     "at the end of the run OffsetCommit of member-0-8d5c816f-1ebe-40ba-a867-1b92db010ecb in "
     "generation 2 was accepted"),
    ("former_generations_heartbeat", ADD, {"start_ms": 0}, verdicts.FENCED,
     "at the end of the run Heartbeat of member-0-8d5c816f-1ebe-40ba-a867-1b92db010ecb in generation "
     "2 was accepted"),
    ("former_epochs_commit", ADD, {"start_ms": 0, "group.protocol": "consumer"}, verdicts.FENCED,
     "at the end of the run OffsetCommit of 4rZmrW1-cDXk_1u4CWqCoA in generation 3 was accepted"),
    ("duplicates_count_half", CRASH, {"start_ms": 0}, verdicts.RECORDS_ADD_UP,
     "records_duplicated is 810, and by the rows of the owners it is 1620"),
]  # fmt: skip


@pytest.mark.parametrize(("fault", "steps", "settings", "invariant", "sentence"), BY_RULES)
def test_a_rule_that_is_broken_is_found(
    monkeypatch: pytest.MonkeyPatch,
    fault: str,
    steps: list[dict[str, Any]],
    settings: dict[str, Any],
    invariant: str,
    sentence: str,
) -> None:
    world = scenario(steps, members=3, partitions=12, **COOPERATIVE, **FIXED, **settings)
    assert storm(world).broken == {}
    PLANT[fault](monkeypatch)
    found = storm(world).broken
    assert found.pop(invariant) == sentence
    assert set(found) <= CONSEQUENCES.get(fault, set())


def test_every_invariant_has_a_fault_that_it_alone_finds() -> None:
    found = {case[3] for case in BY_ASSIGNORS} | {case[3] for case in BY_RULES}
    assert found == {*verdicts.INVARIANTS, *LISTED_IF_VIOLATED}


def of_dealer(assignor: Dealer) -> Storm:
    steps = [START, {"at_ms": 60_000, "do": "add", "count": 2}]
    return with_assignor(assignor, steps, members=3, partitions=12, settle_timeout_ms=20_000)


def test_granting_before_revoking_ends_the_leader_as_kafkas_client_does() -> None:
    result = of_dealer(Dealer("dealer"))
    failed = [event.error for _, event in result.events("member_failed")]
    assert "IllegalStateException" in failed
    assert verdicts.ONE_OWNER not in result.broken


def test_an_operation_of_the_coordinator_that_fails_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The group recovers, and every other invariant holds: the run fails all the same."""
    assert verdicts.NO_OPERATION_FAILED not in (of_dealer(Polite("range")).figures.invariants or {})
    answer_joins, rounds = rebalances._answer_joins, []

    def breaks_once(shard: Any, group: Any) -> None:
        rounds.append(group.generation)
        if len(rounds) == 2:
            raise RuntimeError("out of order")
        answer_joins(shard, group)

    monkeypatch.setattr(rebalances, "_answer_joins", breaks_once)
    result = of_dealer(Polite("range"))
    [(name, said)] = result.broken.items()
    assert name == verdicts.NO_OPERATION_FAILED
    assert "RuntimeError: out of order" in said
