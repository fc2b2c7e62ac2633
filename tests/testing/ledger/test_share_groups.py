"""The ledger on share groups: histories of a few entries, then share consumers on a broker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

import groupstorm
from groupstorm.clients.share import AcknowledgeType, ShareConsumer
from groupstorm.problems import InputError
from groupstorm.testing import Ledger
from groupstorm.testing.ledger import Kind, LedgerFailed
from groupstorm.testing.ledger.history import Allowed, History, Processing
from groupstorm.testing.ledger.judging import Rules, ShareJudge
from tests.clients.share.members import Members, polled
from tests.testing.kinds import sharing
from tests.testing.ledger.test_judging import TP, kinds, record, work

DEADLINE_S = 30.0


def judged(
    *entries: Processing,
    finished: bool = True,
    rules: Rules = Rules(),  # noqa: B008  # does not change
) -> list[tuple[Kind, int, Allowed | None]]:
    done = frozenset({TP} if finished else ())
    return kinds(
        ShareJudge(History(0, [record(0)], list(entries), is_shared=True, finished=done), rules).findings()
    )


def test_a_record_that_was_not_processed_is_lost_if_the_group_is_done_with_it() -> None:
    assert judged() == [(Kind.LOST, 0, None)]
    assert judged(work(1, 2, 0, complete=False)) == [(Kind.LOST, 0, None)]
    assert judged(finished=False) == [(Kind.UNPROCESSED, 0, None)]
    assert judged(rules=Rules(is_over=False)) == []
    assert judged(work(1, 2, 0)) == []


def test_a_record_may_come_again_but_not_to_two_at_once() -> None:
    one_after_the_other = work(1, 2, 0), work(3, 4, 0, "b")
    assert judged(*one_after_the_other) == [(Kind.TWICE, 0, Allowed.YES)]
    assert judged(*one_after_the_other, rules=Rules(exactly_once=True)) == [(Kind.TWICE, 0, Allowed.NEVER)]
    assert judged(work(1, 9, 0), work(3, 4, 0, "b", complete=False)) == [(Kind.TWO_AT_ONCE, 0, None)]
    assert judged(work(1, 9, 0), work(3, 4, 0)) == [(Kind.TWICE, 0, Allowed.YES)], "one instance"
    assert judged(work(1, None, 0), work(3, 4, 0, "b")) == [], "nobody says that it went on"


def test_a_record_comes_no_more_often_than_allowed() -> None:
    three = [work(at, at + 1, 0, complete=at == 5) for at in (1, 3, 5)]
    assert judged(*three, rules=Rules(deliveries=3)) == []
    assert judged(*three, rules=Rules(deliveries=2)) == [(Kind.TOO_OFTEN, 0, None)]


def test_the_most_deliveries_are_a_number() -> None:
    with (
        groupstorm.broker({"orders": 1}) as broker,
        pytest.raises(InputError, match="deliveries: 'two': expected a number"),
    ):
        Ledger(broker, "billing", deliveries="two")  # type: ignore[arg-type]  # a wrong one


@pytest.fixture(params=["emulator", pytest.param("jvm", marks=pytest.mark.slow)])
async def members(request: pytest.FixtureRequest) -> AsyncIterator[Members]:
    options = {"share_record_lock_duration_ms": "1000", "share_delivery_count_limit": "2"}
    async with sharing(request.param, {"orders": 2, "single": 1}, **options) as made:
        yield made


async def test_a_service_without_faults_and_what_it_gets_again(members: Members) -> None:
    """The second instance gets what the first one has released, and nothing is a fault."""
    async with Ledger(members.broker, "billing", deliveries=2) as ledger:
        ledger.produce("orders", 20)
        one, two = [await members.explicit("orders", client_id=name) for name in ("one", "two")]

        async def work(consumer: ShareConsumer, name: str) -> None:
            for record in await consumer.poll(timeout_ms=100):
                with ledger.processing(record, by=name):
                    released = record.offset == 3 and record.delivery_count == 1
                    kind = AcknowledgeType.RELEASE if released else AcknowledgeType.ACCEPT
                    consumer.acknowledge(record, kind)
            assert set((await consumer.commit_sync()).values()) <= {None}

        async with asyncio.timeout(DEADLINE_S):
            while ledger.processings < 22:
                await work(one, "one")
                await work(two, "two")
        await members.broker.group("billing").caught_up("orders", timeout_s=DEADLINE_S)
        found = ledger.check()
    assert found.processed == 20
    assert found.count_allowed(Allowed.YES) == 2
    assert "2 again as at-least-once allows; nothing was lost" in found.summary


async def test_a_service_that_accepts_first_and_one_that_outlives_its_lock(members: Members) -> None:
    async with Ledger(members.broker, "billing", deliveries=1) as ledger:
        one = await members.explicit("single", client_id="one")
        ledger.produce("single")
        (lost,) = await polled(one)
        one.acknowledge(lost)
        assert await one.commit_sync() == {lost.topic_partition: None}  # the fault: it is not processed
        ledger.produce("single")
        (held,) = await polled(one)
        with ledger.processing(held, by="one"):
            two = await members.start("single", client_id="two")
            (again,) = await polled(two)
            with ledger.processing(again, by="two"):
                assert (again.offset, again.delivery_count) == (held.offset, 2)
        await two.commit_sync()
        await members.broker.group("billing").caught_up("single", timeout_s=DEADLINE_S)
        with pytest.raises(LedgerFailed) as failed:
            ledger.check()
    assert {one.kind: one.offset for one in failed.value.report.faults} == {
        Kind.LOST: lost.offset,
        Kind.TWO_AT_ONCE: held.offset,
        Kind.TOO_OFTEN: held.offset,
    }
    assert "one still had it in hand when two got it: its lock had ended" in str(failed.value)
