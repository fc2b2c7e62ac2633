"""Scenarios in real time with unmodified client libraries, on the emulator and on Kafka."""

from __future__ import annotations

import re
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from groupstorm.clients.brokers import EMULATOR, JVM, BrokerKind
from groupstorm.clients.brokers.jars import kafka_jars
from groupstorm.figures import Figures
from groupstorm.problems import InputError
from groupstorm.storms.live.play import run_on
from groupstorm.storms.live.real_clients import libraries
from groupstorm.storms.live.real_clients.libraries import LIBRARIES, library
from groupstorm.storms.runs.run_folder import real_time_options
from groupstorm.storms.runs.several import replay
from groupstorm.storms.scenario.files import ResolvedScenario, parse
from groupstorm.trace.reader import read_rows
from tests.command import groupstorm, refused
from tests.needs import needed
from tests.soaking import in_soak
from tests.storms.live.test_play import CONSUMER

SCENARIO = """
name: one-restart
question: what does one restart cost?
settings:
  members: 2
  partitions: 4
  partition.assignment.strategy: [range]
  start_ms: {exactly: 100}
  stop_grace_ms: {exactly: 50}
  heartbeat.interval.ms: 200
  session.timeout.ms: 6000
  auto.commit.interval.ms: 300
  group.initial.rebalance.delay.ms: 500
  poll_interval_ms: 50
  tail_ms: 300
  record_rate: 40
variants:
  eager: {}
  cooperative: {partition.assignment.strategy: [cooperative-sticky]}
  static: {group.instance.id: ordinal}
  faults: {}
steps:
  - {at_ms: 0, do: start}
  - {at_ms: 2500, do: restart, members: [0]}
"""

#: The same for members of the consumer protocol, whose broker has session and heartbeat.
CONSUMER_SCENARIO = "\n".join(
    line
    for line in SCENARIO.splitlines()
    if not line.strip().startswith(
        ("partition.assignment", "heartbeat.interval", "session.timeout", "cooperative:")
    )
)
PYTHON_LIBRARIES = sorted(name for name, one in LIBRARIES.items() if one.module is not None)


def scenario(name: str, variant: str = "eager", text: str = SCENARIO, **settings: Any) -> ResolvedScenario:
    one = library(name)
    with needed(InputError):
        one.check_installed()
    return parse(text, "yaml", "test").resolve(variant, 0, {"client_profile": [one.profile], **settings})


def played(resolved: ResolvedScenario, name: str, folder: Path, on: str = EMULATOR) -> Figures:
    return run_on(resolved, folder, "jsonl", BrokerKind(on), clients=library(name)).figures


def rows(folder: Path) -> list[dict[str, Any]]:
    return [dict(row) for row in read_rows(folder)]


@pytest.mark.slow
@pytest.mark.parametrize("name", PYTHON_LIBRARIES)
def test_unmodified_consumers_play_a_scenario(name: str, tmp_path: Path) -> None:
    """Two members, one is restarted, in one round or two; the records that were written are processed."""
    figures = played(scenario(name), name, tmp_path / "run")
    assert set((figures.invariants or {}).values()) == {"held"}
    assert real_time_options(tmp_path / "run") == ["--on", EMULATOR, "--with", name]
    with pytest.raises(
        InputError, match=f"ran in real time .--on {EMULATOR} --with {name}.: no such run repeats"
    ):
        replay(tmp_path / "run", False, {})
    seen = rows(tmp_path / "run")
    # kafka-python's poll() that ends during a round loses the response: its leader joins once more
    again = sum(row.get("cause") == "leader-rejoined" for row in seen) if name == "kafka-python" else 0
    assert figures.generations - again in (2, 3, 4)
    assert figures.dual_owner_seconds == 0
    times = [row["time_us"] for row in seen]
    assert times == sorted(times)
    counts = Counter(row["event"] for row in seen if row["source"] == "member")
    assert counts["member_started"] == 3
    assert counts["member_closed"] == 1
    assert counts["processing_rates_changed"] > 0
    (closed,) = [row for row in seen if row["event"] == "member_closed"]
    assert (closed["member"], closed["cause"]) == ("member-0", "left")
    # 4 logs of 40 records a second: all but the first join's and the last report's seconds
    seconds = times[-1] / 1e6
    assert 160 * (seconds - 3) < (figures.records_processed or 0) <= 160 * seconds


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "on"),
    [("confluent-kafka", EMULATOR), ("java", EMULATOR), ("java", JVM), *in_soak(("confluent-kafka", JVM))],
)
def test_unmodified_consumers_play_as_a_consumer_group(name: str, on: str, tmp_path: Path) -> None:
    if on == JVM:
        with needed():
            _ = kafka_jars()
    resolved = scenario(name, text=CONSUMER_SCENARIO, **CONSUMER)
    figures = played(resolved, name, tmp_path / "run", on)
    assert set((figures.invariants or {}).values()) == {"held"}
    assert figures.dual_owner_seconds == 0
    seen = rows(tmp_path / "run")
    counts = Counter(row["event"] for row in seen)
    assert counts["member_started"] == 3
    assert counts["group_epoch_bumped"] >= 3
    assert counts["member_reconciled"] >= 4
    assert counts["partitions_lost"] == 0
    (closed,) = [row for row in seen if row["event"] == "member_closed"]
    assert (closed["member"], closed["cause"]) == ("member-0", "left")
    revoked = {row["cause"] for row in seen if row["event"] == "partitions_revoked"}
    assert revoked <= {"close", "assignment"}
    assert (figures.records_processed or 0) > 0


