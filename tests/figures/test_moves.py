"""Moves and balance of settled points, member by member."""

from __future__ import annotations

from groupstorm.figures.moves import Moves, moves_needed
from groupstorm.figures.record_model import RecordModel

TOPIC = frozenset({"t"})
NO_RECORDS = RecordModel(0, 0)


def test_of_nobody_and_of_equals_the_balance_is_even() -> None:
    for live in ({}, {"a": TOPIC}, {"a": TOPIC, "b": TOPIC}):
        moves = Moves()
        moves.settled(live, [], NO_RECORDS)
        assert (moves.imbalance_max, moves.imbalance_rate_max) == (0, 0)
        assert moves.idle_members_max == len(live)


def test_a_member_that_is_left_with_nothing_kept_nothing() -> None:
    """Two members had one partition each. If one member is to have both, one partition has to move."""
    assert moves_needed({"a": 1, "b": 1}, {"b": 2}, {"a": TOPIC, "b": TOPIC}, 0) == 1
