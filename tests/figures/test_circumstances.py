"""Variants that differ in what befalls the group are not ranked together."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from groupstorm.figures import Figures
from groupstorm.figures.comparison import compare_sentences, one_run_each
from groupstorm.storms.choices import by_circumstances
from tests.figures.test_comparison_sentences import unowned
from tests.storms.test_choices import resolved

RUNS = {"short": unowned(10), "long": unowned(900), "long-static": unowned(100)}


def verdicts(circumstances: Mapping[str, Collection[str]], runs: Mapping[str, Figures] = RUNS) -> list[str]:
    sentences = compare_sentences(one_run_each(runs), None, None, circumstances)
    return [
        re.sub(r" by .*\)", "", sentence)
        for sentence in sentences
        if "est by" in sentence or "no best" in sentence or "no winner" in sentence
    ]


def test_only_variants_that_meet_the_same_are_ranked() -> None:
    apart = {"failover_ms=5s": ["short"], "failover_ms=120s": ["long", "long-static"]}
    assert verdicts(apart) == ["With failover_ms=120s: best: long-static."]
    assert verdicts({"": list(RUNS)}) == ["Best: short."]


def test_each_circumstance_has_its_own_verdict() -> None:
    runs = {**RUNS, "short-static": unowned(300)}
    apart = {"failover_ms=5s": ["short", "short-static"], "failover_ms=120s": ["long", "long-static"]}
    assert verdicts(apart, runs) == [
        "With failover_ms=5s: best: short.",
        "With failover_ms=120s: best: long-static.",
    ]


def test_no_choice_at_all_has_no_best() -> None:
    apart = {f"failover_ms={name}": [name] for name in RUNS}
    assert verdicts(apart) == ["There is no best variant: they differ in what befalls the group."]


def test_scenarios_are_grouped_by_what_befalls_them_and_not_by_what_is_chosen() -> None:
    found = by_circumstances(
        {
            "short": resolved(failover_ms=5_000),
            "long": resolved(failover_ms=120_000),
            "long-static": resolved(failover_ms=120_000, **{"group.instance.id": "ordinal"}),
        }
    )
    assert found == {"failover_ms=5s": ["short"], "failover_ms=120s": ["long", "long-static"]}
    both = {"few": resolved(members=2), "many": resolved(members=3)}
    assert by_circumstances(both) == {"": ["few", "many"]}
