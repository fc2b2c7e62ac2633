"""Rates of records by topic, skewed over partitions, changing over time, from a file."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from groupstorm.problems import InputError
from groupstorm.storms.scenario.files import load, parse
from groupstorm.storms.scenario.settings import Settings
from groupstorm.storms.scenario.topics import rates_of

MINUTE_US = 60_000_000


def settings(**values: Any) -> Settings:
    return Settings(("", values))


def first_rates(of: Settings, partitions: int, topic: str = "topic-0") -> list[int]:
    return [rates_of(of, topic, partition)[0][1] for partition in range(partitions)]


def test_a_number_is_the_rate_of_every_partition_in_records_per_1000_seconds() -> None:
    assert rates_of(settings(record_rate=100), "topic-0", 3) == ((0, 100_000),)
    assert rates_of(settings(record_rate=0.5), "topic-0", 3) == ((0, 500),)


def test_topics_have_rates_of_their_own() -> None:
    of = settings(record_rate={"topic-0": 200, "others": 10})
    assert [rates_of(of, topic, 0)[0][1] for topic in ("topic-0", "topic-1")] == [200_000, 10_000]


@pytest.mark.parametrize("exponent", [0, 0.5, 1.0, 1.7])
def test_zipf_divides_the_topics_records_without_a_remainder_as_floats_would(exponent: float) -> None:
    of = settings(record_rate=100, partitions=50, record_skew={"zipf": exponent})
    rates = first_rates(of, 50)
    assert sum(rates) == 50 * 100_000
    whole = sum(k**-exponent for k in range(1, 51))
    expected = [50 * 100_000 * k**-exponent / whole for k in range(1, 51)]
    assert sorted(rates, reverse=True) == pytest.approx(expected, abs=2)


def test_the_hottest_partition_is_not_always_number_zero() -> None:
    hottest = set()
    for number in range(8):
        of = settings(partitions=20, topics=8, record_skew={"zipf": 1})
        rates = first_rates(of, 20, f"topic-{number}")
        hottest.add(rates.index(max(rates)))
    assert len(hottest) > 3


def test_two_hot_partitions_get_half_of_the_records() -> None:
    of = settings(record_rate=100, partitions=10, record_skew={"hot": {"partitions": 2, "share": "50%"}})
    assert sorted(first_rates(of, 10)) == [62_500] * 8 + [250_000] * 2


def test_hot_partitions_can_be_named() -> None:
    of = settings(record_rate=100, partitions=4, record_skew={"hot": {"partitions": [3], "share": 0.7}})
    assert first_rates(of, 4) == [40_000, 40_000, 40_000, 280_000]


def test_steps_multiply_the_rate_from_an_instant_on() -> None:
    of = settings(
        record_rate=10, record_rate_over_time=[{"at": "5m", "factor": 3}, {"at": 600_000, "factor": 0}]
    )
    assert rates_of(of, "topic-0", 0) == ((0, 10_000), (5 * MINUTE_US, 30_000), (10 * MINUTE_US, 0))


def test_a_wave_is_a_sine_from_low_to_high_and_back() -> None:
    of = settings(record_rate=1000, record_rate_over_time={"period": "24h", "low": 0.3, "high": 1.5})
    rates = dict(rates_of(of, "topic-0", 0))
    hour_us = 60 * MINUTE_US
    for slot in range(24):
        at_us = slot * hour_us
        # Equal neighbours (around the peak and the trough) are one entry.
        value = next(rates[at] for at in sorted(rates, reverse=True) if at <= at_us)
        exact = 0.3 + 1.2 * (1 - math.cos(2 * math.pi * (slot + 0.5) / 24)) / 2
        assert value / 1e6 == pytest.approx(exact, abs=0.003)
    assert rates[24 * hour_us + hour_us] == rates[hour_us]


def test_a_file_gives_rates_and_the_resolved_scenario_carries_them(tmp_path: Path) -> None:
    (tmp_path / "rates.csv").write_text(
        "time,rate,topic,partition\n0s,50\n1m,80\n\n0s,5,topic-1\n90s,7.5,topic-1,2\n", "utf-8"
    )
    scenario = tmp_path / "mine.yaml"
    scenario.write_text(
        "settings: {topics: 2, partitions: 4, record_rate_over_time: {file: rates.csv}}\n"
        "steps: [{at_ms: 0, do: start}]\n",
        "utf-8",
    )
    resolved = load(str(scenario)).resolve(None, 1, {})
    again = parse(resolved.as_yaml(), "yaml", "again").resolve(None, None, {})
    assert "rates.csv" not in resolved.as_yaml()
    for of in (resolved.settings, again.settings):
        assert rates_of(of, "topic-0", 1) == ((0, 50_000), (MINUTE_US, 80_000))
        assert rates_of(of, "topic-1", 0) == ((0, 5_000),)
        assert rates_of(of, "topic-1", 2) == ((0, 100_000), (MINUTE_US * 3 // 2, 7_500))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("zeit,rate\n", "line 1.*header time,rate"),
        ("time,rate\n5,3\n", "line 2: time: '5': expected a time with its unit"),
        ("time_s,rate\nsoon,3\n", "line 2: time: 'soon': expected a number of s"),
        ("time,rate\n5s,many\n", "line 2: rate: 'many'"),
        ("time,rate\n5s,-3\n", "line 2: rate: '-3'"),
        ("time,rate,topic\n5s,3,topic-0,1\n", "line 2: 4 values"),
        ("time,rate,topic,partition\n5s,3,,1\n", "line 2: partition: '1'"),
        ("time,rate\n5s,3\n5s,4\n", "two rates at 5000 ms"),
        ("time,rate\n", "no rates in it"),
        ('time,rate\n"5s,3\n', "not CSV"),
        ("time,rate,topic\n5s,3,topic-9\n", "'topic-9' is none of the topics"),
        ("time,rate,topic,partition\n5s,3,topic-0,20\n", "topic-0: partition: 20: expected at most 19"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_with_its_line(
    tmp_path: Path, content: str, message: str
) -> None:
    (tmp_path / "rates.csv").write_text(content, "utf-8")
    scenario = tmp_path / "mine.yaml"
    scenario.write_text(
        "settings: {record_rate_over_time: {file: rates.csv}}\nsteps: [{at_ms: 0, do: start}]\n", "utf-8"
    )
    with pytest.raises(InputError, match=message) as refused:
        load(str(scenario)).resolve(None, 1, {})
    assert "rates.csv" in str(refused.value) or "record_rate_over_time" in str(refused.value)
