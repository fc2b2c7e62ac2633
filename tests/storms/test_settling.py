"""A configuration that cannot settle is named, with what ends it; other failures are not taken for one."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.figures.table import finding, lag_growth
from groupstorm.problems import InputError
from groupstorm.storms.checks.settling import Rounds, Settling
from groupstorm.storms.runs.contradictions import endless_work
from groupstorm.storms.runs.load import member_load
from groupstorm.storms.runs.remedies import Remedy, RemedySearch
from groupstorm.storms.runs.run import run
from groupstorm.storms.world import simulation
from groupstorm.trace.events.coordinator import GroupStateChanged, MemberRemoved
from tests.storms.storms_in_memory import scenario, storm

MINUTE_US = 60_000_000
START = {"at_ms": 0, "do": "start", "over_ms": 8000}
LIVELOCK = {
    "members": 30,
    "partitions": 120,
    "partition.assignment.strategy": ["cooperative-sticky"],
    "poll_interval_ms": 400_000,
    "group.initial.rebalance.delay.ms": 0,
}


def _singles(remedies: Iterable[Remedy]) -> dict[str, object]:
    """The remedies of one setting."""
    found = [next(iter(one.settings.items())) for one in remedies if len(one.settings) == 1]
    return dict(found)


class FakeWorld:
    def __init__(self) -> None:
        self.settled = False
        self.committed: dict[TopicPartition, int] = {}


def round_at(rounds: Rounds, minute: int) -> None:
    event = GroupStateChanged("g", "PreparingRebalance", "CompletingRebalance", 1, "x", None, None, None, 1)
    rounds.group_changed(event, minute * MINUTE_US)


def test_rounds_without_progress_are_a_livelock() -> None:
    world, rounds = FakeWorld(), Rounds()
    round_at(rounds, 1)  # before the last step: not counted
    world.committed = {TopicPartition("t", 0): 7, TopicPartition("t", 1): 9}
    settling = Settling(world, rounds)
    settling.steps_done(2 * MINUTE_US)
    for minute in (5, 20, 40):
        round_at(rounds, minute)
    removed = MemberRemoved("g", "m", "m-1", None, 3, "rebalance-timeout")
    rounds.group_changed(removed, 6 * MINUTE_US)
    rounds.group_changed(removed, 7 * MINUTE_US)
    assert settling.sentence(False, 62 * MINUTE_US) == (
        "livelock: 3 rounds in an hour, no partition progressed; 2 times a member did not join a round "
        "within the rebalance timeout (max.poll.interval.ms)"
    )
    world.committed = {TopicPartition("t", 0): 8, TopicPartition("t", 1): 9}
    assert str(settling.sentence(False, 32 * MINUTE_US)).startswith(
        "never at rest: 3 rounds in 30 minutes, t-1 never progressed"
    )


def test_two_rounds_are_no_livelock_and_a_late_rest_is_said() -> None:
    world, rounds = FakeWorld(), Rounds()
    settling = Settling(world, rounds)
    settling.steps_done(0)
    round_at(rounds, 5)
    round_at(rounds, 6)
    assert settling.sentence(False, 60 * MINUTE_US) is None
    assert "settled late: the group came to rest 23 minutes" in str(settling.sentence(True, 23 * MINUTE_US))


def test_a_member_of_a_consumer_group_that_comes_back_to_it_again_and_again_is_a_livelock() -> None:
    """The only member polls every 400 s, and 300 s are allowed: whenever it leaves, the group is empty."""
    alone = {"members": 1, "partitions": 1, "group.protocol": "consumer", "poll_interval_ms": 400_000}
    found = finding(storm(scenario([START], **alone), seed=0).figures.invariants or {})
    assert found is not None
    assert found.startswith("livelock: ")
    assert "a member left the group because max.poll.interval.ms had passed since its last poll()" in found


@pytest.mark.parametrize(
    ("verdicts", "is_finding"),
    [
        ({"group_settles": "livelock: x", "parked_requests_answered": "y"}, True),
        ({"group_settles": "livelock: x", "one_owner_per_generation": "held"}, True),
        ({"group_settles": "livelock: x", "one_owner_per_generation": "two owners"}, False),
        ({"group_settles": "the group had not settled when the scenario ended"}, False),
        ({"group_settles": "held", "one_owner_per_generation": "two owners"}, False),
        ({"group_settles": "held"}, False),
    ],
)
def test_a_finding_is_nothing_that_no_configuration_can_break(
    verdicts: dict[str, str], is_finding: bool
) -> None:
    assert (finding(verdicts) is not None) == is_finding


def test_an_observation_ends_with_the_second_of_its_last_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time to settle is over after ten minutes; so many rounds later the observation is, too."""
    monkeypatch.setattr(simulation, "MOST_ROUNDS", 3)
    ran = storm(scenario([START], **LIVELOCK | {"members": 3, "partitions": 6, "tail_ms": 0}), seed=0)
    rounds_ms = [
        time_us // 1000
        for time_us, _, event in ran.rows
        if isinstance(event, GroupStateChanged) and event.state == "CompletingRebalance"
    ]
    later_ms = [at_ms for at_ms in rounds_ms if at_ms > 8_000 + 600_000]
    assert len(later_ms) == 3
    assert 0 <= ran.rows[-1][0] // 1000 - later_ms[-1] < 1_000


