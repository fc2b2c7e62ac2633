"""Durations and shares as people write them."""

from __future__ import annotations

from fractions import Fraction

import pytest

from groupstorm.problems import InputError
from groupstorm.storms.scenario.files import load, parse
from groupstorm.storms.scenario.settings import read
from groupstorm.units import duration_us, percent


@pytest.mark.parametrize(
    ("written", "us"),
    [
        (5, 5_000),
        (0.5, 500),
        ("5", 5_000),
        ("500ms", 500_000),
        ("60s", 60_000_000),
        (" 1.5 m ", 90_000_000),
        ("2h", 7_200_000_000),
        ("1d", 86_400_000_000),
        ("20us", 20),
        ("2min", 120_000_000),
    ],
)
def test_durations(written: object, us: int) -> None:
    assert duration_us("x", written) == us


@pytest.mark.parametrize("written", ["soon", "5 parsecs", "-5s", "", -1, True, None, float("nan"), "1:30"])
def test_what_is_no_duration_is_refused_with_name_and_value(written: object) -> None:
    with pytest.raises(InputError, match="session: ") as refused:
        duration_us("session", written)
    assert repr(written) in str(refused.value)


def test_percentages() -> None:
    assert percent("25%") == 25
    assert percent(" 99.9 % ") == Fraction(999, 10)
    assert [percent(other) for other in ("25", 25, "x%", "-5%")] == [None] * 4


def test_settings_take_units_and_a_bare_number_stays_as_it_was() -> None:
    assert read("session.timeout.ms", "60s") == read("session.timeout.ms", 60_000) == 60_000
    assert read("settle_timeout_ms", "2h") == 7_200_000
    assert read("coordinator_service_us", "1ms") == 1_000
    assert read("start_ms", "20s").at(0) == 18_000_000
    assert read("state_bytes", "40GB") == 40_000_000_000
    assert read("max.partition.fetch.bytes", "1 MiB") == 1_048_576
    with pytest.raises(InputError, match="state_bytes: '40gigs' is no amount of bytes: expected"):
        read("state_bytes", "40gigs")
    with pytest.raises(InputError, match=r"session.timeout.ms: '0.5ms' is no whole number of ms"):
        read("session.timeout.ms", "0.5ms")
    with pytest.raises(InputError, match="members: '60s' is no whole number"):
        read("members", "60s")


def test_files_and_their_steps_take_units() -> None:
    text = "settings: {members: 2, start_ms: {p50: 5s, p99.9: 1m}}\n"
    text += "steps: [{at_ms: 0, do: start}, {at_ms: 5m, do: add}]"
    resolved = parse(text, "yaml", "mine").resolve(None, 0, {"session.timeout.ms": "30s"})
    assert [step.at_ms for step in resolved.steps] == [0, 300_000]
    again = parse(resolved.as_yaml(), "yaml", "again").resolve(None, None, {})
    assert again.written() == resolved.written()
    assert again.settings.integer("session.timeout.ms") == 30_000
    with pytest.raises(InputError, match="'soon' is neither milliseconds, nor a duration"):
        parse(text.replace("5m", "soon"), "yaml", "mine").resolve(None, 0, {})


def test_a_preset_with_units_on_the_command_line_is_the_same_run() -> None:
    one = load("rolling-deploy").resolve("static", 0, {"session.timeout.ms": "60s"})
    other = load("rolling-deploy").resolve("static", 0, {"session.timeout.ms": 60_000})
    assert one.as_yaml() == other.as_yaml()
