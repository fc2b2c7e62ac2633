"""Where Kafka's sticky assignors throw or answer wrongly: as Kafka with bug_compat, validly without.

The cases are those of Kafka 4.3.1's defects; what Kafka does in each was seen by running it.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from groupstorm.assignors.cases import answers


def ask(bug_compat: bool = False, assignor: str = "cooperative-sticky", /, **case: Any) -> dict[str, Any]:
    line = json.dumps({"id": 1, "assignor": assignor, "bug_compat": bug_compat, **case})
    (answer,) = answers([line.encode()])
    return json.loads(answer)


def member(
    name: str, topics: list[str], owned: list[tuple[str, int]] | None = None, generation: int = 1
) -> dict[str, Any]:
    return {"id": name, "topics": topics, "owned": owned or [], "generation": generation}


def test_an_older_claim_on_a_topic_that_its_member_has_left_throws() -> None:
    """b only subscribes to u now, and is fixed; Kafka looks up its load all the same."""
    case: dict[str, Any] = {
        "topics": {"t": {"partitions": 2}, "u": {"partitions": 1}},
        "members": [
            member("a", ["t"], [("t", 0), ("t", 1)], 5),
            member("b", ["u"], [("t", 0)], 4),
            member("c", ["t"], [], 5),
        ],
    }
    assert ask(True, **case)["error"] == "NullPointerException"
    answer = ask(False, "sticky", **_with_user_data(case))["assignment"]
    assert sorted(answer["a"] + answer["c"]) == [["t", 0], ["t", 1]]
    assert answer["b"] == [["u", 0]]


UNSUBSCRIBED: dict[str, Any] = {
    "topics": {"topic-0": {"partitions": 1}, "topic-2": {"partitions": 2}},
    "members": [
        member("z", ["topic-2"], [("topic-0", 0)], 7),
        member("b", ["topic-0", "topic-2"], [("topic-2", 1), ("topic-0", 0)], 8),
        member("c", ["topic-0", "topic-2"], [], 8),
    ],
}


def _with_user_data(case: dict[str, Any]) -> dict[str, Any]:
    members = [{**member, "userdata_owned": member["owned"]} for member in case["members"]]
    return {**case, "members": members}


def test_the_general_form_gives_a_topic_to_a_member_without_it() -> None:
    """z claimed topic-0 in an older generation and has left it since."""
    case = _with_user_data(UNSUBSCRIBED)
    assert ["topic-0", 0] in ask(True, "sticky", **case)["assignment"]["z"]
    ours = ask(False, "sticky", **case)["assignment"]
    assert ["topic-0", 0] not in ours["z"]
    assert sorted(ours["z"] + ours["b"] + ours["c"]) == [["topic-0", 0], ["topic-2", 0], ["topic-2", 1]]


def test_topics_listed_twice_pass_for_equal_subscriptions() -> None:
    """[a, a] has the length of {a, b} and lies within it: Kafka calls them equal."""
    case: dict[str, Any] = {
        "topics": {"a": {"partitions": 2}, "b": {"partitions": 2}},
        "members": [member("m1", ["a", "b"]), member("m2", ["a", "a"])],
    }
    assert ask(True, **case)["constrained"]
    ours = ask(**case)
    assert not ours["constrained"]
    assert all(topic == "a" for topic, _ in ours["assignment"]["m2"])


@pytest.mark.parametrize(
    ("assignor", "error"),
    [
        ("sticky", "ArithmeticException"),
        ("cooperative-sticky", "ArithmeticException"),
        ("roundrobin", "IllegalArgumentException"),
    ],
)
def test_no_members_at_all(assignor: str, error: str) -> None:
    empty: dict[str, Any] = {"topics": {"t": {"partitions": 1}}, "members": []}
    assert ask(True, assignor, **empty)["error"] == error
    assert ask(False, assignor, **empty)["assignment"] == {}


def test_of_two_claims_of_one_generation_neither_counts() -> None:
    """On version 3 the generation decides, on version 1 whoever comes later (KAFKA-12984)."""
    claims = [member("a", ["t"], [("t", 0)], 5), member("b", ["t"], [("t", 0)], 4)]
    for claim in claims:
        claim["userdata_generation"] = claim["generation"]
    case = {"topics": {"t": {"partitions": 2}}, "members": claims}
    assert ["t", 0] in ask(version=3, **case)["assignment"]["a"]
    assert ["t", 0] in ask(version=3, **case | {"members": claims[::-1]})["assignment"]["a"]
    assert ["t", 0] in ask(version=1, **case)["assignment"]["b"]
    same = [member("a", ["t"], [("t", 0)], 5), member("b", ["t"], [("t", 0)], 5)]
    answer = ask(topics={"t": {"partitions": 2}}, members=same)
    assert [["t", 0]] in answer["transferring"].values()


def test_of_three_claims_even_the_newest_may_not_count() -> None:
    """Generations 5, 5, 6 in that order: the partition stays disputed, and the third loses it, too."""
    members = [
        member(name, ["t"], [("t", 0)], generation) for name, generation in (("a", 5), ("b", 5), ("c", 6))
    ]
    answer = ask(topics={"t": {"partitions": 3}}, members=members)
    assert [["t", 0]] in answer["transferring"].values()
    assert all(["t", 0] not in partitions for partitions in answer["assignment"].values())


def numbered(topic: str, numbers: range) -> list[tuple[str, int]]:
    return [(topic, number) for number in numbers]


#: a:t1, b:t0, c:t1 and d:t0 have settled, and e:t0,t1 joins. Kafka's Java had no answer after 15 s.
ENDLESS: dict[str, Any] = {
    "topics": {"t0": {"partitions": 9}, "t1": {"partitions": 17}},
    "members": [
        {"id": "a", "topics": ["t1"], "generation": 4, "userdata_owned": numbered("t1", range(8, 17))},
        {"id": "b", "topics": ["t0"], "generation": 4, "userdata_owned": numbered("t0", range(4, 9))},
        {"id": "c", "topics": ["t1"], "generation": 4, "userdata_owned": numbered("t1", range(8))},
        {"id": "d", "topics": ["t0"], "generation": 4, "userdata_owned": numbered("t0", range(4))},
        {"id": "e", "topics": ["t0", "t1"]},
    ],
}


def test_passes_that_go_round_in_circles_come_to_an_end() -> None:
    """Sending back what had moved may give to a member that has more than enough: Kafka goes on for ever."""
    assert ask(True, "sticky", **ENDLESS)["error"] == "NoAnswer"
    assignment = ask(False, "sticky", **ENDLESS)["assignment"]
    assert sorted(len(partitions) for partitions in assignment.values()) == [4, 5, 5, 6, 6]
    given = [tuple(partition) for partitions in assignment.values() for partition in partitions]
    assert sorted(given) == numbered("t0", range(9)) + numbered("t1", range(17))