@pytest.mark.slow
def test_polls_rarer_than_the_poll_interval_never_settle_and_the_remedy_is_found() -> None:
    what = scenario([START], **LIVELOCK)
    stormed = storm(what, seed=0)
    assert stormed.figures.invariants is not None
    assert finding(stormed.figures.invariants) is not None
    [remedy] = RemedySearch(what.resolve(None, 0, {}), 6)
    assert remedy.settings == {"max.poll.interval.ms": 500_000, "group.protocol": "consumer"}
    settled = storm(scenario([START], **LIVELOCK, **{"max.poll.interval.ms": 500_000}), seed=0)
    assert settled.figures.invariants is not None
    assert not settled.figures.invariants["group_settles"].startswith(("livelock", "never"))


@pytest.mark.slow
def test_no_remedy_is_a_protocol_that_one_of_the_clients_does_not_have() -> None:
    mixed = {"members": 4, "partitions": 8, "client_profile": ["java", "kafka-python"], "max.poll.records": 1}
    what = scenario([START], **LIVELOCK | mixed).resolve(None, 0, {})
    assert {one.rule for one in endless_work(what.settings)} >= {"silent rounds"}
    for remedy in RemedySearch(what, 6):
        assert "group.protocol" not in remedy.settings


@pytest.mark.slow
def test_batches_that_outlast_the_poll_interval_are_mended_by_smaller_ones_too() -> None:
    """500 records of 120 ms take 60 s, and 30 s are allowed: at most 250 records fit."""
    slow = {
        "members": 2, "partitions": 2, "process_ms": 120, "max.poll.interval.ms": 30_000, "record_rate": 4,
        "least_duration_ms": 1_800_000, "start_ms": {"exactly": 1_000},
    }  # fmt: skip
    stalled = [START, {"at_ms": 60_000, "do": "pause", "members": [0, 1], "for_ms": 40_000}]
    rates = [{"at": "0m", "factor": 1}, {"at": "2m", "factor": 50}, {"at": "5m", "factor": 1}]
    what = scenario(stalled, **slow, record_rate_over_time=rates)
    assert finding(storm(what, seed=0).figures.invariants or {}) is not None
    found = _singles(RemedySearch(what.resolve(None, 0, {}), 12))
    assert found == {"max.poll.records": 200, "max.poll.interval.ms": 75_000}


def test_a_search_ends_after_so_many_runs() -> None:
    """Five quarters of the 90 s that the record takes are confirmed with three seeds, not with two."""
    poison = {
        "members": 3, "partitions": 6, "max.poll.interval.ms": 60_000, "record_rate": 10,
        "slow_records": [{"partition": 2, "at": "2m", "takes": "90s"}],
    }  # fmt: skip
    what = scenario([START], **poison).resolve(None, 0, {})
    short, enough = RemedySearch(what, 2), RemedySearch(what, 3)
    assert [*short] == []
    assert [one.settings for one in enough] == [{"max.poll.interval.ms": 112_000}]


