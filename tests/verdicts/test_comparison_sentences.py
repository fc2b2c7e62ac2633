"""Sentences of a comparison on many variants, of several seeds, and of Kafka Streams applications."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from groupstorm.figures import Figures
from groupstorm.figures.answer import answer
from groupstorm.verdicts.comparison import compare_sentences, one_run_each
from groupstorm.verdicts.measures import BY_KEY, Spread
from groupstorm.verdicts.ranking import Runs, Verdict, has_tasks, not_ranked, parse_ranking, rank
from groupstorm.verdicts.recommendation import changes
from tests.verdicts.test_comparison import figures


def said(**variants: Figures) -> list[str]:
    return compare_sentences(one_run_each(variants))


def verdict_on(variants: Runs, weights: Mapping[str, float] | None = None) -> Verdict:
    found = rank(variants, weights)
    assert found is not None
    return found


def bare(verdict: str) -> str:
    """Without what stands in brackets: on how many seeds it is based."""
    return re.sub(r" \([^()]*\)", "", verdict)


def unowned(value: float) -> Figures:
    return figures(unowned_partition_seconds=value)


def test_of_more_than_four_values_the_least_and_the_most_are_named() -> None:
    four = said(a=unowned(100), b=unowned(200), c=unowned(300), d=unowned(400))
    assert four[1] == (
        "Under a partitions were un-owned for 100 s in all, under b for 200 s (2.0 times as long), "
        "under c for 300 s (3.0 times as long), under d for 400 s (4.0 times as long)."
    )
    five = said(a=unowned(100), b=unowned(200), c=unowned(300), d=unowned(400), e=unowned(500))
    assert five[1] == (
        "Under a partitions were un-owned for 100 s in all, under e for 500 s (5.0 times as long), "
        "under the others for something between."
    )
    gaps = [figures(unowned_max_seconds=value) for value in (10, 20, 30, 40, 50)]
    lines = said(**dict(zip("abcd", gaps, strict=False)))
    assert (
        "Longest single gap: a 10.0 s, b 20.0 s (2.0 times), c 30.0 s (3.0 times), d 40.0 s (4.0 times)."
        in lines
    )
    lines = said(**dict(zip("abcde", gaps, strict=True)))
    assert "Longest single gap: a 10.0 s, e 50.0 s (5.0 times), the others between." in lines


def test_variants_that_are_shown_alike_stand_together_in_their_order() -> None:
    lines = said(z=unowned(100.1), a=unowned(100.2), m=unowned(300))
    assert lines[1] == (
        "Under z and a partitions were un-owned for 100 s in all, under m for 300 s (3.0 times as long)."
    )


def test_more_than_four_best_ones_are_not_named() -> None:
    best = {name: unowned(100) for name in "abcd"}
    assert bare(said(**best, x=unowned(9000))[0]) == (
        "Best by un-owned time: a, b, c and d; there is no winner between them, they differ by less than a "
        "person would notice."
    )
    assert bare(said(**best, e=unowned(100), x=unowned(9000), y=unowned(9000))[0]) == (
        "There is no winner by un-owned time: they differ by less than a person would notice, and only x and "
        "y cost more."
    )


def test_two_differences_are_named_the_largest_first_and_one_of_a_family() -> None:
    one = figures(lag_peak=0, staleness_max_seconds=0, generations=0, moves=0, records_skipped=0)
    other = figures(
        lag_peak=50_000,  # 50 times what is noticed
        staleness_max_seconds=400,  # 40 times, of the same family
        generations=200,  # 10 times
        moves=600,  # 3 times
        records_skipped=300,  # 30 times
    )
    assert said(a=one, b=other)[-3:] == [
        "Peak lag in records: a 0, b 50,000.",
        "Records skipped: a 0, b 300.",
        "Up to 300 records skipped (auto.offset.reset=earliest reads them).",
    ]


def test_records_that_are_skipped_as_the_group_begins_decide_nothing() -> None:
    """A variant whose group begins 6 s later skips 2,220 records, and costs least of all else."""
    slow_start = figures(unowned_partition_seconds=360, records_skipped=2_220, records_skipped_at_start=2_220)
    quick_start = figures(unowned_partition_seconds=5_000, records_skipped=60, records_skipped_at_start=60)
    sentences = said(slow_start=slow_start, quick_start=quick_start)
    assert bare(sentences[0]).endswith(": slow_start.")
    assert (
        "Up to 2,220 records skipped, all of them as the group began without a commit "
        "(auto.offset.reset=earliest reads them); those do not count in the ranking."
    ) in sentences


@pytest.mark.parametrize(
    ("figure", "one", "other", "sentence"),
    [
        ("unowned_max_seconds", 10, 14.9, None),
        ("unowned_max_seconds", 10, 15, "Longest single gap: a 10.0 s, b 15.0 s (1.5 times)."),
        ("unowned_max_seconds", 95, 105, None),
        ("unowned_max_seconds", 90, 100, "Longest single gap: a 90.0 s, b 100 s (1.1 times)."),
        ("rebalance_latency_max_ms", 0, 10_000, "Longest rebalance: a 0 s, b 10.0 s."),
        ("restored_bytes", 10**9, 3 * 10**9, "State restored before tasks could run: a 1.0 GB, b 3.0 GB"),
        ("cross_rack_usd", 0.01, 0.07, "Cost of traffic between racks: a $0.0100, b $0.0700 (7.0 times)."),
    ],
)  # fmt: skip
def test_a_difference_counts_if_a_person_would_notice_it(
    figure: str, one: float, other: float, sentence: str | None
) -> None:
    lines = said(a=figures(**{figure: one}), b=figures(**{figure: other}))
    if sentence is None:
        assert lines[-1] == "Nothing else differs by so much that a person would notice."
    else:
        assert lines[-1].startswith(sentence)


def test_what_is_noticed_of_records_grows_with_the_records() -> None:
    lag, again = BY_KEY["lag"], BY_KEY["duplicates"]
    few, many = figures(records_processed=1_000), figures(records_processed=50_000_000)
    assert (lag.noticed_among([few]), again.noticed_among([few])) == (1_000, 100)
    assert (lag.noticed_among([many, few, many]), again.noticed_among([many])) == (5_000, 50_000)
    assert (lag.noticed_among([few, many]), again.noticed_among([few, many, few])) == (1_000, 100)
    assert lag.noticed_among([figures()]) == 1_000


def test_a_variant_whose_consumers_died_is_named_and_not_ranked() -> None:
    dead = figures(unowned_partition_seconds=0.0, consumers_failed={"GROUP_MAX_SIZE_REACHED": 1})
    lines = said(a=unowned(100), b=unowned(900), c=dead)
    assert bare(lines[0]) == "Best by un-owned time: a."
    assert lines[1] == (
        "Not ranked is c: consumers ended with GROUP_MAX_SIZE_REACHED (the group is full, see group.max.size "
        "or group.consumer.max.size)."
    )
    alone = said(a=unowned(100), c=dead)
    assert not any(line.startswith("Best") for line in alone)
    assert alone[0].startswith("Not ranked is c: ")
    one = said(c=dead)
    assert one[0].startswith("Under c partitions were un-owned")
    assert not any(line.startswith("Not ranked") for line in one)
    late = [figures(invariants={"group_settles": f"never at rest: {rounds} rounds"}) for rounds in (7, 9)]
    assert ("Not ranked are c and d: the group did not come to rest (c: never at rest: 7 rounds).") in said(
        a=unowned(100), c=late[0], d=late[1]
    )
    both = said(c=dead, d=replace(dead, unowned_partition_seconds=900.0))
    assert both[0] == "There is no best variant: none of them can be ranked."


def test_a_difference_is_named_if_seeds_do_not_explain_it() -> None:
    def gap(seconds: float) -> Figures:
        return figures(unowned_partition_seconds=100, unowned_max_seconds=seconds)

    apart = compare_sentences({"a": [gap(10), gap(12)], "b": [gap(40), gap(50)]})
    assert apart[-1] == "Longest single gap: a 11.0 s, b 45.0 s (4.1 times)."
    mixed = compare_sentences({"a": [gap(10), gap(50)], "b": [gap(20), gap(70)]})
    assert mixed[-2:] == [
        "Nothing else differs by so much that a person would notice.",
        "Within the spread of the seeds: longest single gap.",
    ]


def test_seeds_are_counted_and_ties_within_them_said() -> None:
    runs = {"a": [unowned(100), unowned(300)], "b": [unowned(150), unowned(500)]}
    first = compare_sentences(runs)[0]
    assert "medians of 2 seeds" in first
    assert bare(first) == (
        "There is no winner by un-owned time: what lies between them is within the spread of the seeds."
    )
    verdict = verdict_on(runs)
    assert verdict.within_spread
    wide = verdict_on({"a": [unowned(900), unowned(1020), unowned(1300)], "b": [unowned(1140)] * 3})
    assert wide.within_spread, "the cheaper one's seeds count, too"
    alone = verdict_on(one_run_each({"a": unowned(100), "b": unowned(100)}))
    assert not alone.within_spread, "one seed has no spread"


@pytest.mark.parametrize(
    ("other", "best"),
    # the cost is un-owned time in minutes: at least one more, and at least a tenth more
    [(119.9, ("a", "b")), (120.0, ("a",))],
)
def test_a_winner_is_better_by_what_a_person_notices(other: float, best: tuple[str, ...]) -> None:
    verdict = verdict_on(one_run_each({"a": unowned(60), "b": unowned(other)}))
    assert verdict.best == best
    assert verdict.by == "un-owned time"


def test_of_several_figures_the_verdict_names_all() -> None:
    def by(weights: dict[str, float]) -> str:
        runs = one_run_each({name: figures(moves=1, lag_peak=2, generations=3) for name in "ab"})
        return verdict_on(runs, weights).by

    assert by({"moves": 1, "lag": 1}) == "partitions moved and peak lag in records together"
    assert by({"moves": 1, "unowned": 1}) == "partitions moved", "the other one has no value"


def test_a_winner_is_better_by_a_tenth() -> None:
    edge = verdict_on(one_run_each({"a": unowned(5400), "b": unowned(6000)}))
    assert edge.best == ("a",), "a tenth of the larger one is enough"
    near = verdict_on(one_run_each({"a": unowned(6000), "b": unowned(6660)}))
    far = verdict_on(one_run_each({"a": unowned(6000), "b": unowned(6670)}))
    assert (near.best, far.best) == (("a", "b"), ("a",))


def test_lag_stands_in_for_staleness_where_that_is_not_known() -> None:
    runs = one_run_each({"a": figures(lag_peak=50_000), "b": figures(lag_peak=0)})
    verdict = verdict_on(runs)
    assert (verdict.best, verdict.by) == (("b",), "peak lag in records")
    stale = verdict_on(
        one_run_each({"a": figures(staleness_max_seconds=90), "b": figures(staleness_max_seconds=1)})
    )
    assert stale.by == "the oldest unprocessed record"
    assert rank({"a": [unowned(1)]}) is None
    assert parse_ranking("lag=2, moves") == {"lag": 2.0, "moves": 1.0}


def test_of_the_default_ranking_each_figure_weighs_once_what_a_person_notices() -> None:
    nothing = figures(
        unowned_partition_seconds=0, staleness_max_seconds=0, records_duplicated=0, records_skipped=0
    )
    noticed: dict[str, Any] = {
        "unowned_partition_seconds": 60.0,
        "staleness_max_seconds": 10.0,
        "records_duplicated": 100,
        "records_skipped": 10,
    }
    for figure, value in noticed.items():
        one: dict[str, Any] = {figure: value}
        verdict = verdict_on(one_run_each({"a": nothing, "b": replace(nothing, **one)}))
        assert {name: cost.median for name, cost in verdict.costs.items()} == {"a": 0, "b": 1}
    tasks = replace(nothing, probing_rebalances=0, task_downtime_seconds=0)
    for figure, value in (noticed | {"task_downtime_seconds": 60.0}).items():
        one = {figure: value}
        verdict = verdict_on(one_run_each({"a": tasks, "b": replace(tasks, **one)}))
        weight = 0 if figure == "unowned_partition_seconds" else 1
        assert {name: cost.median for name, cost in verdict.costs.items()} == {"a": 0, "b": weight}


def test_what_all_variants_pay_alike_hides_no_difference() -> None:
    """5,000 skipped records weigh 500 notices under both, and 85 lie between 3,100 s and 8,200 s: only these
    decide. 110 more skipped records are no tenth of 5,000."""
    common = {"records_skipped": 5_000, "records_skipped_at_start": 0}
    verdict = verdict_on(
        one_run_each(
            {
                "a": figures(unowned_partition_seconds=3_100, **common | {"records_skipped": 5_110}),
                "b": figures(unowned_partition_seconds=8_200, **common),
            }
        )
    )
    assert verdict.best == ("a",)
    assert {name: cost.median for name, cost in verdict.costs.items()} == {"a": 0, "b": 85}


def test_variants_that_pay_in_different_figures_are_said_to_do_so() -> None:
    """600 s are ten notices of un-owned time, and 1,000 records ten of those processed again."""
    found = said(
        a=figures(unowned_partition_seconds=600, records_duplicated=0),
        b=figures(unowned_partition_seconds=0, records_duplicated=1_000),
    )
    assert found[0].endswith("what each saves in one of these it pays in another.")


def test_a_tie_that_seeds_do_not_explain_is_no_matter_of_spread() -> None:
    verdict = verdict_on({"a": [unowned(100), unowned(100)], "b": [unowned(110), unowned(110)]})
    assert (verdict.best, verdict.within_spread) == (("a", "b"), False)


def test_a_spread_holds_its_ends() -> None:
    spread = Spread(1, 2, 3)
    assert [spread.holds(value) for value in (0.9, 1, 3, 3.1)] == [False, True, True, False]


# -- Kafka Streams -----------------------------------------------------------------------------------


def streams(probing: int = 0, **changes: Any) -> Figures:
    return figures(probing_rebalances=probing, **{"generations": 2} | changes)


def test_of_tasks_the_comparison_speaks_of_downtime_and_balance() -> None:
    assert has_tasks(one_run_each({"a": unowned(1), "b": streams()}))
    assert not has_tasks(one_run_each({"a": unowned(1)}))
    lines = compare_sentences(
        {
            "a": [
                streams(task_downtime_seconds=10, converged_after_seconds=30.0),
                replace(
                    streams(task_downtime_seconds=10, converged_after_seconds=50.0), probing_rebalances=2
                ),
                replace(streams(task_downtime_seconds=10), probing_rebalances=1),
            ],
            "b": [streams(3, task_downtime_seconds=500)] * 3,
            "static": [streams(task_downtime_seconds=100, generations=0)] * 3,
        }
    )
    assert bare(lines[0]) == "Best by tasks down: a."
    assert lines[1] == (
        "Under a tasks were down for 10.0 s in all, under static for 100 s (10 times as long), under b for "
        "500 s (50 times as long)."
    )
    assert lines[2] == (
        "A stable assignment came under a 40.0 s after the first change (1 probing rebalance, but not in 1 "
        "of 3 seeds), under b not before the end (3 probing rebalances). A longer settle_timeout_ms tells "
        "whether one comes later. No new assignment was needed under static."
    )


def test_of_a_group_without_tasks_beside_an_application_no_probing_is_counted() -> None:
    lines = said(a=unowned(1), b=streams(3))
    (balance,) = (line for line in lines if line.startswith("A stable assignment came under b not before"))
    assert balance.endswith("tells whether one comes later. No new assignment was needed under a.")


def test_traffic_without_a_price_has_no_sentence() -> None:
    lines = said(a=streams(cross_rack_bytes=2_000_000_000), b=streams(cross_rack_usd=0.18))
    assert not any(line.startswith("From rack to rack") for line in lines)


def test_of_racks_the_comparison_speaks_of_traffic_and_its_price() -> None:
    lines = said(
        near=streams(
            task_downtime_seconds=0,
            cross_rack_bytes=2_000_000_000,
            cross_rack_usd=0.04,
            moves=1,
            subtopology_imbalance=3,
        ),
        far=streams(task_downtime_seconds=0, cross_rack_bytes=9_000_000_000, cross_rack_usd=0.18),
    )
    assert lines[-2 if lines[-1].startswith("Nothing") else -1].startswith("That took so many moves")
    assert "From rack to rack went 2.0 GB ($0.0400) under near, 9.0 GB ($0.18) under far." in lines
    assert (
        "That took so many moves of partitions, and at the end an instance has so many tasks of one "
        "sub-topology more than another: 1 move and 3 under near, 0 moves and 0 under far." in lines
    )
    assert not any("Cost of traffic" in line for line in lines), "said already"


def test_traffic_of_runs_of_other_lengths_is_not_weighed() -> None:
    """A variant that takes longer to a stable assignment has a longer run, and reads more records in it."""
    short = streams(cross_rack_bytes=50_000_000_000, cross_rack_usd=1.0, records_processed=1_000)
    longer = replace(short, cross_rack_usd=2.0, records_processed=2_000)
    note = "Traffic adds up, and these runs differ in length: compare it with least_duration_ms."
    assert note in said(a=short, b=longer)
    assert changes([short], [longer], [short, longer]) == []
    alike = replace(longer, records_processed=1_050)
    assert note not in said(a=short, b=alike)
    assert [change.measure.key for change in changes([short], [alike], [short, alike])] == ["dollars"]


def test_a_lag_that_shrinks_until_the_end_of_the_run_is_told() -> None:
    """A longer run would end it; one that is back, that grows or that is small is no news."""
    left = figures(
        lag_peak=9_000,
        lag_at_end=5_000,
        lag_recovery_seconds=None,
        lag_growth_per_second=0,
        records_skipped=0,
    )
    told = "Records that still waited at the end: 5,000 under a; a longer settle_timeout_ms tells when, if"
    assert any(one.startswith(told) for one in said(a=left, b=replace(left, lag_at_end=500)))
    others = (
        replace(left, lag_recovery_seconds=60),
        replace(left, lag_growth_per_second=5),
        replace(left, lag_peak=90_000),
        replace(left, delivery_counts={"1": 9}),
    )
    assert "still waited" not in " ".join(said(a=others[0], b=others[1], c=others[2], d=others[3]))
    assert "; at the end 5,000 records still waited" in answer(left)


def test_only_variants_with_all_the_same_reasons_share_a_sentence() -> None:
    """The reasons of the first variant that shares a sentence are told, with its name."""
    behind = "the group cannot keep up (at the end the lag still grew by {} records a second)"
    restless = "the group did not come to rest (never at rest: 11 rounds (max.poll.interval.ms))"
    unfit = {
        "a": f"{behind.format(5)}; {restless}",
        "b": behind.format(7),
        "c": f"{behind.format(9)}; {restless}",
    }
    assert not_ranked(unfit) == [
        f"Not ranked are a and c: {behind.format(5).replace('(', '(a: ')}; {restless}.",
        f"Not ranked is b: {behind.format(7)}.",
    ]
