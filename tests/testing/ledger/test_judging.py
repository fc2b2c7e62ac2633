"""The judge by itself: histories of a few entries, and times that are not known exactly."""

from __future__ import annotations

import pytest

from groupstorm.testing.ledger.history import (
    Allowed,
    Assigned,
    Commit,
    Finding,
    History,
    Input,
    Kind,
    Moment,
    Processing,
    exactly,
)
from groupstorm.testing.ledger.judging import Judge, Rules
from groupstorm.testing.ledger.report import report

TP = "orders-0"

Entries = list[Processing | Commit | Assigned]


def record(offset: int) -> Input:
    return Input(exactly(0), TP, offset, offset + 100)


def work(begun: int, ended: int | None, offset: int, by: str = "a", *, complete: bool = True) -> Processing:
    end = None if ended is None else exactly(ended)
    return Processing(exactly(begun), end, TP, offset, by, complete and ended is not None)


def commit(at: int | Moment, offset: int) -> Commit:
    return Commit(exactly(at) if isinstance(at, int) else at, TP, offset, "a")


def judged(
    offsets: int,
    *entries: Processing | Commit | Assigned,
    rules: Rules = Rules(notice_us=10),  # noqa: B008  # a NamedTuple does not change
    followed: bool = True,
) -> list[Finding]:
    return Judge(history_of(offsets, *entries, followed=followed), rules).findings()


def history_of(offsets: int, *entries: Processing | Commit | Assigned, followed: bool = True) -> History:
    return History(
        0,
        [record(offset) for offset in range(offsets)],
        [one for one in entries if isinstance(one, Processing)],
        [one for one in entries if isinstance(one, Commit)],
        [one for one in entries if isinstance(one, Assigned)],
        followed=frozenset("ab") if followed else frozenset(),
    )


def kinds(found: list[Finding]) -> list[tuple[Kind, int, Allowed | None]]:
    return [(one.kind, one.offset, one.allowed) for one in found]


def test_a_group_that_begins_behind_records() -> None:
    """It had no offset, and auto.offset.reset is latest; or it committed a batch, and died before that."""
    skipped, left_out = judged(2, work(5, 6, 2), commit(7, 3)), judged(2, work(1, 2, 0), commit(7, 3))
    behind = "no instance has begun it, nor any record before it: auto.offset.reset=latest begins behind them"
    either = f"{behind}, or a commit came before the work"
    assert [one.detail for one in (*skipped, *judged(1, commit(3, 1), work(5, 6, 1)))] == [either] * 3
    assert [one.detail for one in left_out] == ["no instance has begun it"]


def test_a_record_that_is_processed_and_committed_is_no_finding() -> None:
    assert judged(1, work(1, 2, 0), commit(3, 1)) == []


def test_a_record_that_nobody_has_processed() -> None:
    """Lost if the group has committed beyond it."""
    assert kinds(judged(1)) == [(Kind.UNPROCESSED, 0, None)]
    assert kinds(judged(1, commit(3, 0))) == [(Kind.UNPROCESSED, 0, None)]
    assert kinds(judged(1, commit(3, 1))) == [(Kind.LOST, 0, None)]
    assert kinds(judged(1, commit(3, 1), commit(4, 0))) == [(Kind.UNPROCESSED, 0, None)]


def test_a_record_that_was_broken_off_is_not_processed() -> None:
    assert kinds(judged(1, work(1, 2, 0, complete=False), commit(3, 1))) == [(Kind.LOST, 0, None)]
    assert kinds(judged(1, work(1, None, 0), commit(3, 1))) == [(Kind.LOST, 0, None)]


def test_while_the_run_goes_on_nothing_is_lost() -> None:
    going_on = Rules(is_over=False)
    assert judged(1, rules=going_on) == []
    assert kinds(judged(1, commit(3, 1), rules=going_on)) == [(Kind.COMMITTED_FIRST, 0, None)]


@pytest.mark.parametrize(
    ("at", "expected"), [(1, [(Kind.COMMITTED_FIRST, 0, None)]), (2, []), (Moment(1, 2), []), (3, [])]
)
def test_a_commit_before_the_record_is_done(at: int | Moment, expected: list[object]) -> None:
    """Only if that is sure: a commit at the same microsecond, or within bounds around it, is none."""
    assert kinds(judged(1, work(0, 2, 0), commit(at, 1))) == expected


