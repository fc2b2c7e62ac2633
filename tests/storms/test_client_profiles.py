"""Members with the defaults and the behaviour of other clients: settings, votes, slow applications."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from groupstorm.clients.profiles import LATENESS, PROFILES
from groupstorm.problems import InputError
from groupstorm.storms.runs.run import chosen_assignors
from groupstorm.storms.scenario.files import load
from groupstorm.storms.scenario.settings import Settings
from groupstorm.storms.world.member_settings import consumer_config, strategies
from tests.storms.storms_in_memory import FIXED, START, Storm, scenario, storm

BUSY_MS = 60_000


def given(**settings: Any) -> Settings:
    return Settings(("", settings))


@pytest.mark.parametrize("name", PROFILES)
def test_a_clients_defaults_apply_to_settings_that_are_not_given(name: str) -> None:
    settings = given(client_profile=name)
    config = consumer_config(settings, "g", ("t",), "member-0", 0)
    for setting, value in PROFILES[name].defaults.items():
        if setting == LATENESS:
            continue  # a setting of storms, which the consumer does not have
        if setting == "max.poll.records":
            assert settings.integer(setting) == value
            continue
        own = getattr(config, setting.replace(".", "_"))
        assert own == (tuple(value) if isinstance(value, list) else value)
    assert config.profile is PROFILES[name]


def test_settings_override_the_clients_defaults() -> None:
    mapping = {"client_profile": "aiokafka", "session.timeout.ms": 20_000}
    config = consumer_config(Settings(("", mapping)), "g", ("t",), "member-0", 0)
    assert config.session_timeout_ms == 20_000
    assert config.rebalance_timeout_ms == 20_000, "aiokafka's rebalance timeout is its session's"
    assert config.partition_assignment_strategy == ("roundrobin",)


def test_the_last_overlay_that_names_a_client_decides() -> None:
    settings = Settings(("file ", {"client_profile": "aiokafka"}), ("--set ", {"client_profile": "franz-go"}))
    assert settings.integer("session.timeout.ms") == 45_000
    assert settings.names("client_profile") == ("franz-go",)


def test_several_clients_take_turns_each_with_its_defaults() -> None:
    settings = given(client_profile="java,aiokafka")
    configs = [consumer_config(settings, "g", ("t",), f"member-{index}", index) for index in range(3)]
    assert [config.profile.name for config in configs] == ["java", "aiokafka", "java"]
    assert [config.session_timeout_ms for config in configs] == [45_000, 10_000, 45_000]
    assert strategies(settings) == ("range", "cooperative-sticky", "roundrobin")


@pytest.mark.parametrize("profiles", ["franz-go", "java,librdkafka,aiokafka"])
def test_a_resolved_scenario_keeps_each_clients_defaults(profiles: str) -> None:
    resolved = load("cold-start").resolve(None, 3, {"client_profile": profiles})
    written = resolved.written()["settings"]
    assert written["client_profile"] == profiles.split(",")
    assert ("session.timeout.ms" in written) == ("," not in profiles)
    again = Settings(("", written))
    assert dict(again.written()) == written
    for index in range(4):
        assert consumer_config(again, "g", ("t",), "m", index) == consumer_config(
            resolved.settings, "g", ("t",), "m", index
        )


def test_a_mixed_group_votes_for_the_assignor_that_all_have() -> None:
    result = storm(scenario([START], members=4, partitions=8, client_profile="java,librdkafka", **FIXED))
    completed = result.events("group_state_changed", state="CompletingRebalance")
    assert {event.protocol for _, event in completed} == {"range"}
    assert result.broken == {}


def test_clients_that_have_no_assignor_in_common_cannot_form_a_group() -> None:
    result = storm(scenario([START], members=2, partitions=4, client_profile="aiokafka,franz-go", **FIXED))
    failed = result.events("member_failed")
    assert [event.error for _, event in failed] == ["INCONSISTENT_GROUP_PROTOCOL"]


def test_a_client_without_cooperative_rebalancing_is_not_given_any() -> None:
    """Its subscription cannot say what a member owns: partitions would have two owners."""
    settings = {"client_profile": "java,aiokafka", "partition.assignment.strategy": "cooperative-sticky"}
    with pytest.raises(InputError, match=r"aiokafka \(client_profile\) has no cooperative rebalancing"):
        chosen_assignors(load("cold-start").resolve(None, 0, settings))


def one_is_busy(profile: str) -> Storm:
    """Another member comes while one of three works on a batch."""
    steps = [
        START,
        {"at_ms": 30_000, "do": "busy", "members": [1], "for_ms": BUSY_MS},
        {"at_ms": 35_000, "do": "add"},
    ]
    settings = {"client_profile": profile, "session.timeout.ms": 45_000, "start_ms": 0}
    return storm(scenario(steps, members=3, partitions=12, **FIXED, **settings))


WAIT_FOR_POLL = {"java": True, "librdkafka": True, "kafka-python": True, "aiokafka": False, "franz-go": False}


@pytest.mark.parametrize(("profile", "waits"), WAIT_FOR_POLL.items())
def test_which_clients_wait_for_a_busy_application(profile: str, waits: bool) -> None:
    result = one_is_busy(profile)
    assert result.broken == {}
    [(added_us, _)] = result.events("member_started", member="member-3")
    joined_us = min(time_us for time_us, _ in result.events("partitions_assigned", member="member-3"))
    assert (joined_us - added_us > 50_000_000) == waits


@pytest.mark.parametrize(("profile", "leaves"), [("java", True), ("aiokafka", True), ("franz-go", False)])
def test_which_clients_leave_if_the_application_does_not_poll(profile: str, leaves: bool) -> None:
    steps = [START, {"at_ms": 30_000, "do": "busy", "members": [1], "for_ms": BUSY_MS}]
    settings = {"max.poll.interval.ms": 20_000, "client_profile": profile}
    result = storm(scenario(steps, members=2, partitions=4, **FIXED, **settings))
    assert bool(result.events("member_removed", member="member-1")) == leaves


@pytest.mark.parametrize(("profile", "lost_s"), [("java", 90), ("aiokafka", 50)])
@pytest.mark.parametrize("instance", ["none", "ordinal"])
def test_aiokafka_gives_up_as_it_leaves_and_joins_again_when_it_polls(
    profile: str, lost_s: int, instance: str
) -> None:
    """_heartbeat_routine and ensure_active_group of aiokafka 0.14.0. From 30 s on nobody polls for 60 s, and
    20 s are allowed."""
    steps = [START, {"at_ms": 30_000, "do": "busy", "members": [1], "for_ms": BUSY_MS}]
    settings = {"max.poll.interval.ms": 20_000, "client_profile": profile, "group.instance.id": instance}
    result = storm(scenario(steps, members=2, partitions=4, **FIXED, **settings))
    assert result.broken == {}
    [(lost_us, _)] = result.events("partitions_lost", member="member-1")
    assert lost_us / 1e6 == pytest.approx(lost_s, abs=0.2)
    again_us = [time_us for time_us, _ in result.events("partitions_assigned", member="member-1")][-1]
    assert 90 <= again_us / 1e6 < 95


@pytest.mark.slow
def test_the_preset_shows_that_clients_differ() -> None:
    unowned = {
        name: storm("client-profiles", 0, name).figures.unowned_partition_seconds or 0.0
        for name in load("client-profiles").variants
    }
    assert set(unowned) == {*PROFILES, "java-consumer"}
    assert unowned["java"] > 10 * unowned["aiokafka"], "the lost node's session lasts 45 s, not 10 s"
    assert unowned["java"] > 10 * unowned["franz-go"], "everybody waits for whom does not poll"


@pytest.mark.parametrize(("profile", "keeps"), [("librdkafka", True), ("java", False)])
def test_a_librdkafka_follower_keeps_a_second_between_its_joingroups(profile: str, keeps: bool) -> None:
    """rkcg_join_intvl: only the metadata that a leader fetches resets it. A second member leaves just behind
    the round for the first one."""
    steps = [
        {**START, "over_ms": 0},
        {"at_ms": 20_000, "do": "stop", "members": [5]},
        {"at_ms": 20_400, "do": "stop", "members": [4]},
    ]
    beats = {"session.timeout.ms": 6_000, "heartbeat.interval.ms": 200, "client_profile": profile}
    run = storm(scenario(steps, members=6, **FIXED), settings=beats)
    leaders = {event.leader for _, event in run.events("group_state_changed")}
    apart: list[int] = []
    for member_id in {event.member_id for _, event in run.events("join_parked")} - leaders:
        times = [time_us for time_us, _ in run.events("join_parked", member_id=member_id)]
        apart += [later - earlier for earlier, later in itertools.pairwise(times)]
    assert len(apart) >= 5
    assert (min(apart) >= 999_000) is keeps


def test_a_librdkafka_follower_that_has_revoked_joins_again_at_once() -> None:
    """rd_kafka_cgrp_incremental_assign resets the interval: with librdkafka 2.16 the JoinGroup that hands
    partitions over came 23 ms behind the one before it. Three members of twelve partitions, and a fourth. Its
    first heartbeat leaves with its first assignment, before the others have called back and joined again: it
    learns of their round by its next one, 3 s later."""
    steps = [{**START, "over_ms": 0}, {"at_ms": 20_000, "do": "add", "count": 1}]
    cooperative = {"partition.assignment.strategy": ["cooperative-sticky"], "client_profile": "librdkafka"}
    run = storm(scenario(steps, members=3, partitions=12), settings=cooperative)
    joins_us: dict[str, list[int]] = {}
    for time_us, event in run.events("join_parked"):
        if time_us > 20_000_000:
            joins_us.setdefault(event.member_id, []).append(time_us)
    apart = sorted(again - first for first, again in joins_us.values())
    assert apart[2] < 100_000  # of the three that hand over
    again_us = sorted(again for _, again in joins_us.values())
    assert 2_900_000 < again_us[3] - again_us[2] < 3_100_000


@pytest.mark.parametrize(("profile", "records"), [("java", 3), ("librdkafka", 0)])
def test_java_processes_for_three_polls_what_a_round_takes_away(profile: str, records: int) -> None:
    """member-0 polls every 100 ms. A poll() of Java returns records in the midst of a cooperative round, and
    only the next one goes on with it: it commits at 60.01 s, joins at 60.11 s, reads the generation at 60.21
    s and its assignment at 60.31 s. At ten records a second that is three of each of the two partitions.
    librdkafka has a thread for the round, and commits partitions when it gives them up."""
    settings = {
        **FIXED, "members": 1, "partitions": 4, "poll_interval_ms": 100, "record_rate": 10, "start_ms": 0,
        "partition.assignment.strategy": ["cooperative-sticky"], "client_profile": profile,
        "auto.commit.interval.ms": 3_600_000,
    }  # fmt: skip
    result = storm(scenario([START, {"at_ms": 60_000, "do": "add"}], **settings))
    [(revoked_us, revoked)] = result.events("partitions_revoked", member="member-0")
    assert [at - kept for at, kept in zip(revoked.positions, revoked.committed, strict=True)] == [records] * 2
    assert result.figures.records_duplicated == 2 * records
    assert revoked_us == (60_310_000 if records else 60_110_000)
