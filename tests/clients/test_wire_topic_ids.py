"""Topic ids in a client's metadata (KIP-516)."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from groupstorm.broker.assembly import make_broker
from groupstorm.broker.shell import Server
from groupstorm.clients.wire.cluster import ClusterClient

pytest.importorskip("kio", reason="pip install groupstorm[serve]")


@pytest.fixture
async def cluster() -> AsyncIterator[ClusterClient]:
    server = Server(make_broker({}, {"t": 3, "u": 1}), lambda *_: None, lambda *_: None)
    client = ClusterClient([await server.start("127.0.0.1", 0)], "c", 5_000)
    yield client
    client.close()
    await server.stop()


async def test_topics_are_asked_for_by_name_or_by_id(cluster: ClusterClient) -> None:
    await cluster.refresh(["t", "u"])
    ids = {name: topic_id for topic_id, name in cluster.topic_names.items()}
    assert set(ids) == {"t", "u"}
    await cluster.refresh((), [ids["t"]])
    assert cluster.topics == {"t": 3}
    assert cluster.topic_names == {ids["t"]: "t"}


async def test_a_topic_that_is_gone_has_no_name(cluster: ClusterClient) -> None:
    await cluster.refresh(["t"])
    [gone] = cluster.topic_names
    await cluster.refresh((), [type(gone)(int=7)])
    assert (cluster.topics, cluster.topic_names) == ({}, {})
