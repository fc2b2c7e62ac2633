"""The compose files, each brought up by the command that stands at its top."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from groupstorm.assignors.userdata.wire import TopicPartition
from groupstorm.clients.brokers.contract import read_addresses
from groupstorm.clients.brokers.jvm import held_ports
from groupstorm.clients.wire.admin import create_topics
from groupstorm.clients.wire.cluster import ClusterClient
from groupstorm.storms.runs.run import run
from groupstorm.storms.scenario.files import load
from tests.containers.engine import EMULATOR, KAFKA, SPARK, need_compose, need_images
from tests.processes import run_process

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "compose").glob("*.yaml"))

STEP_TIMEOUT_S = 400


def commands(file: str) -> list[str]:
    """Return the commands of the comment at the top: what is indented there."""
    return re.findall(r"^#   (\S.*)$", (ROOT / "compose" / file).read_text("utf-8"), re.MULTILINE)


def call(command: str, settings: Mapping[str, str]) -> str:
    answer = run_process(
        shlex.split(command),
        cwd=ROOT,
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        deadline_s=STEP_TIMEOUT_S,
        check=False,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return answer.stdout


@contextmanager
def up(file: str, settings: Mapping[str, str]) -> Iterator[None]:
    """As a project of its own, so that one that runs already is left alone."""
    settings = {**settings, "COMPOSE_PROJECT_NAME": f"groupstorm-test-{os.getpid()}"}
    try:
        call(commands(file)[0], settings)
        yield
    finally:
        call(f"docker compose -f compose/{file} down --volumes", settings)


async def leaders(addresses: str, topic: str, partitions: int) -> set[int]:
    """The nodes that lead partitions of a topic that this creates."""
    cluster = ClusterClient(read_addresses(addresses), "test", 30_000)
    try:
        await create_topics(cluster, {topic: partitions})
        found = [cluster.leader(TopicPartition(topic, partition)) for partition in range(partitions)]
        return {leader.node_id for leader in found if leader is not None}
    finally:
        cluster.close()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_port_is_published_on_the_loopback_interface_alone(file: Path) -> None:
    services = yaml.safe_load(file.read_text("utf-8"))["services"]
    published = [port for service in services.values() for port in service.get("ports", [])]
    assert published
    assert all(port.startswith("127.0.0.1:") for port in published)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_file_begins_with_the_command_that_starts_it(file: Path) -> None:
    assert commands(file.name)[0] == f"docker compose -f compose/{file.name} up --detach --wait"


@pytest.mark.slow
def test_three_kafka_nodes() -> None:
    need_compose()
    need_images(KAFKA)
    with up("kafka.yaml", {"GROUPSTORM_KAFKA_IMAGE": KAFKA}):
        assert asyncio.run(leaders("127.0.0.1:19092", "t", 6)) == {1, 2, 3}


@pytest.mark.slow
def test_the_emulator() -> None:
    need_compose()
    need_images(EMULATOR)
    with held_ports(1) as (port,):
        settings = {"EMULATOR_PORT": str(port), "GROUPSTORM_EMULATOR_IMAGE": EMULATOR}
        with up("emulator.yaml", settings):
            assert asyncio.run(leaders(f"127.0.0.1:{port}", "t", 6)) == {1}


@pytest.mark.slow
def test_traces_are_analyzed_by_the_workers(tmp_path: Path) -> None:
    need_compose()
    need_images(SPARK)
    scenario = load("cold-start").resolve(None, 0, {"members": 2, "partitions": 4})
    run(scenario, tmp_path / "rolling-deploy-0", "jsonl")
    tmp_path.chmod(0o755)
    settings = {"RUNS": str(tmp_path), "GROUPSTORM_SPARK_IMAGE": SPARK}
    with held_ports(1) as (port,), up("spark.yaml", settings := settings | {"SPARK_PORT": str(port)}):
        project = {**settings, "COMPOSE_PROJECT_NAME": f"groupstorm-test-{os.getpid()}"}
        said = call(commands("spark.yaml")[1], project)
        log = call("docker compose -f compose/spark.yaml logs spark-worker", project)
    assert "figures.json says the same: rolling-deploy-0" in said
    assert "Launching executor" in log or "Asked to launch executor" in log
