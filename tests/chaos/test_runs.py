"""Chaos runs as a user makes them: Python and Java services, on the emulator and on Kafka in a JVM."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.test_process import is_gone
from tests.command import COMMAND, ROOT, environment_of_command, groupstorm, refused
from tests.conformance.programs.building import java_program
from tests.needs import needed
from tests.processes import outcome_of
from tests.soaking import in_soak
from tests.waiting import wait_until

HERE = Path(__file__).parent
SCENARIO = """\
settings:
  members: 2
  partitions: 4
  record_rate: 20
  start_ms: {exactly: 100}
  stop_grace_ms: 0
  group.initial.rebalance.delay.ms: 0
  settle_timeout_ms: 60000
steps:
  - {at_ms: 0, do: start}
"""
RESTARTS = """\
  - {at_ms: 4s, do: restart, members: [0]}
  - {at_ms: 7s, do: crash-restart, members: [1]}
  - {at_ms: 9s, do: add}
"""
FAULTS = """\
  - {at_ms: 4s, do: pause, members: [0], for_ms: 8s}
  - {at_ms: 13s, do: disconnect, members: [1], for_ms: 1s}
  - {at_ms: 15s, do: fail-requests, api: OffsetCommit, error: COORDINATOR_NOT_AVAILABLE, count: 3}
  - {at_ms: 16s, do: slow-requests, for_ms: 1s, delay_ms: 100}
  - {at_ms: 18s, do: pause-brokers, for_ms: 2s}
"""
FAILOVER = """\
  - {at_ms: 21s, do: coordinator-failover, for_ms: 500}
