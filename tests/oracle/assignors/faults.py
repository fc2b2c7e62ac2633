"""Sides with a fault put in, to see that the harness finds it."""

from __future__ import annotations

from tests.oracle.assignors.differential import Answer
from tests.oracle.assignors.sides import MembersSide
from tests.oracle.running import Case


def greedy(side: MembersSide) -> MembersSide:
    """Ours gives the last partition of the second member to the first as well."""

    def answer(case: Case) -> Answer:
        found = side.answer(case)
        lists = list(found.get("assignment", {}).values())
        if len(lists) > 1 and lists[1]:
            lists[0].append(lists[1][-1])
        return found

    return side._replace(answer=answer)


def untidy(side: MembersSide) -> MembersSide:
    """Ours lists the partitions of the first member backwards."""

    def answer(case: Case) -> Answer:
        found = side.answer(case)
        for listed in list(found.get("assignment", {}).values())[:1]:
            listed.reverse()
        return found

    return side._replace(answer=answer)


def only_with_bug_compat(side: MembersSide) -> MembersSide:
    """Ours refuses what Kafka refuses, asked or not."""
    return side._replace(answer=lambda case: side.answer({**case, "bug_compat": True}))
