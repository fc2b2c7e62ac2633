"""Configurations as Kafka 4.4.0 describes and keeps them, read from answers of a broker of that release."""

from __future__ import annotations

from typing import Any

import pytest

from groupstorm.coordinator.config import Compatibility, CoordinatorConfig
from groupstorm.coordinator.config_options import ConfigError, check_group
from groupstorm.coordinator.errors import Error
from tests.broker import wire
from tests.broker.asking import alter_configs, describe_configs, produce
from tests.broker.driver import Driver

PASSWORD, INT = 9, 3
TOPIC, BROKER, GROUP = 2, 4, 32
SET, SUBTRACT = 0, 3
#: Settings of the authorizer's and an internal one, which Kafka's broker does not describe.
UNDESCRIBED = {"allow.everyone.if.no.acl.found", "super.users", "group.consumer.regex.refresh.interval.ms"}


#: DescribeConfigsResponse.ConfigSource: what the broker was started with.
STATIC = 4


@pytest.fixture
def driver() -> Driver:
    return Driver(topics={"orders": 1})


def by_name(result: Any) -> dict[str, Any]:
    return {one.name: one for one in result.configs}


@pytest.mark.parametrize(("kind", "name", "count"), [(TOPIC, "orders", 37), (GROUP, "readers", 21)])
def test_no_names_and_an_empty_list_of_names_ask_for_all(
    driver: Driver, kind: int, name: str, count: int
) -> None:
    for keys in (None, ()):
        found = describe_configs(driver, 4, kind, name, configuration_keys=keys).configs
        assert len(found) == count


def test_documentation_is_told_to_those_who_ask() -> None:
    driver = Driver(topics={"orders": 1})
    for kind, name in ((TOPIC, "orders"), (BROKER, "1"), (GROUP, "readers")):
        resource = {"resource_type": kind, "resource_name": name, "configuration_keys": None}
        for asks in (True, False):
            answer = driver.ask(wire.DESCRIBE_CONFIGS, 4, resources=(resource,), include_documentation=asks)
            bare = {one.name for one in answer.results[0].configs if not one.documentation}
            assert not asks or all(name.startswith("groupstorm.") for name in bare - UNDESCRIBED)
            assert asks or len(bare) == len(answer.results[0].configs)


def test_settings_of_streams_groups_are_described_by_brokers_and_groups() -> None:
    """A setting that Kafka keeps to itself is not described: the number of warm-up replicas."""
    settings = {
        "group.streams.num.standby.replicas": "1",
        "group.streams.num.warmup.replicas": "1",
        "group.streams.rack.aware.assignment.tags": "zone,rack",
    }
    driver = Driver(settings, {})
    described = by_name(describe_configs(driver, 4, BROKER, "1", configuration_keys=None))
    shown = {
        name: (described[name].value, described[name].config_source) for name in settings if name in described
    }
    assert shown == {
        "group.streams.num.standby.replicas": ("1", STATIC),
        "group.streams.rack.aware.assignment.tags": ("zone,rack", STATIC),
    }
    own = by_name(describe_configs(driver, 4, GROUP, "readers", configuration_keys=None))
    assert (own["streams.num.standby.replicas"].value, own[TAGS].value) == ("1", "zone,rack")


def test_resources_without_a_name(driver: Driver) -> None:
    group, topic = describe_configs(driver, 4, GROUP, ""), describe_configs(driver, 4, TOPIC, "")
    assert (group.error_code, group.error_message) == (Error.INVALID_REQUEST, "Group name must not be empty")
    assert (topic.error_code, topic.error_message) == (
        Error.INVALID_TOPIC_EXCEPTION,
        "Topic name is invalid: the empty string is not allowed",
    )


def test_each_of_several_brokers_describes_itself() -> None:
    driver = Driver({"broker.rack": "a,b"}, brokers=2)
    driver.broker.state.cluster.ports.update({1: 9092, 2: 9093})
    driver.node = 2
    found = by_name(describe_configs(driver, 4, BROKER, "2"))
    names = ("node.id", "broker.id", "broker.rack", "listeners", "advertised.listeners")
    assert [found[name].value for name in names] == [
        *("2", "2", "b"),
        *("PLAINTEXT://127.0.0.1:9093", "PLAINTEXT://127.0.0.1:9093"),
    ]
    assert [(one.value, one.source) for one in found["broker.id"].synonyms] == [("2", 4), ("-1", 5)]


def test_settings_of_kafka_that_do_nothing_here_are_described_with_their_defaults(driver: Driver) -> None:
    found = by_name(describe_configs(driver, 4, BROKER, "1"))
    assert (found["num.io.threads"].value, found["num.io.threads"].config_type) == ("8", INT)
    assert (found["broker.rack"].value, found["broker.rack"].synonyms) == (None, ())
    assert found["ssl.key.password"].is_sensitive
    assert found["ssl.key.password"].config_type == PASSWORD
    assert (found["num.partitions"].read_only, found["num.io.threads"].read_only) == (True, False)