@pytest.mark.parametrize("name", ["aiokafka", "kafka-python"])
def test_a_library_without_the_consumer_protocol_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=f"group.protocol: consumer: the members of client_profile {name}"):
        scenario(name, text=CONSUMER_SCENARIO, **CONSUMER)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--with", "aiokafka"], "--with: means something only with --on"),
        (["--with", "sarama", "--on", "emulator"], "--with sarama: expected confluent-kafka, aiokafka"),
        (
            ["--with", "aiokafka", "--on", "emulator", "--set", "client_profile=java"],
            "client_profile: java: --with aiokafka runs members of aiokafka only",
        ),
        (
            ["--with", "aiokafka", "--on", "emulator", "--variant", "delay-3s"],
            "partition.assignment.strategy: aiokafka (client_profile) has no cooperative rebalancing",
        ),
    ],
)
def test_what_cannot_be_done_is_one_line_and_exit_2(options: list[str], message: str, tmp_path: Path) -> None:
    assert message in refused(groupstorm("run", "cold-start", *options, cwd=tmp_path))


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        ("aiokafka", "--with aiokafka: aiokafka is not installed: pip install 'groupstorm[kafka]'"),
        (
            "confluent_kafka",
            "--with aiokafka: confluent-kafka is not installed (it writes the records): pip install",
        ),
    ],
)
def test_a_library_that_is_not_installed_says_how_to_get_it(
    missing: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(libraries, "find_spec", lambda module: None if module == missing else object())
    with pytest.raises(InputError, match=re.escape(message)):
        library("aiokafka").check_installed()


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("aiokafka", {"partition.assignment.strategy": ["cooperative-sticky"]}, "aiokafka has range"),
        ("confluent-kafka", {"partition.assignment.strategy": ["range", "cooperative-sticky"]},
         "does not take eager and cooperative"),
        ("kafka-python", {"client_profile": ["java"]}, "runs members of kafka-python only"),
        ("kafka-python", {"assign_ms": 10}, "assign_ms: a real assignor takes its own time"),
        ("kafka-python", {"concurrency": 4}, "concurrency: a worker process works on one record at a time"),
        ("java", {"slow_records": [{"every": 10, "takes": "1s"}]}, "slow_records: .*leave it out"),
        ("java", {"machines": [{"members": [0], "factor": 3}]}, "machines: .*leave it out with --with"),
        ("java", {"gc_pause_ms": 100}, "gc_pause_ms: .*leave it out with --with"),
        ("java", {"member_settings": [{"members": [1], "settings": {"concurrency": 2}}]},
         "concurrency: .*leave it out with --with"),
        ("kafka-python", {"leave_on_close": False}, "leave_on_close: kafka-python has no such option"),
    ],
)  # fmt: skip
def test_settings_that_a_library_cannot_follow_are_refused(
    name: str, settings: dict[str, Any], message: str
) -> None:
    resolved = scenario(name, **settings)
    with pytest.raises(InputError, match=message):
        library(name).check_settings(resolved.settings)


OTHERS = sorted({*product(("eager", "static"), LIBRARIES)} - {("eager", "aiokafka"), ("static", "java")})


@pytest.mark.slow
@pytest.mark.parametrize(("variant", "name"), [("eager", "aiokafka"), ("static", "java"), *in_soak(*OTHERS)])
def test_unmodified_consumers_play_a_scenario_on_kafka(variant: str, name: str, tmp_path: Path) -> None:
    with needed():
        _ = kafka_jars()
    figures = played(scenario(name, variant), name, tmp_path / "run", JVM)
    assert set((figures.invariants or {}).values()) == {"held"}
    # one more if the others have joined again before the restarted member is back
    assert (figures.generations or 0) >= (2 if variant == "eager" else 1)
    assert figures.dual_owner_seconds == 0
