"""The sentences of `advise` on a change: what it buys, and what it costs."""

from __future__ import annotations

from groupstorm.cli.advise import advice_grid, advice_sentences
from groupstorm.verdicts.alternatives import Alternative
from groupstorm.verdicts.requirements import parse
from groupstorm.whatif.advising import Advice, Tried
from tests.verdicts.test_comparison import figures

STATIC = Alternative("static", 2, "", {"group.instance.id": "ordinal"})


def tried(*changes: Alternative, generations: int, unowned_s: float) -> Tried:
    return Tried(changes, (figures(generations=generations, unowned_partition_seconds=unowned_s),), 45_000)


def test_what_gets_worse_is_a_cost_and_nothing_that_a_change_buys() -> None:
    plain = tried(generations=16, unowned_s=223)
    static = tried(STATIC, generations=0, unowned_s=656)
    advice = Advice("generations", plain, [static], static)
    said = [*advice_sentences(advice, [parse("generations==0")])]
    assert said[1] == "static buys: generations 16 -> 0."
    assert said[2] == "It costs: un-owned time, in all 223 s -> 10 min 56 s."


def test_another_that_does_it_has_its_worst_cost_and_is_not_praised_alone() -> None:
    plain = tried(generations=16, unowned_s=171)
    sticky = tried(Alternative("sticky", 2, "", {}), generations=0, unowned_s=148)
    static = tried(STATIC, generations=0, unowned_s=4_800)
    advice = Advice("generations", plain, [sticky, static], sticky, others=[static, sticky])
    said = [*advice_sentences(advice, [parse("generations==0")])]
    assert said[-1] == ("Others do it, too: static (but un-owned time, in all 171 s -> 1 h 20 min), sticky.")


def test_a_column_without_values_is_left_out() -> None:
    """Nobody owns a partition of a share group."""
    plain, static = (Tried(one, (figures(generations=4),), 45_000) for one in ((), (STATIC,)))
    grid = advice_grid(Advice("generations", plain, [static], static), [], everything=True)
    assert [*grid.headings] == ["change", "generations", "death noticed after"]


def test_a_cost_is_told_of_every_figure_that_people_notice() -> None:
    plain = Tried((), (figures(generations=16, staleness_max_seconds=2.0),), 45_000)
    static = Tried((STATIC,), (figures(generations=0, staleness_max_seconds=90.0),), 45_000)
    advice = Advice("generations", plain, [static], static)
    said = [*advice_sentences(advice, [parse("generations==0")])]
    assert said[2] == "It costs: the oldest unprocessed record 2.0 s -> 90.0 s."


def test_the_smallest_of_changes_that_are_as_good_may_leave_a_little_more_than_others() -> None:
    plain, small = tried(generations=2, unowned_s=191), tried(STATIC, generations=2, unowned_s=90)
    large = tried(Alternative("sticky", 2, "", {}), generations=2, unowned_s=32)
    advice = Advice("unowned_partition_seconds", plain, [small, large], small, others=[large])
    least = "the least un-owned time, in all"
    among = f"the smallest change among those with {least}, as far as a person would notice"
    assert next(advice_sentences(advice, [])) == f"Change static: {among}."
    alone = Advice("unowned_partition_seconds", plain, [large], large)
    assert next(advice_sentences(alone, [])) == f"Change sticky: {least}."


def test_one_of_two_changes_may_buy_nothing_by_itself() -> None:
    plain, limit = tried(generations=16, unowned_s=8), Alternative("limit", 2, "", {"a": 1})
    alone = tried(limit, generations=16, unowned_s=8)
    both = tried(STATIC, limit, generations=0, unowned_s=8)
    said = [*advice_sentences(Advice("generations", plain, [alone, both], both), [parse("generations==0")])]
    assert said[1:3] == ["limit buys: nothing by itself.", f"{both.label} buys: generations 16 -> 0."]
