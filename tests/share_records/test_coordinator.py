"""The share coordinator: merged state batches, epochs, snapshots."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from groupstorm.coordinator.errors import Error
from groupstorm.share_records.coordinator import ShareCoordinator, StateRecord, merge
from groupstorm.share_records.ports import SharePartitionKey, StateBatch, TopicPartition, WriteState
from groupstorm.share_records.states import RecordState

_KEY = SharePartitionKey("g", TopicPartition("foo", 0))


def _batches() -> st.SearchStrategy[list[StateBatch]]:
    one = st.builds(
        lambda first, size, state, count: StateBatch(first, first + size, state, count),
        st.integers(0, 30),
        st.integers(0, 12),
        st.sampled_from(RecordState),
        st.integers(0, 3),
    )
    return st.lists(one, max_size=8)


@given(_batches(), _batches(), st.integers(-1, 20))
def test_each_record_has_the_highest_count_and_of_these_the_highest_state(
    stored: list[StateBatch], new: list[StateBatch], start: int
) -> None:
    wanted: dict[int, tuple[int, RecordState]] = {}
    for first, last, state, count in stored + new:
        for offset in range(max(first, start), last + 1):
            wanted[offset] = max(wanted.get(offset, (-1, RecordState.AVAILABLE)), (count, state))
    merged = merge(stored, new, start)
    found = {
        offset: (count, state) for first, last, state, count in merged for offset in range(first, last + 1)
    }
    assert found == wanted
    for before, after in pairwise(merged):
        assert before.last_offset < after.first_offset
        assert before.last_offset + 1 < after.first_offset or before[2:] != after[2:]


def _write(
    coordinator: ShareCoordinator, leader_epoch: int = 0, state_epoch: int = 0
) -> tuple[Error, object]:
    batches = [StateBatch(0, 4, RecordState.ACKNOWLEDGED, 1)]
    return coordinator.write(WriteState(_KEY, state_epoch, leader_epoch, 0, 5, batches))


def test_a_leader_that_has_read_fences_the_one_before() -> None:
    coordinator = ShareCoordinator(500, lambda _: True)
    coordinator.initialize(_KEY, 0, -1)
    assert coordinator.read(_KEY, 3)[1] is StateRecord.UPDATE
    assert _write(coordinator, leader_epoch=2) == (Error.FENCED_LEADER_EPOCH, None)
    assert _write(coordinator, leader_epoch=4) == (Error.NONE, StateRecord.UPDATE)
    # the newer epoch of a write is not stored
    assert coordinator.states[_KEY].leader_epoch == 3
    assert coordinator.read(_KEY, 3)[1] is None


def test_a_state_that_is_made_again_fences_writes_of_the_old_one() -> None:
    coordinator = ShareCoordinator(500, lambda _: True)
    coordinator.initialize(_KEY, 0, 0)
    assert coordinator.initialize(_KEY, 2, 7) == (Error.NONE, StateRecord.SNAPSHOT)
    assert _write(coordinator, state_epoch=1) == (Error.FENCED_STATE_EPOCH, None)
    assert coordinator.initialize(_KEY, 1, 0) == (Error.FENCED_STATE_EPOCH, None)
    assert coordinator.states[_KEY].start == 7


def test_every_third_record_is_a_snapshot_after_two_updates() -> None:
    coordinator = ShareCoordinator(2, lambda _: True)
    coordinator.initialize(_KEY, 0, 0)
    records = [_write(coordinator)[1] for _ in range(6)]
    update, snapshot = StateRecord.UPDATE, StateRecord.SNAPSHOT
    assert records == [update, update, snapshot, update, update, snapshot]
    assert coordinator.states[_KEY].snapshot_epoch == 2


def test_a_topic_that_is_gone_is_refused_after_all_other_checks() -> None:
    coordinator = ShareCoordinator(500, lambda _: False)
    assert _write(coordinator) == (Error.INVALID_REQUEST, None)
    assert coordinator.initialize(_KEY, -1, 0) == (Error.INVALID_REQUEST, None)
    assert coordinator.initialize(_KEY, 0, 0) == (Error.UNKNOWN_TOPIC_OR_PARTITION, None)
    assert coordinator.summary(_KEY)[0] is Error.UNKNOWN_TOPIC_OR_PARTITION
