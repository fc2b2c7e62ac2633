"""Tasks to the threads of a client (KAFKA-10079, KAFKA-12959)."""

from __future__ import annotations

import random
from typing import Any

import pytest

from groupstorm.assignors.contract import AssignmentRefused
from groupstorm.assignors.streams.cases import answer, read_case
from groupstorm.assignors.streams.threads import assign_to_threads
from tests.assignors.streams.groups import assign, client, task
from tests.oracle.running import as_line

CONSUMERS = ["c1", "c2", "c3"]


def deal(
    tasks: int, previous: dict[str, list[int]] | None = None, load: dict[str, int] | None = None
) -> dict[str, list[int]]:
    return assign_to_threads(range(tasks), CONSUMERS, previous or {}, load or dict.fromkeys(CONSUMERS, 0))


def test_a_new_assignment_interleaves_sub_topologies() -> None:
    """Four tasks of one sub-topology, three of the next, two of the last: 0_0 0_3 1_2, and so on."""
    assert deal(9) == {"c1": [0, 3, 6], "c2": [1, 4, 7], "c3": [2, 5, 8]}


def test_a_member_that_joins_takes_as_little_as_balance_allows() -> None:
    previous = {"c1": [0, 2, 4, 6], "c2": [1, 3, 5, 7]}
    found = deal(8, previous)
    assert set(found["c1"]) <= set(previous["c1"])
    assert set(found["c2"]) <= set(previous["c2"])
    assert [len(own) for own in found.values()] == [3, 3, 2]


def test_members_that_stay_keep_everything_when_one_leaves() -> None:
    previous = {"c1": [0, 3], "c2": [1, 4], "c3": []}
    found = deal(9, previous)
    assert set(previous["c1"]) <= set(found["c1"])
    assert set(previous["c2"]) <= set(found["c2"])
    assert [len(own) for own in found.values()] == [3, 3, 3]


def test_what_a_thread_has_already_counts() -> None:
    """Standbys after active tasks: the thread with two gets none of the first two."""
    load = {"c1": 2, "c2": 1, "c3": 1}
    assert deal(2, load=load) == {"c1": [], "c2": [0], "c3": [1]}
    assert load == {"c1": 2, "c2": 2, "c3": 2}


def test_loads_that_are_too_far_apart_are_refused_as_in_kafka() -> None:
    """It counts on loads that it made itself."""
    with pytest.raises(AssignmentRefused, match="Ran out of unassigned stateful tasks"):
        deal(1, load={"c1": 9, "c2": 0, "c3": 0})


def test_whatever_was_before_all_is_dealt_evenly() -> None:
    generator = random.Random("threads")
    for _ in range(300):
        tasks = generator.randint(0, 20)
        previous: dict[str, list[int]] = {consumer: [] for consumer in CONSUMERS}
        for one in range(tasks):
            previous[generator.choice(CONSUMERS)].append(one)
        found = deal(tasks, previous)
        assert sorted(one for own in found.values() for one in own) == list(range(tasks))
        sizes = [len(own) for own in found.values()]
        assert max(sizes) - min(sizes) <= 1


def test_threads_are_in_the_answer_of_a_client_with_consumers() -> None:
    consumers: list[dict[str, Any]] = [
        {"id": "b", "owned_active": ["0_0"], "offset_sums": {"0_0": -2}},
        {"id": "a", "owned_active": ["0_1"], "offset_sums": {"0_1": -2}},
    ]
    own = {name: value for name, value in client(1).items() if name in {"id", "rack"}}
    found = assign("ha", [task("0_0"), task("0_1")], [client(2)])
    assert "threads" not in found["clients"]["2"]
    case = {
        "id": 1,
        "assignor": "ha",
        "tasks": [task("0_0"), task("0_1")],
        "clients": [{**own, "consumers": consumers}],
        "end_offset_sums": {"0_0": 9, "0_1": 9},
    }
    assert answer(read_case(as_line(case).encode(), "case"))["clients"]["1"]["threads"] == {
        "a": {"active": ["0_1"], "standby": []},
        "b": {"active": ["0_0"], "standby": []},
    }
