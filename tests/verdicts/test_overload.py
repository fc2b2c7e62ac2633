"""When less is processed than arrives."""

from __future__ import annotations

from typing import Any

import pytest

from groupstorm.figures.unsettled import lag_growth
from groupstorm.verdicts.ranking import unfit_variants
from tests.verdicts.test_comparison import figures


@pytest.mark.parametrize(
    ("known", "growth"),
    [
        ({"lag_growth_per_second": 12.5, "staleness_max_seconds": 60.0}, 12.5),
        ({"lag_growth_per_second": 1.0, "staleness_max_seconds": 5.0}, 1.0),
        ({"lag_growth_per_second": 12.5}, 12.5),
        ({"lag_growth_per_second": 12.5, "staleness_max_seconds": 4.9}, None),
        ({"lag_growth_per_second": 0.9, "staleness_max_seconds": 60.0}, None),
        ({"lag_growth_per_second": 0.0, "staleness_max_seconds": 600.0}, None),
        ({}, None),
    ],
)
def test_the_lag_grows_and_a_record_has_waited(known: dict[str, Any], growth: float | None) -> None:
    assert lag_growth(figures(**known)) == growth


def test_a_variant_that_cannot_keep_up_is_not_ranked_and_says_why() -> None:
    over = figures(lag_growth_per_second=1500, staleness_max_seconds=60)
    assert unfit_variants({"over": [over], "well": [figures()]}) == {
        "over": "the group cannot keep up (at the end the lag still grew by 1,500 records a second: less is "
        "processed than arrives)"
    }
    assert unfit_variants({"one of three": [over, figures(), figures()]}) == {}, "a slow record in hand"
    assert [*unfit_variants({"two of three": [over, over, figures()]})] == ["two of three"]
    livelock = figures(lag_growth_per_second=1500, invariants={"group_settles": "livelock: 3 rounds"})
    assert unfit_variants({"both": [livelock]}) == {
        "both": "the group did not come to rest (livelock: 3 rounds)"
    }
