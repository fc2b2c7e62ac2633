"""Kafka and the emulator in containers, one contract for both: started, asked, taken away again."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from groupstorm.clients.brokers.container import container
from groupstorm.clients.brokers.contract import BrokerUnavailable
from groupstorm.clients.wire.admin import create_topics
from groupstorm.clients.wire.cluster import ClusterClient
from tests.containers.engine import AS_CONFLUENT, EMULATOR, KAFKA, need_images

pytestmark = pytest.mark.slow

IMAGES = pytest.mark.parametrize("image", [KAFKA, EMULATOR])

DELAY = "group.initial.rebalance.delay.ms"


class Containers:
    """The containers that a test has started, whatever became of them: others use the engine as well."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._before = {one["Id"] for one in self._of_this_process()}

    def _of_this_process(self) -> list[dict[str, Any]]:
        from testcontainers.core.labels import LABEL_SESSION_ID, SESSION_ID

        found: list[dict[str, Any]] = self._client.api.containers(
            all=True, filters={"label": f"{LABEL_SESSION_ID}={SESSION_ID}"}
        )
        return found

    def started(self) -> list[dict[str, Any]]:
        return [one for one in self._of_this_process() if one["Id"] not in self._before]


def broker_settings(address: str) -> dict[str, str]:
    """Return the settings as the broker describes them."""
    from confluent_kafka.admin import RESOURCE_BROKER, AdminClient, ConfigResource

    admin = AdminClient({"bootstrap.servers": address})
    (answer,) = admin.describe_configs([ConfigResource(RESOURCE_BROKER, "1")]).values()
    return {name: entry.value for name, entry in answer.result(timeout=20).items()}


@pytest.mark.parametrize(("image", "option"), [(KAFKA, DELAY), (EMULATOR, "num.partitions")])
async def test_a_broker_with_kafkas_options_on_the_loopback_interface(image: str, option: str) -> None:
    containers = Containers(need_images(image))
    async with container({option: "1234"}, image) as broker:
        assert [endpoint.host for endpoint in broker.bootstrap] == ["127.0.0.1"]
        (running,) = containers.started()
        assert [port["IP"] for port in running["Ports"] if "IP" in port] == ["127.0.0.1"]
        settings = await asyncio.to_thread(broker_settings, broker.address)
        assert settings[option] == "1234"
        cluster = ClusterClient(broker.bootstrap, "admin", 20_000)
        try:
            await create_topics(cluster, {"t": 3})
            assert cluster.led("t") == 3
        finally:
            cluster.close()
    assert containers.started() == []


@IMAGES
async def test_an_option_that_is_refused_is_named_and_nothing_stays(image: str) -> None:
    containers = Containers(need_images(image))
    with pytest.raises(BrokerUnavailable, match=r"group\.max\.size"):
        async with container({"group.max.size": "0"}, image):
            pass
    assert containers.started() == []


async def test_a_start_that_is_given_up_leaves_nothing() -> None:
    containers = Containers(need_images(KAFKA))
    opening = asyncio.ensure_future(container({}, KAFKA).__aenter__())
    async with asyncio.timeout(30):
        while not containers.started():
            await asyncio.sleep(0.05)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    assert containers.started() == []


@pytest.fixture
def as_users_set_it_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """testcontainers' settings for an engine on this machine that can fetch nothing."""
    from testcontainers.core.config import ConnectionMode, testcontainers_config

    monkeypatch.setattr(testcontainers_config, "tc_host_override", "127.0.0.1")
    monkeypatch.setattr(testcontainers_config, "connection_mode_override", ConnectionMode.docker_host)
    monkeypatch.setattr(testcontainers_config, "_ryuk_disabled", True)


@IMAGES
@pytest.mark.usefixtures("as_users_set_it_up")
def test_testcontainers_own_kafka_container_runs_the_images_unchanged(image: str) -> None:
    need_images(AS_CONFLUENT[image])
    from testcontainers.community.kafka import KafkaContainer

    kafka = KafkaContainer(AS_CONFLUENT[image]).with_kraft()
    kafka.ports = {str(kafka.port): ("127.0.0.1",)}
    with kafka.with_env("KAFKA_NUM_PARTITIONS", "5"):
        assert broker_settings(kafka.get_bootstrap_server())["num.partitions"] == "5"