"""


def python_service(mode: str) -> str:
    pytest.importorskip("confluent_kafka", reason="pip install confluent-kafka (extra `kafka`)")
    return shlex.join([sys.executable, str(HERE / "service.py"), mode])


def java_service(mode: str) -> str:
    with needed():
        program = java_program(HERE / "java" / "Service.java", "chaos-java")
    return shlex.join(program.command("Service", mode))


def chaos(folder: Path, steps: str, service: str, *options: str) -> tuple[int, dict[str, Any]]:
    """The exit code and the verdict of a run."""
    (folder / "scenario.yaml").write_text(SCENARIO + steps)
    arguments = ["chaos", "scenario.yaml", "--service", service, "--out", "logs", "--json", *options]
    result = groupstorm(*arguments, cwd=folder)
    if result.returncode == 2 and "apt install" in result.stderr:
        pytest.skip(result.stderr)
    assert result.returncode in (0, 1), result.stderr
    return result.returncode, json.loads(result.stdout)


def faults(verdict: dict[str, Any]) -> set[str]:
    return {kind for kind, count in verdict["ledger"]["faults"].items() if count}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "options"),
    [
        ("careful", []),
        ("prints", ["--processed-in", "stdout"]),
        ("prints-untimed", ["--processed-in", "stdout"]),
        ("transactions", ["--exactly-once"]),
    ],
)
def test_services_that_keep_their_records(mode: str, options: list[str], tmp_path: Path) -> None:
    code, verdict = chaos(tmp_path, RESTARTS, python_service(mode), *options)
    assert faults(verdict) == set(), verdict
    assert (code, verdict["good"], verdict["exits"]) == (0, True, [])
    assert verdict["ledger"]["processed"] == verdict["ledger"]["records"] > 300
    names = {path.name for path in (tmp_path / "logs").iterdir()}
    assert {f"service-{number}.log" for number in range(3)} <= names


@pytest.mark.slow
@pytest.mark.parametrize(("broker", "steps"), [("emulator", FAULTS + FAILOVER), ("jvm", FAULTS)])
def test_a_careful_service_stands_pauses_and_faults_of_brokers(
    broker: str, steps: str, tmp_path: Path
) -> None:
    code, verdict = chaos(tmp_path, steps, python_service("careful"), "--on", broker)
    assert faults(verdict) == set(), verdict
    assert (code, verdict["left"]) == (0, None)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "options", "expected"),
    [
        ("commits-first", [], {"committed but not processed"}),
        ("reverses", [], {"out of order within a partition"}),
        ("half-transactions", ["--exactly-once"], {"processed twice"}),
    ],
)
def test_services_with_a_planted_fault(
    mode: str, options: list[str], expected: set[str], tmp_path: Path
) -> None:
    code, verdict = chaos(tmp_path, RESTARTS, python_service(mode), *options)
    assert code == 1
    assert expected <= faults(verdict)


@pytest.mark.slow
def test_instances_that_fail_are_named(tmp_path: Path) -> None:
    code, verdict = chaos(tmp_path, "  - {at_ms: 8s, do: stop, members: all}\n", python_service("fails"))
    assert code == 1
    assert [one.partition(": ")[0] for one in sorted(verdict["exits"])] == [
        "service-0 ended with exit code 1",
        "service-1 ended with exit code 1",
    ]
    assert "RuntimeError: ten records are enough" in (tmp_path / "logs" / "service-0.log").read_text()
    assert verdict["left"], "records wait for ever"


@pytest.mark.slow
@pytest.mark.timeout(60)
def test_a_rollout_whose_instances_all_fail_is_not_waited_for(tmp_path: Path) -> None:
    code, verdict = chaos(tmp_path, "  - {at_ms: 4s, do: rolling-restart}\n", python_service("fails"))
    assert code == 1
    assert len(verdict["exits"]) >= 2
    assert verdict["left"]


@pytest.mark.slow
@pytest.mark.parametrize("broker", ["jvm", *in_soak("emulator")])
def test_a_java_service(broker: str, tmp_path: Path) -> None:
    code, verdict = chaos(tmp_path, RESTARTS, java_service("careful"), "--on", broker)
    assert (code, faults(verdict)) == (0, set()), verdict


@pytest.mark.slow
@pytest.mark.parametrize("broker", ["emulator", *in_soak("jvm")])
def test_a_java_service_that_commits_first(broker: str, tmp_path: Path) -> None:
    code, verdict = chaos(tmp_path, RESTARTS, java_service("commits-first"), "--on", broker)
    assert code == 1
    assert "committed but not processed" in faults(verdict)


@pytest.mark.slow
def test_an_interrupt_leaves_no_process_behind(tmp_path: Path) -> None:
    (tmp_path / "scenario.yaml").write_text(SCENARIO + "  - {at_ms: 10m, do: add}\n")
    code = "import os, time; print(os.getpid(), flush=True); time.sleep(999)"
    service = shlex.join([sys.executable, "-c", code])
    command = [*COMMAND, "chaos", "scenario.yaml", "--service", service, "--out", "logs"]
    running = subprocess.Popen(command, cwd=tmp_path, env=environment_of_command(), stderr=subprocess.PIPE)
    logs = [tmp_path / "logs" / f"service-{number}.log" for number in range(2)]
    wait_until(lambda: all(log.exists() and log.read_text().endswith("\n") for log in logs))
    running.send_signal(signal.SIGINT)
    _, errors = outcome_of(running, 60)
    assert running.returncode == 130, errors
    pids = [int(log.read_text()) for log in logs]
    assert [pid for pid in pids if not is_gone(pid)] == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--service", "env", "--processed-in", "file"], "--processed-in file: expected output or stdout"),
        (["--service", "no-such-program"], "no-such-program: there is no such program"),
        (["--service", "env", "--on", "kafka:9092"], "say --allow-writes"),
        (["--service", "env", "--exactly-once", "--processed-in", "stdout"], "--exactly-once: expected "),
    ],
)
def test_bad_input(arguments: list[str], said: str, tmp_path: Path) -> None:
    line = refused(groupstorm("chaos", "rolling-deploy", *arguments, cwd=tmp_path))
    assert said in line
    assert os.listdir(tmp_path) == []


def test_the_help_says_what_a_service_has_to_do() -> None:
    result = groupstorm("chaos", "--help", cwd=ROOT)
    text = " ".join(result.stdout.split())
    for word in ("{bootstrap_servers}", "the header `by`", "--processed-in", "Example:"):
        assert word in text
