"""Records that are locked for a member, without a broker: batches as brokers send them."""

from __future__ import annotations

from uuid import UUID

import pytest

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.consumer.errors import RecordCorrupt
from groupstorm.clients.consumer.records import decoding
from groupstorm.clients.share import AcknowledgeType, NotAcknowledged, NotHeld
from groupstorm.clients.share.records import GAP, AckRange, Acquired, HeldRecords, SharePartition, Source
from groupstorm.coordinator.errors import Error
from tests.clients.consumer.test_records import COMMIT, batch, marker
from tests.clients.share.members import counts

SOURCE = Source(1, SharePartition(UUID(int=1), 0), TopicPartition("orders", 0))
ACCEPT, RELEASE, REJECT, RENEW = AcknowledgeType
TEN = batch(0, [b"v"] * 10)


def held(*acquired: tuple[int, int, int], data: bytes = TEN, explicit: bool = False) -> HeldRecords:
    made = HeldRecords(explicit, decoding(True, False))
    made.fetched(SOURCE, [Acquired(*one) for one in acquired], data)
    return made


def said(records: HeldRecords) -> list[AckRange]:
    return sorted(one for each in records.acknowledgements() for one in each.ranges)


def test_only_locked_records_of_a_batch_are_given_out_with_their_counts() -> None:
    records = held((2, 4, 1), (7, 7, 3))
    assert counts(records.take(500)) == [(2, 1), (3, 1), (4, 1), (7, 3)]
    assert said(records) == []


def test_locked_offsets_without_a_record_are_told_as_gaps() -> None:
    """A batch, the marker of a transaction, and a hole that compaction has made."""
    data = batch(0, [b"a"], producer=7, transactional=True) + marker(1, 7, COMMIT) + batch(4, [b"b"])
    records = held((0, 5, 1), data=data)
    assert said(records) == [AckRange(1, 3, GAP), AckRange(5, 5, GAP)]
    assert counts(records.take(9)) == [(0, 1), (4, 1)]
    (gaps,) = held((1, 1, 1), data=data).acknowledgements()
    assert gaps.offsets == frozenset()


def test_records_that_were_taken_count_as_accepted_when_more_are_asked_for() -> None:
    records = held((0, 9, 1))
    records.take(3)
    records.ask()
    records.take(2)
    assert said(records) == [AckRange(0, 2, ACCEPT)]
    records.ask()
    assert said(records) == [AckRange(3, 4, ACCEPT)]
    assert said(records) == []


def test_whole_batches_are_taken_if_wanted() -> None:
    records = held((0, 7, 1), data=batch(0, [b"a"] * 3) + batch(3, [b"b"] * 3) + batch(6, [b"c"] * 2))
    assert [len(records.take(2, whole_batches=True)), len(records.take(4, whole_batches=True))] == [3, 5]
    records = held((0, 9, 1))
    assert [len(records.take(4)), len(records.take(1, whole_batches=True))] == [4, 6]


def test_explicitly_every_record_has_to_be_acknowledged_once() -> None:
    records = held((0, 3, 1), explicit=True)
    a, b, c, _ = records.take(4)
    for record, kind in ((a, ACCEPT), (b, REJECT), (c, RELEASE)):
        records.acknowledge(record, kind)
    with pytest.raises(NotAcknowledged, match="orders-0: offset 3"):
        records.ask()
    assert said(records) == [AckRange(0, 0, ACCEPT), AckRange(1, 1, REJECT), AckRange(2, 2, RELEASE)]
    with pytest.raises(NotHeld):
        records.acknowledge(a, ACCEPT)


@pytest.mark.parametrize(("error", "back"), [(Error.NONE, [(0, 1)]), (Error.INVALID_RECORD_STATE, [])])
def test_a_renewed_record_comes_back_before_others_unless_it_was_refused(
    error: Error, back: list[tuple[int, int]]
) -> None:
    records = held((0, 9, 1), explicit=True)
    a, b = records.take(2)
    records.acknowledge(a, RENEW)
    records.acknowledge(b, ACCEPT)
    records.ask()
    (sent,) = records.acknowledgements()
    assert (sent.ranges, sent.renews) == ((AckRange(0, 0, RENEW), AckRange(1, 1, ACCEPT)), True)
    assert (records.waits_for_renewal, records.take(5)) == (True, [])
    sent.error = error
    records.answered([sent])
    assert not records.waits_for_renewal
    assert counts(records.take(1)) == (back or [(2, 1)])
    with pytest.raises(NotAcknowledged):
        records.ask()


def test_records_behind_a_damaged_batch_are_rejected_after_those_before_it() -> None:
    damaged = bytearray(batch(2, [b"x", b"y"]))
    damaged[-1] ^= 1
    records = held((0, 3, 1), data=batch(0, [b"a", b"b"]) + bytes(damaged))
    assert counts(records.take(9)) == [(0, 1), (1, 1)]
    with pytest.raises(RecordCorrupt, match="offset 2"):
        records.take(9)
    assert said(records) == [AckRange(2, 3, REJECT)]
    assert records.take(9) == []
