"""The sentences of `advise` on a change: what it buys, and what it costs."""

from __future__ import annotations

from groupstorm.cli.advise import advice_sentences
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
