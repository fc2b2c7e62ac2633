"""Document 000, KAFKA-12464: its worked examples, its sketches' errors, and what two phases promise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from groupstorm.assignors import registry
from groupstorm.assignors.contract import TopicMetadata
from groupstorm.assignors.userdata import Subscription
from tests.assignors.groups import assign_case, numbers

SKETCHES = ["two-phase-sticky/pseudo-code", "two-phase-sticky/java-sketch"]
#: Lines 32 to 41: two consumers with five of ten partitions each, and a third one joins.
OWNED = {"C0": range(5), "C1": range(5, 10), "C2": range(0)}


def example(name: str, owned: Mapping[str, Sequence[int]], partitions: int = 10) -> dict[str, list[int]]:
    members = [
        {"id": member, "topics": ["t1"], "owned": [["t1", p] for p in mine], "generation": 1}
        for member, mine in owned.items()
    ]
    case = {"assignor": name, "protocol": "eager", "topics": {"t1": {"partitions": partitions}}}
    return {m: numbers(mine) for m, mine in assign_case(case | {"members": members})["assignment"].items()}


def test_lines_30_to_61_four_phases() -> None:
    """Keep up to 4; C2 gets what is free, t1p4 and t1p9; then it takes t1p3, C0's last one."""
    assert example("constrained-cooperative-sticky", OWNED) == {
        "C0": [0, 1, 2],
        "C1": [5, 6, 7, 8],
        "C2": [4, 9, 3],
    }


def test_lines_184_to_208_two_phases() -> None:
    """One member may keep 4, so C1 keeps 3, and C2 is filled with what is free."""
    assert example("two-phase-sticky", OWNED) == {"C0": [0, 1, 2, 3], "C1": [5, 6, 7], "C2": [4, 8, 9]}


def test_lines_145_to_180_give_the_example_of_line_184() -> None:
    assert example("two-phase-sticky/pseudo-code", OWNED) == example("two-phase-sticky", OWNED)


def test_line_244_lets_one_too_many_keep_four() -> None:
    """``numMaxCapacityMembers++ <= numExpectedMaxCapacityMembers``: 4/4/2, against line 206's 4/3/3."""
    assert example("two-phase-sticky/java-sketch", OWNED) == {
        "C0": [0, 1, 2, 3],
        "C1": [5, 6, 7, 8],
        "C2": [4, 9],
    }


def test_lines_156_to_167_forget_who_has_exactly_the_floor() -> None:
    """Three members with three each, and t1p9 is new: nobody is below C_f, so nobody gets it."""
    owned = {"C0": range(3), "C1": range(3, 6), "C2": range(6, 9)}
    kept = {member: list(mine) for member, mine in owned.items()}
    for name in SKETCHES:
        assert example(name, owned) == kept
    assert example("two-phase-sticky", owned) == kept | {"C0": [0, 1, 2, 9]}


def test_lines_156_to_180_assign_nothing_to_more_members_than_partitions() -> None:
    owned: dict[str, Sequence[int]] = dict.fromkeys(("a", "b", "c"), ())
    for name in SKETCHES:
        assert example(name, owned, partitions=2) == {"a": [], "b": [], "c": []}
    assert example("two-phase-sticky", owned, partitions=2) == {"a": [0], "b": [1], "c": []}


def test_line_169_sorts_by_partition_first() -> None:
    """Two topics: t0-0, t1-0, t2-0, t0-1, ..., handed out in runs."""
    topics = {"t1": TopicMetadata(2), "t0": TopicMetadata(3), "t2": TopicMetadata(1)}
    subscriptions = {member: Subscription(("t0", "t1", "t2")) for member in "ab"}
    result = registry.get("two-phase-sticky").assign(topics, subscriptions)
    assert [str(tp) for tp in result.partitions["a"]] == ["t0-0", "t1-0", "t2-0"]
    assert [str(tp) for tp in result.partitions["b"]] == ["t0-1", "t1-1", "t0-2"]


def test_lines_150_and_221_differ_in_who_comes_first() -> None:
    """The pseudo-code walks a sorted set, the Java a hash table, which yields C3, C4, C0, C1, C2."""
    owned = {f"C{n}": [2 * n, 2 * n + 1] for n in range(4)} | {"C4": []}
    members = [
        {"id": member, "topics": ["t1"], "owned": [["t1", p] for p in mine], "generation": 1}
        for member, mine in owned.items()
    ]
    case = {"assignor": "two-phase-sticky", "topics": {"t1": {"partitions": 8}}, "members": members}
    kept_two = {
        order: [m for m, mine in assign_case(case | {"order": order})["assignment"].items() if len(mine) == 2]
        for order in ("sorted", "java-hash")
    }
    assert kept_two == {"sorted": ["C0", "C1", "C2"], "java-hash": ["C0", "C1", "C3"]}


@pytest.mark.parametrize(
    ("generation", "expected"), [(5, {"a": [3, 0], "b": [1, 2]}), (4, {"a": [0, 2], "b": [1, 3]})]
)
def test_line_159_old_generations_count_for_nothing(generation: int, expected: dict[str, list[int]]) -> None:
    """Partitions that a member of an older generation owned are free, even if nobody else claims them."""
    members = [
        {"id": "a", "topics": ["t"], "owned": [["t", 3]], "generation": generation},
        {"id": "b", "topics": ["t"], "owned": [["t", 1]], "generation": 5},
    ]
    case = {"assignor": "two-phase-sticky", "topics": {"t": {"partitions": 4}}, "members": members}
    assert {m: numbers(mine) for m, mine in assign_case(case)["assignment"].items()} == expected


def test_line_158_what_does_not_exist_is_not_owned() -> None:
    """A topic that was left, one that is gone, and partitions of one that was created anew, smaller."""
    owned = [["t", 5], ["gone", 0], ["t", 0], ["t", 0], ["t", -1]]
    members = [
        {"id": "a", "topics": ["t"], "owned": owned, "generation": 5},
        {"id": "b", "topics": ["t"], "owned": [["t", 1]], "generation": 5},
    ]
    for name in ("two-phase-sticky", "constrained-cooperative-sticky", "optimal-sticky", *SKETCHES):
        case = {"assignor": name, "topics": {"t": {"partitions": 2}}, "members": members}
        assert assign_case(case)["assignment"] == {"a": [["t", 0]], "b": [["t", 1]]}


def test_unequal_subscriptions_go_to_the_general_form() -> None:
    members = [
        {"id": "a", "topics": ["t", "u"], "owned": [["t", 0], ["u", 0]], "generation": 5},
        {"id": "b", "topics": ["t"], "generation": 5},
    ]
    case = {"topics": {"t": {"partitions": 2}, "u": {"partitions": 1}}, "members": members}
    general = assign_case(case | {"assignor": "cooperative-sticky"})
    assert general["constrained"] is False
    for name in ("two-phase-sticky", "constrained-cooperative-sticky", *SKETCHES):
        assert assign_case(case | {"assignor": name})["assignment"] == general["assignment"]
