"""A static member that comes back asks for no round: what the check excuses, and what it does not."""

from __future__ import annotations

from typing import Any

import pytest

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.storms.checks.invariants import InvariantChecks
from groupstorm.storms.checks.settling import kafkas_own
from groupstorm.storms.checks.verdicts import HELD, NO_NEW_ASSIGNMENT, OWNED_AT_END
from groupstorm.trace.events.coordinator import (
    AppendFailed,
    GroupConverted,
    GroupCreated,
    GroupStateChanged,
    MemberReconciled,
    MemberReplaced,
    SyncAnswered,
)
from groupstorm.trace.events.scenario import PartitionsCreated
from groupstorm.trace.schema import Source
from tests.storms.checks.rows import World
from tests.storms.storms_in_memory import FIXED, START, Storm, scenario, storm

STATIC: dict[str, Any] = {
    **FIXED,
    "group.instance.id": "ordinal",
    "settle_timeout_ms": 60_000,
    "start_ms": {"exactly": 1000},
}
NEW = {"at_ms": 60_000, "do": "add-partitions", "topic": "topic-0", "partitions": 4}
RESTART = {"at_ms": 70_000, "do": "restart", "members": "all"}


def verdicts(result: Storm) -> dict[str, str]:
    return dict(result.figures.invariants or {})


def test_partitions_that_a_returning_static_leader_does_not_assign_are_said_to_be_kafkas_own() -> None:
    said = verdicts(storm(scenario([START, NEW, RESTART], members=2, partitions=2, **STATIC)))
    assert kafkas_own(said) == said[OWNED_AT_END]
    assert said[OWNED_AT_END].startswith(
        f"{NO_NEW_ASSIGNMENT} for topic-0-2, topic-0-3: no owner until another round, since member-"
    )
    assert "(KIP-814)" in said[OWNED_AT_END]


@pytest.mark.parametrize(
    ("steps", "members"),
    [
        ([START, NEW, {**RESTART, "at_ms": 400_000}], 2),  # the leader has seen them before it restarts
        ([START, {**NEW, "at_ms": 71_500}, {**RESTART, "at_ms": 60_000}], 2),  # and after it came back
        ([START, NEW, RESTART, {"at_ms": 90_000, "do": "add"}], 2),  # another round
    ],
)
def test_new_partitions_are_owned_if_the_leader_assigns(steps: list[dict[str, Any]], members: int) -> None:
    settings = {**STATIC, "settle_timeout_ms": 600_000}
    assert set(verdicts(storm(scenario(steps, members=members, partitions=2, **settings))).values()) == {HELD}


@pytest.mark.parametrize("failover_ms", [50_500, 53_500])
def test_partitions_of_a_member_whose_end_downgraded_the_group_are_unowned_if_its_coordinator_goes(
    failover_ms: int,
) -> None:
    """The static consumer that closes is removed 45 s after its last heartbeat, at 50.005 s. The other
    member, of the classic protocol, sends a heartbeat every 3 s, and joins again with the next one."""
    settings: dict[str, Any] = {
        "group.protocol": "consumer",
        "member_settings": [{"members": [0], "settings": {"group.protocol": "classic"}}],
    }
    closes = {"at_ms": 7_000, "do": "stop", "members": [1]}
    failover = {"at_ms": failover_ms, "do": "coordinator-failover", "for_ms": 1_000}
    first = {"at_ms": 0, "do": "start", "members": [1]}
    second = {"at_ms": 3_500, "do": "start", "members": [0]}
    steps = [first, second, closes, failover]
    said = verdicts(storm(scenario(steps, members=2, partitions=1, **{**STATIC, **settings})))
    if failover_ms == 53_500:
        assert set(said.values()) == {HELD}
        return
    assert kafkas_own(said) == said[OWNED_AT_END]
    assert said[OWNED_AT_END].startswith(f"{NO_NEW_ASSIGNMENT} for topic-0-0: no owner until another round")
    assert "its coordinator was gone" in said[OWNED_AT_END]


def changed(state: str, leader: str | None) -> GroupStateChanged:
    return GroupStateChanged("g", "", state, 1, "", None, "range", leader, 2)


def returned(previous: str) -> MemberReplaced:
    return MemberReplaced("g", "m", "new", previous, "m", 1)


