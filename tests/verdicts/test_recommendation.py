"""Which configuration is recommended: the one that costs least, or of several the nearest to the defaults."""

from __future__ import annotations

from dataclasses import replace

import pytest

from groupstorm.figures import Figures
from groupstorm.verdicts.recommendation import Defaults, Distance, changes, changes_sentence, recommendation
from tests.verdicts.test_comparison import figures

UNOWNED = {"unowned": 1.0}


def runs(*unowned_s: float, crash_s: float = 0, deploy_s: float = 0, gap_s: float = 1) -> list[Figures]:
    return [
        figures(
            unowned_partition_seconds=seconds,
            unowned_max_seconds=gap_s,
            cost_per_crash_partition_seconds=crash_s,
            cost_per_deploy_partition_seconds=deploy_s,
        )
        for seconds in unowned_s
    ]


def defaults(cautions: dict[str, str] | None = None, **distances: int) -> Defaults:
    return Defaults(
        "session.timeout.ms=45s",
        {name: Distance(changes, 0.0) for name, changes in distances.items()},
        cautions or {},
    )


def test_the_winner_is_recommended_with_its_spread_and_what_it_buys() -> None:
    variants = {
        "plain": runs(900, 1000, 1100, crash_s=500, deploy_s=500),
        "other": runs(300, 310, 290, crash_s=90, deploy_s=210, gap_s=8),
    }
    said = recommendation(variants, defaults(plain=0, other=1), UNOWNED)
    assert said == [
        "Recommendation: other.",
        "It costs (medians of 3 seeds, with their range): longest single gap 8.0 s; un-owned time of a crash "
        "90.0 s; un-owned time of a deploy 210 s.",
        "Against the defaults (plain) it buys: un-owned time of a crash 500 s -> 90.0 s; un-owned time of a "
        "deploy 500 s -> 210 s. For that it costs: longest single gap 1.0 s -> 8.0 s.",
    ]


def test_the_spread_is_told_where_the_seeds_differ() -> None:
    several = [*runs(300, gap_s=1), *runs(305, gap_s=2), *runs(310, gap_s=4)]
    [_, price, *_] = recommendation(
        {"plain": runs(900, 900, 900), "other": several}, defaults(plain=0, other=1), UNOWNED
    )
    assert "longest single gap 2.0 s (1.0 s to 4.0 s)" in price


def test_a_winner_within_the_spread_is_no_winner_and_the_defaults_stay() -> None:
    variants = {"plain": runs(200, 400, 600), "other": runs(250, 300, 350)}
    said = recommendation(variants, defaults(plain=0, other=1), UNOWNED)
    assert said == [
        "No recommendation: between plain and other the seeds differ by as much as the settings do. Stay "
        "with plain, the defaults. The worst seed of other costs less than that of every other."
    ]


def test_what_may_be_much_better_is_named_and_not_called_nothing() -> None:
    """Medians of 225 s and 44 s, five notices apart; the least of the one lies in the range of the other."""
    variants = {
        "plain": runs(37, 225, 273, gap_s=9),
        "probe": runs(30, 44, 54, gap_s=3),
        "bad": runs(480, 490, 500),
    }
    said = recommendation(variants, defaults(plain=0, probe=1, bad=1), UNOWNED)
    assert said[:2] == [
        "Recommendation: plain, which has the defaults.",
        "Perhaps better is probe (un-owned time, in all 225 s (37.0 s to 273 s) -> 44.0 s (30.0 s to 54.0 "
        "s)): the seeds differ too much to tell, so try more of them.",
    ]


def test_what_is_better_in_one_figure_of_the_ranking_and_worse_in_another_is_a_choice() -> None:
    """19 notices of un-owned time against 11 of duplicates, where some seeds of the other have but 10."""
    variants = {
        "plain": [figures(unowned_partition_seconds=one, records_duplicated=0) for one in (900, 1440, 1450)],
        "hasty": [figures(unowned_partition_seconds=295, records_duplicated=1_100) for _ in range(3)],
        "bad": [figures(unowned_partition_seconds=9_000, records_duplicated=0) for _ in range(3)],
    }
    said = recommendation(variants, defaults(plain=0, hasty=1, bad=1))
    assert said[:2] == [
        "Recommendation: plain, which has the defaults.",
        "hasty is better in one figure (un-owned time, in all 24 min (15 min to 24 min 10 s) -> 295 s) and "
        "worse in another (records processed again 0 -> 1,100): choose by which of them counts.",
    ]


