"""The presets about Kafka Streams answer their questions."""

from __future__ import annotations

import pytest

from groupstorm.figures import Figures
from groupstorm.storms.checks.verdicts import HELD
from groupstorm.storms.scenario.files import load
from groupstorm.verdicts.comparison import compare_answer, one_run_each
from tests.storms.storms_in_memory import storm

#: What makes a preset small enough for a test.
SMALLER: dict[str, dict[str, object]] = {
    "stateful-warmup": {"topics": 1},
    "rack-bill": {"topics": 2, "partitions": 8, "least_duration_ms": 18_000_000},
    "standby-loss": {"topics": 1},
    "migrate-streams": {"topics": 1, "partitions": 6},
}


@pytest.fixture(scope="module")
def figures() -> dict[str, dict[str, Figures]]:
    return {
        preset: {
            variant: storm(preset, 0, variant, settings=smaller).figures for variant in load(preset).variants
        }
        for preset, smaller in SMALLER.items()
    }


@pytest.mark.slow
def test_all_invariants_hold(figures: dict[str, dict[str, Figures]]) -> None:
    for preset, variants in figures.items():
        for variant, found in variants.items():
            broken = {name: said for name, said in (found.invariants or {}).items() if said != HELD}
            assert not broken, (preset, variant)


def number(value: float | None) -> float:
    assert value is not None
    return value


@pytest.mark.slow
def test_stateful_warmup_sets_downtime_against_time_to_balance(
    figures: dict[str, dict[str, Figures]],
) -> None:
    found = figures["stateful-warmup"]
    for patient in ("shipped", "draft-latency"):
        for hasty in ("legacy-sticky", "draft-balance", "streams"):
            one, other = found[patient], found[hasty]
            assert number(one.task_downtime_max_seconds) < number(other.task_downtime_max_seconds) / 5
            assert number(one.converged_after_seconds) > number(other.converged_after_seconds) * 5
            assert one.tasks_from_scratch == 0
            assert number(other.tasks_from_scratch) > 0
            assert other.probing_rebalances == 0
    shipped, draft = found["shipped"], found["draft-latency"]
    assert number(shipped.probing_rebalances) > 1
    assert number(draft.converged_after_seconds) < number(shipped.converged_after_seconds), (
        "who watches its standbys need not wait for the next interval"
    )
    assert {each.task_imbalance for each in found.values()} == {0}
    sentence = compare_answer(one_run_each(found))
    assert "tasks were down for" in sentence
    assert f"({shipped.probing_rebalances} probing rebalances)" in sentence


@pytest.mark.slow
def test_rack_bill_shows_the_traffic_saved_and_its_cost(figures: dict[str, dict[str, Figures]]) -> None:
    found = figures["rack-bill"]
    dear = number(found["none"].cross_rack_usd)
    for strategy in ("min_traffic", "balance_subtopology"):
        assert number(found[strategy].cross_rack_usd) < 0.8 * dear
        assert number(found[strategy].converged_after_seconds) > 0
    once = {number(each.records_processed) - number(each.records_duplicated) for each in found.values()}
    assert len(once) == 1, "all of the same length"
    assert number(found["streams"].moves) < number(found["none"].moves) / 2, "no warm-ups, each a move"
    assert number(found["streams"].tasks_from_scratch) > number(found["none"].tasks_from_scratch)
    assert found["tags"].tasks_from_scratch == 0, "a zone that is lost takes no task's only standby with it"
    assert number(found["none"].tasks_from_scratch) > 0
    sentence = compare_answer(one_run_each(found))
    assert "From rack to rack went" in sentence
    assert f"({'$'}{dear:.2f}) under none" in sentence
    assert f"{found['none'].moves} moves and" in sentence


@pytest.mark.slow
def test_standby_loss_shows_that_the_placements_differ(figures: dict[str, dict[str, Figures]]) -> None:
    found = figures["standby-loss"]
    reliable = found["reliable-first"]
    for other in ("greedy", "shipped"):
        assert number(reliable.restored_bytes) <= number(found[other].restored_bytes)
        assert number(reliable.task_downtime_seconds) <= number(found[other].task_downtime_seconds)
        assert number(reliable.tasks_from_scratch) < number(found[other].tasks_from_scratch)


@pytest.mark.slow
def test_migrate_streams_shows_what_has_to_be_done_first(figures: dict[str, dict[str, Figures]]) -> None:
    found = figures["migrate-streams"]
    assert number(found["at-once"].task_downtime_seconds) > 10 * number(
        found["wait-first"].task_downtime_seconds
    )
    assert (found["at-once"].errors or {})["GROUP_ID_NOT_FOUND"] == 6, "every thread"
    for orderly in ("leave-first", "wait-first"):
        assert "GROUP_ID_NOT_FOUND" not in (found[orderly].errors or {})
        assert number(found[orderly].converged_after_seconds) > 0
    assert number(found["leave-first"].nobody_consuming_seconds) < number(
        found["wait-first"].nobody_consuming_seconds
    )
