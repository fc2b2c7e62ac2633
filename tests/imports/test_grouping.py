"""Observations of many groups in one log, which are read group by group."""

from __future__ import annotations

from pathlib import Path

import pytest

from groupstorm.imports.importing import Options
from tests.imports.importing import broker_line, import_texts, preparing, rows

NEW, OLD = ("pod-1-00000000-0000-0000-0000-00000000000" + digit for digit in "21")


def joins(time: str, group: str, member_id: str) -> str:
    return preparing(time, 0, f"Adding new member {member_id} with group instanceid Some(pod-1)", group=group)


def test_a_line_without_a_group_belongs_to_the_group_of_its_member(tmp_path: Path) -> None:
    """Kafka 2.3 does not name the group of a static member that comes back."""
    other = "pod-1-00000000-0000-0000-0000-000000000009"
    back = (
        f"Static member Some(pod-1) with unknown member id rejoins, assigning new member id {NEW}, "
        f"while old member {OLD} will be removed."
    )
    again = back.replace(OLD, other).replace(NEW, OLD).replace(other, NEW)
    text = (
        joins("10:00:00,000", "a", other)
        + joins("10:00:00,001", "b", OLD)
        + broker_line("10:00:09,000", back)
        + broker_line("10:00:19,000", again)
        + broker_line("10:00:29,000", back.replace(OLD, "nobody"))
    )
    import_texts(tmp_path, {"all.log": text})
    replaced = [
        (row["group"], row["previous_member_id"], row["member_id"])
        for row in rows(tmp_path, "member_replaced")
    ]
    assert replaced == [("b", OLD, NEW), ("b", NEW, OLD)]


@pytest.mark.parametrize(("others", "fenced"), [("", ["a"]), ("b", [])])
def test_a_chosen_group_has_no_line_of_another_one(tmp_path: Path, others: str, fenced: list[str]) -> None:
    """Kafka 4.4 does not name the group of a member that is fenced: it is the only one's."""
    text = joins("10:00:00,000", "a", "pod-1-00000000-0000-0000-0000-000000000009")
    text += joins("10:00:00,001", others, OLD) if others else ""
    text += broker_line(
        "10:00:09,000",
        f"Request memberId={OLD} for static member with groupInstanceId=pod-1 is fenced by existing "
        f"memberId={NEW} during operation heartbeat",
    )
    import_texts(tmp_path, {"all.log": text}, Options(groups=frozenset("a")))
    assert [row["group"] for row in rows(tmp_path, "request_refused")] == fenced


def test_groups_are_in_the_order_of_their_first_lines_and_rows_in_that_of_time(tmp_path: Path) -> None:
    text = "".join(
        joins(f"10:00:0{second},000", group, f"m-{group}-{second}")
        for second in range(5)
        for group in ("b", "c", "a")
    )
    done = import_texts(tmp_path, {"all.log": text})
    assert [group.name for group in done.groups] == ["b", "c", "a"]
    assert [(row["time_us"] // 1_000_000, row["group"]) for row in rows(tmp_path, "member_added")] == [
        (second, group) for second in range(5) for group in ("b", "c", "a")
    ]


def test_of_lines_that_no_records_were_taken_the_last_before_a_round_is_its_evidence(tmp_path: Path) -> None:
    refused = (
        "[2024-11-18 10:00:{:02},000] ERROR The size of the current ISR Set(0) is insufficient to satisfy "
        "the min.isr requirement of {} for partition __consumer_offsets-1 (kafka.server.ReplicaManager)\n"
    )
    failed = "error when storing group assignment during SyncGroup (member: m-a)"
    text = "".join(
        "".join(refused.format(10 * number + second, second) for second in range(2, 5))
        + preparing(f"10:00:{10 * number + 6},000", number, failed, group="a")
        for number in (1, 2)
    )
    import_texts(tmp_path, {"all.log": text})
    found = rows(tmp_path, "append_refused")
    assert [row["detail"] for row in found] == ["in sync: Set(0), needed: 4"] * 2
    places = [[place.rpartition(":")[2] for place in row["evidence"]] for row in found]
    assert places == [["4", "3"], ["8", "7"]]


def test_a_line_that_names_no_group_is_none_of_the_chosen_groups(tmp_path: Path) -> None:
    """Kafka's broker fences a static member without a word about its group."""
    fenced = (
        f"Request memberId={OLD} for static member with groupInstanceId=pod-9 is fenced by current memberId="
    )
    text = broker_line("10:00:00,000", f"{fenced}{NEW} during operation heartbeat") + joins(
        "10:00:09,000", "a", "m"
    )
    import_texts(tmp_path, {"all.log": text}, Options(groups=frozenset({"a"})))
    assert {row["group"] for row in rows(tmp_path)} == {"a"}
    import_texts(tmp_path, {"all.log": text})
    assert {row["group"] for row in rows(tmp_path)} == {"(unnamed)", "a"}
