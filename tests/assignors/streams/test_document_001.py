"""Document 001, the draft of KIP-441, line by line."""

from __future__ import annotations

from typing import Any

import pytest

from groupstorm.assignors.streams.draft import wants_rebalance
from tests.assignors.streams.groups import active, assign, client, standby, task

FOUR = [task(f"0_{number}") for number in range(4)]


def draft(tasks: list[dict[str, Any]], clients: list[dict[str, Any]], **settings: Any) -> dict[str, Any]:
    return assign("kip441-draft", tasks, clients, **settings)


def test_line_13_stateless_tasks_go_to_their_previous_owner_up_to_the_average() -> None:
    tasks = [task(f"0_{number}", stateful=False) for number in range(4)]
    had = {"0_1": -2, "0_2": -2, "0_3": -2}
    found = draft(tasks, [client(1), client(2, had=had)])
    assert active(found) == {"1": ["0_0", "0_3"], "2": ["0_1", "0_2"]}


def test_line_14_else_to_the_largest_remaining_capacity() -> None:
    """Three threads and one: shares of three and one."""
    tasks = [task(f"0_{number}", stateful=False) for number in range(4)]
    found = draft(tasks, [client(1), client(2, capacity=3)])
    assert {name: len(own) for name, own in active(found).items()} == {"1": 1, "2": 3}


def test_line_18_the_smallest_gap_within_the_average() -> None:
    """Both have state of 0_0: the one that is nearer gets it, though it was not the owner of more."""
    found = draft(FOUR[:2], [client(1, had={"0_0": 500, "0_1": 10}), client(2, had={"0_0": 10, "0_1": 500})])
    assert active(found) == {"1": ["0_1"], "2": ["0_0"]}


def test_line_18_a_running_active_has_the_smallest_gap_and_the_unknown_one_the_largest() -> None:
    found = draft(FOUR[:1], [client(1, had={"0_0": -3}), client(2, had={"0_0": 9_999}), client(3)])
    assert active(found)["2"] == ["0_0"]
    found = draft(FOUR[:1], [client(1, had={"0_0": 0}), client(2, had={"0_0": -2})])
    assert active(found)["2"] == ["0_0"]


def test_line_19_nobody_had_it_so_the_largest_remaining_capacity() -> None:
    found = draft(FOUR, [client(1, capacity=1), client(2, capacity=3)])
    assert {name: len(own) for name, own in active(found).items()} == {"1": 1, "2": 3}


ALL_ON_ONE = [client(1, had={"0_0": -2, "0_1": -2, "0_2": -2, "0_3": -2}), client(2)]


def test_line_29_latency_keeps_the_task_and_forces_a_standby_on_the_candidate() -> None:
    found = draft(FOUR, ALL_ON_ONE, trade_off="latency")
    assert active(found) == {"1": ["0_0", "0_1", "0_2", "0_3"], "2": []}
    assert standby(found) == {"1": [], "2": ["0_2", "0_3"]}
    assert found["imbalanced"] == ["0_2", "0_3"]
    assert found["probing"] is True


def test_line_29_with_standbys_configured_none_is_forced() -> None:
    found = draft(FOUR, ALL_ON_ONE, trade_off="latency", num_standby_replicas=1)
    assert standby(found) == {"1": [], "2": ["0_0", "0_1", "0_2", "0_3"]}
    assert found["imbalanced"] == ["0_2", "0_3"]


def test_line_30_balance_goes_on_with_the_second_smallest_gap() -> None:
    clients = [
        client(1, had={"0_0": -2, "0_1": -2, "0_2": -2}),
        client(2, had={"0_2": 400}),
        client(3, had={"0_2": 100}),
    ]
    tasks = FOUR[:3]
    assert active(draft(tasks, clients, trade_off="balance")) == {"1": ["0_0"], "2": ["0_1"], "3": ["0_2"]}
    kept = draft(tasks, clients, trade_off="latency")
    assert active(kept) == {"1": ["0_0", "0_1", "0_2"], "2": [], "3": []}


def test_line_30_balance_marks_nothing() -> None:
    found = draft(FOUR, ALL_ON_ONE, trade_off="balance")
    assert {name: len(own) for name, own in active(found).items()} == {"1": 2, "2": 2}
    assert (found["imbalanced"], found["probing"]) == ([], False)


def test_line_34_standbys_by_the_smallest_gap_without_the_active_owner() -> None:
    clients = [client(1, had={"0_0": -2}), client(2, had={"0_0": 50}), client(3, had={"0_0": 5}), client(4)]
    found = draft(FOUR[:1], clients, num_standby_replicas=2)
    assert active(found)["1"] == ["0_0"]
    assert {name for name, own in standby(found).items() if own} == {"2", "3"}


