"""Members of group.protocol=consumer in virtual time: settings, handovers, leaving, migration."""

from __future__ import annotations

from typing import Any

import pytest

from groupstorm.figures import FiguresAccumulator
from groupstorm.history.phases import Reason
from groupstorm.history.reasons import GapReasons
from groupstorm.problems import InputError
from groupstorm.storms.scenario.files import load
from groupstorm.trace.schema import Source
from tests.storms.handovers import handovers
from tests.storms.storms_in_memory import FIXED, START, scenario, storm

CONSUMER: dict[str, Any] = {"group.protocol": "consumer"}


# -- settings ----------------------------------------------------------------------------------------


def test_a_scenario_without_the_protocol_does_not_name_its_settings() -> None:
    written = load("cold-start").resolve(None, 1, {}).written()["settings"]
    assert not [name for name in written if name.startswith(("group.consumer.", "group.protocol"))]


def test_a_resolved_scenario_names_what_differs_from_the_defaults() -> None:
    chosen = CONSUMER | {"group.consumer.heartbeat.interval.ms": "1s"}
    written = load("cold-start").resolve(None, 1, chosen).written()["settings"]
    assert written["group.protocol"] == "consumer"
    assert written["group.consumer.heartbeat.interval.ms"] == 1000
    assert "group.consumer.session.timeout.ms" not in written


def test_of_members_of_a_consumer_group_only_the_settings_that_they_have_are_checked() -> None:
    """heartbeat.interval.ms is 3,000, and group.min.session.timeout.ms above session.timeout.ms."""
    given = {"net_latency_ms": 4_000, "group.min.session.timeout.ms": 50_000}
    resolved = load("cold-start").resolve(None, 1, CONSUMER | {"auto.commit.interval.ms": 20_000} | given)
    assert resolved.settings.choice("group.protocol") == "consumer"


def test_threads_of_kafka_streams_are_refused() -> None:
    with pytest.raises(
        InputError, match=r"group\.protocol: consumer: .*threads of Kafka Streams .* classic or streams"
    ):
        load("standby-loss").resolve(None, 1, CONSUMER)


# -- a handover, part by part ------------------------------------------------------------------------


def test_a_handover_takes_as_long_as_on_a_published_cluster() -> None:
    """A run on a real cluster (heartbeat 5 s, poll 1 s) had one partition without an owner for 6.603 s.

    1.01 s until the old owner's poll, 4.73 s until the newcomer's next heartbeat, 0.86 s until its poll.
    """
    rows = storm("new-protocol", 9, "consumer", settings={"phases": "aligned"}).rows
    (handover,) = [
        one
        for one in handovers(rows)
        if one.partition == "topic-0-14" and 135_000_000 < one.stopped_us < 150_000_000
    ]
    assert handover.until_revoked_us == pytest.approx(1_010_000, abs=50_000)
    assert handover.until_heartbeat_us == pytest.approx(4_730_000, abs=50_000)
    assert handover.until_poll_us == pytest.approx(860_000, abs=200_000)
    assert handover.unowned_us == pytest.approx(6_603_000, abs=200_000)


# -- ends of members ---------------------------------------------------------------------------------


def test_the_time_until_a_crashed_members_session_ends_is_put_down_to_the_session() -> None:
    """Its process is soon back under another member id, and owns nothing of what the old member had."""
    crash = {"at_ms": 60_000, "do": "crash-restart", "members": [1]}
    settings = {
        "members": 3,
        "partitions": 6,
        "group.consumer.session.timeout.ms": 20_000,
        "start_ms": {"exactly": 2_000},
    }
    result = storm(scenario([START, crash], **settings, **FIXED, **CONSUMER))
    gaps = GapReasons()
    figures = FiguresAccumulator(listener=gaps)
    figures.add_all([(time_us, Source(source), event) for time_us, source, event in result.rows])
    figures.figures()
    found = gaps.reasons()
    assert found.longest is not None
    assert (found.longest.reason, found.longest.ending) == (Reason.BROKER_SESSION, "crashed")
    ((removed_us, _),) = result.events("member_removed", cause="session-expired")
    assert 75_000_000 <= removed_us <= 80_100_000, "20 s after its last heartbeat"
    assert found.us[Reason.BROKER_SESSION] == 2 * (removed_us - 60_000_000)


@pytest.mark.parametrize("protocol", ["consumer", "share"])
def test_a_process_that_stands_still_refreshes_no_metadata(protocol: str) -> None:
    """The refresh would be due while it stands, and would send a heartbeat: a session of 45 s would outlive
    a minute."""
    steps = [
        {"at_ms": 58_000, "do": "add-partitions", "topic": "topic-0", "partitions": 8},
        {"at_ms": 60_000, "do": "pause", "for_ms": 60_000, "members": [0, 1, 2, 3, 4]},
    ]
    world = {"members": 6, "partitions": 6, "metadata.max.age.ms": 40_000, "group.protocol": protocol}
    result = storm(scenario([START, *steps], **world))
    removed = result.events("member_removed", cause="session-expired")
    assert sorted(event.member for _, event in removed) == [f"member-{number}" for number in range(5)]


# -- migration ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", ["eager", "static"])
def test_a_rolling_restart_migrates_a_group_and_back(variant: str) -> None:
    result = storm("migrate-to-consumer-protocol", 0, variant, settings={"members": 4, "partitions": 12})
    assert result.broken == {}
    assert [event.cause for _, event in result.events("group_converted")] == ["upgraded", "downgraded"]
    assert not result.events("member_failed")
    assert result.figures.dual_owner_seconds == 0


@pytest.mark.parametrize("variant", ["user-data", "policy-disabled"])
def test_a_group_that_may_not_change_refuses_the_first_consumer(variant: str) -> None:
    result = storm("migrate-to-consumer-protocol", 0, variant, settings={"members": 4, "partitions": 12})
    assert not result.events("group_converted")
    errors = {event.error for _, event in result.events("member_failed")}
    assert errors == {"GROUP_ID_NOT_FOUND"}


def test_a_group_whose_user_data_left_first_changes() -> None:
    small = {"members": 4, "partitions": 12}
    result = storm("migrate-to-consumer-protocol", 0, "user-data-left-first", settings=small)
    assert result.broken == {}
    assert [event.cause for _, event in result.events("group_converted")] == ["upgraded"]


# -- a topic that goes and comes ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [
        {"topic_pattern": "topic-.*"},  # it matches nothing for a while, and stays a subscription
        {"client_profile": ["librdkafka"]},  # it has joined, and acknowledged nothing
        {"client_profile": ["java"]},
    ],
)
def test_a_member_without_a_topic_takes_the_one_that_comes(given: dict[str, Any]) -> None:
    """A target whose topic has no name yet waits for metadata and for the next poll()."""
    steps = [
        {"at_ms": 30_000, "do": "delete-topic", "topic": "topic-0"},
        {"at_ms": 45_000, "do": "create-topic", "topic": "topic-0", "partitions": 2},
    ]
    if "topic_pattern" not in given:
        steps.insert(1, {"at_ms": 35_000, "do": "restart", "members": [0]})
    world: dict[str, Any] = {"members": 1, "partitions": 2, "start_ms": {"exactly": 1_000}, **CONSUMER}
    result = storm(scenario([START, *steps], **{**FIXED, "poll_interval_ms": 1_000}, **world, **given))
    assert not result.events("member_failed")
    assert result.broken == {}
    assert result.events("partitions_assigned")[-1][1].partitions == ("topic-0-0", "topic-0-1")
