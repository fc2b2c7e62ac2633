"""Which variant is best, what is said about the others, and when nothing is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from groupstorm.figures import Figures, FiguresAccumulator
from groupstorm.problems import InputError
from groupstorm.verdicts.comparison import compare_answer, compare_sentences, one_run_each
from groupstorm.verdicts.measures import BY_FIGURE, BY_KEY, MEASURES, Spread, spread_of, within_spread
from groupstorm.verdicts.ranking import deciding_measure, parse_ranking, rank

NOTHING = FiguresAccumulator().figures()
#: Whatever the figures of records need to be known at all.
QUIET: dict[str, Any] = {"lag_peak": 0, "records_duplicated": 0, "records_skipped": 0, "records_processed": 0}


def figures(**changes: Any) -> Figures:
    return replace(NOTHING, **changes)


def unowned(*seconds: float, **more: Any) -> list[Figures]:
    """A run of each seed."""
    return [figures(unowned_partition_seconds=value, **QUIET | more) for value in seconds]


def test_variants_stand_in_order_with_ratios() -> None:
    said = compare_sentences(
        one_run_each(
            {
                "eager": figures(unowned_partition_seconds=5200.0, nobody_consuming_seconds=310.0),
                "cooperative": figures(unowned_partition_seconds=61.0, nobody_consuming_seconds=0.0),
                "static": figures(unowned_partition_seconds=488.0, nobody_consuming_seconds=0.0),
            }
        )
    )
    assert said == [
        "Best by un-owned time (one seed; runs with --seeds 5 show the spread): cooperative.",
        "Under cooperative partitions were un-owned for 61.0 s in all, "
        "under static for 488 s (8.0 times as long), under eager for 1 h 27 min (85 times as long).",
        "Nobody consuming at all: cooperative and static 0 s, eager 310 s.",
    ]


def decided_by(variants: dict[str, list[Figures]], ranking: str = "") -> str:
    found = deciding_measure(variants, parse_ranking(ranking) if ranking else None)
    return found.key if found else ""


def test_unowned_time_decides_if_it_differs_and_else_the_next_figure_of_the_ranking() -> None:
    duplicates = {"a": unowned(100, 900, records_duplicated=0), "b": unowned(90, 80, records_duplicated=900)}
    assert decided_by(duplicates) == "unowned"
    alike = {"a": unowned(100, records_duplicated=0), "b": unowned(90, records_duplicated=900)}
    assert decided_by(alike) == "duplicates"
    assert decided_by({"a": unowned(100), "b": unowned(90)}) == "unowned"
    assert decided_by({"a": unowned(0), "b": unowned(0)}) == ""
    tasks = [figures(probing_rebalances=0, task_downtime_seconds=value) for value in (0.0, 400.0)]
    assert decided_by({"a": tasks[:1], "b": tasks[1:]}) == "downtime"


def test_the_ranking_that_was_asked_for_decides() -> None:
    variants = {"a": unowned(100, moves=3), "b": unowned(900, moves=900), "c": unowned(5, moves=None)}
    assert decided_by(variants, "moves,unowned") == "moves"


def test_ties_zeros_and_nulls() -> None:
    equal = figures(unowned_partition_seconds=2.0)
    assert compare_sentences(one_run_each({"a": equal, "b": equal})) == [
        "There is no winner by un-owned time (one seed; runs with --seeds 5 show the spread): "
        "they differ by less than a person would notice.",
        "Under a and b partitions were un-owned for 2.0 s in all.",
        "Nothing else differs by so much that a person would notice.",
    ]
    none = compare_answer(one_run_each({"a": figures(unowned_partition_seconds=0.0), "b": equal}))
    assert "Under a partitions were un-owned at no time, under b for 2.0 s." in none
    unknown = compare_answer(one_run_each({"a": figures(), "b": equal}))
    assert unknown.startswith("Under b partitions were un-owned for 2.0 s in all, under a there was no time")
    assert compare_answer(one_run_each({"a": NOTHING})) == (
        "Under a there was no time at which every partition had an owner."
    )
    assert compare_answer({}) == "There is nothing to compare."


def test_what_a_person_notices_comes_before_what_has_the_largest_ratio() -> None:
    said = compare_sentences(
        one_run_each(
            {
                "a": figures(nobody_consuming_seconds=0.0, lag_peak=12_722, records_processed=3_000_000),
                "b": figures(nobody_consuming_seconds=0.304, lag_peak=161_055, records_processed=3_000_000),
            }
        )
    )
    assert "Peak lag in records: a 12,722, b 161,055 (13 times)." in said
    assert "obody" not in " ".join(said)


def test_equal_gaps_and_four_times_the_lag_do_not_win() -> None:
    held = figures(unowned_partition_seconds=12.419, **QUIET | {"lag_peak": 120_000})
    quick = figures(unowned_partition_seconds=12.421, **QUIET | {"lag_peak": 30_672})
    verdict = rank(one_run_each({"held": held, "quick": quick}))
    assert verdict is not None
    assert verdict.best == ("quick",)


def test_the_answer_speaks_of_medians_over_all_seeds() -> None:
    said = compare_answer({"a": unowned(300, 100, 110), "b": unowned(200, 510, 520)})
    assert (
        "by un-owned time, peak lag in records, records processed again and records skipped together" in said
    )
    assert "(medians of 3 seeds): a." in said, "though seed 0 says the opposite"
    assert "Under a partitions were un-owned for 110 s in all, under b for 510 s (4.6 times as long)." in said


def test_the_ranking_can_be_chosen() -> None:
    variants = {"a": unowned(100, records_duplicated=9_000), "b": unowned(400, records_duplicated=0)}

    def best(text: str) -> tuple[str, ...]:
        verdict = rank(variants, parse_ranking(text))
        assert verdict is not None
        return verdict.best

    assert best("unowned") == ("a",)
    assert best("duplicates") == ("b",)
    assert best("unowned=100,duplicates=1") == ("a",)
    assert best("unowned=1,duplicates=1") == ("b",)
    assert rank(variants, parse_ranking("staleness")) is None, "no run has the figure"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("speed", "'speed' is none of unowned, "),
        ("unowned=", "expected a weight above 0"),
        ("unowned=-1", "expected a weight above 0"),
        ("lag=0", "expected a weight above 0"),
        ("unowned=nan", "expected a weight above 0"),
        ("lag,lag", "lag stands twice"),
    ],
)
def test_what_is_no_ranking_is_refused(text: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        parse_ranking(text)


def test_a_median_in_the_range_of_the_other_is_within_the_spread() -> None:
    assert within_spread(Spread(1, 2, 9), Spread(5, 8, 10))
    assert within_spread(Spread(5, 8, 10), Spread(1, 2, 9))
    assert not within_spread(Spread(1, 2, 6), Spread(5, 8, 10)), "ranges may touch"
    assert spread_of([3, None, 1, 2, "x", True]) == Spread(1, 2, 3)
    assert spread_of([None]) is None


@pytest.mark.parametrize(
    ("seeds", "low", "high"), [(1, 1, 1), (5, 1, 5), (11, 1, 11), (12, 2, 11), (20, 4, 17), (40, 12, 29)]
)
def test_many_seeds_hold_the_median_in_their_middle(seeds: int, low: int, high: int) -> None:
    """The bounds of a median with 99 % confidence, as tables of order statistics have them."""
    spread = spread_of(range(1, seeds + 1))
    assert spread is not None
    assert [each for each in range(-1, seeds + 3) if spread.holds(each)] == [*range(low, high + 1)]
    assert spread == Spread(1, (seeds + 1) / 2, seeds), "the range that is told is that of all seeds"


@pytest.mark.parametrize(
    ("seeds", "is_within"), [(5, True), (10, True), (20, True), (40, False), (80, False)]
)
def test_more_seeds_tell_apart_what_few_do_not(seeds: int, is_within: bool) -> None:
    """A difference of a third of the range, without any of the seeds with which both were high or low."""
    one = spread_of(step / seeds for step in range(seeds))
    other = spread_of(step / seeds + 0.3 for step in reversed(range(seeds)))
    assert one is not None
    assert other is not None
    assert within_spread(one, other) == is_within


@pytest.mark.parametrize(
    ("differences", "is_within"),
    [
        ([240, 341, 424, 483, 340], False),
        ([240, 341, 424, 483, -1], True),
        ([100, 341, 424, 483, 340], True),
        ([240, 341, 424, 483], True),
        ([240, 341, 424, 483, None], True),
    ],
)
def test_a_difference_that_each_of_five_seeds_shows_is_the_variants(
    differences: list[float | None], is_within: bool
) -> None:
    """The seeds differ by 900 s, the variants by 240 s to 483 s with every seed, half of 341 s and more."""
    seeds = [1220, 1576, 1828, 2133, 1313][: len(differences)]
    one = spread_of(seeds)
    more = zip(seeds, differences, strict=True)
    other = spread_of(None if each is None else seed + each for seed, each in more)
    assert one is not None
    assert other is not None
    assert (within_spread(one, other), within_spread(other, one)) == (is_within, is_within)


def test_every_measure_is_found_by_its_word_and_its_figure() -> None:
    assert len(BY_KEY) == len(BY_FIGURE) == len(MEASURES)
    known = set(Figures.__dataclass_fields__)
    assert len([measure for measure in MEASURES if measure.figure in known]) >= 18


def test_the_time_until_the_lag_was_back_is_no_difference_to_tell() -> None:
    """It counts from the first of several changes on, the quiet time between them included."""
    quick = unowned(10, lag_recovery_seconds=4)
    late = unowned(10, lag_recovery_seconds=1_400)
    assert "lag was back" not in compare_answer({"quick": quick, "late": late})
    assert rank({"quick": quick, "late": late}, parse_ranking("recovery")).best == ("quick",)  # type: ignore[union-attr]