def test_what_is_calmer_with_the_worst_seed_is_named() -> None:
    """Medians of 52 s and 42 s are alike; a deploy of the one may cost 279 s, of the other 56 s."""
    variants = {
        "plain": runs(24, 52, 279, gap_s=9),
        "probe": runs(25, 42, 56, gap_s=3),
        "alike": runs(20, 50, 230, gap_s=9),
        "bad": runs(480, 490, 500),
    }
    said = recommendation(variants, defaults(plain=0, probe=1, alike=1, bad=1), UNOWNED)
    assert said[:2] == [
        "Recommendation: stay with plain, the defaults: alike buys nothing that a person would notice.",
        "As good in the median, but better with the worst seed, is probe (un-owned time, in all 52.0 s (24.0 "
        "s to 279 s) -> 42.0 s (25.0 s to 56.0 s)).",
    ]


@pytest.mark.parametrize(("nearer", "farther"), [(1, 2), (2, 3)])
def test_of_several_that_are_as_good_the_nearest_to_the_defaults_is_taken(nearer: int, farther: int) -> None:
    variants = {"far": runs(300), "near": runs(310), "plain": runs(2000)}
    said = recommendation(variants, defaults(far=farther, near=nearer, plain=0), UNOWNED)
    assert said[0] == "Recommendation: near. As good, but further from the defaults: far."


def test_what_is_as_near_to_the_defaults_is_not_called_further() -> None:
    variants = {"range": runs(300), "roundrobin": runs(310), "plain": runs(2000)}
    said = recommendation(variants, defaults(range=1, roundrobin=1, plain=0), UNOWNED)
    assert said[0] == "Recommendation: range. As good: roundrobin."


def test_of_the_same_settings_the_nearest_number_is_taken() -> None:
    variants = {"t15": runs(300), "t30": runs(310), "t90": runs(305)}
    distances = {"t15": Distance(1, 1.1), "t30": Distance(1, 0.4), "t90": Distance(1, 0.7)}
    sets = {"t15": "session.timeout.ms=15s", "t30": "session.timeout.ms=30s"}
    said = recommendation(variants, Defaults("session.timeout.ms=45s", distances, {}, sets=sets), UNOWNED)
    assert said[:2] == [
        "Recommendation: t30. As good, but further from the defaults: t15 and t90.",
        "Set session.timeout.ms=30s.",
    ]
    assert said[-1].startswith("None of these has the defaults (session.timeout.ms=45s): add them")
    assert said[:-1] == recommendation(variants, Defaults("", distances, {}, sets=sets), UNOWNED)


def test_of_those_as_good_the_nearest_is_taken_that_buys_something() -> None:
    """Nobody would notice a difference of 50 s or 40 s, between neighbours."""
    deploys = {"plain": 120.0, "near": 70.0, "far": 30.0}
    variants = {name: runs(cost, cost, deploy_s=cost) for name, cost in deploys.items()}
    first, _, against = recommendation(variants, defaults(plain=0, near=1, far=2), UNOWNED)
    assert first == "Recommendation: far. As good: near."
    assert "it buys: un-owned time of a deploy 120 s -> 30.0 s." in against


@pytest.mark.parametrize("seeds", [(300.0,), (300.0, 310.0)])
def test_nothing_is_recommended_if_no_figure_differs(seeds: tuple[float, ...]) -> None:
    """As if no step of the scenario reads the setting."""
    variants = {"a": runs(*seeds), "b": runs(*seeds)}
    none = "No recommendation: between a and b no figure of any seed differs"
    why = f"{none}: their settings change nothing in these runs."
    assert recommendation(variants, defaults(a=1, b=2), UNOWNED) == [why]
    assert recommendation(variants, defaults(a=0, b=2), UNOWNED) == [f"{why} Stay with a, the defaults."]


@pytest.mark.parametrize(("others", "told"), [("bcd", "b, c and d"), ("bcde", "4 others")])
def test_three_that_are_as_good_are_named_and_more_are_counted(others: str, told: str) -> None:
    variants = {name: runs(300 + seconds) for seconds, name in enumerate(f"a{others}")}
    distances = {name: Distance(int(name != "a"), 0.0) for name in variants}
    said = recommendation(variants, Defaults("session.timeout.ms=45s", distances, {}), UNOWNED)
    assert said[0].startswith(f"Recommendation: stay with a, the defaults: {told} buy nothing")


@pytest.mark.parametrize(
    ("more", "told"), [((), "one seed: no spread is known"), ((310,), "medians of 2 seeds, with their range")]
)
def test_two_seeds_have_a_spread_and_one_has_none(more: tuple[float, ...], told: str) -> None:
    said = recommendation({"a": runs(300, *more), "b": runs(900, *more)}, defaults(a=1, b=0), UNOWNED)
    assert said[1].startswith(f"It costs ({told}")