def test_a_commit_far_beyond_counts_for_every_record_before_it() -> None:
    found = judged(3, work(0, 9, 0), work(0, 9, 1), work(0, 9, 2), commit(1, 2))
    assert kinds(found) == [(Kind.COMMITTED_FIRST, 0, None), (Kind.COMMITTED_FIRST, 1, None)]


@pytest.mark.parametrize(
    ("committed", "allowed"),
    [
        (commit(5, 0), Allowed.YES),
        (commit(5, 1), Allowed.NO),
        (commit(Moment(4, 12), 1), Allowed.UNKNOWN),
        (commit(20, 1), Allowed.YES),
    ],
)
def test_a_double_by_the_next_owner(committed: Commit, allowed: Allowed) -> None:
    """The offset counts that is committed when the second instance gets the partition."""
    got = Assigned(exactly(10), TP, "b")
    found = judged(1, work(1, 2, 0), committed, got, work(15, 16, 0, "b"), commit(30, 1))
    assert (Kind.TWICE, 0, allowed) in kinds(found)


def test_a_double_of_the_same_stint_counts_from_its_own_beginning() -> None:
    got = Assigned(exactly(0), TP, "a")
    first, again = work(1, 2, 0), work(5, 6, 0)
    assert kinds(judged(1, got, first, again, commit(7, 1))) == [(Kind.TWICE, 0, Allowed.YES)]
    assert kinds(judged(1, got, first, commit(3, 1), again)) == [(Kind.TWICE, 0, Allowed.NO)]


def test_librdkafka_may_deliver_the_first_record_of_an_assignment_twice() -> None:
    """A fetch of before the assignment may still be in its queue, on Apache Kafka too. It stays a fault."""
    got = Assigned(exactly(0), TP, "a")
    first, committed = work(1, 2, 0), commit(3, 1)
    (at_once,) = judged(2, got, first, committed, work(5, 6, 0), work(7, 8, 1))[:1]
    assert at_once.detail.endswith(
        "not allow it (but librdkafka may deliver the first record of an assignment twice)"
    )
    (later,) = judged(2, got, first, committed, work(5, 6, 1), commit(7, 2), work(8, 9, 0))[:1]
    assert later.detail.endswith("at-least-once does not allow it")


def test_a_batch_in_hand_is_finished_before_the_owner_goes_back() -> None:
    """The partition goes and comes back while the instance works on 0 to 2: it commits them, and gets the
    records behind the offset again that was committed as it got the partition."""
    back = Assigned(exactly(3), TP, "a")
    batch: Entries = [work(1, 5, 0), back, work(5, 8, 1), work(8, 9, 2), commit(9, 3)]
    again: Entries = [work(10, 11, 0), work(11, 12, 1), work(12, 13, 2), commit(14, 3)]
    allowed = [(Kind.TWICE, offset, Allowed.YES) for offset in range(3)]
    assert kinds(judged(3, Assigned(exactly(0), TP, "a"), *batch, *again)) == allowed
    once_more = judged(3, Assigned(exactly(0), TP, "a"), *batch, *again, work(20, 21, 1))
    assert (Kind.TWICE, 1, Allowed.NO) in kinds(once_more)


@pytest.mark.parametrize(
    "entries",
    [
        # `a` fails, gets the partition anew, tries the record in hand again, and then goes back to it
        [
            work(1, 2, 0, complete=False),
            Assigned(exactly(3), TP, "a"),
            work(4, 5, 0),
            commit(6, 1),
            work(7, 8, 0),
        ],
        # `b` has the partition while `a` stands still; `a` goes on with 2, which is in hand, then back to 1
        [
            *(work(1, 2, 0), commit(2, 1), work(3, 30, 1)),
            *(Assigned(exactly(10), TP, "b"), work(11, 12, 1, "b"), Assigned(exactly(20), TP, "a")),
            *(work(30, 31, 2), commit(32, 3), work(33, 34, 1), work(35, 36, 2)),
        ],
    ],
)
def test_a_record_in_hand_is_not_where_the_new_assignment_begins(entries: Entries) -> None:
    """The consumer goes to the offset that was committed as it got the partition, behind what is in hand."""
    found = judged(3, Assigned(exactly(0), TP, "a"), *entries, rules=Rules(notice_us=10, is_over=False))
    assert {one.allowed for one in found} <= {Allowed.YES, Allowed.UNNOTICED}, found
    once_more = judged(3, Assigned(exactly(0), TP, "a"), *entries, work(40, 41, 0))
    assert (Kind.TWICE, 0, Allowed.NO) in kinds(once_more)


