"""Kinds of brokers: how they are named, and the error if one cannot run here."""

from __future__ import annotations

import os
import re
import socket
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from groupstorm.clients.brokers import emulated, read_kind
from groupstorm.clients.brokers.contract import BrokerFailed, BrokerUnavailable, at_address, read_addresses
from groupstorm.clients.brokers.jars import kafka_jars
from groupstorm.clients.brokers.jvm import held_ports, jvm, logging_option
from groupstorm.clients.wire.admin import await_coordinator, create_topics
from groupstorm.clients.wire.cluster import ClusterClient
from groupstorm.problems import InputError
from groupstorm.protocol.endpoints import Endpoint
from tests.needs import needed


def test_addresses() -> None:
    assert read_addresses("a:1, [::1]:9092") == (Endpoint("a", 1), Endpoint("::1", 9092))


@pytest.mark.parametrize("text", ["", "a", "a:", ":1", "a:0", "a:65536", "a:1,", "http://a:1", "a:1:2"])
def test_an_invalid_address_is_named(text: str) -> None:
    with pytest.raises(InputError, match="expected HOST:PORT"):
        read_addresses(text)


def test_kinds() -> None:
    assert read_kind("emulator").bootstrap == ()
    assert read_kind("localhost:9092").bootstrap == (Endpoint("localhost", 9092),)
    with pytest.raises(InputError, match="'docker': expected emulator, jvm, container"):
        read_kind("docker")


async def test_names_on_a_users_cluster_have_a_prefix() -> None:
    async with at_address((Endpoint("a", 1),)) as one, at_address((Endpoint("a", 1),)) as other:
        assert one.prefix.startswith("groupstorm-")
        assert one.prefix != other.prefix
        assert one.address == "a:1"


async def test_topics_are_created_on_the_emulator_and_a_refusal_is_reported() -> None:
    async with emulated({}, lambda _: None) as broker:
        cluster = ClusterClient(broker.bootstrap, "admin", 5_000)
        try:
            await create_topics(cluster, {"t": 3, "u": 1})
            assert (cluster.topics, cluster.led("t")) == ({"t": 3, "u": 1}, 3)
            await await_coordinator(cluster, "g")
            with pytest.raises(InputError, match="topic t: the cluster says TOPIC_ALREADY_EXISTS"):
                await create_topics(cluster, {"t": 3})
        finally:
            cluster.close()


