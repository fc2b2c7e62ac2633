"""Whether an answer is a valid assignment: where Kafka's is not, ours is held against this instead."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from tests.oracle.assignors.differential import Answer
from tests.oracle.running import Case

Partition = tuple[str, int]


def consumer_is_valid(case: Case, answer: Answer) -> bool:
    """Each partition that exists and is subscribed to is assigned once, to a subscriber; nothing else is.

    cooperative-sticky leaves out what changes hands: what it names, or, in the general form, what is owned.
    """
    if not _is_clean(case, answer):
        return False
    missing = _wanted(case) - set(_pairs(answer["assignment"].values()))
    if case["assignor"] != "cooperative-sticky":
        return not missing
    if answer["constrained"]:
        changing = answer["transferring"]
        return missing <= set(_pairs(changing.values())) <= _wanted(case) and _to_subscribers(case, changing)
    return missing <= set(_pairs(member.get("owned", ()) for member in case["members"]))


def server_is_valid(case: Case, answer: Answer) -> bool:
    """Each partition that exists and is subscribed to is assigned once, to a subscriber; nothing else is."""
    return _is_clean(case, answer) and _wanted(case) == set(_pairs(answer["assignment"].values()))


def _pairs(lists: Iterable[Iterable[list[Any]]]) -> Iterator[Partition]:
    return ((topic, number) for topic, number in chain.from_iterable(lists))


def _wanted(case: Case) -> set[Partition]:
    subscribed = {topic for member in case["members"] for topic in member["topics"]}
    return {
        (topic, number)
        for topic, entry in case["topics"].items()
        if topic in subscribed
        for number in range(entry["partitions"])
    }


def _is_clean(case: Case, answer: Answer) -> bool:
    """It is an answer in which nothing is assigned twice, does not exist, or goes to a non-subscriber."""
    if "error" in answer:
        return False
    assigned = list(_pairs(answer["assignment"].values()))
    return (
        _to_subscribers(case, answer["assignment"])
        and len(set(assigned)) == len(assigned)
        and set(assigned) <= _wanted(case)
    )


def _to_subscribers(case: Case, given: dict[str, list[Any]]) -> bool:
    topics = {member["id"]: set(member["topics"]) for member in case["members"]}
    return all(topic in topics[member] for member, listed in given.items() for topic, _ in listed)
