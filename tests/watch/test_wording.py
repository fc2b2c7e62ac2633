"""A picture as lines and as JSON: what is known, what is a lower bound, what is unknown and why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from groupstorm.watch.group import GroupPicture
from groupstorm.watch.rolling import Rolling
from groupstorm.watch.wording import group_as_json, group_line, heading
from tests.explain.explaining import described_all_its_life, removed, state, storm
from tests.watch.rolling_rows import (
    GROUP,
    SECOND,
    SPAN_US,
    by_hand,
    generation_row,
    given,
    picture_of,
    rows_of,
)

UNKNOWN_STALENESS = "staleness unknown (no row says what members have processed)"


def picture(*rows: dict[str, Any], end_s: float) -> GroupPicture:
    rolling = Rolling(SPAN_US)
    rolling.add(by_hand(*rows))
    (one,) = rolling.pictures(SPAN_US, round(end_s * SECOND))
    return one


def test_times_of_the_coordinator_alone_are_lower_bounds() -> None:
    assert group_line(picture(*GROUP, end_s=30)) == (
        "g: 2 generations; un-owned at least 1.0 s in all, longest gap at least 1.0 s (t-1); "
        "2 rebalances: 1 left, 1 new-member; those of b cost most, at least 1.0 s un-owned; "
        f"{UNKNOWN_STALENESS}"
    )


def test_a_partition_that_has_no_owner_now_is_counted_until_now() -> None:
    one = picture(*GROUP[:-1], end_s=25)
    assert one.now.unowned == {"t-1": 20 * SECOND}
    assert "un-owned at least 5.0 s in all, longest gap at least 5.0 s (t-1), 1 partition now" in group_line(
        one
    )


def test_times_between_two_descriptions_are_no_cost_of_a_member(tmp_path: Path) -> None:
    rolling = Rolling(SPAN_US)
    rolling.add(rows_of(described_all_its_life(tmp_path)))
    (one,) = rolling.pictures(SPAN_US, 60 * SECOND)
    assert "at least 3 rebalances: 3 unknown; 2 members began most, 1 each; staleness" in group_line(one)


def test_a_group_that_never_had_all_its_partitions_has_unknown_times() -> None:
    one = picture(*GROUP[:4], end_s=5)
    why = "not every partition has had an owner yet"
    assert group_line(one) == (
        f"g: 0 generations; un-owned unknown ({why}); 1 rebalance: 1 new-member; begun by a; "
        f"{UNKNOWN_STALENESS}"
    )


def test_what_a_static_member_cost_is_unknown_and_says_why() -> None:
    back = {"s": 40, "event": "member_replaced", "member": "a", "member_id": "a-2", "generation": 2}
    back |= {"previous_member_id": "a-1", "instance": "pod-0"}
    line = group_line(picture(*GROUP, back, end_s=41))
    assert (
        "un-owned unknown (how long partitions waited for static members that restarted is not known" in line
    )
    gone = {**removed(50, "a", "a-2", "session-expired"), "instance": "pod-0"}
    open_round = state(50, "Stable", "PreparingRebalance", 2, "session-expired", member_id="a-2")
    static = {**GROUP[1], "instance": "pod-0"}
    again = given(41, "a-2", "t-0", "t-1")
    line = group_line(picture(GROUP[0], static, *GROUP[2:], back, again, gone, open_round, end_s=60))
    assert "since a coordinator does not hear when they stop), 2 partitions now; " in line


def test_a_group_that_was_described_now_and_then_may_have_had_more_rebalances() -> None:
    missing = {"s": 0, "source": "world", "event": "evidence_missing", "cause": "rebalances"}
    line = group_line(picture(missing | {"detail": "described"}, *GROUP, end_s=30))
    assert line.startswith("g: at least 2 generations; ")
    assert "; at least 2 rebalances: 1 left, 1 new-member; " in line


def test_a_group_in_which_nothing_happened() -> None:
    line = group_line(picture(*GROUP, end_s=1_000))
    assert line == f"g: 0 generations; un-owned at least 0 s in all; 0 rebalances; {UNKNOWN_STALENESS}"


def test_the_heading_says_which_rows_are_not_in_the_figures() -> None:
    rolling = Rolling(SPAN_US)
    assert heading(picture_of(rolling, 0), SPAN_US) == "no rows yet"
    rolling.add([generation_row(10)])
    rolling.too_late = 1
    assert heading(picture_of(rolling, 90 * SECOND, quiet_seconds=80), SPAN_US) == (
        "last 60.0 s, until 90.0 s of the trace, the last row came 80.0 s ago, "
        "10 rows of files that are late, 1 row came too late to count"
    )
    rolling.add(generation_row(seq) for seq in range(10))
    rolling.too_late = 0
    assert heading(picture_of(rolling, 10 * SECOND, quiet_seconds=0.9), SPAN_US) == (
        "last 10.0 s, until 10.0 s of the trace"
    )


def test_a_span_that_is_longer_than_what_was_kept_is_called_as_long_as_it_is() -> None:
    rolling = Rolling(SPAN_US, late_us=0, carried_rows=1)
    rolling.add(generation_row(seq) for seq in range(100))
    assert rolling.carry()
    assert heading(picture_of(rolling, 99 * SECOND, span_us=90 * SECOND), 90 * SECOND) == (
        "last 60.0 s, until 99.0 s of the trace, the last row came 1.5 s ago"
    )


def test_the_same_as_json() -> None:
    rolling = Rolling(SPAN_US)
    rolling.add(by_hand(*GROUP))
    whole = picture_of(rolling, 30 * SECOND, quiet_seconds=8.99951)
    (one,) = whole.groups
    found = group_as_json(one, whole, SPAN_US)
    figures = found.pop("figures")
    assert (figures["generations"], figures["unowned_partition_seconds"]) == (2, 1.0)
    assert found == {
        "group": "g",
        "window_seconds": 30,
        "until_seconds": 30,
        "last_row_age_seconds": 9.0,
        "missing_rows": 0,
        "rows_too_late": 0,
        "unowned_is_lower_bound": True,
        "unowned_is_unknown": None,
        "unowned_now": [],
        "rebalances": {"left": 1, "new-member": 1},
        "rebalances_by_culprit": {"a": 1, "b": 1},
        "culprit": "b",
        "staleness_seconds": None,
        "lag_records": None,
    }


def test_the_culprit_is_who_cost_most_and_then_who_began_most() -> None:
    a, b = ("x", "a"), ("y", "b")
    one = picture(*GROUP, end_s=30)
    one.begun.clear()
    one.unowned_us_by.clear()
    assert one.culprit == ""
    one.begun.update({a: 1, b: 1})
    assert "; 2 members began most, 1 each; " in group_line(one)
    one.begun.update({a: 1, ("z", ""): 9})
    assert one.culprit == "a"
    assert "; a began most, 2; " in group_line(one)
    one.unowned_us_by.update({b: 1, ("z", ""): 9})
    assert one.culprit == "b"


def test_nobody_owns_a_partition_of_a_share_group() -> None:
    begun = {"s": 0, "source": "member", "event": "share_consumer_started", "member": "a", "topics": ["t"]}
    line = group_line(picture(begun, end_s=5))
    assert "un-owned unknown (nobody owns a partition of a share group)" in line


def test_nobody_is_to_blame_for_the_start_of_a_storms_group(tmp_path: Path) -> None:
    rows = rows_of(storm(tmp_path / "x", "cold-start", "delay-3s", {"members": 3, "partitions": 6}))
    rolling = Rolling(SPAN_US)
    rolling.add(rows)
    (one,) = rolling.pictures(10**12, rows[-1].time_us)
    assert one.begun["pending-member", ""] == 1