def _nothing_is_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_jars_without_maven(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _nothing_is_installed(monkeypatch, tmp_path)
    with pytest.raises(BrokerUnavailable, match="Maven is missing"):
        kafka_jars()


@pytest.mark.parametrize("version", ["", "latest", "4.3.1/../x"])
def test_jars_of_an_invalid_version(version: str) -> None:
    with pytest.raises(BrokerUnavailable, match=r"expected a version such as 4\.3\.1"):
        kafka_jars(version)


def test_jars_that_maven_cannot_fetch(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _nothing_is_installed(monkeypatch, tmp_path)
    maven = tmp_path / "mvn"
    maven.write_text("#!/bin/sh\necho '[ERROR] Could not transfer artifact x'\nexit 1\n")
    os.chmod(maven, 0o755)
    with pytest.raises(BrokerUnavailable, match="no such release, or it reaches no repository"):
        kafka_jars()
    assert list((tmp_path / "cache" / "groupstorm").iterdir()) == []


@pytest.mark.parametrize(
    ("version", "binding"), [("2.8.2", "slf4j-reload4j"), ("3.9.1", "slf4j-reload4j"), ("4.0.0", "")]
)
def test_kafka_before_release_4_logs_through_log4j_1(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str, binding: str
) -> None:
    _nothing_is_installed(monkeypatch, tmp_path)
    maven = tmp_path / "mvn"
    maven.write_text('#!/bin/sh\necho "[ERROR] $*"\nexit 1\n')
    os.chmod(maven, 0o755)
    with pytest.raises(BrokerUnavailable) as refused:
        kafka_jars(version)
    assert f"-Dkafka.version={version}" in str(refused.value)
    assert ("logging.artifact=" in str(refused.value)) is bool(binding)
    assert f"-Dlogging.artifact={binding}" in str(refused.value) or not binding
    configuration = logging_option(version).partition("=")[2].removeprefix("file:")
    assert logging_option(version).startswith("-Dlog4j." if binding else "-Dlog4j2.")
    assert Path(configuration).suffix == (".properties" if binding else ".yaml")
    assert "INFO" in Path(configuration).read_text("utf-8")


async def test_jvm_without_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _nothing_is_installed(monkeypatch, tmp_path)
    monkeypatch.setattr("groupstorm.javaruntime.candidates", lambda: iter(()))
    with pytest.raises(BrokerUnavailable, match="no java was found: Kafka needs Java 17"):
        async with jvm({}):
            pass


_JVM: Any = sys.modules[jvm.__module__]

#: Stands for Java: it formats; as a broker it finds its ports taken as often as the file `taken` has lines.
_JAVA = """#!/bin/sh
case "$*" in *StorageTool*) exit 0;; esac
cd "$(dirname "$0")"
echo started >> starts
if [ $(wc -l < starts) -le $(wc -l < taken) ]; then
    echo "2026-11-25 INFO Registered (kafka.Kafka)"
    echo "2026-11-25 ERROR Unable to start acceptor (kafka.network.DataPlaneAcceptor)"
    echo "KafkaException: Socket server failed to bind to 127.0.0.1:1: Address already in use."
    echo "2026-11-25 ERROR Exiting Kafka (kafka.Kafka)"
    exit 1
fi
echo "Kafka Server started"
exec sleep 60
"""


@pytest.mark.parametrize("taken", [0, 1, 2, 3])
async def test_a_broker_whose_ports_are_taken_meanwhile_starts_on_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, taken: int
) -> None:
    java = tmp_path / "java"
    java.write_text(_JAVA)
    os.chmod(java, 0o755)
    (tmp_path / "taken").write_text("once\n" * taken)
    monkeypatch.setattr(_JVM, "_java", lambda: java)
    monkeypatch.setattr(_JVM, "kafka_jars", lambda version: tmp_path)
    if taken < 3:
        async with jvm({}) as broker:
            assert broker.pid is not None
    else:
        with pytest.raises(BrokerFailed, match=r"Unable to start acceptor .*: Address already in use"):
            async with jvm({}):
                pass
    assert (tmp_path / "starts").read_text().count("started") == min(taken + 1, 3)


async def test_a_server_ends_and_starts_again_on_a_port_that_is_held() -> None:
    with held_ports(2) as (port, other):
        assert port != other
        for _ in range(2):
            with socket.create_server(("127.0.0.1", port)):
                socket.create_connection(("127.0.0.1", port), timeout=30).close()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), timeout=30)


async def test_a_broker_that_does_not_start_in_time_is_ended_and_its_last_line_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    java = tmp_path / "java"
    java.write_text('#!/bin/sh\ncase "$*" in *StorageTool*) exit 0;; esac\necho waiting\nexec sleep 600\n')
    os.chmod(java, 0o755)
    monkeypatch.setattr(_JVM, "_java", lambda: java)
    monkeypatch.setattr(_JVM, "kafka_jars", lambda version: tmp_path)
    monkeypatch.setattr(_JVM, "START_TIMEOUT_S", 2.0)
    with pytest.raises(BrokerFailed, match="Kafka did not start within 2 s: waiting"):
        async with jvm({}):
            pass


@pytest.mark.slow
async def test_kafka_itself_says_that_its_port_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    with needed():
        _ = kafka_jars()
    with socket.create_server(("127.0.0.1", 0)) as other, held_ports(2) as free:
        taken = other.getsockname()[1]
        chosen = iter([nullcontext([taken, free[0]]), nullcontext([free[1], taken])])
        monkeypatch.setattr(_JVM, "held_ports", lambda count: next(chosen, None) or held_ports(count))
        async with jvm({}) as broker:
            assert taken not in [endpoint.port for endpoint in broker.bootstrap]
    assert next(chosen, None) is None


@pytest.mark.slow
async def test_a_broker_leaves_an_archive_of_classes_and_the_next_one_uses_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with needed():
        jars = kafka_jars()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "groupstorm").mkdir()
    (tmp_path / "groupstorm" / jars.name).symlink_to(jars)

    async def archives_in_use() -> set[str]:
        async with jvm({}) as broker:
            return set(re.findall(r"\S+groupstorm/\S+\.jsa", Path(f"/proc/{broker.pid}/maps").read_text()))

    assert await archives_in_use() == set()
    (archive,) = (tmp_path / "groupstorm").glob("*.jsa")
    assert {path.name for path in (tmp_path / "groupstorm").iterdir()} == {jars.name, archive.name}
    assert await archives_in_use() == {str(archive)}


@pytest.mark.slow
async def test_jvm_that_refuses_its_configuration_says_why() -> None:
    with needed():
        _ = kafka_jars()
    with pytest.raises(BrokerFailed, match=r"group\.max\.size"):
        async with jvm({"group.max.size": "0"}):
            pass
