"""Emulated members over TCP: the requests of each profile on the wire."""

from __future__ import annotations

import asyncio

import pytest

from groupstorm.broker.embedded import EmbeddedBroker
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.profiles import PROFILES, ClientProfile
from groupstorm.clients.wire.consumer import WireConsumer
from groupstorm.protocol.endpoints import Endpoint
from tests.client_profiles.comparison import Row, fields, subscriptions
from tests.client_profiles.recording import BROKER, GROUP, PARTITIONS, TOPIC, read
from tests.client_profiles.wiretap import record_requests
from tests.waiting import until

HEARTBEAT_INTERVAL_MS = 50


async def run_member(profile: ClientProfile, broker: EmbeddedBroker, rows: list[Row]) -> None:
    """Join, send two heartbeats, close."""
    config = ConsumerConfig(
        GROUP,
        "first",
        (TOPIC,),
        partition_assignment_strategy=tuple(
            profile.defaults.get("partition.assignment.strategy", ("range", "cooperative-sticky"))
        ),
        session_timeout_ms=profile.defaults.get("session.timeout.ms", 45_000),
        heartbeat_interval_ms=HEARTBEAT_INTERVAL_MS,
        profile=profile,
    )
    consumer = WireConsumer(config, [Endpoint(broker.host, broker.port)], lambda *_: None)
    life = asyncio.create_task(consumer.run())
    await until(lambda: [row["api"] for row in rows].count("Heartbeat") >= 2)
    consumer.close()
    await life


@pytest.mark.parametrize("name", PROFILES)
async def test_a_members_requests_are_the_recorded_ones(name: str) -> None:
    rows: list[Row] = []
    with EmbeddedBroker(BROKER, {TOPIC: PARTITIONS}) as broker:
        broker.call(lambda: record_requests(broker.broker, lambda who, row: rows.append({"who": who, **row})))
        await run_member(PROFILES[name], broker, rows)
        assert broker.closed == [], "nothing was refused"
    real = [row for row in read(name).rows if row["who"] == "first"]
    assert versions(rows) <= versions(real) | NOTHING_WAS_READ
    for api, count in (("JoinGroup", 2), ("SyncGroup", 1), ("LeaveGroup", 1)):
        ours, theirs = of(rows, api)[:count], of(real, api)[:count]
        assert [fields(row) for row in ours] == [fields(row) for row in theirs]
        assert [subscriptions(row) for row in ours] == [subscriptions(row) for row in theirs]


#: librdkafka and franz-go have committed nothing.
NOTHING_WAS_READ = {("OffsetCommit", 9)}


def of(rows: list[Row], api: str) -> list[Row]:
    return [row for row in rows if row.get("api") == api]


def versions(rows: list[Row]) -> set[tuple[str, int]]:
    """API and version of a member's own requests, without lookups of coordinator and offsets."""
    looked_up = ("FindCoordinator", "OffsetFetch")
    return {(row["api"], row["v"]) for row in rows if row.get("api") and row["api"] not in looked_up}
