"""Kafka's options by name: defaults, bounds, and errors that say which one is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from groupstorm.coordinator.config import OPTIONS, Compatibility, CoordinatorConfig
from groupstorm.problems import InputError


def test_defaults_are_kafkas() -> None:
    assert CoordinatorConfig.from_mapping({}) == CoordinatorConfig()
    assert CoordinatorConfig() == CoordinatorConfig(
        initial_rebalance_delay_ms=3_000,
        min_session_timeout_ms=6_000,
        max_session_timeout_ms=1_800_000,
        max_size=2_147_483_647,
        offset_metadata_max_bytes=4_096,
        commit_timeout_ms=5_000,
        compatibility=Compatibility.REPAIRED,
    )


def test_values_may_be_text_or_numbers() -> None:
    config = CoordinatorConfig.from_mapping(
        {"group.initial.rebalance.delay.ms": " 0 ", "group.max.size": 7, "groupstorm.compatibility": "4.3.1"}
    )
    assert (config.initial_rebalance_delay_ms, config.max_size) == (0, 7)
    assert config.compatibility is Compatibility.KAFKA_4_3_1


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("group.initial.rebalance.delay", 1, "did you mean group.initial.rebalance.delay.ms"),
        ("group.max.size", 0, "group.max.size: 0 is not between 1 and 2147483647"),
        ("group.max.size", "many", "group.max.size: 'many' is not a whole number"),
        ("group.max.size", True, "group.max.size: True is not a whole number"),
        ("group.max.size", 1.5, "group.max.size: 1.5 is not a whole number"),
        ("group.max.size", None, "group.max.size: None is not a whole number"),
        ("group.max.size", 2**31, "is not between"),
        ("offset.metadata.max.bytes", "", "is not a whole number"),
        ("offset.metadata.max.bytes", "²", "is not a whole number"),
        ("group.consumer.migration.policy", "sometimes", "is not one of bidirectional, upgrade"),
        ("group.consumer.assignors", "uniform,uniform", "is not a list of different names"),
        ("group.consumer.assignors", [], "is not a list of different names"),
        ("group.consumer.assignors", 3, "is not a list of names"),
        ("group.consumer.heartbeat.interval.ms", 60_000, "group.consumer.heartbeat.interval.ms"),
        ("group.consumer.session.timeout.ms", 44_999, "group.consumer.min.session.timeout.ms"),
        ("group.share.max.size", 1_001, "is not between 1 and 1000"),
        ("groupstorm.compatibility", "3.9", "is not one of 4.3.1, 4.3.1-repaired"),
    ],
)
def test_what_kafka_refuses_is_refused_by_name(name: str, value: Any, says: str) -> None:
    with pytest.raises(InputError, match=says.replace("(", r"\(")) as problem:
        CoordinatorConfig.from_mapping({name: value})
    assert "\n" not in str(problem.value)


def test_a_heartbeat_interval_must_be_less_than_the_session() -> None:
    with pytest.raises(InputError, match=r"is not less than group\.streams\.session\.timeout\.ms"):
        CoordinatorConfig.from_mapping(
            {
                "group.streams.heartbeat.interval.ms": 45_000,
                "group.streams.max.heartbeat.interval.ms": 45_000,
            }
        )


def test_migration_policy_in_any_case() -> None:
    CoordinatorConfig.from_mapping({"group.consumer.migration.policy": "UPGRADE"})


def test_every_default_is_valid() -> None:
    defaults = {name: option.default for name, option in OPTIONS.items()}
    assert CoordinatorConfig.from_mapping(defaults) == CoordinatorConfig()


def test_the_former_spelling_of_the_default_is_accepted() -> None:
    config = CoordinatorConfig.from_mapping({"groupstorm.compatibility": "4.4.0"})
    assert config.compatibility is Compatibility.REPAIRED