def test_exactly_once_allows_no_double() -> None:
    found = judged(1, work(1, 2, 0), work(5, 6, 0, "b"), rules=Rules(exactly_once=True), followed=False)
    assert (Kind.TWICE, 0, Allowed.NEVER) in kinds(found)
    assert all(one.is_fault for one in found if one.kind is Kind.TWICE)


def test_two_at_once() -> None:
    """`a` goes on after `b` has begun: it may finish the record in hand, and has 10 us to notice."""
    of_b: Entries = [Assigned(exactly(10), TP, "b"), work(11, 12, 1, "b")]
    in_hand: Entries = [Assigned(exactly(0), TP, "a"), work(1, 2, 0), work(3, 13, 1)]
    assert (Kind.TWO_AT_ONCE, 1, Allowed.UNNOTICED) in kinds(judged(4, *in_hand, *of_b))
    assert (Kind.TWO_AT_ONCE, 1, None) in kinds(judged(4, *in_hand, *of_b, rules=Rules(notice_us=None)))
    assert (Kind.TWO_AT_ONCE, 2, None) in kinds(judged(4, *in_hand, *of_b, work(24, 25, 2)))


def test_an_owner_that_has_got_the_partition_back_is_alone() -> None:
    back = Assigned(exactly(20), TP, "a")
    found = judged(
        3,
        work(1, 2, 0),
        commit(3, 1),
        work(11, 12, 1, "b"),
        commit(13, 2),
        back,
        work(50, 51, 2),
        commit(52, 3),
    )
    assert found == []


def test_without_owners_an_instance_at_the_committed_offset_may_have_got_the_partition() -> None:
    of_a: Entries = [work(1, 2, 0), commit(3, 1), work(50, 51, 2), work(70, 71, 3), commit(72, 4)]
    of_b = work(11, 12, 1, "b")
    assert judged(4, *of_a, of_b, commit(13, 2), followed=False) == []
    assert kinds(judged(4, *of_a, of_b, followed=False)) == [(Kind.TWO_AT_ONCE, 3, None)]


def test_a_record_after_one_behind_it() -> None:
    entries: Entries = [work(1, 2, 1), work(3, 4, 0), commit(5, 2)]
    assert kinds(judged(2, *entries)) == [(Kind.OUT_OF_ORDER, 0, None)]
    assert judged(2, *entries, rules=Rules(is_ordered=False)) == []


def test_a_rewind_to_the_committed_offset_is_in_order() -> None:
    entries: Entries = [
        commit(0, 1),
        work(1, 2, 2),
        work(3, 4, 1),
        work(5, 6, 2),
        work(7, 8, 0),
        commit(9, 3),
    ]
    found = kinds(judged(3, *entries))
    assert (Kind.OUT_OF_ORDER, 1, None) not in found
    assert (Kind.OUT_OF_ORDER, 0, None) in found


def test_records_of_unknown_instances_have_no_order() -> None:
    assert judged(2, work(1, 2, 1, ""), work(3, 4, 0, ""), commit(5, 2)) == []


def test_records_that_the_next_owner_gets_again_and_an_instance_of_another_group() -> None:
    """`c` processes what the group does not give it, and the group commits the record, not the one behind."""
    history = history_of(2, work(1, 2, 0), commit(2, 1), work(3, 4, 0, "c"), work(5, 6, 1), commit(7, 1))
    assert report(history, Rules()).summary.partition("; ")[2].split("; ") == [
        "the group left 1 of these uncommitted: the next owner processes them again",
        "c is no client.id of a member: its doubles are judged without its assignments",
    ]
