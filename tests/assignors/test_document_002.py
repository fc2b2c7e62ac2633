"""Document 002, KAFKA-9987's constrained-cooperative-sticky: phase by phase, and the cooperative rounds."""

from __future__ import annotations

import time
from typing import Any

from groupstorm.assignors import registry
from groupstorm.assignors.contract import RebalanceProtocol, TopicMetadata
from groupstorm.assignors.userdata import Subscription
from tests.assignors.groups import assign_case, numbers

NAME = "constrained-cooperative-sticky"


def member(name: str, owned: range | list[int] = range(0), generation: int = 1) -> dict[str, Any]:
    return {"id": name, "topics": ["t"], "owned": [["t", p] for p in owned], "generation": generation}


def assign(members: list[dict[str, Any]], partitions: int, protocol: str = "eager") -> dict[str, list[int]]:
    case = {"assignor": NAME, "protocol": protocol, "topics": {"t": {"partitions": partitions}}}
    return {m: numbers(mine) for m, mine in assign_case(case | {"members": members})["assignment"].items()}


def test_lines_41_to_52_declare_name_and_protocols() -> None:
    assignor = registry.get(NAME)
    assert assignor.name == NAME
    assert assignor.protocols == (RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER)
    assert assignor.needs_equal_subscriptions


def test_lines_74_to_84_keep() -> None:
    """C_f = 2, C_c = 3: one below, one at C_f, one above; the last keeps its first three."""
    members = [member("a", [7]), member("b", [5, 4]), member("c", [3, 2, 1, 0])]
    assert assign(members, 8) == {"a": [7, 0, 6], "b": [5, 4], "c": [3, 2, 1]}


def test_lines_82_to_84_nobody_is_above_where_floor_and_ceiling_are_one() -> None:
    """P = 6, N = 3: were the owner of three queued as "at C_c", two would be stolen down to 1."""
    assert assign([member("a", range(6)), member("b"), member("c")], 6) == {
        "a": [0, 1],
        "b": [2, 3],
        "c": [4, 5],
    }


def test_lines_86_and_92_hand_out_runs_sorted_by_partition_first() -> None:
    topics = {"t0": TopicMetadata(2), "t1": TopicMetadata(3), "t2": TopicMetadata(1)}
    subscriptions = {name: Subscription(("t0", "t1", "t2")) for name in "ba"}
    result = registry.get(NAME).assign(topics, subscriptions)
    assert [str(tp) for tp in result.partitions["a"]] == ["t0-0", "t1-0", "t2-0"]
    assert [str(tp) for tp in result.partitions["b"]] == ["t0-1", "t1-1", "t1-2"]


def test_lines_95_to_98_steal_until_a_member_is_full() -> None:
    """C_f = 2, C_c = 3, nothing is free: d needs two, the last of a's and the last of b's."""
    members = [member("a", [0, 1, 2]), member("b", [3, 4, 5]), member("c", [6, 7, 8]), member("d")]
    assert assign(members, 9) == {"a": [0, 1], "b": [3, 4], "c": [6, 7, 8], "d": [2, 5]}


def test_lines_101_to_103_go_on_with_the_next_member() -> None:
    """C_f = 1, C_c = 2: a has two already; the two that are left go to b and c, not both to b."""
    members = [member("d", [5]), member("c", [4]), member("b", [3]), member("a", [0, 1])]
    assert assign(members, 7) == {"d": [5], "c": [4, 6], "b": [3, 2], "a": [0, 1]}


def test_line_76_an_older_claim_does_not_count_but_withholds_the_partition() -> None:
    """a has missed a generation: its partition may go to b, but only once a has let go of it."""
    members = [member("a", [3], generation=4), member("b", [0], generation=5)]
    assert assign(members, 4) == {"a": [1, 2], "b": [0, 3]}
    assert assign(members, 4, "cooperative") == {"a": [1, 2], "b": [0]}
    members[0]["owned"] = []
    assert assign(members, 4, "cooperative") == {"a": [1, 2], "b": [0, 3]}


def test_line_76_an_older_claim_takes_nothing_from_the_owner() -> None:
    """a still says that it has what b was given meanwhile: b keeps it, nothing is withheld from b."""
    members = [member("a", [0], generation=4), member("b", [0, 1], generation=5)]
    assert assign(members, 4, "cooperative") == {"a": [2, 3], "b": [0, 1]}


def test_lines_32_to_34_withhold_what_changes_hands() -> None:
    """Withheld in the first round, handed out in the second, when its owner has revoked it."""
    first = assign([member("a", range(4)), member("b")], 4, "cooperative")
    assert first == {"a": [0, 1], "b": []}
    second = assign([member("a", first["a"], 2), member("b", first["b"], 2)], 4, "cooperative")
    assert second == {"a": [0, 1], "b": [2, 3]}


def test_two_claims_of_one_generation_are_void_and_handed_out_in_the_next_round() -> None:
    members = [member("a", [0, 1]), member("b", [0, 2])]
    assert assign(members, 4, "cooperative") == {"a": [1], "b": [2, 3]}
    assert assign(members, 4) == {"a": [1, 0], "b": [2, 3]}


def test_line_15_2100_consumers_and_2100_partitions() -> None:
    """2.5 minutes with the algorithm before it, says the page."""
    topics = {"t": TopicMetadata(2100)}
    subscriptions = {f"consumer-{number}": Subscription(("t",)) for number in range(2100)}
    start = time.thread_time()
    result = registry.get(NAME).assign(topics, subscriptions)
    assert time.thread_time() - start < 2
    assert {len(partitions) for partitions in result.partitions.values()} == {1}
