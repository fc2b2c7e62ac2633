"""Chaos runs on a broker of Kafka that somebody else has started, at its address."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.chaos.test_runs import FAULTS, RESTARTS, chaos, faults, python_service
from tests.client_libraries.secured import Access
from tests.client_suites.kafka_cluster import kafka_cluster
from tests.needs import needed


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the address of one broker, which outlives the runs."""
    logs = tmp_path_factory.mktemp("kafka")
    with needed(), _started(logs) as found:
        yield found


@contextmanager
def _started(logs: Path) -> Iterator[str]:
    with asyncio.Runner() as runner:
        cluster = kafka_cluster({"group.initial.rebalance.delay.ms": "0"}, Access("PLAINTEXT"), 1, logs)
        broker = runner.run(cluster.__aenter__())
        try:
            yield broker.address
        finally:
            runner.run(cluster.__aexit__(None, None, None))


def at(address: str) -> tuple[str, ...]:
    return ("--on", address, "--allow-writes")


def left_at(address: str) -> list[str]:
    """The topics and the groups that are there, without Kafka's own."""
    from confluent_kafka.admin import AdminClient

    client = AdminClient({"bootstrap.servers": address})
    topics = [name for name in client.list_topics(timeout=10).topics if not name.startswith("__")]
    groups = client.list_consumer_groups(request_timeout=10).result().valid
    return topics + [group.group_id for group in groups]


@pytest.mark.slow
@pytest.mark.parametrize("steps", [RESTARTS, FAULTS], ids=["restarts", "faults"])
def test_a_careful_service_keeps_its_records_and_nothing_is_left_behind(
    address: str, steps: str, tmp_path: Path
) -> None:
    code, verdict = chaos(tmp_path, steps, python_service("careful"), *at(address))
    assert faults(verdict) == set(), (verdict["left"], verdict)
    assert (code, verdict["good"], verdict["left"]) == (0, True, None)
    assert verdict["ledger"]["processed"] == verdict["ledger"]["records"] > 300
    assert left_at(address) == []
