"""group.protocol: what each of the two protocols refuses, in Kafka's client and here."""

from __future__ import annotations

from typing import Any

import pytest

from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.profiles import OF_CONSUMERS, PROFILES, GroupProtocol, refuse_settings
from groupstorm.problems import InputError

CONSUMER: Any = {"group_protocol": GroupProtocol.CONSUMER}


@pytest.mark.parametrize(
    ("protocol", "name", "remedy"),
    [
        ("consumer", "session.timeout.ms", "group.consumer.session.timeout.ms"),
        ("consumer", "heartbeat.interval.ms", "group.consumer.heartbeat.interval.ms"),
        ("consumer", "partition.assignment.strategy", "set group.remote.assignor"),
        ("classic", "group.remote.assignor", "set partition.assignment.strategy"),
    ],
)
def test_a_setting_of_the_other_protocol_is_refused(protocol: str, name: str, remedy: str) -> None:
    said = rf"^{name}: 7 cannot be set with group.protocol={protocol}: .*{remedy}"
    with pytest.raises(InputError, match=said):
        refuse_settings(GroupProtocol(protocol), {"max.poll.interval.ms": 1, name: 7})


@pytest.mark.parametrize("protocol", OF_CONSUMERS)
def test_settings_of_both_protocols_pass(protocol: GroupProtocol) -> None:
    refuse_settings(protocol, {"max.poll.interval.ms": 1, "group.instance.id": "i"})


def test_a_library_without_the_protocol_is_refused() -> None:
    with pytest.raises(InputError, match=r"group.protocol: consumer, but aiokafka 0.* does not have it"):
        ConsumerConfig("g", "c", ("t",), profile=PROFILES["aiokafka"], **CONSUMER)


def test_a_pattern_for_the_broker_needs_the_consumer_protocol() -> None:
    with pytest.raises(InputError, match=r"subscription_pattern: 't.\*' needs group.protocol consumer"):
        ConsumerConfig("g", "c", (), subscription_pattern="t.*")
    with pytest.raises(InputError, match=r"subscription_pattern: 't.\*', and topic_pattern: 'u'"):
        ConsumerConfig("g", "c", (), subscription_pattern="t.*", topic_pattern="u", **CONSUMER)
    assert ConsumerConfig("g", "c", (), subscription_pattern="t.*", **CONSUMER).topics == ()


def test_the_defaults_are_those_of_kafkas_consumer() -> None:
    """As "Consumer Configs" of Kafka's documentation has them."""
    config = ConsumerConfig("g", "c", ("t",))
    assert (config.session_timeout_ms, config.heartbeat_interval_ms) == (45_000, 3_000)
    assert (config.max_poll_interval_ms, config.request_timeout_ms) == (300_000, 30_000)
    assert (config.retry_backoff_ms, config.retry_backoff_max_ms) == (100, 1_000)
    assert (config.metadata_max_age_ms, config.auto_commit_interval_ms) == (300_000, 5_000)
    assert config.enable_auto_commit


@pytest.mark.parametrize("name", ["protocol_type", "rebalance_timeout_ms"])
def test_what_follows_from_the_settings_cannot_be_set(name: str) -> None:
    settings: Any = {name: 1}
    with pytest.raises(TypeError, match=name):
        ConsumerConfig("g", "c", ("t",), **settings)