def test_settings_that_do_nothing_are_kept_over_a_restart(driver: Driver) -> None:
    threads = ("log.cleaner.threads", SET, "2")
    assert alter_configs(driver, 1, threads, kind=BROKER, name="") is Error.NONE
    assert alter_configs(driver, 1, ("plugin.secret", SET, "x"), kind=BROKER, name="1") is Error.NONE
    wrong = ("log.cleaner.threads", SET, "many")
    assert alter_configs(driver, 1, wrong, kind=BROKER, name="1") is Error.INVALID_REQUEST
    rack = ("broker.rack", SET, "a")
    assert alter_configs(driver, 1, rack, kind=BROKER, name="1") is Error.INVALID_REQUEST
    driver.restart()
    found = by_name(describe_configs(driver, 4, BROKER, "1"))
    assert [(one.value, one.source) for one in found["log.cleaner.threads"].synonyms] == [("2", 3), ("1", 5)]
    secret = found["plugin.secret"]
    assert (secret.value, secret.is_sensitive, secret.config_source) == (None, True, 2)
    assert [one.value for one in secret.synonyms] == [None]


def test_an_empty_cleanup_policy_keeps_all_records(driver: Driver) -> None:
    """Kafka 4.4 takes it: nothing is compacted, nothing is too old."""
    produce(driver, 8, records=wire.batch([b"a"]))
    assert alter_configs(driver, 1, ("cleanup.policy", SUBTRACT, "delete")) is Error.NONE
    assert by_name(describe_configs(driver, 4))["cleanup.policy"].value == ""
    assert alter_configs(driver, 1, ("retention.ms", SET, "1")) is Error.NONE
    driver.advance(3_600_000)
    (topic,) = driver.broker.state.topics
    (log,) = topic.partitions
    assert (log.start_offset, log.end_offset) == (0, 1)
    partition = {"partition_index": 0, "offset": 1}
    asked = {"name": "orders", "partitions": (partition,)}
    (answer,) = driver.ask(wire.DELETE_RECORDS, 2, topics=(asked,)).topics
    assert answer.partitions[0].error_code == Error.NONE


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        (("user", "client-id"), ["client-id", "user"]),
        (("ip", "user"), ["user", "ip"]),
        (("user", "ip", "client-id"), ["client-id", "user", "ip"]),
        (("foo", "user"), ["user", "foo"]),
    ],
)
def test_quota_entities_are_answered_in_the_order_of_kafkas_map(
    driver: Driver, asked: tuple[str, ...], answered: list[str]
) -> None:
    op = {"key": "producer_byte_rate", "value": 1000.0, "remove": False}
    entity = tuple({"entity_type": kind, "entity_name": "1"} for kind in asked)
    (entry,) = driver.ask(wire.ALTER_QUOTAS, 1, entries=({"entity": entity, "ops": (op,)},)).entries
    assert [part.entity_type for part in entry.entity] == answered


RANGE = "consumer.session.timeout.ms must be in the range 45000 to 60000 inclusive."
STANDBYS = "streams.num.standby.replicas must be less than or equal to "
TAGS = "streams.rack.aware.assignment.tags"


@pytest.mark.parametrize(
    ("changes", "of_4_4", "of_4_3"),
    [
        ({"consumer.session.timeout.ms": "1"}, RANGE,
         "consumer.session.timeout.ms must be greater than or equal to "
         "group.consumer.min.session.timeout.ms"),
        ({"streams.num.standby.replicas": "3"}, f"{STANDBYS}2",
         f"{STANDBYS}group.streams.max.standby.replicas"),
        ({TAGS: "a,a"}, f"{TAGS} must not contain duplicate tag keys.", f"Unknown group config name: {TAGS}"),
        ({TAGS: "a,,b"}, f"Configuration '{TAGS}' values must not be empty.", None),
        ({"streams.session.timeout.ms": "1", TAGS: "a,a"}, f"{TAGS} must not contain duplicate tag keys.",
         None),
        ({"errors.deadletterqueue.topic.name": "__x", "consumer.session.timeout.ms": "1"}, RANGE, None),
        ({"errors.deadletterqueue.topic.name": " __x"},
         "errors.deadletterqueue.topic.name: DLQ topic name must not start with '__'", None),
        ({"streams.assignor.name": ""},
         "streams.assignor.name '' is not a registered task assignor. Registered assignors are: [sticky].",
         None),
        ({"streams.task.offset.interval.ms": "x"},
         "Invalid value x for configuration streams.task.offset.interval.ms: Not a number of type INT", None),
    ],
)  # fmt: skip
def test_options_of_groups_are_refused_in_the_words_of_the_release(
    changes: dict[str, str], of_4_4: str, of_4_3: str | None
) -> None:
    for kafka, sentence in ((Compatibility.KAFKA_4_4_0, of_4_4), (Compatibility.KAFKA_4_3_1, of_4_3)):
        with pytest.raises(ConfigError) as refused:
            check_group(changes, CoordinatorConfig(compatibility=kafka))
        assert sentence is None or str(refused.value) == sentence
