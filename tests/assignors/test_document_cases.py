"""`groupstorm assign` for the documents' assignors: their fields, their answers, and wrong input."""

from __future__ import annotations

import json
from typing import Any

import pytest

from groupstorm.assignors.cases import answers
from groupstorm.assignors.userdata import decode_assignment
from groupstorm.assignors.userdata.sticky import decode_epoch
from groupstorm.problems import InputError
from tests.assignors.groups import assign_case

OWNER = {"id": "a", "topics": ["t"], "owned": [["t", 0], ["t", 1]], "generation": 3}
NEWCOMER = {"id": "b", "topics": ["t"]}
CASE: dict[str, Any] = {
    "id": 7,
    "topics": {"t": {"partitions": 2}},
    "members": [OWNER, NEWCOMER],
}


@pytest.mark.parametrize(
    ("assignor", "protocol", "handed_to_b"),
    [
        ("constrained-cooperative-sticky", None, []),
        ("constrained-cooperative-sticky", "cooperative", []),
        ("constrained-cooperative-sticky", "eager", [["t", 1]]),
        ("two-phase-sticky", None, [["t", 1]]),
        ("optimal-sticky", None, [["t", 1]]),
        ("optimal-sticky", "cooperative", []),
        ("optimal-sticky/cooperative", None, []),
    ],
)
def test_the_protocol_decides_whether_what_moves_is_withheld(
    assignor: str, protocol: str | None, handed_to_b: list
) -> None:
    found = assign_case(CASE | {"assignor": assignor, "protocol": protocol})
    assert found == {"id": 7, "assignment": {"a": [["t", 0]], "b": handed_to_b}}


@pytest.mark.parametrize("version", [None, 0, 1, 2, 3])
@pytest.mark.parametrize("assignor", ["two-phase-sticky", "optimal-sticky"])
def test_an_eager_members_user_data_survives_every_version(assignor: str, version: int | None) -> None:
    """It owns nothing by the time it joins, and below version 1 there is no owned list at all."""
    told = {"id": "b", "topics": ["t"], "userdata_owned": [["t", 0]], "userdata_generation": 3}
    case = CASE | {"assignor": assignor, "members": [{"id": "a", "topics": ["t"]}, told], "version": version}
    assert assign_case(case)["assignment"] == {"a": [["t", 1]], "b": [["t", 0]]}


@pytest.mark.parametrize("version", [None, 0, 3])
def test_stream_join_user_data_and_epoch(version: int | None) -> None:
    members = [
        {"id": "a", "topics": ["t", "u"]},
        {"id": "b", "topics": ["t", "u"], "userdata_partitions": [0], "userdata_epoch": 3},
    ]
    topics = {"t": {"partitions": 2}, "u": {"partitions": 2}}
    case = {"assignor": "stream-join-sticky", "topics": topics, "members": members, "version": version}
    found = assign_case(case | {"emit_bytes": True})
    assert found["assignment"] == {"a": [["t", 1], ["u", 1]], "b": [["t", 0], ["u", 0]]}
    assert found["epoch"] == 4
    for member, partitions in found["assignment"].items():
        sent = decode_assignment(bytes.fromhex(found["bytes"][member]))
        assert [list(tp) for tp in sent.partitions] == partitions
        assert decode_epoch(sent.user_data) == 4


def test_stream_join_defaults() -> None:
    """An epoch not told is the generation; owned partitions tell their numbers; nothing told is nothing."""
    members: list[dict[str, Any]] = [
        {"id": "a", "topics": ["t"], "userdata_partitions": [1], "generation": 5},
        {"id": "b", "topics": ["t"], "userdata_owned": [["t", 0], ["t", 1]], "userdata_generation": 4},
        {"id": "c", "topics": ["t"], "userdata_partitions": [2]},
        {"id": "d", "topics": ["t"], "userdata_hex": "00"},
    ]
    case = {"assignor": "stream-join-sticky", "topics": {"t": {"partitions": 4}}, "members": members}
    found = assign_case(case)
    assert found["assignment"] == {"a": [["t", 1]], "b": [["t", 0]], "c": [["t", 2]], "d": [["t", 3]]}
    assert found["epoch"] == 6


def test_fields_of_others_are_passed_over() -> None:
    member = OWNER | {"userdata_partitions": "no list", "userdata_epoch": None}
    case = CASE | {"assignor": "range", "members": [member], "protocol": "neither"}
    assert assign_case(case)["assignment"] == {"a": [["t", 0], ["t", 1]]}


@pytest.mark.parametrize(
    ("assignor", "change", "told"),
    [
        ("optimal-sticky", {"protocol": "lazy"}, 'protocol: "lazy": expected one of eager, cooperative'),
        ("two-phase-sticky/pseudo", {}, "assignor 'two-phase-sticky/pseudo': did you mean two-phase-sticky"),
        (
            "stream-join-sticky",
            {"userdata_partitions": 3},
            "members.0.userdata_partitions: 3: expected a list",
        ),
        ("stream-join-sticky", {"userdata_partitions": ["x"]}, 'partitions.0: "x": expected an integer'),
        ("stream-join-sticky", {"userdata_epoch": 2**31}, "userdata_epoch: 2147483648: expected an integer"),
        ("stream-join-sticky", {"userdata_epoch": "3"}, 'userdata_epoch: "3": expected an integer'),
        ("two-phase-sticky", {"owned": [["t", 1.5]]}, "owned.0.1: 1.5: expected an integer"),
    ],
)
def test_a_wrong_field_is_named(assignor: str, change: dict[str, Any], told: str) -> None:
    case = CASE | {"assignor": assignor} | {name: v for name, v in change.items() if name == "protocol"}
    case["members"] = [OWNER | {name: v for name, v in change.items() if name != "protocol"}]
    with pytest.raises(InputError) as raised:
        list(answers([json.dumps(case).encode()]))
    assert str(raised.value).startswith("line 1: field ")
    assert told in str(raised.value)


@pytest.mark.parametrize(
    "assignor",
    [
        "optimal-sticky",
        "constrained-cooperative-sticky",
        "two-phase-sticky",
        "two-phase-sticky/pseudo-code",
        "two-phase-sticky/java-sketch",
        "stream-join-sticky",
    ],
)
@pytest.mark.parametrize(
    "member",
    [
        {"userdata_hex": "ff" * 40},
        {"userdata_hex": "7fffffff"},
        {"userdata_hex": ""},
        {"topics": []},
        {"topics": ["t", "t"]},
        {"topics": ["empty"]},
        {"owned": [["t", 0], ["t", 0], ["t", -1], ["t", 99], ["gone", 0]], "generation": -7},
        {"generation": 2**31 - 1, "owned": [["t", 0]]},
    ],
)
def test_odd_members_cost_nobody_a_partition(assignor: str, member: dict[str, Any]) -> None:
    """All of t beside a plain member, each partition once; only the sketches may forget some."""
    members = [{"id": "odd", "topics": ["t"]} | member, {"id": "plain", "topics": ["t"]}]
    topics = {"t": {"partitions": 3}, "empty": {"partitions": 0}}
    found = assign_case({"assignor": assignor, "topics": topics, "members": members, "protocol": "eager"})
    given = sorted(p for mine in found["assignment"].values() for _, p in mine)
    assert given == [0, 1, 2] or ("/" in assignor and len(set(given)) == len(given))
    assert all(t in dict.fromkeys(members[0]["topics"]) for t, _ in found["assignment"]["odd"])