def test_what_a_person_just_notices_is_told_once_for_figures_that_say_nearly_the_same() -> None:
    """A gap of 10 s and one of 15 s; lag and staleness are of one family."""
    plain = figures(
        unowned_partition_seconds=900, unowned_max_seconds=15, lag_peak=90_000, staleness_max_seconds=90
    )
    other = figures(
        unowned_partition_seconds=300, unowned_max_seconds=10, lag_peak=10_000, staleness_max_seconds=10
    )
    said = recommendation({"plain": [plain], "other": [other]}, defaults(plain=0, other=1), UNOWNED)
    assert said[-1] == (
        "Against the defaults (plain) it buys: un-owned time, in all 15 min -> 300 s; the oldest unprocessed "
        "record 90.0 s -> 10.0 s; longest single gap 15.0 s -> 10.0 s. For that nothing gets noticeably "
        "worse."
    )


def test_a_configuration_that_cannot_keep_up_is_not_recommended() -> None:
    overloaded = figures(unowned_partition_seconds=0, lag_growth_per_second=100, staleness_max_seconds=60)
    variants = {"over": [overloaded], "a": runs(300), "b": runs(900)}
    said = recommendation(variants, defaults(over=0, a=1, b=1), UNOWNED)
    assert said[0] == "Recommendation: a."


def test_a_caution_belongs_to_what_is_recommended() -> None:
    variants = {"short": runs(100), "plain": runs(900)}
    said = recommendation(variants, defaults({"short": "Beware."}, short=1, plain=0), UNOWNED)
    assert said[-1] == "Beware."
    said = recommendation(variants, defaults({"plain": "Beware."}, short=1, plain=0), UNOWNED)
    assert "Beware." not in said


def test_nothing_is_recommended_if_less_than_two_can_be_ranked() -> None:
    assert recommendation({"a": runs(300)}, defaults(a=0), UNOWNED) == []


def test_what_the_seeds_explain_and_the_time_until_the_lag_was_back_are_not_told() -> None:
    def of(unowned_s: float, gaps_s: list[float], recovery_s: float) -> list[Figures]:
        return [
            figures(
                unowned_partition_seconds=unowned_s,
                unowned_max_seconds=gap_s,
                lag_recovery_seconds=recovery_s,
            )
            for gap_s in gaps_s
        ]

    variants = {"plain": of(900, [10, 50, 90], 4), "other": of(100, [60, 70, 80], 1_400)}
    said = recommendation(variants, defaults(plain=0, other=1), UNOWNED)
    assert said[-1] == (
        "Against the defaults (plain) it buys: un-owned time, in all 15 min -> 100 s. "
        "For that nothing gets noticeably worse."
    )


def test_the_sum_is_told_beside_deploys_and_crashes_only_if_it_went_the_other_way() -> None:
    """A cold start alone has neither."""

    def told(before: Figures, after: Figures) -> str:
        return changes_sentence(changes([before], [after], [before, after]))

    def costs(in_all_s: float, crash_s: float) -> Figures:
        return figures(unowned_partition_seconds=in_all_s, cost_per_crash_partition_seconds=crash_s)

    nothing = "For that nothing gets noticeably worse."
    assert told(costs(900, 0), costs(100, 0)) == f"it buys: un-owned time, in all 15 min -> 100 s. {nothing}"
    crash = "it buys: un-owned time of a crash 500 s -> 90.0 s"
    assert told(costs(900, 500), costs(100, 90)) == f"{crash}. {nothing}"
    assert told(costs(100, 500), costs(900, 90)) == (
        f"{crash}. For that it costs: un-owned time, in all 100 s -> 15 min."
    )


def test_without_a_price_nothing_is_said_of_it() -> None:
    none = {"unowned_max_seconds": None, "staleness_max_seconds": None, "records_duplicated": None}
    none |= dict.fromkeys(("cost_per_crash_partition_seconds", "cost_per_deploy_partition_seconds"))
    none |= {"task_downtime_seconds": None}
    variants = {name: [figures(generations=count, **none)] for name, count in (("plain", 90), ("other", 3))}
    said = recommendation(variants, defaults(plain=0, other=1), {"generations": 1.0})
    assert said[0] == "Recommendation: other."
    assert not any(sentence.startswith("It costs (") for sentence in said)


def test_of_several_that_are_as_good_by_the_ranking_one_that_another_beats_is_not_recommended() -> None:
    """The ranking is of un-owned time; the question may be about the balance, which only one of them has."""
    variants = {
        "plain": [figures(unowned_partition_seconds=30, imbalance_records_max=4_560)],
        "other": [figures(unowned_partition_seconds=1, imbalance_records_max=0)],
    }
    said = recommendation(variants, defaults(plain=0, other=1), UNOWNED)
    assert said[:2] == [
        "Recommendation: other.",
        "plain is as good by the ranking, but worse in records that one member has more than another.",
    ]
    assert said[-1].startswith(
        "Against the defaults (plain) it buys: records that one member has more than another 4,560 -> 0."
    )


