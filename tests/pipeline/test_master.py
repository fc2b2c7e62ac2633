"""Where Spark runs when it is not this machine's cores."""

from __future__ import annotations

import socket

import pytest

from groupstorm.clients.brokers.jvm import held_ports
from groupstorm.pipeline.session import address_towards, spark_address
from groupstorm.problems import InputError


@pytest.mark.parametrize(
    "master", ["local[2]", "spark://", "spark://a", "spark://a:0", "spark://a:65536", "yarn", "a:7077"]
)
def test_what_is_no_cluster_is_named(master: str) -> None:
    with pytest.raises(InputError, match=r"expected local\[N\], local\[\*\] or spark://HOST:PORT"):
        address_towards(master)


def test_the_address_by_which_the_cluster_can_reach_this_machine() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        assert address_towards(f"spark://127.0.0.1:{listening.getsockname()[1]}") == "127.0.0.1"


@pytest.mark.parametrize("port", [1, 65_535])
def test_every_port_is_asked(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(endpoint: tuple[str, int], _timeout: float) -> None:
        raise ConnectionRefusedError(111, f"refused by {endpoint}")

    monkeypatch.setattr(socket, "create_connection", refuse)
    with pytest.raises(InputError, match=rf"nobody answers there: refused by \('::1', {port}\)"):
        address_towards(f"spark://[::1]:{port}")


def test_a_cluster_that_does_not_answer_is_said() -> None:
    refused = r"--master spark://127\.0\.0\.1:[0-9]+: nobody answers there"
    with held_ports(1) as (port,), pytest.raises(InputError, match=refused):
        address_towards(f"spark://127.0.0.1:{port}")


@pytest.mark.parametrize("master", ["local[*]", "local[2]", "local[12,4]", "local-cluster[2,1,1024]"])
def test_spark_on_this_machine_listens_on_the_loopback_interface(master: str) -> None:
    assert spark_address(master) == "127.0.0.1"


@pytest.mark.parametrize("master", ["local", "local[0]", "local[a]", "local[2", "local-cluster[2,1]"])
def test_what_spark_would_not_take_on_this_machine_is_named(master: str) -> None:
    with pytest.raises(InputError, match="expected local"):
        spark_address(master)
