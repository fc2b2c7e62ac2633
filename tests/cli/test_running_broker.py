"""`groupstorm run --on HOST:PORT`: the options of a broker that runs already."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from groupstorm.broker.embedded import EmbeddedBroker
from tests.command import groupstorm, refused

SCENARIO = """
name: two-members
settings: {members: 2, partitions: 4, tail_ms: 100, record_rate: 0, group.initial.rebalance.delay.ms: 0}
steps: [{at_ms: 0, do: start}]
"""


@pytest.mark.slow
def test_a_scenario_has_the_options_of_the_broker_or_is_refused(tmp_path: Path) -> None:
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(SCENARIO)
    with EmbeddedBroker({"group.initial.rebalance.delay.ms": "0"}) as broker:
        command = ["run", str(scenario), "--on", broker.address, "--allow-writes", "--out", "x", "--json"]
        answer = groupstorm(*command, cwd=tmp_path)
        other = groupstorm(*command, "--set", "group.max.size=7", cwd=tmp_path)
        newer = groupstorm(*command, "--set", "group.protocol=consumer", cwd=tmp_path)
    assert answer.returncode == 0, answer.stderr
    assert newer.returncode == 0, newer.stderr  # the broker's bounds and other kinds of groups do not matter
    assert json.loads(answer.stdout)["generations"] >= 1
    assert refused(other) == (
        f"groupstorm: group.max.size: 7: the broker at {broker.address} has 2147483647: "
        "--set group.max.size=2147483647, or change the broker"
    )
