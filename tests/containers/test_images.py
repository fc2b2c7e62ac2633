"""The images' own scripts, which are ordinary programs: tried without an engine."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import next_line, outcome_of, run_process

ROOT = Path(__file__).resolve().parents[2]
IMAGES = ROOT / "compose" / "images"


def configured(folder: Path, **environment: str) -> Path:
    properties = folder / "kafka.properties"
    run_process(
        [IMAGES / "contract" / "configure", properties],
        env={"PATH": os.environ["PATH"], **environment},
        check=True,
    )
    return properties


def launched(properties: Path) -> subprocess.Popen[str]:
    """The emulator, as its image starts it."""
    return subprocess.Popen(
        [sys.executable, IMAGES / "emulator" / "launch.py", properties],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_the_environment_becomes_properties(tmp_path: Path) -> None:
    properties = configured(
        tmp_path,
        KAFKA_NODE_ID="1",
        KAFKA_LISTENER_NAME_A__B_X___Y="1=2",
        KAFKA_BROKER_RACK="a\\b\nc",
        KAFKA_HEAP_OPTS="-Xmx1g",
        KAFKA_LOG4J_OPTS="-Dx",
        HOME="/",
    )
    assert sorted(properties.read_text("utf-8").splitlines()) == [
        "broker.rack=a\\\\b\\nc",
        "listener.name.a_b.x-y=1=2",
        "node.id=1",
    ]


@pytest.mark.slow
def test_the_emulator_takes_what_it_knows_and_tells_what_it_does_not(tmp_path: Path) -> None:
    properties = configured(
        tmp_path,
        KAFKA_LISTENERS="PLAINTEXT://127.0.0.1:0,BROKER://127.0.0.1:9092",
        KAFKA_ADVERTISED_LISTENERS="BROKER://10.0.0.1:9092,PLAINTEXT://127.0.0.1:49152",
        KAFKA_PROCESS_ROLES="broker,controller",
        KAFKA_NODE_ID="7",
    )
    process = launched(properties)
    try:
        assert next_line(process) == "options of Kafka's that mean nothing here: process.roles\n"
        place, _, said = next_line(process).strip().removeprefix("[groupstorm ").partition("] ")
        assert said == "Kafka Server started"
        host, _, port = place.rpartition(":")
        socket.create_connection((host, int(port)), timeout=10).close()
    finally:
        process.terminate()
        process.communicate()
    assert (host, process.returncode) == ("127.0.0.1", 0)


@pytest.mark.slow
def test_an_option_that_is_refused_ends_the_emulator_in_one_line(tmp_path: Path) -> None:
    process = launched(configured(tmp_path, KAFKA_LISTENERS="PLAINTEXT://127.0.0.1:0", KAFKA_NODE_ID="x"))
    _, said = outcome_of(process, 30)
    assert (process.returncode, said.splitlines()) == (
        1,
        ["groupstorm: option node.id=x: expected an integer from 0 to 2147483647"],
    )
