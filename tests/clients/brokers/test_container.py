"""Brokers in containers: the settings of testcontainers, and the error without an engine."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from groupstorm.clients.brokers import BrokerKind, read_kind
from groupstorm.clients.brokers.container import IMAGE_VARIABLE, chosen_image, container
from groupstorm.clients.brokers.contract import BrokerUnavailable
from groupstorm.problems import InputError

pytest.importorskip("testcontainers", reason="no testcontainers: pip install 'groupstorm[kafka]'")

from testcontainers.core.config import ConnectionMode, testcontainers_config

from groupstorm.clients.brokers.kafkacontainer import SingleNode, engine_is_here, variable


@pytest.mark.parametrize(
    ("option", "name"),
    [
        ("group.initial.rebalance.delay.ms", "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS"),
        ("listener.name.a_b.x-y", "KAFKA_LISTENER_NAME_A__B_X___Y"),
    ],
)
def test_variables(option: str, name: str) -> None:
    assert variable(option) == name


def test_images_are_read() -> None:
    assert read_kind("container") == BrokerKind("container")
    assert read_kind("container=r:5000/a/kafka:7.6.0") == BrokerKind(
        "container", image="r:5000/a/kafka:7.6.0"
    )
    for text in ("container=", "container=a b", "container=-x"):
        with pytest.raises(InputError, match="expected container=IMAGE"):
            read_kind(text)


def test_the_named_image_wins_over_that_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(IMAGE_VARIABLE, "confluentinc/cp-kafka:8.3.0")
    assert chosen_image(None) == "confluentinc/cp-kafka:8.3.0"
    assert chosen_image("apache/kafka:4.0.0") == "apache/kafka:4.0.0"


async def test_no_testcontainers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "groupstorm.clients.brokers.kafkacontainer")
    monkeypatch.setitem(sys.modules, "testcontainers.community.kafka", None)
    with pytest.raises(BrokerUnavailable, match=r"pip install 'groupstorm\[kafka\]'"):
        async with container({}):
            pass


async def test_no_engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    with pytest.raises(BrokerUnavailable, match="no container engine answers: start one"):
        async with container({}):
            pass


@pytest.mark.parametrize(
    ("host", "here"),
    [
        ("unix:///run/user/1000/docker.sock", True),
        ("tcp://build.example.com:2375", False),
        ("ssh://build.example.com", False),
    ],
)
def test_ports_are_published_on_loopback_if_the_engine_is_local(
    host: str, here: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", host)
    monkeypatch.setattr(testcontainers_config, "tc_host_override", None)
    monkeypatch.setattr(testcontainers_config, "connection_mode_override", None)
    monkeypatch.setattr(testcontainers_config, "tc_properties", {})
    assert engine_is_here() is here


def test_testcontainers_own_settings_win(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///var/run/docker.sock")
    monkeypatch.setattr(testcontainers_config, "connection_mode_override", ConnectionMode.gateway_ip)
    assert not engine_is_here()


class _Images:
    """An engine's images by name."""

    def __init__(self, *names: str) -> None:
        self._names = names

    def get(self, name: str) -> str:
        from docker.errors import ImageNotFound

        if name not in self._names:
            raise ImageNotFound(name)
        return name


@pytest.mark.parametrize("is_here", [True, False])
def test_ryuk_runs_if_its_image_is_on_the_engine_and_the_setting_is_restored(
    is_here: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    node, seen = SingleNode.__new__(SingleNode), []
    images = _Images(*([testcontainers_config.ryuk_image] if is_here else []))
    monkeypatch.setattr(testcontainers_config, "_ryuk_disabled", False)
    monkeypatch.setattr(node, "get_docker_client", lambda: _Client(images), raising=False)

    def start(timeout: float) -> None:
        seen.append(testcontainers_config.ryuk_disabled)
        raise RuntimeError("refused")

    monkeypatch.setattr(node, "start", start)
    with pytest.raises(RuntimeError, match="refused"):
        node.run()
    assert (seen, testcontainers_config.ryuk_disabled) == ([not is_here], False)


class _Client:
    """The part of testcontainers' client that lists images."""

    def __init__(self, images: _Images) -> None:
        self.client = self
        self.images = images
