"""The share consumer when connections break and brokers answer with errors."""

from __future__ import annotations

import asyncio

import pytest

import groupstorm
from groupstorm.clients.consumer import ConsumerFailed
from groupstorm.clients.share import AcknowledgeType, ShareConsumer
from groupstorm.clients.wire.security import AuthenticationRefused
from groupstorm.problems import InputError
from groupstorm.testing import Ledger, secured
from tests.clients.share.members import PATIENCE_S, SETTINGS, Members, counts, polled, read


async def test_a_broken_connection_gives_the_records_to_others_at_once(faulty: Members) -> None:
    faulty.configure(share_record_lock_duration_ms="60000")
    faulty.broker.produce("single", "a", "b")
    holder, other = await faulty.explicit(client_id="holder"), await faulty.start(client_id="other")
    held = await polled(holder)
    assert faulty.broker.drop_connections("holder") > 0
    assert counts(await polled(other)) == [(0, 2), (1, 2)]
    for record in held:
        holder.acknowledge(record)
    (refused,) = (await holder.commit_sync()).values()
    assert refused is not None
    assert refused.error == "INVALID_SHARE_SESSION_EPOCH"
    await other.close()
    faulty.broker.produce("single", "c")
    assert counts(await polled(holder)) == [(2, 1)]


async def test_nothing_is_lost_while_connections_break_and_members_come_and_go(faulty: Members) -> None:
    broker = faulty.broker
    faulty.configure(share_record_lock_duration_ms="2000")

    async def work(consumer: ShareConsumer, name: str) -> None:
        async for record in consumer:
            with ledger.processing(record, by=name):
                await asyncio.to_thread(len, record.value or b"")

    async with Ledger(broker, "billing", deliveries=5) as ledger:
        made = {name: await faulty.start("orders", client_id=name, max_poll_records=10) for name in "abc"}
        working = [asyncio.create_task(work(consumer, name)) for name, consumer in made.items()]
        await broker.group("billing").stable(3, timeout_s=PATIENCE_S)
        for step in range(6):
            ledger.produce("orders", 50)
            async with asyncio.timeout(PATIENCE_S):
                while ledger.processings < 50 * step + 25:
                    await asyncio.to_thread(len, "")
            if step % 2:
                broker.drop_connections("a")
            elif step == 2:
                await made["b"].close()
                late = await faulty.start("orders", client_id="d")
                working.append(asyncio.create_task(work(late, "d")))
        await broker.group("billing").caught_up("orders", timeout_s=PATIENCE_S)
        await faulty.close()
        await asyncio.gather(*working)
        assert ledger.check().processed == 300


@pytest.mark.parametrize(
    ("api", "error"),
    [
        ("ShareFetch", "SHARE_SESSION_NOT_FOUND"),
        ("ShareFetch", "INVALID_SHARE_SESSION_EPOCH"),
        ("ShareFetch", "UNKNOWN_SERVER_ERROR"),
        ("ShareGroupHeartbeat", "UNKNOWN_MEMBER_ID"),
        ("ShareGroupHeartbeat", "FENCED_MEMBER_EPOCH"),
        ("ShareGroupHeartbeat", "NOT_COORDINATOR"),
        ("ShareGroupHeartbeat", "COORDINATOR_LOAD_IN_PROGRESS"),
    ],
)
async def test_a_consumer_goes_on_after_errors_that_pass(faulty: Members, api: str, error: str) -> None:
    consumer = await faulty.start()
    faulty.broker.produce("single", "a")
    await polled(consumer)
    fault = faulty.broker.fail(api, error)
    assert await read(consumer, lambda _: fault.hits == 1) == []
    faulty.broker.produce("single", "b")
    assert [record.value for record in await polled(consumer)][-1] == b"b"


async def test_acknowledgements_that_are_refused_are_told(faulty: Members) -> None:
    consumer = await faulty.explicit()
    faulty.broker.produce("single", "a")
    (record,) = await polled(consumer)
    consumer.acknowledge(record, AcknowledgeType.REJECT)
    fault = faulty.broker.fail("ShareAcknowledge", "GROUP_AUTHORIZATION_FAILED")
    answers = await consumer.commit_sync()
    assert fault.hits == 1
    assert {one: error and error.error for one, error in answers.items()} == {
        record.topic_partition: "GROUP_AUTHORIZATION_FAILED"
    }


async def test_a_fatal_error_ends_the_consumer(faulty: Members) -> None:
    consumer = await faulty.start()
    faulty.broker.produce("single", "a")
    await polled(consumer)
    faulty.broker.fail("ShareGroupHeartbeat", "INVALID_REQUEST")
    for _ in range(2):
        with pytest.raises(ConsumerFailed, match="INVALID_REQUEST"):
            await polled(consumer)
    await consumer.close()
    await faulty.broker.group("billing").reaches("Empty", timeout_s=60)  # its session has ended


async def test_a_broker_without_share_groups_is_refused() -> None:
    pytest.importorskip("aiokafka", reason="pip install aiokafka (extra `kafka`)")
    async with (
        groupstorm.broker({"orders": 1}, as_version="3.9") as broker,
        ShareConsumer("orders", bootstrap_servers=broker.bootstrap_servers, group_id="g") as consumer,
    ):
        with pytest.raises(InputError, match=r"ShareGroupHeartbeat .* share groups need Kafka 4.1 or later"):
            await polled(consumer)


async def test_a_broker_that_asks_for_a_user() -> None:
    pytest.importorskip("aiokafka", reason="pip install aiokafka (extra `kafka`)")
    security = secured(sasl_users={"eve": "secret"})
    async with groupstorm.broker({"orders": 1}, SETTINGS, security=security) as broker:
        broker.group("billing").configure({"share.auto.offset.reset": "earliest"})
        broker.produce("orders", "a")

        def made(password: str) -> ShareConsumer:
            return ShareConsumer(
                "orders",
                bootstrap_servers=broker.bootstrap_servers,
                group_id="billing",
                security_protocol="SASL_PLAINTEXT",
                sasl_mechanism="SCRAM-SHA-256",
                sasl_plain_username="eve",
                sasl_plain_password=password,
            )

        async with made("secret") as consumer:
            assert counts(await polled(consumer)) == [(0, 1)]
        async with made("wrong") as consumer:
            with pytest.raises(AuthenticationRefused):
                await polled(consumer)
