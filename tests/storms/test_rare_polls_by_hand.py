"""How far apart polls may be of a member of which one row says that it keeps up."""

from __future__ import annotations

import pytest

from groupstorm.assignors.userdata import TopicPartition
from tests.storms.test_poll_loop import loop
from tests.storms.test_record_rows_by_hand import Member

P0 = TopicPartition("t", 0)


@pytest.mark.parametrize(("interval_ms", "rows_s"), [(1_000, [0]), (1_000.001, [0, 10, 20, 30])])
def test_a_member_that_polls_once_a_second_keeps_up_and_one_that_polls_more_rarely_is_behind(
    interval_ms: float, rows_s: list[int]
) -> None:
    """100 records a second arrive; all that has arrived is taken at each poll, and done within a tenth of a
    second."""
    member = Member(loop({P0: ((0, 100_000),)}, interval_ms=interval_ms))
    member.own(P0)
    member.rates.changed(began=True)
    member.to(35)
    assert [at_s for at_s, *_ in member.rows] == rows_s