def is_excused(rows: list[Any], missing: list[str]) -> bool:
    """Whether Kafka itself leaves these partitions without an owner at the end, behind these rows."""
    checks = InvariantChecks(consumer_groups=True)
    for row in rows:
        checks.add(0, Source.COORDINATOR, row)
    partitions = [TopicPartition(name[0], int(name[2:])) for name in missing]
    checks.finish(World({"a": ()}, partitions=tuple(partitions)), 0)
    sentence = f"{NO_NEW_ASSIGNMENT} for {', '.join(missing)}: no owner"
    return checks.verdicts[OWNED_AT_END].startswith(sentence)


CREATED = PartitionsCreated("g", ("t",), ("t-2", "t-3"))
#: Only the first row says who leads if the rows are inferred from what a real broker answers.
ROUND = [changed("CompletingRebalance", "old"), changed("Stable", None)]


@pytest.mark.parametrize(
    ("rows", "missing", "excused"),
    [
        ([*ROUND, CREATED, returned("old")], ["t-2", "t-3"], True),
        ([*ROUND, CREATED, returned("old")], ["t-3"], True),
        ([CREATED, *ROUND, returned("old")], ["t-3"], True),
        ([*ROUND, CREATED, returned("old")], ["t-1", "t-3"], False),  # t-1 was there before
        ([*ROUND, CREATED, returned("other")], ["t-2"], False),  # not the leader
        ([*ROUND, returned("old"), CREATED], ["t-2"], False),  # the leader sees them
        ([*ROUND, CREATED, returned("old"), changed("PreparingRebalance", "new")], ["t-2"], False),
        ([*ROUND, CREATED, returned("old"), *ROUND], ["t-2"], False),  # a round has assigned them
        ([*ROUND, CREATED, changed("PreparingRebalance", "old"), returned("old"), ROUND[1]], ["t-2"], False),
        ([*ROUND, returned("old"), CREATED, returned("new")], ["t-2"], True),  # it restarts once more
        ([*ROUND, CREATED], ["t-2"], False),
    ],
)
def test_only_partitions_that_the_leader_does_not_miss_are_excused(
    rows: list[Any], missing: list[str], excused: bool
) -> None:
    assert is_excused(rows, missing) == excused


def synced(member_id: str, *partitions: str, error: str | None = None) -> SyncAnswered:
    return SyncAnswered("g", "m", member_id, 1, error, partitions)


#: In the second round the leader gives up t-1; nobody has it before the third.
GIVES_UP = [*ROUND, synced("a", "t-0", "t-1"), *ROUND, synced("a", "t-0"), synced("b")]


@pytest.mark.parametrize(
    ("rows", "missing", "excused"),
    [
        ([*GIVES_UP, returned("a")], ["t-1"], True),
        ([*GIVES_UP, returned("a")], ["t-0", "t-1"], False),  # t-0 is assigned
        ([*GIVES_UP, returned("a")], ["t-1", "t-2"], False),  # t-2 never was
        ([*GIVES_UP, CREATED, returned("a")], ["t-1", "t-2"], False),
        ([*GIVES_UP, CREATED, returned("a"), returned("old")], ["t-1", "t-2"], True),  # the leader, too
        (GIVES_UP, ["t-1"], False),  # a is still there
        ([*GIVES_UP, returned("b")], ["t-1"], False),
        ([*GIVES_UP, returned("a"), synced("b", "t-1")], ["t-1"], False),
        ([*GIVES_UP, returned("a"), synced("b", "t-1", error="x")], ["t-1"], True),
        ([*GIVES_UP, changed("PreparingRebalance", "old"), returned("a"), ROUND[1]], ["t-1"], False),
        ([*GIVES_UP, returned("a"), *ROUND], ["t-1"], False),  # another round
        ([*GIVES_UP, *ROUND, synced("a", "t-0"), returned("a")], ["t-1"], False),  # two rounds ago
        ([*ROUND, synced("a", "t-1"), *ROUND, returned("a"), synced("new")], ["t-1"], True),  # synced late
    ],
)
def test_only_partitions_that_a_returning_member_had_to_give_up_are_excused(
    rows: list[Any], missing: list[str], excused: bool
) -> None:
    assert is_excused(rows, missing) == excused