@pytest.mark.slow
def test_work_that_outlasts_the_session_of_a_cooperative_group_is_mended_by_a_longer_one() -> None:
    """As on Kafka 4.3.1 (docs/truth.md): when a fifth member joins, the four busy ones are thrown out."""
    busy = {
        "members": 4, "partitions": 8, "record_rate": 0.2, "process_ms": {"exactly": "20s"},
        "partition.assignment.strategy": ["cooperative-sticky"], "max.poll.records": 1,
        "max.poll.interval.ms": 60_000, "session.timeout.ms": 8_000,
    }  # fmt: skip
    joins = {"at_ms": 60_000, "do": "add", "count": 1}
    what = scenario([{"at_ms": 0, "do": "start"}, joins], **busy)
    expired_s = [
        time_us // 1_000_000
        for time_us, _, event in storm(what, seed=0).rows
        if isinstance(event, MemberRemoved) and event.cause == "session-expired" and time_us < 200_000_000
    ]
    assert expired_s == [118, 118, 118, 118, 186]
    found = _singles(RemedySearch(what.resolve(None, 0, {}), 12))
    assert found["session.timeout.ms"] == 25_000


@pytest.mark.slow
def test_timeouts_that_are_all_too_short_are_mended_together() -> None:
    """One record may take 8 minutes: longer than the poll interval, the more so with others in its batch, and
    than the session, whose heartbeats stand still in a cooperative group's rounds."""
    handlers = {
        "members": 6, "partitions": 24, "partition.assignment.strategy": ["cooperative-sticky"],
        "record_rate": 0.002, "process_ms": {"p50": "20s", "p99": "4m", "p100": "8m"},
    }  # fmt: skip
    what = scenario([START, {"at_ms": "30m", "do": "rolling-restart"}], **handlers).resolve(None, 0, {})
    [remedy] = RemedySearch(what, 3)
    assert remedy.settings == {
        "max.poll.interval.ms": 600_000,
        "max.poll.records": 1,
        "group.protocol": "consumer",
    }
    assert remedy.before == {
        "max.poll.interval.ms": 300_000,
        "max.poll.records": 500,
        "group.protocol": "classic",
    }


def test_members_that_are_enough_by_arithmetic_keep_up() -> None:
    """A member does 1,000 records a second, 35 partitions get 3,500."""
    settings = {
        "members": 2, "partitions": 35, "start_ms": {"exactly": 1_000}, "settle_timeout_ms": 120_000,
        "partition.assignment.strategy": ["cooperative-sticky"],
    }  # fmt: skip
    what = scenario([START], **settings)
    ran = storm(what, seed=0)
    assert lag_growth(ran.figures) == 1500
    assert finding(ran.figures.invariants or {}) is None
    load = member_load(what.resolve(None, 0, {}).settings)
    enough = {"members": load.enough_members(), "concurrency": load.enough_concurrency()}
    assert enough == {"members": 4, "concurrency": 2}
    for name, value in enough.items():
        ran = storm(scenario([START], **settings | {name: value, "tail_ms": 600_000}), seed=0)
        assert lag_growth(ran.figures) is None


@pytest.mark.parametrize(("members", "partitions", "enough"), [(3, 4, 4), (8, {"hot": 6, "cold": 2}, 16)])
def test_members_of_a_share_group_read_as_kafka_assigns(members: int, partitions: Any, enough: int) -> None:
    """One of three reads two of four partitions, and cannot, though three could do all of it together. Of
    eight members on eight partitions each reads one; of nine it is open who reads which two."""
    by_topic = isinstance(partitions, dict)
    given = {"topic_partitions" if by_topic else "partitions": partitions}
    given |= {"record_rate": {"hot": 1.0, "cold": 0.1} if by_topic else 0.6, "process_ms": 1_200}
    share = {"group.protocol": "share", "members": members}
    load = member_load(scenario([START], **share, **given).resolve(None, 0, {}).settings)
    assert load.per_member is not None
    assert load.arriving < load.per_member * members
    assert load.of_unluckiest(members) >= load.per_member
    assert load.enough_members() == enough


def test_a_group_that_the_broker_would_refuse_is_refused_before_the_run(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"group.max.size: 5: .*GROUP_MAX_SIZE_REACHED.*starts 10"):
        run(scenario([START], **{"group.max.size": 5}).resolve(None, 1, {}), tmp_path / "x")
    newer = {"group.protocol": "consumer", "group.max.size": 2, "group.consumer.max.size": 5}
    with pytest.raises(InputError, match=r"^group.consumer.max.size: 5: .*starts 10"):
        run(scenario([START], **newer).resolve(None, 1, {}), tmp_path / "x")
    clients = {"client_profile": ["aiokafka", "franz-go"]}
    with pytest.raises(InputError, match=r"aiokafka: roundrobin; franz-go: cooperative-sticky"):
        run(scenario([START], **clients).resolve(None, 1, {}), tmp_path / "x")
    anyway = scenario([START], members=2, if_never_settled="report", **clients).resolve(None, 1, {})
    assert "INCONSISTENT_GROUP_PROTOCOL" in (run(anyway, tmp_path / "y").figures.errors or {})


