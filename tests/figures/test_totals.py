"""Divisions and rounding of the sums, worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

from groupstorm.figures.table import Figures
from groupstorm.figures.totals import Totals
from groupstorm.history.group_sums import GroupSums
from groupstorm.history.tasks import NO_TASKS


def _figures(**at_the_end: Any) -> Figures:
    return Totals(GroupSums(), **at_the_end).figures()


@pytest.mark.parametrize(
    ("growth", "a_second"), [(None, None), (-500, 0.0), (0, 0.0), (1, 0.001), (2_000_000, 2000.0)]
)
def test_lag_grows_by_thousandths_of_a_record_and_never_shrinks(
    growth: int | None, a_second: float | None
) -> None:
    assert _figures(lag_growth=growth).lag_growth_per_second == a_second


def test_partitions_that_no_record_waits_in_are_not_stale() -> None:
    assert _figures(ages_us={}).staleness_max_seconds == 0.0
    assert _figures(ages_us={"t-0": 1_500_000, "t-1": 20}).staleness_max_seconds == 1.5


def test_a_gigabyte_has_a_thousand_million_bytes() -> None:
    # 2,500 million bytes at a dollar (a million millionths) a gigabyte; then a thousand times as many.
    for gigabytes, usd in ((2.5, 2.5), (2500, 2500.0)):
        price = int(gigabytes * 1_000_000_000) * 1_000_000
        assert _figures(tasks=NO_TASKS._replace(cross_rack_price=price)).cross_rack_usd == usd
