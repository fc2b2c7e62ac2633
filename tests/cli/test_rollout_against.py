"""`groupstorm rollout --against`: the cost of a change of manifests or scenarios, as Markdown and in CI."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.command import groupstorm, refused

ROOT = Path(__file__).resolve().parents[2]

EAGER = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: orders}
spec:
  replicas: 4
  strategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}
  selector: {matchLabels: {app: orders}}
  template:
    metadata: {labels: {app: orders}}
    spec:
      containers:
        - name: orders
          image: orders:7
          env: [{name: KAFKA_PARTITION_ASSIGNMENT_STRATEGY, value: range}]
          readinessProbe: {httpGet: {path: /ready, port: 8080}, periodSeconds: 5}
"""
COOPERATIVE = EAGER.replace("value: range", "value: cooperative-sticky")
GIVEN = ["--set", "partitions=24", "--set", "record_rate=10", "--set", "start_ms=5s", "--seeds", "2"]
SCENARIO = """
name: two
settings: {members: 2, partitions: 4, session.timeout.ms: 45s}
steps: [{at_ms: 0, do: start}, {at_ms: 30s, do: crash, members: 1}]
"""


def git(folder: Path, *words: str) -> None:
    who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """HEAD has the eager manifest and the working tree the cooperative one."""
    git(tmp_path, "init", "--quiet")
    (tmp_path / "orders.yaml").write_text(EAGER, "utf-8")
    git(tmp_path, "add", "orders.yaml")
    git(tmp_path, "commit", "--quiet", "-m", "eager")
    (tmp_path / "orders.yaml").write_text(COOPERATIVE, "utf-8")
    return tmp_path


@pytest.mark.slow
def test_a_change_against_a_revision_is_told_and_no_file_is_written(repository: Path) -> None:
    done = groupstorm("rollout", "orders.yaml", "--against", "HEAD", *GIVEN, cwd=repository)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == r"### HEAD:orders.yaml -\> orders.yaml"
    assert lines[2].startswith("**It buys ")
    assert "It costs: records processed again 0 -" in lines[2]
    assert lines[2].endswith(
        "cooperative-sticky: two deployments to get there, the first with both assignors, "
        "and only those after them cost this.**"
    )
    assert "| partition.assignment.strategy | range | cooperative-sticky |" in lines
    (again,) = (line for line in lines if line.startswith("| records processed again |"))
    assert again.endswith("| worse |")
    assert any(line.startswith("| until the last pod is available |") for line in lines)
    assert "medians of 2 seeds" in done.stdout
    assert [path.name for path in repository.iterdir() if path.name != ".git"] == ["orders.yaml"]


@pytest.mark.slow
def test_the_limit_holds_for_the_new_version_alone(repository: Path) -> None:
    """Under eager each of four pods joins and leaves: 8 generations; cooperative ones rejoin."""
    limit = ["--require", "generations<9"]
    unmet = groupstorm("rollout", "orders.yaml", "--against", "HEAD", *GIVEN, *limit, cwd=repository)
    assert unmet.returncode == 1
    assert "generations is 10, but < 9 was required" in unmet.stderr
    assert r"**Refused: seed 1: generations is 10, but \< 9 was required.**" in unmet.stdout
    (repository / "new.yaml").write_text(EAGER, "utf-8")
    passed = groupstorm("rollout", "new.yaml", "--against", "orders.yaml", *GIVEN, *limit, cwd=repository)
    assert passed.returncode == 0, passed.stderr


@pytest.mark.slow
def test_the_same_version_twice_changes_nothing(repository: Path) -> None:
    done = groupstorm("rollout", "orders.yaml", "--against", "orders.yaml", *GIVEN, cwd=repository)
    assert "**Nothing changes that a person would notice.**" in done.stdout
    assert "No setting that a rollout depends on differs." in done.stdout
    assert "better" not in done.stdout
    assert "worse" not in done.stdout


@pytest.mark.slow
def test_a_consumer_that_does_not_start_any_more_stands_before_all_gains(repository: Path) -> None:
    both = "value: range}, {name: KAFKA_GROUP_PROTOCOL, value: consumer}"
    (repository / "orders.yaml").write_text(EAGER.replace("value: range}", both), "utf-8")
    done = groupstorm("rollout", "orders.yaml", "--against", "HEAD", *GIVEN, cwd=repository)
    lines = done.stdout.splitlines()
    assert lines[2].startswith(
        "* partition.assignment.strategy=range and group.protocol=consumer: with both, "
    )
    assert "does not start (ConfigException)" in lines[2]
    assert lines[4].startswith("**")
    assert done.stdout.count("ConfigException") == 1


