"""Fuzzing: the same seed draws the same scenarios, planted faults are found, and what fails gets small."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from groupstorm.figures.table import Figures
from groupstorm.storms.scenario.files import load, parse
from groupstorm.storms.world.simulation import simulate
from tests.command import groupstorm, tool
from tests.soaking import in_soak, sizes
from tests.storms.planted_faults import BROKEN_RULES, PLANT
from tools.fuzz.campaign import Corpus, Order, Orders, Outcome, campaign
from tools.fuzz.drawing import FAULTS, Document, draw_scenario
from tools.fuzz.shrinking import shrink
from tools.fuzz.trial import try_scenario

DOUBLES = "tests.storms.planted_faults:DOUBLING"


def first_found(fixed: Mapping[str, Any], most: int = 400) -> Outcome:
    """The first scenario of a seed that fails, made smaller."""
    for outcome in campaign(Orders(0, most, fixed), processes=1):
        if outcome.found:
            return outcome
    raise AssertionError(f"nothing found in {most} scenarios")


def test_the_same_seed_draws_the_same_scenario_and_the_next_number_another() -> None:
    assert draw_scenario(3, 5, {}) == draw_scenario(3, 5, {})
    assert draw_scenario(3, 5, {}) != draw_scenario(3, 6, {})
    assert draw_scenario(3, 5, {}) != draw_scenario(4, 5, {})


@pytest.mark.slow
def test_every_drawn_scenario_can_be_run_and_all_kinds_of_faults_are_drawn() -> None:
    kinds: set[str] = set()
    for number in range(300):
        document = draw_scenario(0, number, {"tail_ms": 7})
        resolved = parse(yaml.safe_dump(document), "yaml", "drawn").resolve(None, None, {})
        assert resolved.settings.integer("tail_ms") == 7
        own = {step.do for step in resolved.steps[1:]}
        assert len(own) <= 4, "a run has a choice of kinds, not all of them"
        kinds |= own
    assert kinds == set(FAULTS)


@pytest.mark.parametrize("count", sizes(25, 10_000, within_minutes=60))
def test_drawn_scenarios_hold(count: int) -> None:
    processes = 1 if count < 100 else os.cpu_count() or 1
    found = [each for each in campaign(Orders(0, count, {}), processes) if each.found]
    assert [(each.order.number, each.kind) for each in found] == []


# -- planted faults --------------------------------------------------------------------------------


#: `tests/storms/checks` has a scenario for each of the others.
_WITHOUT_A_SCENARIO = (
    *("a_round_does_not_wait", "a_round_keeps_the_old_plan", "everyone_gets_one_assignment"),
    *("one_sync_is_never_answered", "sessions_never_end", "strangers_may_heartbeat"),
)
_OTHERS = sorted(set(PLANT) - {*_WITHOUT_A_SCENARIO, "strangers_count_as_settled", "joins_for_ever"})


@pytest.mark.slow
@pytest.mark.parametrize("fault", [*_WITHOUT_A_SCENARIO, *in_soak(*_OTHERS)])
def test_a_planted_fault_is_found_and_shrunk(monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    """It prints (-s) after how many scenarios, which invariant breaks, and how small the scenario became."""
    PLANT[fault](monkeypatch)
    found = first_found({}, most=200)
    members, steps = found.smallest["settings"]["members"], len(found.smallest["steps"])
    others = len(found.smallest["settings"]) - 3
    print(
        f"{fault}: {found.kind} in scenario {found.order.number + 1}; smallest: {members} members, "
        f"{steps} steps, {others} settings"
    )
    assert max(members - 4, steps - 3, others - 4) <= 0


def test_a_coordinator_rule_is_broken_in_each_of_ten_ways() -> None:
    assert len(set(BROKEN_RULES)) == 10
    assert set(BROKEN_RULES) <= set(PLANT)


def test_an_assignor_that_doubles_is_found_and_shrunk_to_two_members_and_one_partition() -> None:
    found = first_found({"partition.assignment.strategy": [DOUBLES]})
    assert found.kind == "one_owner_per_generation"
    assert found.smallest["settings"] == {"members": 2, "topics": 1, "partitions": 1}
    assert [step["do"] for step in found.smallest["steps"]] == ["start"]


# -- shrinking -------------------------------------------------------------------------------------


def test_shrinking_keeps_only_what_the_failure_needs() -> None:
    def fails(document: Document) -> bool:
        crashes = [step for step in document["steps"] if step["do"] == "crash" and 2 in step["members"]]
        return bool(crashes) and document["settings"].get("session.timeout.ms") == 6_000

    large: Document = {
        "name": "x",
        "seed": 77,
        "settings": {"members": 8, "topics": 3, "partitions": 12, "session.timeout.ms": 6_000, "tail_ms": 5},
        "steps": [
            {"at_ms": 0, "do": "start", "over_ms": 2_000},
            {"at_ms": 10_000, "do": "pause", "members": [2], "for_ms": 70_000},
            {"at_ms": 123_456, "do": "crash", "members": [1, 2, 5]},
            {"at_ms": 130_000, "do": "add", "count": 3},
        ],
    }
    smallest = shrink(large, fails)
    assert smallest["settings"] == {"members": 3, "topics": 1, "partitions": 1, "session.timeout.ms": 6_000}
    assert [step["do"] for step in smallest["steps"]] == ["start", "crash"]
    assert smallest["steps"][1]["members"] == [2]
    assert smallest["steps"][1]["at_ms"] <= 2_000
    assert smallest["seed"] == 0
    assert shrink(large, fails) == smallest


# -- the corpus and the command --------------------------------------------------------------------


def test_the_corpus_holds_scenario_files_and_a_scenario_has_one_file(tmp_path: Path) -> None:
    corpus = Corpus(tmp_path / "corpus")
    assert list(corpus.files()) == []
    document = draw_scenario(0, 1, {})
    path = corpus.keep(document, "group_settles", {"group_settles": "it did not"})
    assert corpus.keep(document, "group_settles", {"group_settles": "it did not"}) == path
    [(found, again)] = corpus.files()
    assert found == path
    assert again["steps"] == document["steps"]
    assert load(str(path)).question == "group_settles: it did not"


def test_an_exception_and_a_run_that_does_not_end_are_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise KeyError("member-7")

    monkeypatch.setattr("tools.fuzz.trial.simulate", broken)
    found = try_scenario(draw_scenario(0, 0, {}), {}, exact=False)
    assert found.kind == "no_exception"
    assert "KeyError" in found.broken["no_exception"]

    def endless(*_: Any) -> None:
        while True:
            pass

    monkeypatch.setattr("tools.fuzz.trial.simulate", endless)
    monkeypatch.setattr("tools.fuzz.trial.CPU_LIMIT_S", 0.2)
    found = try_scenario(draw_scenario(0, 0, {}), {}, exact=False)
    assert found.kind == "the_run_ends"


def test_an_exact_run_may_take_longer_and_is_broken_off_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def endless_if_exact(*given: Any) -> Figures:
        while given[-1]:
            pass
        return simulate(*given)

    monkeypatch.setattr("tools.fuzz.trial.simulate", endless_if_exact)
    monkeypatch.setattr("tools.fuzz.trial.EXACT_CPU_LIMIT_S", 0.2)
    found = try_scenario(draw_scenario(0, 0, {}), {}, exact=True)
    assert found.broken == {"the_run_ends": "the run was broken off after 0.2 s of CPU time"}


@pytest.mark.slow
def test_the_command_says_that_everything_held(tmp_path: Path) -> None:
    done = tool("fuzz", "--count", "3", "--processes", "1", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout.startswith("3 scenarios in ")
    assert "every invariant held" in done.stdout
    assert not (tmp_path / "fuzz-corpus").exists()


@pytest.mark.slow
def test_the_command_prints_the_smallest_scenario_and_tries_it_first_the_next_time(tmp_path: Path) -> None:
    own = ("--set", f"partition.assignment.strategy={DOUBLES}")
    done = tool("fuzz", "--count", "6", "--processes", "1", *own, cwd=tmp_path)
    assert done.returncode == 1
    assert "one_owner_per_generation: topic-0-0 is owned by member-0 and member-1" in done.stdout
    assert "smallest: 2 members, 1 topics of 1 partitions, 1 steps, 0 other settings" in done.stdout
    assert "again: " in done.stdout
    kept = sorted((tmp_path / "fuzz-corpus").glob("one_owner_per_generation-*.yaml"))
    again = groupstorm("run", str(kept[0]), *own, cwd=tmp_path)
    assert again.returncode == 1
    assert "one_owner_per_generation" in again.stderr
    replayed = tool("fuzz", "--count", "1", "--processes", "1", *own, cwd=tmp_path)
    assert replayed.returncode == 1
    assert f"{len(kept) + 1} scenarios in " in replayed.stderr


def test_orders_name_the_corpus_first() -> None:
    known = draw_scenario(9, 9, {})
    orders = Orders(0, 2, {}, [known])
    assert [orders[place] for place in range(len(orders))] == [
        Order(0, 0, {}, known),
        Order(0, 0, {}),
        Order(0, 1, {}),
    ]


def test_kafkas_own_behaviour_is_said_and_is_no_failure(tmp_path: Path) -> None:
    file = tmp_path / "fuzz-corpus" / "x.yaml"
    file.parent.mkdir()
    file.write_text(
        yaml.safe_dump(
            {
                "settings": {"members": 1, "partitions": 1, "group.instance.id": "ordinal", "start_ms": 0},
                "steps": [
                    {"at_ms": 0, "do": "start"},
                    {"at_ms": 10_000, "do": "add-partitions", "topic": "topic-0", "partitions": 2},
                    {"at_ms": 20_000, "do": "restart", "members": [0]},
                ],
            }
        )
    )
    done = tool("fuzz", "--count", "1", "--processes", "1", cwd=tmp_path)
    assert done.returncode == 0
    assert "x: a real group does this, too\n  no new assignment for topic-0-1: no owner" in done.stdout
    assert "Kafka itself: no new assignment (1).\n2 scenarios in " in done.stdout
    ran = groupstorm("run", str(file), "--out", "run", cwd=tmp_path)
    assert ran.returncode == 1
    assert "scenario (default), seed 0: a real group does this, too" in ran.stderr
    assert "an invariant broke" not in ran.stderr
    told = groupstorm("run", str(file), "--out", "r", "--set", "if_never_settled=report", cwd=tmp_path)
    assert told.returncode == 0
