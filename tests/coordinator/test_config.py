"""Kafka's options by name: defaults, bounds, and errors that say which one is wrong."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from groupstorm.coordinator.config import COMPATIBILITY, OPTIONS, Compatibility, CoordinatorConfig, parse_int
from groupstorm.coordinator.modern.config import ConsumerConfig, GroupOptions
from groupstorm.problems import InputError

#: Name, type, default and validator of each option, as Kafka prints them (golden/README.md).
_KAFKAS = [
    line.split("|")
    for line in Path(__file__)
    .with_name("golden")
    .joinpath("options.kafka-4.4.0.txt")
    .read_text("utf-8")
    .splitlines()
]
_LARGEST = {"SHORT": 2**15 - 1, "INT": 2**31 - 1, "LONG": 2**63 - 1}
#: Kafka checks this one where it is used (CompressionType.forId).
_COMPRESSION = "offsets.topic.compression.codec"


def _bounds(kind: str, validator: str) -> tuple[int, int]:
    """The least and the greatest value: "[1,...,1000]", "[1,...]" or "null"."""
    match = re.fullmatch(r"\[(-?\d+),\.\.\.(?:,(\d+))?\]", validator)
    if match is None:
        return -(2**31), _LARGEST[kind]
    return int(match[1]), int(match[2] or _LARGEST[kind])


def _is_accepted(name: str, value: Any) -> bool:
    """Whether the option itself accepts the value; a relation to another option may still forbid it."""
    try:
        CoordinatorConfig.from_mapping({name: value})
    except InputError as problem:
        return "is not between" not in str(problem)
    return True


def test_the_options_and_their_defaults_are_kafkas() -> None:
    ours = {name: str(option.default) for name, option in OPTIONS.items() if name != COMPATIBILITY}
    assert ours == {name: "" if default == "null" else default for name, _, default, _ in _KAFKAS}


@pytest.mark.parametrize(
    ("name", "kind", "validator"),
    [(name, kind, validator) for name, kind, _, validator in _KAFKAS if kind in _LARGEST],
    ids=lambda one: one,
)
def test_the_bounds_of_numbers_are_kafkas(name: str, kind: str, validator: str) -> None:
    least, greatest = (0, 4) if name == _COMPRESSION else _bounds(kind, validator)
    assert [_is_accepted(name, value) for value in (least - 1, least, greatest, greatest + 1)] == [
        False,
        True,
        True,
        False,
    ]


def test_options_have_an_effect_under_their_own_names() -> None:
    """Each gets a value of its own, so that no two can be exchanged."""
    config = CoordinatorConfig.from_mapping(
        {
            "group.initial.rebalance.delay.ms": 11,
            "group.min.session.timeout.ms": 12,
            "group.max.session.timeout.ms": 13,
            "group.max.size": 14,
            "offset.metadata.max.bytes": 15,
            "offsets.commit.timeout.ms": 16,
            "offsets.retention.minutes": 17,
            "offsets.retention.check.interval.ms": 18,
            "group.consumer.session.timeout.ms": 50_000,
            "group.consumer.min.session.timeout.ms": 49_000,
            "group.consumer.max.session.timeout.ms": 51_000,
            "group.consumer.heartbeat.interval.ms": 7_000,
            "group.consumer.min.heartbeat.interval.ms": 6_000,
            "group.consumer.max.heartbeat.interval.ms": 8_000,
            "group.consumer.assignment.interval.ms": 20,
            "group.consumer.min.assignment.interval.ms": 19,
            "group.consumer.max.assignment.interval.ms": 21,
            "group.consumer.max.size": 22,
            "group.consumer.assignors": "range",
            "group.consumer.migration.policy": "upgrade",
            "group.consumer.regex.refresh.interval.ms": 23_000,
        }
    )
    consumer = ConsumerConfig(
        50_000,
        49_000,
        51_000,
        7_000,
        6_000,
        8_000,
        20,
        19,
        21,
        22,
        ("range",),
        config.consumer.migration_policy,
        23_000,
    )
    assert config.consumer.migration_policy.value == "upgrade"
    assert config == CoordinatorConfig(
        11, 12, 13, 14, 15, 16, 17 * 60_000, 18, Compatibility.REPAIRED_4_4_0, consumer
    )


@pytest.mark.parametrize("text", ["+7", " 7", "7 ", "007"])
def test_numbers_as_text(text: str) -> None:
    assert parse_int("group.max.size", text) == 7


@pytest.mark.parametrize("text", ["", "-", "+-7", "7-", "1_000", "0x10", "7.0", "seven"])
def test_what_is_no_number(text: str) -> None:
    with pytest.raises(InputError, match=re.escape(f"group.max.size: {text!r} is not a whole number")):
        parse_int("group.max.size", text)


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
        ("groupstorm.compatibility", "3.9", "is not one of 4.3.1, 4.4.0, 4.3.1-repaired, 4.4.0-repaired"),
        (
            "groupstorm.compatibility",
            ["4.3.1"],
            "['4.3.1'] is not one of 4.3.1, 4.4.0, 4.3.1-repaired, 4.4.0-repaired",
        ),
        ("group.consumer.migration.policy", ["upgrade"], "is not one of bidirectional, upgrade"),
    ],
)
def test_what_kafka_refuses_is_refused_by_name(name: str, value: Any, says: str) -> None:
    with pytest.raises(InputError, match=re.escape(says)) as problem:
        CoordinatorConfig.from_mapping({name: value})
    assert "\n" not in str(problem.value)


def test_migration_policy_in_any_case() -> None:
    CoordinatorConfig.from_mapping({"group.consumer.migration.policy": "UPGRADE"})


def test_every_default_is_valid() -> None:
    defaults = {name: option.default for name, option in OPTIONS.items()}
    assert CoordinatorConfig.from_mapping(defaults) == CoordinatorConfig()


@pytest.mark.parametrize("assignors", ["uniform", " range , uniform ", ["range"]])
def test_lists_of_names_as_text_or_as_lists(assignors: Any) -> None:
    names = tuple(part.strip() for part in assignors.split(",")) if isinstance(assignors, str) else ("range",)
    config = CoordinatorConfig.from_mapping({"group.consumer.assignors": assignors})
    assert config.consumer.assignors == names


@pytest.mark.parametrize("assignors", ["", "uniform,", "best", ["uniform", 3], ["uniform", "best"]])
def test_what_is_no_list_of_assignors(assignors: Any) -> None:
    with pytest.raises(InputError, match=r"^group\.consumer\.assignors: .* is not a list of "):
        CoordinatorConfig.from_mapping({"group.consumer.assignors": assignors})


def test_an_interval_of_one_millisecond_less_than_the_session_is_enough() -> None:
    options = {"group.share.heartbeat.interval.ms": 44_999, "group.share.max.heartbeat.interval.ms": 44_999}
    CoordinatorConfig.from_mapping(options)
    with pytest.raises(InputError, match=r"45000 is not less than group\.share\.session\.timeout\.ms, 45000"):
        CoordinatorConfig.from_mapping(dict.fromkeys(options, 45_000))


# options of one group


def test_a_group_has_its_own_options_and_the_brokers_for_the_rest() -> None:
    options = GroupOptions(ConsumerConfig())
    assert options.own("g") == {}
    options.set("g", {"consumer.heartbeat.interval.ms": 7_000, "consumer.session.timeout.ms": 50_000})
    found = [
        (options.consumer(group).session_timeout_ms, options.consumer(group).heartbeat_interval_ms)
        for group in ("g", "h")
    ]
    assert found == [(50_000, 7_000), (45_000, 5_000)]
    assert options.consumer("g").assignment_interval_ms == 1_000
    options.set("g", {"consumer.assignment.interval.ms": 0})
    assert options.own("g") == {"consumer.assignment.interval.ms": 0}, "exactly the last ones"
    assert options.consumer("g").assignment_interval_ms == 0
    options.set("g", {})
    assert options.own("g") == {}


@pytest.mark.parametrize(
    ("name", "asked", "is_value"),
    [
        ("session_timeout_ms", (1, 45_000, 60_000, 90_000), (45_000, 45_000, 60_000, 60_000)),
        ("heartbeat_interval_ms", (1, 5_000, 15_000, 90_000), (5_000, 5_000, 15_000, 15_000)),
        ("assignment_interval_ms", (0, 1, 15_000, 90_000), (0, 1, 15_000, 15_000)),
    ],
)
def test_a_value_beyond_the_brokers_bounds_counts_as_the_nearest(
    name: str, asked: tuple[int, ...], is_value: tuple[int, ...]
) -> None:
    options = GroupOptions(ConsumerConfig())
    found = []
    for value in asked:
        options.set("g", {f"consumer.{name.removesuffix('_ms').replace('_', '.')}.ms": value})
        found.append(getattr(options.consumer("g"), name))
    assert tuple(found) == is_value


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"consumer.max.size": 3}, "consumer.max.size: no kind of group has such an option"),
        (
            {"consumer.session.timeout.ms": 0},
            "consumer.session.timeout.ms: 0 is not between 1 and 2147483647",
        ),
        ({"consumer.heartbeat.interval.ms": 0}, "0 is not between 1 and"),
        ({"consumer.assignment.interval.ms": -1}, "-1 is not between 0 and"),
        ({"consumer.assignment.interval.ms": 2**31}, "2147483648 is not between"),
    ],
)
def test_what_no_group_may_have(options: dict[str, int], says: str) -> None:
    mine = GroupOptions(ConsumerConfig())
    with pytest.raises(InputError, match=re.escape(says)):
        mine.set("g", options)
    assert mine.own("g") == {}
    mine.set("g", {"consumer.session.timeout.ms": 2**31 - 1})
