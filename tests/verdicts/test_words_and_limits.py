"""Figures as people read and write them: numbers in words, requirements, the knee of a sweep."""

from __future__ import annotations

from typing import Any

import pytest

from groupstorm.figures import answer
from groupstorm.figures.table import lag_growth
from groupstorm.problems import InputError
from groupstorm.verdicts.measures import BY_FIGURE, first_that_meets, furthest_from_chord
from groupstorm.verdicts.ranking import unfit_variants
from groupstorm.verdicts.requirements import figures_with_numbers, parse
from groupstorm.wording import counted, dollars, listed, number, ratio, seconds, size
from tests.verdicts.test_comparison import figures

# -- wording -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0, "0 s"),
        (0.0009, "less than 1 ms"),
        (0.001, "1 ms"),
        (0.9994, "999 ms"),
        (0.9995, "1.0 s"),
        (99.94, "99.9 s"),
        (99.95, "100 s"),
        (599.4, "599 s"),
        (599.5, "10 min"),
        (601, "10 min 1 s"),
        (3599.4, "59 min 59 s"),
        (3599.5, "1 h"),
        (3629, "1 h"),
        (3631, "1 h 1 min"),
        (7200, "2 h"),
        (36_000_000, "10,000 h"),
    ],
)
def test_durations(value: float, words: str) -> None:
    assert seconds(value) == words


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1000, "1.0 kB"),
        (99_940, "99.9 kB"),
        (99_950, "100 kB"),
        (999_999, "1,000 kB"),
        (1_000_000, "1.0 MB"),
        (2_500_000_000, "2.5 GB"),
        (10**12, "1.0 TB"),
        (4 * 10**15, "4,000 TB"),
    ],
)
def test_sizes(value: float, words: str) -> None:
    assert size(value) == words


def test_money_counts_and_lists() -> None:
    assert [dollars(value) for value in (0, 0.0123, 0.0999, 0.1, 1234.5)] == [
        "$0.00",
        "$0.0123",
        "$0.0999",
        "$0.10",
        "$1,234.50",
    ]
    assert number(12_345.4) == "12,345"
    assert [counted(count, "round") for count in (0, 1, 2, 1_000)] == [
        "0 rounds",
        "1 round",
        "2 rounds",
        "1,000 rounds",
    ]
    assert [listed("abc"[:count]) for count in (1, 2, 3)] == ["a", "a and b", "a, b and c"]


def test_a_median_of_two_counts_may_lie_between_them() -> None:
    moves = BY_FIGURE["moves"]
    assert [moves.show(value) for value in (2, 2.5, 3.5, 93.5)] == ["2", "2.5", "3.5", "94"]


@pytest.mark.parametrize(
    ("value", "least", "words"),
    [
        (10, 0, ""),
        (10, -1, ""),
        (1.04, 1, ""),
        (1.05, 1, "1.1 times"),
        (99, 10, "9.9 times"),
        (100, 10, "10 times"),
        (12_345, 1, "12,345 times"),
        (1, 0.5, "2.0 times"),
    ],
)
def test_ratios(value: float, least: float, words: str) -> None:
    assert ratio(value, least) == words


# -- one run in a sentence ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"unowned_partition_seconds": 0.0, "unowned_max_seconds": 0.0},
         "; no partition was ever un-owned; "),
        ({"unowned_partition_seconds": 5}, "; at no time did every partition have an owner; "),
        ({"unowned_max_seconds": 5}, "; at no time did every partition have an owner; "),
        ({"records_duplicated": 2}, "; 2 records processed again."),
        ({"records_skipped": 3}, "; 3 records skipped (auto.offset.reset=earliest reads them)."),
        ({"lag_growth_per_second": 1}, "; at the end the lag still grew by 1 record a second: less is"),
        ({"lag_growth_per_second": 1.5}, "; at the end the lag still grew by 1.5 records a second: less is"),
        ({"probing_rebalances": 1},
         "at no time did every task run; no stable assignment came before the end ("),
        ({"probing_rebalances": 2, "converged_after_seconds": 0.0, "task_downtime_seconds": 4.0,
          "task_downtime_max_seconds": 3.0, "restored_bytes": 1500},
         "; tasks were down for 4.0 s in all, 3.0 s at the longest; 1.5 kB were restored before tasks "
         "could run; a stable assignment came 0 s and 2 probing rebalances after the first change."),
        ({"probing_rebalances": 0, "task_downtime_seconds": 4.0}, "; at no time did every task run; "),
        ({"probing_rebalances": 0, "task_downtime_seconds": 0.0, "task_downtime_max_seconds": 0.0},
         "; no task was ever down; "),
        ({"probing_rebalances": 0, "cross_rack_bytes": 2000, "cross_rack_usd": 0.5},
         "; 2.0 kB went from rack to rack ($0.50)."),
    ],
)  # fmt: skip
def test_the_answer_of_one_run_has_a_part_for_what_happened(changes: dict[str, Any], part: str) -> None:
    assert part in answer(figures(**changes))


