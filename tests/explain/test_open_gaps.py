"""A partition that nobody takes up to the end costs the rebalance in which its owner gave it up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.explain.explaining import END_OF_FORMED, FORMED, explained, removed, round_of, trace_of


def of_member(s: float, event: str, member: str, *partitions: str, **more: Any) -> dict[str, Any]:
    row = {"s": s, "source": "member", "event": event, "member": member, "member_id": f"{member}-1"}
    known = {"partitions": partitions, "positions": [0] * len(partitions), "generation": 1, "duration_us": 0}
    return row | known | more


TAKEN = [
    {"s": 0, "source": "member", "event": "member_started", "member": "a", "topics": ["t"]},
    of_member(3.2, "partitions_assigned", "a", "t-0"),
    of_member(3.2, "partitions_assigned", "b", "t-1"),
]
REVOKED = {"committed": [0], "cause": "rebalance"}


def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: float(row["s"]))


#: An hour after the others, "b" leaves; "a" takes its partition.
LATER = [removed(3000, "b", "b-1", "left"), *round_of(3000, 3, "left", "b-1"), END_OF_FORMED]


@pytest.mark.parametrize(("revoked_s", "costs"), [(59.999, [0, 3540, 0]), (1000, [0, 0, 0])])
def test_a_later_rebalance_does_not_pay_for_it(tmp_path: Path, revoked_s: float, costs: list[int]) -> None:
    """A member gives up just before the round that it begins; without one it is an absence."""
    given_up = of_member(revoked_s, "partitions_revoked", "a", "t-0", **REVOKED)
    rows = [*TAKEN, *FORMED, *round_of(60, 2, "member-updated", "a-1"), given_up, *LATER]
    one = explained(trace_of(tmp_path, in_order(rows)))
    assert [round(each.unowned_us / 1e6) for each in one.history.rebalances] == costs
    assert [round(each.unowned_us / 1e6) for each in one.absences] == [2600] * (revoked_s == 1000)


def test_what_a_member_leaves_to_nobody_costs_the_rebalance_of_its_end(tmp_path: Path) -> None:
    closed = of_member(2999.9, "partitions_revoked", "b", "t-1", **(REVOKED | {"cause": "close"}))
    one = explained(trace_of(tmp_path, in_order([*TAKEN, *FORMED, closed, *LATER])))
    assert [round(each.unowned_us / 1e6) for each in one.history.rebalances] == [0, 600]