@pytest.mark.slow
def test_another_group_begins_without_the_offsets_of_the_old_one(repository: Path) -> None:
    for version in ("old", "new"):
        group = f"value: range}}, {{name: KAFKA_GROUP_ID, value: {version}}}"
        (repository / f"{version}.yaml").write_text(EAGER.replace("value: range}", group), "utf-8")
    done = groupstorm("rollout", "new.yaml", "--against", "old.yaml", *GIVEN, cwd=repository)
    assert "new is another group than old: it begins where auto.offset.reset says" in done.stdout


@pytest.mark.slow
def test_scenarios_are_compared_as_well(tmp_path: Path) -> None:
    """A member that crashes is missed for its session timeout: 45 s, or 10 s."""
    (tmp_path / "old.yaml").write_text(SCENARIO, "utf-8")
    (tmp_path / "new.yaml").write_text(SCENARIO.replace("45s", "10s"), "utf-8")
    done = groupstorm("rollout", "new.yaml", "--against", "old.yaml", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["settings"] == {"session.timeout.ms": {"before": 45_000, "after": 10_000}}
    assert found["answer"].startswith("It buys: ")
    gaps = [found[when]["figures"][0]["unowned_max_seconds"] for when in ("before", "after")]
    assert 30 < gaps[0] - gaps[1] < 40


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (
            ["orders.yaml", "--against", "nope"],
            "--against nope: no such file, and git says: fatal: invalid object",
        ),
        (["orders.yaml", "--against", "--help"], "--against --help: expected a file or a revision of git"),
        (["none.yaml", "--against", "HEAD"], "none.yaml: "),
        (["-", "--against", "HEAD"], "-: --against compares files"),
        (["orders.yaml", "--against", "HEAD", "--alone"], "--alone: means nothing with --against"),
    ],
)
def test_wrong_input_is_one_line(repository: Path, words: list[str], line: str) -> None:
    done = groupstorm("rollout", *words, *GIVEN, cwd=repository)
    assert refused(done).startswith(f"groupstorm: {line}")


def command_on_path(folder: Path) -> str:
    """A PATH whose `groupstorm` is this checkout's."""
    folder.mkdir()
    command = folder / "groupstorm"
    command.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m groupstorm "$@"\n', "utf-8")
    command.chmod(0o755)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


@pytest.mark.slow
def test_the_action_and_the_job_of_examples_ci_compare_and_refuse(
    repository: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Their steps run as written; pip's is left out, as this checkout is what it would install."""
    aside = tmp_path_factory.mktemp("aside")
    path = command_on_path(aside / "bin")
    action = yaml.safe_load((ROOT / "examples/ci/github/action.yml").read_text("utf-8"))
    (compare,) = (step for step in action["runs"]["steps"] if step["name"] == "Compare")
    given = {"MANIFEST": "orders.yaml", "SETTINGS": "partitions=24 record_rate=10 start_ms=5s", "PATH": path}
    for limit, code in (("", 0), ("generations<9", 1)):
        summary = aside / f"summary-{code}"
        environment = {
            **os.environ,
            **given,
            "AGAINST": "HEAD",
            "REQUIRE": limit,
            "GITHUB_STEP_SUMMARY": str(summary),
        }
        step = ["bash", "-e", "-c", compare["run"]]
        ran = subprocess.run(step, cwd=repository, env=environment, capture_output=True, check=False)
        assert ran.returncode == code, ran.stderr
        assert "**It buys " in summary.read_text("utf-8")
    job = yaml.safe_load((ROOT / "examples/ci/gitlab/rollout-cost.yml").read_text("utf-8"))["rollout-cost"]
    script = "\n".join([*job["script"], *job["after_script"]])
    environment = {**os.environ, **given, "CI_MERGE_REQUEST_DIFF_BASE_SHA": "HEAD"}
    ran = subprocess.run(
        ["sh", "-e", "-c", script], cwd=repository, env=environment, capture_output=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert b"**It buys " in ran.stdout