def test_the_answer_of_one_run_leaves_out_what_did_not_happen() -> None:
    quiet = answer(
        figures(records_duplicated=0, records_skipped=0, lag_growth_per_second=0.9, dual_owner_seconds=0.0)
    )
    for word in ("records", "lag", "two members", "task", "rack", "restored"):
        assert word not in quiet
    half = answer(figures(probing_rebalances=0, restored_bytes=0, cross_rack_bytes=5))
    assert "restored" not in half
    assert "rack" not in half, "its price is not known"


# -- requirements ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value", "met"),
    [
        ("generations<3", 2, True),
        ("generations<3", 3, False),
        ("generations<=3", 3, True),
        ("generations<=3", 4, False),
        ("generations>3", 3, False),
        ("generations>3", 4, True),
        ("generations>=3", 3, True),
        ("generations>=3", 2, False),
        ("generations==3", 3, True),
        ("generations==3", 2, False),
        ("unowned_max_seconds<1.5m", 89.9, True),
        ("unowned_max_seconds<1.5m", 90, False),
        ("rebalance_latency_max_ms<=2s", 2000, True),
        ("rebalance_latency_max_ms<=2s", 2001, False),
        ("moves_wasted > -1", 0, True),
    ],
)
def test_a_requirement_is_met_or_not(text: str, value: float, met: bool) -> None:
    requirement = parse(text)
    run = figures(**{requirement.figure: value})
    assert requirement.is_met(run) is met
    assert (requirement.unmet(run) is None) is met


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("unowned_max_seconds<1.5m", 90),
        ("unowned_max_seconds<250ms", 0.25),
        ("rebalance_latency_max_ms<2s", 2000),
        ("rebalance_latency_max_ms<500us", 0.5),
        ("lag_peak<7", 7),
    ],
)
def test_a_limit_is_in_the_unit_of_its_figure(text: str, limit: float) -> None:
    assert parse(text).limit == limit


def test_an_unmet_requirement_says_what_was_required() -> None:
    requirement = parse("unowned_max_seconds<5")
    assert requirement.unmet(figures(unowned_max_seconds=7.25)) == (
        "unowned_max_seconds is 7.25, but < 5 was required"
    )
    assert not requirement.is_met(figures())
    assert requirement.unmet(figures()) == (
        "unowned_max_seconds has no value in this run, but < 5 was required"
    )


def test_a_share_of_the_runs_may_have_to_meet_it() -> None:
    runs = {str(number): figures(generations=number) for number in range(4)}
    every, some = parse("generations<3"), parse("generations<3 for 75%")
    assert every.unmet_by(runs) == ["3: generations is 3, but < 3 was required"]
    assert some.unmet_by(runs) == []
    more = parse("generations<3 for 75.5%")
    assert more.unmet_by(runs) == ["generations<3 for 75.5% was required, but 3 of 4 runs meet it"]
    assert more.unmet_by({}) == []
    assert str(every) == "generations<3"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("generations", "expected FIGURE<NUMBER"),
        ("generations=<3", "expected FIGURE<NUMBER"),
        ("generations<three", "expected FIGURE<NUMBER"),
        ("<3", "expected FIGURE<NUMBER"),
        ("generation<1", "no such figure: 'generation': did you mean generations"),
        ("errors<1", "no such figure: 'errors' is not one of generations"),
        ("unowned_max_partition<1", "no such figure"),
        ("generations<1 for 101%", "101%: expected 100% at most"),
        ("generations<5m", "generations is no time: expected a number without 'm'"),
        ("unowned_max_seconds<5parsecs", "'parsecs' is no unit: expected one of us, ms"),
    ],
)
def test_what_is_no_requirement_is_refused(text: str, says: str) -> None:
    with pytest.raises(InputError, match=f"--require '{text}': .*{says}|--require '{text}': {says}"):
        parse(text)


def test_figures_with_one_number_can_be_required() -> None:
    names = figures_with_numbers()
    assert {"generations", "unowned_max_seconds", "lag_peak", "cross_rack_usd"} <= set(names)
    assert not {"errors", "invariants", "unowned_max_partition", "requests"} & set(names)


