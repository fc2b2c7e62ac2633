"""Variants that differ in what befalls the group are not ranked together."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

import yaml

from groupstorm.figures import Figures
from groupstorm.history.reasons import Reasons
from groupstorm.report.sweeps import sweep_answer
from groupstorm.storms.runs.choices import by_circumstances
from groupstorm.storms.runs.run import run
from groupstorm.storms.runs.several import recommended, sentences
from groupstorm.storms.runs.sweep import Sweep, parse_axis
from groupstorm.storms.runs.sweep_runs import run_sweep
from groupstorm.storms.scenario.files import load
from groupstorm.verdicts.comparison import compare_sentences, one_run_each
from groupstorm.whatif.advising import Search
from tests.storms.storms_in_memory import START, scenario
from tests.storms.test_choices import resolved
from tests.verdicts.test_comparison_sentences import unowned

NO_BEST = "There is no best variant: they differ in what befalls the group or in figures_from."
RUNS = {"short": unowned(10), "long": unowned(900), "long-static": unowned(100)}


def all_sentences(circumstances: Mapping[str, Collection[str]], runs: Mapping[str, Figures]) -> list[str]:
    return compare_sentences(one_run_each(runs), None, None, circumstances)


def verdicts(circumstances: Mapping[str, Collection[str]], runs: Mapping[str, Figures] = RUNS) -> list[str]:
    return [
        re.sub(r" by .*\)", "", sentence)
        for sentence in all_sentences(circumstances, runs)
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
    assert verdicts(apart) == [NO_BEST]


def test_two_variants_that_differ_in_what_befalls_them_are_no_choice_either() -> None:
    runs = {"short": RUNS["short"], "long": RUNS["long"]}
    apart = {"failover_ms=5s": ["short"], "failover_ms=120s": ["long"]}
    assert verdicts(apart, runs) == [NO_BEST]


def test_a_variant_is_not_told_apart_from_one_that_cannot_be_ranked() -> None:
    never = replace(RUNS["long"], invariants={"group_settles": "members leave and join for ever"})
    runs = {"short": RUNS["short"], "never": never}
    apart = {"failover_ms=5s": ["short"], "failover_ms=120s": ["never"]}
    assert verdicts(apart, runs) == []
    assert any("never: the group did not come to rest" in sentence for sentence in all_sentences(apart, runs))


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


def test_figures_that_begin_at_different_times_are_not_ranked_together() -> None:
    early = resolved(**{"group.initial.rebalance.delay.ms": 0})
    late = replace(resolved(), figures_from_ms=30_000)
    alike = {"none": early, "three": resolved(), "kip848": resolved(**{"group.protocol": "consumer"})}
    assert by_circumstances(alike) == {"": [*alike]}
    assert by_circumstances({**alike, "late": late}) == {
        "figures_from=0 s": [*alike],
        "figures_from=30.0 s": ["late"],
    }


def test_a_group_that_waits_for_the_initial_delay_is_behind_one_that_does_not(tmp_path: Path) -> None:
    """Four members start at once: without a delay they share the partitions milliseconds later."""
    small = {"members": 4, "partitions": 12, "record_rate": 20}
    found = {
        name: [run(scenario([START], **small, **settings).resolve(None, 0, {}), tmp_path / name)]
        for name, settings in (("three", {}), ("none", {"group.initial.rebalance.delay.ms": 0}))
    }
    waited, at_once = (runs[0].figures.unowned_partition_seconds or 0 for runs in found.values())
    assert 12 * 6 < waited < 12 * 6.1, "the delay, which those who join in it prolong once"
    assert 0 < at_once < 1
    assert sentences(found)[0].endswith(": none.")
    assert recommended(found)[0] == "Recommendation: none."
    late = {name: replace(runs[0].scenario, figures_from_ms=9_000) for name, runs in found.items()}
    found["none"] = [run(late["none"], tmp_path / "late")]
    assert sentences(found)[0].startswith("The figures of some variants begin later than those of others")
    assert "There is no best variant" in sentences(found)[1]


def test_a_group_that_mostly_starts_says_nothing_about_its_steps(tmp_path: Path) -> None:
    """12 partitions wait 6 s for the group's start; a pause of 12 s under a session of 10 s costs less."""
    pause = {"at_ms": 120_000, "do": "pause", "members": [0], "for_ms": 12_000}
    small = {"members": 4, "partitions": 12, "record_rate": 20}
    found = {
        name: [run(scenario([START, pause], **small, **settings).resolve(None, 0, {}), tmp_path / name)]
        for name, settings in (("short", {"session.timeout.ms": 10_000}), ("default", {}))
    }
    [said] = recommended(found)
    assert said.startswith("No recommendation: ")
    assert "the group's start, and the first step (pause) comes 120 s later" in said
    later = {
        name: [run(replace(runs[0].scenario, figures_from_ms=120_000), tmp_path / f"{name}-later")]
        for name, runs in found.items()
    }
    assert recommended(later)[0] == "Recommendation: default, which has the defaults."
    figures = {
        name: replace(runs[0].figures, unowned_partition_seconds=100.0) for name, runs in found.items()
    }
    for start_us, says_nothing in (
        (50_000_000, False),
        (50_000_001, True),
    ):  # it has to be more than the rest
        half = Reasons(start_us=start_us)
        runs = {name: [replace(each[0], figures=figures[name], reasons=half)] for name, each in found.items()}
        assert recommended(runs)[0].startswith("No recommendation") is says_nothing
        assert not any("the group's start" in sentence for sentence in recommended(runs, {"load": 1}))


def test_sweep_and_advise_know_a_start_that_outweighs_the_steps(tmp_path: Path) -> None:
    pause = {"at_ms": 120_000, "do": "pause", "members": [0], "for_ms": 12_000}
    file = tmp_path / "scenario.yaml"
    written = {"name": "x", "settings": {"members": 4, "partitions": 12}, "steps": [START, pause]}
    file.write_text(yaml.safe_dump(written), "utf-8")
    axis = parse_axis("session.timeout.ms=10s,45s", load(str(file)))
    swept = Sweep(str(file), None, (axis,), 0, 1, {})
    [said] = sweep_answer(swept, run_sweep(swept, lambda done, total: None), [], None)
    assert said.startswith("No recommendation: ")
    assert "the group's start, and the first step (pause) comes 120 s later" in said
    asked = Search(Sweep(str(file), None, (), 0, 1, {}), [], 400, lambda done, total: None).advise()
    assert asked.chosen is None
    assert asked.reason.startswith("nothing is advised: ")
    assert not asked.tried