def test_a_near_change_that_does_not_beat_the_defaults_is_not_taken_for_one_that_does() -> None:
    """The defaults have 300 moves, the near change 150, the far one 36: 200 fewer are noticed."""
    variants = {
        "plain": [figures(unowned_partition_seconds=1, moves=300)],
        "near": [figures(unowned_partition_seconds=1, moves=150)],
        "far": [figures(unowned_partition_seconds=1, moves=36)],
    }
    said = recommendation(variants, defaults(plain=0, near=1, far=2), UNOWNED)
    assert said[:2] == [
        "Recommendation: far. As good: near.",
        "plain is as good by the ranking, but worse in partitions moved.",
    ]
    assert said[-1].startswith("Against the defaults (plain) it buys: partitions moved 300 -> 36.")


def test_less_than_is_noticed_elsewhere_counts_in_a_figure_that_the_question_names() -> None:
    """14 rebalances more of static members that restart, at a weight of 10, against 50 s of a crash."""
    variants = {
        "shorter": [figures(generations=15, cost_per_crash_partition_seconds=92)],
        "plain": [figures(generations=1, cost_per_crash_partition_seconds=142)],
    }
    asked = {"generations": 10.0, "crash": 1.0}
    said = recommendation(variants, defaults(plain=0, shorter=1), asked)
    assert said[0] == "Recommendation: plain, which has the defaults."


def test_between_several_that_seeds_explain_the_nearest_is_taken_if_all_beat_the_rest() -> None:
    variants = {"plain": runs(2000, 2100), "near": runs(200, 400), "far": runs(250, 350)}
    said = recommendation(variants, defaults(plain=0, near=1, far=2), UNOWNED)
    assert said[0] == "Recommendation: near. As good, but further from the defaults: far."


def test_what_is_better_in_one_figure_beside_the_ranking_and_worse_in_another_is_told() -> None:
    variants = {
        "plain": [figures(unowned_partition_seconds=1, imbalance_records_max=4_560, moves=0)],
        "other": [figures(unowned_partition_seconds=1, imbalance_records_max=0, moves=900)],
    }
    said = recommendation(variants, defaults(plain=0, other=1), UNOWNED)
    assert said[:2] == [
        "Recommendation: plain, which has the defaults.",
        "other is as good by the ranking; it buys: records that one member has more than another 4,560 -> 0. "
        "For that it costs: partitions moved 0 -> 900.",
    ]


def test_generations_set_nothing_apart_that_is_as_good() -> None:
    """A cooperative rebalance has two generations, a group of KIP-848 one epoch: neither is a cost."""
    variants = {
        "classic": [figures(unowned_partition_seconds=1_000, generations=120)],
        "kip848": [figures(unowned_partition_seconds=1_000, generations=80)],
    }
    said = recommendation(variants, defaults(classic=1, kip848=1), UNOWNED)
    assert said[0] == "Recommendation: classic. As good: kip848."


def test_settings_that_contradict_themselves_are_not_recommended_however_the_runs_ended() -> None:
    variants = {"plain": runs(300), "short": runs(10), "long": runs(200)}
    sound = defaults(plain=0, short=1, long=2)

    def said(*contradictory: str) -> list[str]:
        return recommendation(variants, sound._replace(contradictory=frozenset(contradictory)), UNOWNED)

    assert said("short")[0] == "Recommendation: long."
    assert said("plain", "short")[0] == (
        "Recommendation: long, the only one that settles and keeps up and whose settings do not contradict "
        "themselves."
    )
    assert said(*variants) == []


def test_records_that_are_skipped_as_the_group_begins_set_nothing_apart() -> None:
    variants = {
        name: [replace(run, records_skipped=skipped, records_skipped_at_start=skipped) for run in runs(300)]
        for name, skipped in (("plain", 480), ("other", 120))
    }
    said = recommendation(variants, defaults(plain=0, other=1), UNOWNED)
    assert said[0].startswith("Recommendation: stay with plain, the defaults: other buys nothing")


@pytest.mark.parametrize(("load", "is_gain"), [(563, False), (365, True), (390, True), (90, True)])
def test_fewer_partitions_are_no_gain_if_their_load_is_worse(load: int, is_gain: bool) -> None:
    """A hot topic: range spreads it, and gives one member six partitions more that are nearly idle."""
    range_ = [figures(unowned_partition_seconds=80, imbalance_max=6, imbalance_records_max=365)]
    sticky = [figures(unowned_partition_seconds=80, imbalance_max=1, imbalance_records_max=load)]
    variants = {"range": range_, "sticky": sticky, "slow": runs(900)}
    first, *_ = recommendation(variants, defaults(range=0, sticky=1, slow=1), UNOWNED)
    assert first.startswith("Recommendation: sticky." if is_gain else "Recommendation: stay with range,")
    told = changes(range_, sticky, [*range_, *sticky])
    assert [change.measure.key for change in told] == (["imbalance"] if is_gain else [])
