"""ShareFetch and ShareAcknowledge (KIP-932) over the wire: bytes in, bytes out."""

from __future__ import annotations

import pytest

from groupstorm.broker.requests import WORK_PER_TURN
from groupstorm.coordinator.errors import Error
from tests.broker import wire
from tests.broker.asking import alter_configs, create, delete_records, delete_topics, fetch
from tests.broker.driver import RESTARTS
from tests.broker.share_members import Sharing, acquired
from tests.broker.transactional import TransactionalProducer

ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4
LOCK_MS = 30_000
TOPIC = 2


@pytest.fixture
def sharing() -> Sharing:
    return Sharing()


def test_a_fetch_waits_for_so_many_bytes(sharing: Sharing) -> None:
    sharing.produce(b"0")
    size = sharing.log().size_bytes
    waiting = sharing.send_fetch("a", wait_ms=500, min_bytes=2 * size)
    assert waiting not in sharing.answers
    sharing.produce(b"1")
    assert acquired(sharing.answers[waiting]) == [(0, 1, 1)]


def test_a_fetch_gets_what_another_member_releases_or_keeps_too_long(sharing: Sharing) -> None:
    sharing.produce(b"0", b"1")
    assert sharing.fetch("a") == [(0, 1, 1)]
    waiting = sharing.send_fetch("b", wait_ms=LOCK_MS)
    sharing.acknowledge("a", (0, 0, RELEASE))
    assert acquired(sharing.answers[waiting]) == [(0, 0, 2)]
    waiting = sharing.send_fetch("b", wait_ms=LOCK_MS + 1)
    sharing.advance(LOCK_MS - 1)
    assert waiting not in sharing.answers
    sharing.advance(1)
    assert acquired(sharing.answers[waiting]) == [(1, 1, 2)]


def test_what_a_client_holds_is_released_as_its_connection_ends(sharing: Sharing) -> None:
    sharing.produce(b"0")
    connection = sharing.send_fetch("a")
    waiting = sharing.send_fetch("b", wait_ms=1_000)
    sharing.hang_up(connection)
    assert acquired(sharing.answers[waiting]) == [(0, 0, 2)]
    assert sharing.acknowledge("a", (0, 0, ACCEPT)) == Error.SHARE_SESSION_NOT_FOUND


def test_a_group_takes_no_aborted_records_if_it_says_so(sharing: Sharing) -> None:
    sharing.configure("share.isolation.level", "read_committed")
    producer = TransactionalProducer(sharing)
    producer.add()
    producer.produce(value=b"0")
    assert sharing.fetch("a") == []
    producer.end(commit=False)
    sharing.produce(b"2")
    assert sharing.fetch("a") == [(1, 2, 1)]


def test_records_in_front_of_the_log_start_are_skipped(sharing: Sharing) -> None:
    sharing.produce(b"0", b"1", b"2")
    assert sharing.fetch("a", max_records=1) == [(0, 0, 1)]
    delete_records(sharing, 2, 2)
    assert sharing.fetch("a") == []
    assert sharing.fetch("a") == [(2, 2, 1)]


def test_another_broker_leads_the_partition() -> None:
    sharing = Sharing(brokers=2)
    topic = sharing.broker.state.topics.get("orders")
    assert topic is not None
    leader = topic.replicas[0][0]
    sharing.node = next(node for node in sharing.broker.state.cluster.nodes if node != leader)
    answer = sharing.answer("a")
    found = answer.responses[0].partitions
    of_zero = next(one for one in found if one.partition_index == 0)
    assert of_zero.error_code == Error.NOT_LEADER_OR_FOLLOWER
    assert of_zero.current_leader.leader_id == leader
    assert [one.node_id for one in answer.node_endpoints] == [leader]


def test_the_state_of_a_deleted_topic_is_gone(sharing: Sharing) -> None:
    waiting = sharing.send_fetch("a", wait_ms=10_000)
    delete_topics(sharing, 5, "orders")
    sharing.advance(10_000)
    assert acquired(sharing.answers[waiting]) == []
    assert not sharing.broker.state.share_states.states
    create(sharing, 5, "orders")
    assert sharing.epochs["a"] == 1
    again = sharing.answer("a", topics=())
    assert {one.error_code for topic in again.responses for one in topic.partitions} == {
        Error.UNKNOWN_TOPIC_OR_PARTITION
    }


@pytest.mark.parametrize("how", RESTARTS)
def test_a_restarted_broker_knows_what_was_acknowledged(sharing: Sharing, how: str) -> None:
    sharing.produce(b"0", b"1", b"2")
    assert sharing.fetch("a") == [(0, 2, 1)]
    assert sharing.acknowledge("a", (0, 0, RELEASE), (1, 1, ACCEPT)) == Error.NONE
    RESTARTS[how](sharing)
    assert sharing.fetch("b") == [(0, 0, 2), (2, 2, 1)]


def test_rejected_records_go_to_the_dead_letter_queue(sharing: Sharing) -> None:
    create(sharing, 5, "dlq.t")
    alter_configs(sharing, 1, ("errors.deadletterqueue.group.enable", 0, "true"), kind=TOPIC, name="dlq.t")
    sharing.configure("errors.deadletterqueue.topic.name", "dlq.t")
    sharing.produce(b"0", b"1")
    assert sharing.fetch("a") == [(0, 1, 1)]
    assert sharing.acknowledge("a", (0, 1, (ACCEPT, REJECT))) == Error.NONE
    answer = fetch(sharing, 12, name="dlq.t")
    records = answer.records
    assert b"__dlq.errors.offset\x021" in records
    assert b"Offset rejected by client." in records


def test_others_are_served_while_thousands_of_ranges_are_read(sharing: Sharing) -> None:
    """Each unit of work is ten ranges; the ranges mean nothing, which is known behind the last one."""
    sharing.fetch("a")
    ranges = [(0, 0, ACCEPT)] * (3 * WORK_PER_TURN * 10)
    turns, connection = 0, sharing.send_acknowledgement("a", *ranges, (-1, -1, ACCEPT))
    while connection not in sharing.answers:
        other = sharing.send(wire.API_VERSIONS, 0)
        assert other in sharing.answers
        sharing.collect(sharing.broker.fire(sharing.now_ms))
        turns += 1
    assert turns > 3
    assert sharing.answers[connection].responses[0].partitions[0].error_code == Error.INVALID_REQUEST


def test_others_are_served_between_the_records_that_a_member_acknowledges(sharing: Sharing) -> None:
    """The request is short enough to be read in one turn, and its acknowledgements are more than a turn."""
    count = WORK_PER_TURN + 1
    sharing.produce(*[b"x"] * count)
    assert sharing.fetch("a", max_records=count) == [(0, count - 1, 1)]
    connection = sharing.send_acknowledgement("a", *[(offset, offset, ACCEPT) for offset in range(count)])
    assert connection not in sharing.answers
    other = sharing.send(wire.API_VERSIONS, 0)
    assert other in sharing.answers
    sharing.collect(sharing.broker.fire(sharing.now_ms))
    assert sharing.answers[connection].responses[0].partitions[0].error_code == Error.NONE