# -- the knee of a sweep -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("met", "place"),
    [
        ([], None),
        ([True], 0),
        ([False], None),
        ([True, False], None),
        ([False, True], 1),
        ([True, False, True, True], 2),
        ([True, True], 0),
    ],
)
def test_the_knee_of_a_goal_is_where_all_larger_values_meet_it(met: list[bool], place: int | None) -> None:
    assert first_that_meets(met) == place


@pytest.mark.parametrize(
    ("values", "curve", "place"),
    [
        ([1, 2], [9, 0], None),
        ([1, 2, 3], [9, 1, 0], 1),
        ([1, 2, 3, 4, 5], [100, 10, 5, 2, 0], 1),
        ([1, 2, 3, 4, 5], [0, 90, 95, 98, 100], 1),
        ([1, 2, 3, 4, 5], [0, 1, 2, 60, 100], 2),
        ([1, 2, 3, 4, 5], [4, 3, 2, 1, 0], None),
        ([1, 2, 3], [5, 5, 5], None),
        ([7, 7, 7], [1, 2, 3], None),
        ([0, 0.5, 1], [0, 0.9, 1], 1),
        ([0, 10, 100], [0, 20, 100], 1),
        ([0, 50, 100], [0, 0.9, 1], 1),
        ([0, 10, 20], [0, 0, 5], 1),
        # more than a tenth of the height from the chord is a bend, less is none
        ([0, 50, 100], [0, 61, 100], 1),
        ([0, 50, 100], [0, 59, 100], None),
        # up and down again: the chord is level
        ([0, 50, 100], [10, 90, 10], 1),
        # the axes do not begin at zero
        ([100, 110, 200], [1000, 100, 10], 1),
    ],
)
def test_the_knee_of_a_curve_is_furthest_from_its_chord(
    values: list[float], curve: list[float], place: int | None
) -> None:
    assert furthest_from_chord(values, curve) == place


# -- variants that are not ranked --------------------------------------------------------------------


def test_a_variant_whose_consumers_died_or_whose_group_never_rests_is_not_ranked() -> None:
    found = unfit_variants(
        {
            "quiet": [figures(errors={}, invariants={"group_settles": "held"}), figures()],
            "passing": [figures(errors={"UNKNOWN_MEMBER_ID": 3, "FENCED_INSTANCE_ID": 0})],
            "dead": [
                figures(),
                figures(consumers_failed={"FENCED_INSTANCE_ID": 1, "GROUP_MAX_SIZE_REACHED": 2}),
            ],
            "closed": [figures(errors={"FENCED_INSTANCE_ID": 1}, consumers_failed={})],
            "share": [figures(errors={"FENCED_INSTANCE_ID": 1}, consumers_failed=None)],
            "thrown": [figures(consumers_failed={"IllegalStateException": 1, "FENCED_INSTANCE_ID": 1})],
            "restless": [figures(invariants={"group_settles": "never at rest"})] * 2,
            "late": [figures(invariants={"group_settles": "settled late: 13 minutes"})],
            "wrong": [figures(invariants={"one_owner": "t-0 has two"})],
            "refused": [
                figures(
                    errors={"GROUP_ID_NOT_FOUND": 1},
                    requests={"ConsumerGroupHeartbeat": 3},
                    consumers_failed={"GROUP_ID_NOT_FOUND": 1},
                ),
            ],
            "streams": [
                figures(errors={"GROUP_ID_NOT_FOUND": 1}, requests={"StreamsGroupHeartbeat": 1}),
            ],
            "asked": [figures(errors={"GROUP_ID_NOT_FOUND": 1}, requests={"DeleteGroups": 1})],
        }
    )
    assert found.pop("share").startswith("consumers ended with FENCED_INSTANCE_ID (another")
    assert found == {
        "streams": "the group could not change its protocol (GROUP_ID_NOT_FOUND)",
        "refused": "the group could not change its protocol (GROUP_ID_NOT_FOUND)",
        "dead": "consumers ended with FENCED_INSTANCE_ID (another process has their group.instance.id) and "
        "GROUP_MAX_SIZE_REACHED (the group is full, see group.max.size or group.consumer.max.size)",
        "thrown": "consumers ended with FENCED_INSTANCE_ID (another process has their group.instance.id) and "
        "IllegalStateException",
        "restless": "the group did not come to rest (never at rest)",
    }


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
    nobodys = figures(lag_growth_per_second=1500, invariants={"every_partition_owned_at_end": "two"})
    assert unfit_variants({"x": [nobodys]}) == {"x": "partitions were left without an owner (two)"}
    livelock = figures(lag_growth_per_second=1500, invariants={"group_settles": "livelock: 3 rounds"})
    assert unfit_variants({"both": [livelock]}) == {
        "both": "the group did not come to rest (livelock: 3 rounds)"
    }