def test_a_member_that_restarts_before_it_gives_up_a_partition_asks_for_no_round() -> None:
    """member-0 has to give up one partition at 3.3 s, works on that until 6.3 s, and dies before."""
    steps = [{**START, "over_ms": 5_292}, {"at_ms": 5_000, "do": "crash-restart", "members": [0]}]
    settings = {
        "group.instance.id": "ordinal",
        "partition.assignment.strategy": "cooperative-sticky",
        "group.initial.rebalance.delay.ms": 0,
        "revoke_callback_ms": 3_000,
        "start_ms": 0,
    }
    said = verdicts(storm(scenario(steps, members=2, partitions=2, **settings), seed=672309355))
    assert kafkas_own(said) == said[OWNED_AT_END]
    assert said[OWNED_AT_END] == (
        "no new assignment for topic-0-1: no owner until another round, since member-0 restarted under the "
        "same group.instance.id before the round in which it would have given them up, and asks for none "
        "(KIP-345, KIP-429)"
    )


OLD_CLIENTS = {"aiokafka": "roundrobin", "kafka-python": "range"}


@pytest.mark.parametrize("client", OLD_CLIENTS)
def test_a_leader_of_an_older_client_does_not_know_that_it_leads(client: str) -> None:
    """JoinGroup below version 9: it does not see partitions either that come after it is back."""
    settings = {**STATIC, "client_profile": client, "partition.assignment.strategy": OLD_CLIENTS[client]}
    settings |= {"session.timeout.ms": 30_000, "metadata.max.age.ms": 20_000}
    said = verdicts(
        storm(scenario([START, {**RESTART, "at_ms": 50_000}, NEW], members=2, partitions=2, **settings))
    )
    assert kafkas_own(said) == said[OWNED_AT_END]
    assert "does not know that it leads (JoinGroup below version 9, KIP-814)" in said[OWNED_AT_END]


@pytest.mark.parametrize("client", ["librdkafka", "franz-go", "java"])
@pytest.mark.parametrize("back_ms", [50_000, 70_000])
def test_the_other_clients_see_new_partitions_unless_a_static_leader_comes_back_after_them(
    client: str, back_ms: int
) -> None:
    """Every librdkafka member watches its topics (12 s with a metadata age of 20 s, on Kafka 4.3.1, where two
    members restarted at 10 s and the topic grew at 20 s). franz-go runs its assignor whatever it is told."""
    settings = {**STATIC, "client_profile": client, "metadata.max.age.ms": 20_000}
    settings["partition.assignment.strategy"] = "cooperative-sticky"
    result = storm(
        scenario([START, {**RESTART, "at_ms": back_ms}, NEW], members=2, partitions=2, **settings), seed=3
    )
    if client != "franz-go" and back_ms == 70_000:
        assert kafkas_own(verdicts(result)) is not None
    else:
        assert set(verdicts(result).values()) == {HELD}


def test_a_librdkafka_follower_asks_for_a_round_when_its_topic_grows() -> None:
    settings = {**FIXED, "client_profile": "librdkafka", "metadata.max.age.ms": 20_000}
    result = storm(scenario([{**START, "over_ms": 20_000}, NEW], members=3, partitions=2, **settings))
    [(_, computed), *_] = result.events("assignment_computed")
    asked = result.events("rejoin_requested", cause="metadata-changed")
    assert {event.member for _, event in asked} - {computed.member}, "not the leader alone"


DOWNGRADED = GroupConverted("g", 3, "downgraded")
LOADED = GroupCreated("g", "loaded")
RECONCILED = MemberReconciled("g", "m", "m-1", 3, "STABLE", (), ())


@pytest.mark.parametrize(
    ("rows", "excused"),
    [
        ([DOWNGRADED, LOADED], True),
        ([DOWNGRADED, AppendFailed("g", "NOT_ENOUGH_REPLICAS", "group-downgraded"), LOADED], False),
        ([DOWNGRADED, LOADED, LOADED], True),
        ([DOWNGRADED, changed("CompletingRebalance", "m-1"), LOADED], False),
        ([DOWNGRADED, LOADED, changed("CompletingRebalance", "m-1")], False),
        ([DOWNGRADED, LOADED, GroupConverted("g", 3, "upgraded")], False),
        ([GroupConverted("g", 3, "upgraded"), LOADED], False),
        ([DOWNGRADED, GroupCreated("g", "join")], False),
        ([DOWNGRADED], False),
        ([DOWNGRADED, RECONCILED, LOADED], False),
        ([DOWNGRADED, LOADED, RECONCILED], False),
        ([LOADED], False),
    ],
)
def test_a_round_that_the_next_coordinator_does_not_know(rows: list[Any], excused: bool) -> None:
    assert is_excused(rows, ["t-0"]) == excused