def test_line_35_when_nobody_is_left_who_had_it_the_largest_remaining_capacity() -> None:
    found = draft(
        FOUR[:1], [client(1, had={"0_0": -2}), client(2), client(3, capacity=4)], num_standby_replicas=1
    )
    assert standby(found) == {"1": [], "2": [], "3": ["0_0"]}


@pytest.mark.parametrize(("replicas", "refused"), [(1, False), (2, True)])
def test_line_36_more_standbys_than_hosts_is_an_error(replicas: int, refused: bool) -> None:
    found = draft(FOUR[:1], [client(1), client(2)], num_standby_replicas=replicas)
    assert (found.get("error") == "TaskAssignmentException") == refused


def test_line_37_ties_go_to_the_fewest_tasks_of_the_same_topic_group() -> None:
    """Two sub-topologies of two tasks on two clients: each gets one of either, as no ProcessId explains."""
    tasks = [task(name) for name in ("0_0", "1_0", "1_1", "0_1")]
    found = draft(tasks, [client(1, had={"0_0": -2}), client(2)])
    assert active(found) == {"1": ["0_0", "1_0"], "2": ["0_1", "1_1"]}


def test_line_38_a_standby_owner_takes_the_task_over_once_its_gap_is_close_to_zero() -> None:
    """The document does not say how near "close to zero" is; to the letter no standby is as near as the
    task."""
    clients = [
        client(1, had={"0_0": -2, "0_1": -2, "0_2": -2, "0_3": -2}),
        client(2, had={"0_2": 10, "0_3": 11}),
    ]
    kept = draft(FOUR, clients, trade_off="latency")
    assert active(kept)["2"] == []
    assert kept["imbalanced"] == ["0_2", "0_3"]
    near = draft(FOUR, clients, trade_off="latency", near_zero_gap=10)
    assert active(near) == {"1": ["0_0", "0_1", "0_3"], "2": ["0_2"]}
    assert near["imbalanced"] == ["0_3"]
    done = draft(FOUR, clients, trade_off="latency", near_zero_gap=11)
    assert active(done) == {"1": ["0_0", "0_1"], "2": ["0_2", "0_3"]}
    assert (done["imbalanced"], done["probing"]) == ([], False)


def test_line_17_of_hosts_that_are_equally_near_one_that_does_not_exceed_the_average() -> None:
    """ "0_1" is as near on both; the first has its share already."""
    clients = [client(1, had={"0_0": 5, "0_1": 5}), client(2, had={"0_1": 5})]
    for trade_off in ("latency", "balance"):
        found = draft(FOUR[:2], clients, trade_off=trade_off)
        assert active(found) == {"1": ["0_0"], "2": ["0_1"]}
        assert found["imbalanced"] == []


def test_line_38_who_has_a_standby_of_an_imbalanced_task_is_told() -> None:
    found = draft(FOUR, ALL_ON_ONE, trade_off="latency")
    assert {name: own["error_code"] for name, own in found["clients"].items()} == {"1": 0, "2": 5}
    assert found["clients"]["2"]["watch"] == ["0_2", "0_3"]


def test_line_38_a_member_asks_for_a_rebalance_when_all_gaps_are_close_to_zero() -> None:
    assert not wants_rebalance({1: 3, 2: 70_000}, [1, 2], near_zero=10)
    assert wants_rebalance({1: 3, 2: 10}, [1, 2], near_zero=10)


def test_line_41_with_a_watch_list_the_other_standbys_do_not_matter() -> None:
    assert wants_rebalance({1: 3, 2: 70_000}, [1], near_zero=10)
    assert not wants_rebalance({1: 3}, [], near_zero=10)


def test_following_the_draft_until_it_settles() -> None:
    """The imbalance of line 29 is gone as soon as the standbys have caught up (line 38)."""
    caught_up = [
        client(1, had=dict.fromkeys(("0_0", "0_1", "0_2", "0_3"), -2)),
        client(2, had={"0_2": 0, "0_3": 0}),
    ]
    settled = draft(FOUR, caught_up, trade_off="balance")
    assert active(settled) == {"1": ["0_0", "0_1"], "2": ["0_2", "0_3"]}


def test_lines_22_to_26_the_old_algorithm_is_the_legacy_assignor() -> None:
    """Previous owner with capacity, then who had a standby, then the least loaded."""
    clients = [client(1, had={"0_0": -2}), client(2, had={"0_2": 5}), client(3, capacity=2)]
    found = assign("legacy-sticky", FOUR, clients)
    assert active(found) == {"1": ["0_0"], "2": ["0_2"], "3": ["0_1", "0_3"]}