@pytest.mark.slow
def test_a_round_that_fails_while_its_member_is_away_from_poll_revokes_nothing() -> None:
    """The heartbeat thread leaves before the application polls: its listener hears of lost ones only."""
    settings = {
        "members": 5,
        "partitions": 20,
        "poll_interval_ms": 60_000,
        "max.poll.interval.ms": 30_000,
        "start_ms": {"exactly": 5_000},
    }
    ran = storm("rolling-deploy", 4, "cooperative", settings=settings)
    verdicts = ran.figures.invariants or {}
    assert finding(verdicts) is not None
    assert verdicts["lost_partitions_are_given_up"] == "held"
    assert (ran.figures.max_poll_interval_exceeded or 0) > 20


@pytest.mark.slow
def test_a_member_that_leaves_during_its_revocation_loses_its_partitions_afterwards() -> None:
    """onPartitionsRevoked outlasts max.poll.interval.ms: onPartitionsAssigned is called nevertheless, with
    nothing new, and onPartitionsLost at the next poll()."""
    settings = {
        "members": 3,
        "partitions": 6,
        "revoke_callback_ms": 40_000,
        "max.poll.interval.ms": 30_000,
        "start_ms": {"exactly": 5_000},
    }
    verdicts = storm("rolling-deploy", 0, "cooperative", settings=settings).figures.invariants or {}
    assert verdicts["lost_partitions_are_given_up"] == "held"


@pytest.mark.slow
def test_a_poll_interval_that_only_moves_the_expiry_behind_the_end_is_no_remedy() -> None:
    """A record takes seven hours with all its retries; an interval of 28 minutes outlasts a run of 30."""
    record = {"partition": 2, "at": "2m", "takes": "20s", "retries": 1000, "pause": "5s"}
    poison = {
        "members": 3, "partitions": 6, "max.poll.interval.ms": 60_000, "record_rate": 10,
        "least_duration_ms": "30m", "slow_records": [record],
    }  # fmt: skip
    what = scenario([START], **poison)
    assert finding(storm(what, seed=0).figures.invariants or {}) is not None
    assert [*RemedySearch(what.resolve(None, 0, {}), 12)] == []


def test_a_run_reaches_the_record_that_its_scenario_names() -> None:
    """The group is at rest after some seconds, and the record comes at two minutes."""
    record = {"partition": 2, "at": "2m", "takes": "90s"}
    ran = storm(scenario([START], members=3, partitions=6, record_rate=10, slow_records=[record]), seed=0)
    assert ran.rows[-1][0] >= 2 * MINUTE_US
    assert (ran.figures.staleness_max_seconds or 0) > 80


@pytest.mark.slow
def test_a_poll_interval_that_ends_it_outlasts_the_slowest_record() -> None:
    """One record in 6,000 takes 100 s, and those of a member's two partitions come in one batch: 200 s. With
    less the group is at rest, too, between two expiries."""
    poison = {
        "members": 3, "partitions": 6, "max.poll.interval.ms": 60_000, "record_rate": 10,
        "least_duration_ms": "30m", "slow_records": [{"every": 6_000, "takes": "100s"}],
    }  # fmt: skip
    what = scenario([START], **poison).resolve(None, 0, {})
    found = _singles(RemedySearch(what, 12))
    assert found["max.poll.interval.ms"] == 250_000


def test_a_group_that_a_pause_disturbs_as_the_run_ends_has_not_settled_late() -> None:
    """Each pause of 20 s ends sessions; between two of them the group settles."""
    settings = {
        "members": 3,
        "partitions": 6,
        "session.timeout.ms": "10s",
        "gc_pause_ms": {"exactly": "20s"},
        "gc_interval_ms": {"exactly": "100s"},
        "least_duration_ms": "835s",
    }
    result = storm(scenario([START], **settings))
    assert len(result.events("member_removed", cause="session-expired")) >= 7 * 3
    assert result.broken == {}
