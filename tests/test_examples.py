"""The examples run as their heads say, and keep what they promise."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from pathlib import Path

import pytest

import groupstorm
from groupstorm.testing import Group, GroupTimeout
from tests import command
from tests.command import PLUGIN, ROOT
from tests.processes import run_process
from tests.waiting import PATIENCE_S


@pytest.mark.slow
@pytest.mark.parametrize("attribute", ["rendezvous", "cooperative"])
def test_the_example_assignors_keep_their_promises(attribute: str) -> None:
    arguments = ["--count", "10", "--no-speed", "--json"]
    result = command.groupstorm("check-assignor", f"examples.rendezvous:{attribute}", *arguments, cwd=ROOT)
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    verdicts = {row["property"]: row["verdict"] for row in report["properties"]}
    assert verdicts["co-partitioning"] == verdicts["any order of members"] == "held"
    assert verdicts["balance"] == "not promised"


@pytest.mark.slow
def test_an_example_assignor_stands_the_lab(tmp_path: Path) -> None:
    strategy = "partition.assignment.strategy=examples.rendezvous:cooperative"
    out = str(tmp_path / "lab")
    result = command.groupstorm("run", "custom-assignor-lab", "--set", strategy, "--out", out, cwd=ROOT)
    assert result.returncode == 0, result.stderr
    figures = json.loads((tmp_path / "lab" / "figures.json").read_text())
    assert set(figures["invariants"].values()) == {"held"}
    again = command.groupstorm("replay", out, "--set", strategy, cwd=ROOT)
    assert again.returncode == 0, again.stderr
    assert again.stderr == ""
    unnamed = command.groupstorm("replay", out, cwd=ROOT)
    assert unnamed.returncode == 2, "a file names no code"
    assert f"use --set {strategy}" in unnamed.stderr


@pytest.mark.slow
def test_an_example_assignor_in_real_time(tmp_path: Path) -> None:
    """Members over TCP find a plug-in by the name that travels, and rebuild the state of what is new."""
    (tmp_path / "live.yaml").write_text(
        "steps: [{at_ms: 0, do: start}, {at_ms: 1000, do: add}]\n"
        "settings: {members: 2, topics: 2, partitions: 4, joins: true, restore_ms: 50, start_ms: 10,"
        " record_rate: 0, tail_ms: 100, heartbeat.interval.ms: 200, group.initial.rebalance.delay.ms: 100}\n"
    )
    strategy = "partition.assignment.strategy=examples.rendezvous:cooperative"
    out = tmp_path / "live"
    arguments = ["--on", "emulator", "--set", strategy, "--out", str(out)]
    result = command.groupstorm("run", str(tmp_path / "live.yaml"), *arguments, cwd=ROOT)
    assert result.returncode == 0, result.stderr
    rows = [json.loads(line) for line in (out / "trace.jsonl").read_text().splitlines()]
    taken = [row for row in rows if row["event"] == "partitions_assigned" and row["partitions"]]
    had: set[tuple[str, str]] = set()
    for row in taken:  # a busy machine may give a member a second round
        new = {(row["member"], partition) for partition in row["partitions"]} - had
        assert row["duration_us"] == 50_000 * len(new)
        had |= new
    assert had
    assert {row["protocol"] for row in rows if row["event"] == "assignment_computed"} == {
        "rendezvous-cooperative"
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "passed"), [("emulator", 7), pytest.param("jvm", 6, marks=pytest.mark.slow)]
)
def test_the_order_service_is_tested_on_a_broker_of_its_own(kind: str, passed: int) -> None:
    """On real Kafka without the one test that asks for the emulator."""
    pytest.importorskip("aiokafka", reason="pip install aiokafka (extra `kafka`)")
    command = [sys.executable, "-m", "pytest", "-n0", *PLUGIN, f"--kafka={kind}"]
    result = run_process(
        [*command, "-rs", "-p", "no:cacheprovider", "examples/orders"],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    skipped = re.findall(r"^SKIPPED \[\d+\] \S+ (.+)$", result.stdout, re.MULTILINE)
    missing = [why for why in skipped if "the test needs the emulator" not in why]
    if missing:
        pytest.skip(missing[0])
    assert re.search(rf"\b{passed} passed", result.stdout), result.stdout


async def test_a_failing_test_of_the_order_service_ends() -> None:
    """With orders in flight, for which the service waits when it stops."""
    tests = pytest.importorskip("examples.orders.test_service", reason="pip install aiokafka (extra `kafka`)")

    async def fails(_group: Group) -> None:
        raise GroupTimeout

    async with asyncio.timeout(PATIENCE_S), groupstorm.broker(topics={"orders": tests.PARTITIONS}) as broker:
        with pytest.raises(GroupTimeout):
            await tests.lost_orders(tests.OrderService, broker, fails)


@pytest.mark.parametrize(
    ("page", "name"),
    [
        ("docs/testing.md", "test_no_order_is_lost_when_an_instance_joins"),
        ("README.md", "test_a_coordinator_that_is_away_for_a_moment_costs_nothing"),
    ],
)
def test_the_documents_show_tests_of_the_order_service(page: str, name: str) -> None:
    document = (ROOT / page).read_text("utf-8")
    shown = re.findall(rf"^async def {name}.*?(?=^```)", document, re.MULTILINE | re.DOTALL)
    assert len(shown) == 1
    tests = (ROOT / "examples" / "orders" / "test_service.py").read_text("utf-8")
    assert shown[0] in tests.replace("kafka_broker: Broker) -> None", "kafka_broker)")
