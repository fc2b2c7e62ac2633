"""The outputs in docs/whatif.md are what the commands print. GROUPSTORM_REWRITE=1 writes them anew."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
import yaml

from groupstorm.storms.runs.run import run
from groupstorm.storms.scenario.files import parse
from groupstorm.trace.reader import read_rows
from tests.command import groupstorm
from tests.generated_pages import check_section
from tools.log_printing.logs import LogKind, as_log

PAGE = "whatif.md"
SCENARIO = {
    "name": "orders",
    "settings": {
        "members": 3,
        "topic_partitions": {"orders": 12},
        "partition.assignment.strategy": ["range"],
        "start_ms": {"exactly": 20_000},
        "member_settings": [{"members": [n], "name": f"orders-{n}"} for n in range(3)],
    },
    "steps": [
        {"at_ms": 0, "do": "start"},
        {"at_ms": "1m", "do": "rolling-restart"},
        {"at_ms": "5m", "do": "crash", "members": [1]},
    ],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Logs of a group of three, and their import."""
    folder: Path = tmp_path_factory.mktemp("whatif")
    run(parse(yaml.safe_dump(SCENARIO), "yaml", "x").resolve(None, 3, {}), folder / "run")
    rows = list(read_rows(folder / "run"))
    for kind, name in ((LogKind.BROKER, "server.log"), (LogKind.JAVA, "apps.log")):
        (folder / name).write_text("".join(f"{line}\n" for line in as_log(rows, kind)), "utf-8")
    printed = groupstorm("import", "server.log", "apps.log", "--out", "imported", cwd=folder)
    assert printed.returncode == 0, printed.stderr
    return folder


def output(command: str, folder: Path) -> str:
    printed = groupstorm(*shlex.split(command)[1:], cwd=folder, GROUPSTORM_COMMAND="groupstorm")
    assert printed.returncode == 0, printed.stderr
    return printed.stdout.rstrip("\n")


@pytest.mark.slow
def test_a_replay_and_its_scenario(folder: Path) -> None:
    command = "groupstorm whatif imported --seeds 3 --out replayed"
    shown = output(command, folder).split("Change its settings")[0].rstrip("\n")
    check_section(PAGE, "agreement", f"```\n$ {command}\n{shown}\n```")
    text = (folder / "replayed" / "whatif.yaml").read_text("utf-8").rstrip("\n")
    text = re.sub(r"  stop_grace_ms.*?(?=  record_rate)", "  ...\n", text, flags=re.DOTALL)
    text = re.sub(r"  poll_interval_ms.*?(?=  members:)", "  ...\n", text, flags=re.DOTALL)
    check_section(PAGE, "scenario", f"```yaml\n{text}\n```")


@pytest.mark.slow
def test_other_settings(folder: Path) -> None:
    command = "groupstorm whatif imported --over session.timeout.ms=10s,30s --seeds 2 --out changed"
    shown = output(command, folder)
    recommendation = shown[shown.index("Recommendation:") :].split("Best by un-owned")[0]
    check_section(PAGE, "whatif", f"```\n$ {command}\n...\n{recommendation}...\n```")


@pytest.mark.slow
def test_advice(folder: Path) -> None:
    command = "groupstorm advise imported --goal 'unowned_max_seconds<25' --seeds 2 --out advised"
    shown = output(command, folder)
    changes, _, advice = shown[shown.index("Changes, medians") :].partition("\n\n")
    advice = advice[advice.index("Change session.timeout.ms") : advice.index("# librdkafka")]
    check_section(PAGE, "advise", f"```\n$ {command}\n...\n{changes}\n...\n{advice}...\n```")


@pytest.mark.slow
def test_a_replay_that_differs_ends_the_command_with_1(folder: Path) -> None:
    wrong = "group.initial.rebalance.delay.ms=60000"
    printed = groupstorm("whatif", "imported", "--seeds", "2", "--known", wrong, "--out", "wrong", cwd=folder)
    assert printed.returncode == 1
    assert "the replays do not do what the run did" in printed.stderr
    assert "longest round" in printed.stderr


@pytest.mark.slow
def test_the_comparison_as_json(folder: Path) -> None:
    found = json.loads(output("groupstorm whatif imported --seeds 2 --json --out as-json", folder))
    assert found["agrees"]
    assert [int(one["began_s"]) for one in found["rounds"]][:2] == [0, 60]
    refused = groupstorm("whatif", "imported", "--csv", cwd=folder)
    assert refused.returncode == 2
    assert "--csv: means something only with --set or --over" in refused.stderr


def test_a_run_that_no_scenario_repeats_ends_with_2(folder: Path) -> None:
    printed = groupstorm("import", "server.log", "--out", "alone", cwd=folder)
    assert printed.returncode == 0
    refused = groupstorm("whatif", "alone", cwd=folder)
    assert refused.returncode == 2
    assert "no scenario repeats this run: no row says which topics and partitions" in refused.stderr
