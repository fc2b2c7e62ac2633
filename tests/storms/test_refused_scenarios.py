"""Scenarios that are refused before they run: one line names the setting or the step, and what is wrong."""

from __future__ import annotations

import re
from typing import Any

import pytest

from groupstorm.problems import InputError
from tests.storms.share.test_share_storms import SMALL as SHARE
from tests.storms.storms_in_memory import START, scenario
from tests.storms.streams.applications import SMALL, after

STREAMS: dict[str, Any] = {**SMALL, "group.protocol": "classic"}
STREAMS_GROUP: dict[str, Any] = {**SMALL, "group.protocol": "streams"}
CONSUMER: dict[str, Any] = {"group.protocol": "consumer", "auto.commit.interval.ms": 20_000}
STRATEGY = "partition.assignment.strategy"


def step(do: str, **fields: Any) -> dict[str, Any]:
    return {"at_ms": 1, "do": do, **fields}


def rule(**fields: Any) -> dict[str, Any]:
    """A rule for the settings of the first member."""
    return {"member_settings": [{"members": [0], **fields}]}


def of_members(**settings: Any) -> dict[str, Any]:
    return rule(settings=settings)


def slow(**fields: Any) -> dict[str, Any]:
    return {"slow_records": [{"partition": 0, "takes": 1, **fields}]}


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (step("partition", members=[1], for_ms=1, direction="sideways"),
         "direction: 'sideways': expected requests, responses, both"),
        (step("slow-appends", for_ms=1), "slow-appends needs append_ms"),
        (step("reconnect-storm", members="all", for_ms=1), "reconnect-storm needs count"),
        (step("lose-host", members=[0]), "'lose-host' needs application: streams"),
    ],
)  # fmt: skip
def test_steps_that_cannot_be(step: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        scenario([START, step]).resolve(None, 1, {})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        # single members and their names
        ({"member_settings": {}}, "expected a list"),
        ({"member_settings": [{"members": [0]}]}, "expected {members"),
        ({"member_settings": [{"members": [], "instance": "x"}]}, "a list of numbers of members"),
        (of_members(partitions=3), "1: settings: partitions: not a setting"),
        (of_members(**{"session.timeout.ms": 1000}), "must be lower than session"),
        (of_members(**{STRATEGY: ["os:system"]}), "cannot name code here"),
        ({"releases": [{STRATEGY: ["os:system"]}]}, "cannot name code here"),
        ({"member_settings": [{"members": [0, 1], "name": "x"}]}, "one member that has it"),
        ({"members": 3, **rule(name="member-1")}, "members 0 and 1 have this name"),
        ({"topic_partitions": {"a b": 1}}, "topic_partitions: 'a b': expected letters"),
        ({"topic_partitions": {"a": 0}}, "topic_partitions: 0 lies outside 1"),
        # clients
        *(({"client_profile": one}, "client_profile") for one in ("sarama", "java,sarama", "java,java", "")),
        ({"client_profile": ["java", 3]}, "client_profile"),
        ({"client_profile": "java,aiokafka", "heartbeat.interval.ms": 12_000},
         r"must be lower than session.timeout.ms \(10000\)"),
        ({"client_profile": "librdkafka", "max.poll.interval.ms": "35s"},
         r"max.poll.interval.ms: 35000: librdkafka does not start with less than session"),
        # rates
        ({"record_rate": -1}, "record_rate: -1"),
        ({"record_rate": {"topic-9": 3}}, "record_rate.*'topic-9' is none of the topics"),
        (
            {"partitions": 6, "record_skew": {"hot": {"partitions": [3, 6], "share": "50%"}}},
            r"record_skew: hot: partitions: \[3, 6\]: no topic has more than 6 of them",
        ),
        (
            {"partitions": 6, "record_skew": {"hot": {"partitions": 7, "share": "50%"}}},
            "record_skew: hot: partitions: 7: no topic has more than 6 of them",
        ),
        ({"record_rate": 0.00001}, "record_rate.*at most three decimals"),
        ({"record_skew": {"zipf": -1}}, "record_skew.*exponent"),
        ({"record_skew": {"hot": {"partitions": 0, "share": "50%"}}}, "record_skew.*a number of partitions"),
        ({"record_skew": {"hot": {"partitions": 1, "share": "150%"}}}, "record_skew.*at most 100%"),
        ({"record_skew": "zipf"}, r"record_skew.*\{zipf: 1.0\}"),
        ({"record_rate_over_time": [{"at": "5m"}]}, "record_rate_over_time.*factor"),
        ({"record_rate_over_time": [{"at": "5m", "factor": 1}, {"at": "1m", "factor": 2}]},
         "record_rate_over_time.*sort by at"),
        ({"record_rate_over_time": [{"at": "5 minutes", "factor": 1}]}, "record_rate_over_time.*5m"),
        ({"record_rate_over_time": {"period": "24h", "low": 2, "high": 1}}, "over_time.*lies below low"),
        ({"record_rate_over_time": {"file": "missing.csv"}}, "over_time.*missing.csv: no such file"),
        ({"record_rate_over_time": {"file": "/dev/null"}}, "over_time.*expected a file"),
        # slow records and machines
        ({"slow_records": [{"partition": 0, "takes": "1s"}]}, "slow_records: 1: .*expected {partition"),
        ({"slow_records": [{"every": 0, "takes": "1s"}]}, "slow_records.*every: 0"),
        ({"slow_records": [{"every": 9, "takes": "1s", "then": "crash"}]}, "slow_records.*name one record"),
        (slow(offset=1, takes="soon"), "slow_records.*takes: 'soon'"),
        (slow(offset=1, colour=1), "slow_records.*colour: no such field"),
        (slow(offset=1, then="wait"), "slow_records.*then: 'wait'"),
        (slow(offset=1, then="reject"), "'reject' needs group.protocol: share"),
        (slow(topic="orders", at=1), "slow_records.*'orders' is none of"),
        (slow(partition=9999, at=1), "slow_records.*partition: 9999: expected at most"),
        ({"machines": [{"members": [0]}]}, "machines.*expected {members"),
        ({"machines": [{"members": [0], "factor": 0}]}, "machines.*more than 0"),
        ({"machines": [{"members": [0], "factor": 2}, {"members": [0], "factor": 3}]},
         "machines.*on another machine"),
        # pods
        ({"members": 5, "members_per_pod": 2}, r"members: 5: expected a multiple of members_per_pod \(2\)"),
        ({"members_per_pod": 2, **rule(name="a")}, "members_per_pod: 2: consumers are named after their pod"),
        ({"deployment": "statefulset", "max_surge": "25%"}, "max_surge: 25% with deployment statefulset"),
        # consumer groups
        ({**CONSUMER, "client_profile": "aiokafka"},
         "group.protocol: consumer: the members of client_profile aiokafka"),
        ({**CONSUMER, "group.consumer.heartbeat.interval.ms": 45_000}, r"must be lower than .* \(45000"),
        ({**CONSUMER, "net_latency_ms": 6_000},
         "net_latency_ms: up to 6000 ms must stay below group.consumer.heartbeat"),
        ({**CONSUMER, "session.timeout.ms": 6_000},
         "session.timeout.ms: 6000: .* use group.consumer.session.timeout.ms"),
        ({**CONSUMER, "heartbeat.interval.ms": "1s"},
         "heartbeat.interval.ms: '1s': .* use group.consumer.heartbeat"),
        ({**CONSUMER, STRATEGY: "range"}, "strategy: 'range': .* use group.remote.assignor"),
        (of_members(**{"group.protocol": "consumer", "session.timeout.ms": 9_000}),
         r"member_settings: 1: settings: session\.timeout\.ms: 9000"),
        ({"group.protocol": "classic", "group.remote.assignor": "range"},
         r"group\.remote\.assignor: 'range': members with .* classic"),
        # share groups
        ({**SHARE, "commits": "batch"}, "commits: 'batch' has no effect.*share.acknowledgement.mode"),
        ({**SHARE, "auto.offset.reset": "earliest"},
         "auto.offset.reset: 'earliest'.*use share.auto.offset.reset"),
        ({**SHARE, "revoke_callback_ms": 5}, "revoke_callback_ms: 5 has no effect.*no rebalance listener"),
        ({**SHARE, "client_profile": ["aiokafka"]}, "client_profile: aiokafka: .*expected java"),
        ({**SHARE, **slow(offset=1, then="release")},
         "'release' needs share.acknowledgement.mode: explicit"),
        ({**SHARE, **of_members(**{"group.protocol": "classic"})}, "share beside"),
        ({**SHARE, "autoscaler": "keda"}, "autoscaler: 'keda' .*one record of lag .*use hpa"),
        ({**SHARE, "errors.deadletterqueue.topic.name": "a b"}, "errors.deadletterqueue.topic.name: 'a b'"),
    ],
)  # fmt: skip
def test_settings_that_cannot_be(settings: dict[str, Any], message: str) -> None:
    strategy = {STRATEGY: "range"} if "topic_partitions" in settings else {}
    with pytest.raises(InputError, match=message) as refused:
        scenario([START], **strategy).resolve(None, 1, settings)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("steps", "settings", "message"),
    [
        ([after("pause", members=[0], for_ms=5)], {}, "'pause' is not for application: streams"),
        ([after("lose-zone", rack=0)], {}, "set racks"),
        ([after("lose-zone", rack=3)], {"racks": 3}, "from 0 to 2"),
        ([], {"topic_partitions": {"a": 1}}, "is not for application: streams"),
        ([], {"commits": "batch"}, "commits: 'batch' is not for application: streams"),
        ([], {"auto.offset.reset": "latest"}, "auto.offset.reset: 'latest' is not simulated"),
        ([], {"auto.commit.interval.ms": 1_000}, "use commit.interval.ms"),
        ([], {"members_per_pod": 2}, "members_per_pod: 2 is not for application: streams"),
        ([], {"stateless_topics": 2}, "stateless_topics: 2: there are 1 sub-topologies"),
        ([], {"client_profile": ["java", "librdkafka"]}, "Kafka Streams runs on the Java client"),
        ([], {"racks": 2, "replication.factor": 3}, "replication.factor: 3"),
        ([], {"racks": 2, "members_per_rack": [1]}, "expected 2 numbers"),
        ([], {"racks": 2, "members_per_rack": [2, 2]}, "their sum is 4, members is 2"),
        ([], {"members_per_rack": [2]}, "needs racks"),
        ([], {"members_per_rack": 2, "racks": 2}, "expected a list of whole numbers"),
        ([], {"rack.aware.assignment.strategy": "min_traffic"}, "needs racks"),
        ([], {"rack.aware.assignment.tags": "zone"}, "needs racks"),
        ([], {"task.assignor": "haha"}, "'haha': did you mean ha?"),
        ([], {"usd_per_gb_each_way": -1}, "lies outside 0 to 1000"),
        ([], {"usd_per_gb_each_way": "dear"}, "is no number"),
        ([], {"near_zero_gap": 0, "standby_lag_ms": 200}, "standbys follow 2 records behind"),
        ([], {"application": "consumer", "num.standby.replicas": 1},
         "has no effect without application: streams"),
        ([], {"probing.rebalance.interval.ms": 59_999}, "lies outside 60000"),
        # settings of the leader's assignor in a streams group: with their value and what to use instead
        ([], {**STREAMS_GROUP, "acceptable.recovery.lag": 5},
         "test: settings: acceptable.recovery.lag: 5: has no effect"),
        ([], {**STREAMS_GROUP, "session.timeout.ms": 9_000}, "use group.streams.session.timeout.ms"),
        ([], {**STREAMS_GROUP, "group.initial.rebalance.delay.ms": 0},
         "use group.streams.initial.rebalance.delay.ms"),
        ([], {**STREAMS_GROUP, "max.warmup.replicas": 8}, "max.warmup.replicas: 8: has no effect"),
        ([], {**STREAMS_GROUP, "task.assignor": "sticky"}, "use group.protocol classic"),
        ([], {**STREAMS_GROUP, STRATEGY: "range"}, "is not for application: streams"),
        ([], {**STREAMS_GROUP, "group.streams.heartbeat.interval.ms": 45_000},
         "group.streams.heartbeat.interval.ms: 45000 must be lower"),
        # the protocol belongs to the application
        ([], {**STREAMS_GROUP, "application": "consumer"},
         "plain consumers speak classic, consumer or share"),
        ([], {"group.protocol": "consumer"}, "plain consumers speak classic, consumer or share"),
        ([after("restart", members=[0], settings={"max.poll.records": 5})], STREAMS_GROUP,
         "a step of application: streams changes group.protocol alone"),
    ],
)  # fmt: skip
def test_what_cannot_be_of_kafka_streams(
    steps: list[dict[str, Any]], settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=re.escape(message)) as refused:
        scenario([START, *steps], **{**STREAMS, **settings}).resolve(None, 0, {})
    assert "\n" not in str(refused.value)


def test_steps_that_are_not_simulated_of_share_groups_are_refused() -> None:
    with pytest.raises(InputError, match=r"do: 'coordinator-failover' is not simulated"):
        scenario([START, step("coordinator-failover", for_ms=1_000)], **SHARE).resolve(None, 0, {})
