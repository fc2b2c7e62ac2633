"""The smallest case that still differs: members, topics, partitions and fields are left out while it does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tests.oracle.running import Case
from tests.oracle.shrinking import Search

_KEPT_OF_A_CASE = ("id", "assignor", "topics", "members")
_KEPT_OF_A_MEMBER = ("id", "topics", "owned", "target")


def shrink(case: Case, differs: Callable[[Case], bool], tries_max: int = 3_000) -> Case:
    """A case of the same id, no part of which can be left out without the difference going.

    ``differs`` is asked about at most ``tries_max`` cases; what is left then may not be the smallest.
    """
    parts = (_without_topics, _without_fields, _without_elements, _fewer_partitions)
    return Search(case, differs, tries_max).smallest("members", *parts)


def _without(entries: dict[str, Any], name: str) -> dict[str, Any]:
    return {other: value for other, value in entries.items() if other != name}


def _without_topics(case: Case) -> Iterator[Case]:
    for topic in case["topics"]:
        yield {**case, "topics": _without(case["topics"], topic)}


def _without_fields(case: Case) -> Iterator[Case]:
    for name in case:
        if name not in _KEPT_OF_A_CASE:
            yield _without(case, name)
    for topic, entry in case["topics"].items():
        if "racks" in entry:
            yield {**case, "topics": {**case["topics"], topic: _without(entry, "racks")}}
    for place, member in enumerate(case["members"]):
        for name in member:
            if name not in _KEPT_OF_A_MEMBER:
                yield _with_member(case, place, _without(member, name))


def _with_member(case: Case, place: int, member: dict[str, Any]) -> Case:
    members = case["members"]
    return {**case, "members": [*members[:place], member, *members[place + 1 :]]}


def _without_elements(case: Case) -> Iterator[Case]:
    """Lists of topics and of partitions lose their first half, then their last, then single elements."""
    for place, member in enumerate(case["members"]):
        for name, value in member.items():
            if isinstance(value, list):
                for shorter in _shorter(value):
                    yield _with_member(case, place, {**member, name: shorter})
        for topic, partitions in member.get("target", {}).items():
            yield _with_member(case, place, {**member, "target": _without(member["target"], topic)})
            for shorter in _shorter(partitions):
                target = {**member["target"], topic: shorter}
                yield _with_member(case, place, {**member, "target": target})


def _shorter(listed: list[Any]) -> Iterator[list[Any]]:
    half = len(listed) // 2
    if half > 1:
        yield listed[half:]
        yield listed[:half]
    for place in range(len(listed)):
        yield listed[:place] + listed[place + 1 :]


def _fewer_partitions(case: Case) -> Iterator[Case]:
    for topic, entry in case["topics"].items():
        for count in (entry["partitions"] // 2, entry["partitions"] - 1):
            if 0 <= count < entry["partitions"]:
                fewer = {**entry, "partitions": count}
                if "racks" in entry:
                    fewer["racks"] = entry["racks"][:count]
                yield {**case, "topics": {**case["topics"], topic: fewer}}
