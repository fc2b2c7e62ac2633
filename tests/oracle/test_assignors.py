"""The assignors' harness without Java: our side stands in for Kafka's, and another has a fault put in."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.oracle.assignors.differential import Outcome, compare
from tests.oracle.assignors.faults import greedy, only_with_bug_compat, untidy
from tests.oracle.assignors.report import summary, transcript
from tests.oracle.assignors.sides import COMPATIBLE, CONSUMER, SERVER, MembersSide
from tests.oracle.running import Ask, Case, Seconds, as_line

_COUNT = 200

both_sides = pytest.mark.parametrize("side", [CONSUMER, SERVER], ids=lambda side: side.command)


def stand_in(side: MembersSide) -> Ask:
    """Our own assignors in Kafka's place, which answer as Kafka's do."""
    return lambda line: json.dumps(side.answer({**json.loads(line), "bug_compat": True}))


def run(side: MembersSide, faulty: MembersSide, count: int = _COUNT, shown_max: int = 1) -> Outcome:
    return compare(faulty, stand_in(side), side.random_cases(1, count), shown_max=shown_max)


# --- comparing -------------------------------------------------------------------------------------


@pytest.mark.slow
@both_sides
def test_equal_sides_have_no_differences(side: MembersSide) -> None:
    outcome = run(side, side)
    assert (outcome.count, outcome.different) == (_COUNT, [])
    assert {assignor for assignor, _ in outcome.cases} == set(side.assignors)
    assert outcome.invalid.total() >= outcome.refusals.total() > 0
    assert summary(outcome, side, 1, Seconds(1, 1, 1)).endswith("differences: 0")


@pytest.mark.slow
@both_sides
def test_a_fault_is_found_shrunk_and_printed(side: MembersSide) -> None:
    """Two members and a partition for the second: no less can show that something is assigned twice."""
    outcome = run(side, greedy(side))
    assert len(outcome.different) > _COUNT / 4
    ((case, verdict),) = outcome.found
    assert verdict.wrong == "with bug_compat it is not Kafka's"
    assert len(case["members"]) == 2
    assert sum(entry["partitions"] for entry in case["topics"].values()) <= 2
    assert set(case) == {"id", "assignor", "topics", "members"}
    text = summary(outcome, side, 1, Seconds(1, 1, 1))
    assert f"\ndifferences: {len(outcome.different)}\n" in text
    assert transcript(case, verdict) in text
    assert f"\n  {as_line(case)}\n  KAFKA " in text


def test_the_order_of_a_list_is_a_difference() -> None:
    outcome = run(CONSUMER, untidy(CONSUMER))
    ((case, verdict),) = outcome.found
    first = case["members"][0]["id"]
    kafkas, ours = verdict.kafkas["assignment"][first], verdict.ours[COMPATIBLE]["assignment"][first]
    assert kafkas == ours[::-1]
    assert len(kafkas) == 2


@pytest.mark.slow
@both_sides
def test_without_bug_compat_an_answer_has_to_be_valid(side: MembersSide) -> None:
    outcome = run(side, only_with_bug_compat(side), shown_max=0)
    assert len(outcome.different) == outcome.invalid.total() > 0
    by_id = {case["id"]: case for case in side.random_cases(1, _COUNT)}
    case = by_id[outcome.different[0]]
    verdict = only_with_bug_compat(side).judge(case, json.loads(stand_in(side)(as_line(case))))
    assert verdict.wrong == "it is not valid, nor is Kafka's"


# --- what is valid ---------------------------------------------------------------------------------

_PAIR = [{"id": "a", "topics": ["t"]}, {"id": "b", "topics": ["t", "u"]}]
_TWO_TOPICS = {"t": {"partitions": 2}, "u": {"partitions": 1}, "nobodys": {"partitions": 1}}


@pytest.mark.parametrize(
    ("assignment", "valid"),
    [
        ({"a": [["t", 0]], "b": [["u", 0], ["t", 1]]}, True),
        ({"a": [["t", 0]], "b": [["u", 0]]}, False),  # t-1 is missing
        ({"a": [["t", 0], ["t", 1]], "b": [["u", 0], ["t", 1]]}, False),  # t-1 is assigned twice
        ({"a": [["t", 0], ["t", 1], ["u", 0]], "b": []}, False),  # a has not subscribed to u
        ({"a": [["t", 0], ["t", 1], ["t", 2]], "b": [["u", 0]]}, False),  # there is no t-2
        ({"a": [["t", 0]], "b": [["u", 0], ["t", 1], ["nobodys", 0]]}, False),
    ],
)
@both_sides
def test_what_is_a_valid_assignment(
    side: MembersSide, assignment: dict[str, list[list[object]]], valid: bool
) -> None:
    case: Case = {"id": 1, "assignor": side.assignors[0], "topics": _TWO_TOPICS, "members": _PAIR}
    assert side.is_valid(case, {"id": 1, "assignment": assignment}) is valid
    assert not side.is_valid(case, {"id": 1, "error": "E", "message": ""})


@pytest.mark.parametrize(
    ("change", "valid"),
    [
        ({"constrained": True, "transferring": {"b": [["t", 1]]}}, True),
        ({"constrained": True, "transferring": {"b": [["t", 0]]}}, False),
        ({"constrained": True, "transferring": {"c": [["t", 1]]}}, False),  # c has subscribed to nothing
        ({"constrained": False}, True),  # a owned it
    ],
)
def test_cooperative_sticky_may_leave_out_what_changes_hands(change: dict[str, object], valid: bool) -> None:
    members = [{**_PAIR[0], "owned": [["t", 0], ["t", 1]]}, _PAIR[1], {"id": "c", "topics": []}]
    case: Case = {"id": 1, "assignor": "cooperative-sticky", "topics": _TWO_TOPICS, "members": members}
    answer = {"id": 1, "assignment": {"a": [["t", 0]], "b": [["u", 0]]}, **change}
    assert CONSUMER.is_valid(case, answer) is valid


# --- random cases ----------------------------------------------------------------------------------


@both_sides
def test_a_case_depends_on_seed_and_number_alone(side: MembersSide) -> None:
    few, many = list(side.random_cases(7, 20)), list(side.random_cases(7, 40))
    assert many[:20] == few
    assert [case["id"] for case in few[:3]] == ["7-0", "7-1", "7-2"]
    assert list(side.random_cases(8, 20)) != few
    json.dumps(many)


def _some(cases: list[Case], holds: Callable[[Case], bool]) -> bool:
    return 0 < sum(map(holds, cases)) < len(cases)


def _any_member(holds: Callable[[Case, Case], bool]) -> Callable[[Case], bool]:
    return lambda case: any(holds(case, member) for member in case["members"])


_BOTH: dict[str, Callable[[Case], bool]] = {
    "equal subscriptions": lambda case: len({frozenset(one["topics"]) for one in case["members"]}) == 1,
    "no topics": _any_member(lambda _, member: not member["topics"]),
    "a topic twice": _any_member(lambda _, member: len(set(member["topics"])) < len(member["topics"])),
    "no such topic": _any_member(lambda case, member: not set(member["topics"]) <= set(case["topics"])),
    "no partitions": lambda case: any(not entry["partitions"] for entry in case["topics"].values()),
    "static": _any_member(lambda _, member: "instance" in member),
    "beyond ASCII": _any_member(lambda _, member: not member["id"].isascii()),
    "beyond the BMP": _any_member(lambda _, member: any(ord(letter) > 0xFFFF for letter in member["id"])),
    "equal hashes": _any_member(lambda _, member: member["id"] == "BBBB"),
    "rack": _any_member(lambda _, member: "rack" in member),
}


def _claims(case: Case) -> list[tuple[str, int]]:
    owned = [(topic, number) for one in case["members"] for topic, number in one.get("owned", ())]
    targets = [one.get("target", {}) for one in case["members"]]
    return owned + [(topic, n) for target in targets for topic, numbers in target.items() for n in numbers]


_CLAIMS: dict[str, Callable[[Case], bool]] = {
    "nothing owned": lambda case: not _claims(case),
    "one of two": lambda case: len(set(_claims(case))) < len(_claims(case)),
    "nonexistent": lambda case: any(
        not 0 <= number < case["topics"].get(topic, {"partitions": 0})["partitions"]
        for topic, number in _claims(case)
    ),
    "negative": lambda case: any(number < 0 for _, number in _claims(case)),
}


def _of_version(number: int) -> Callable[[Case], bool]:
    return lambda case: case.get("version") == number


_CONSUMERS: dict[str, Callable[[Case], bool]] = {
    "generations": lambda case: len({member.get("generation") for member in case["members"]}) > 1,
    "racks": lambda case: any("racks" in entry for entry in case["topics"].values()),
    "garbage": _any_member(lambda _, member: "userdata_hex" in member),
    "generation of user data": _any_member(lambda _, member: "userdata_generation" in member),
    "bytes": lambda case: "emit_bytes" in case,
    "own version": _any_member(lambda _, member: "version" in member),
    **{f"version {number}": _of_version(number) for number in range(4)},
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("side", "traits"), [(CONSUMER, _BOTH | _CLAIMS | _CONSUMERS), (SERVER, _BOTH | _CLAIMS)]
)
def test_random_cases_have_every_trait_and_not_always(
    side: MembersSide, traits: dict[str, Callable[[Case], bool]]
) -> None:
    cases = list(side.random_cases(1, 400))
    assert [name for name, holds in traits.items() if not _some(cases, holds)] == []
    sizes = sorted(len(case["members"]) for case in cases)
    assert sizes[0] == 1
    assert sizes[len(sizes) // 2] < 20
    assert max(len(case["members"]) for case in side.random_cases(1, 2_000)) > 1_000
