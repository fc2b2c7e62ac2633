"""A static member that comes back under a new id, which the line of its return does not say."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.imports.importing import import_texts, rows


def broker_lines(*messages: tuple[str, str], prefix: str = "[GroupCoordinator 1]: ") -> str:
    logger = "kafka.coordinator.group.GroupCoordinator"
    return "".join(f"[2026-11-23 {time}] INFO {prefix}{message} ({logger})\n" for time, message in messages)


SEAT_1 = "seat-1-070c6537-6e81-4781-916c-dc6e44c5f317"
STATIC = broker_lines(
    (
        "08:11:53,103",
        f"Static member with groupInstanceId=seat-1 and unknown member id joins group orders-static in Empty "
        f"state. Created a new member id {SEAT_1} for this member and added to the group.",
    ),
    prefix="[GroupCoordinator id=1 topic=__consumer_offsets partition=0] ",
)
SEAT_1_AGAIN = "seat-1-9e2c5b50-1dee-4330-8c61-b523210d500b"
RETURNED = broker_lines(
    (
        "08:12:00,000",
        "Static member with groupInstanceId=seat-1 and unknown member id joins group orders-static in Stable "
        f"state. Replacing previously mapped member {SEAT_1} with this groupInstanceId.",
    )
)


def test_a_later_line_says_the_new_id_of_a_static_member(tmp_path: Path) -> None:
    failed = f"Member {SEAT_1_AGAIN} in group orders-static has failed, removing it from the group."
    import_texts(tmp_path, {"server.log": STATIC + RETURNED + broker_lines(("08:12:30,000", failed))})
    (replaced,) = rows(tmp_path, "member_replaced")
    assert (replaced["previous_member_id"], replaced["member_id"]) == (SEAT_1, SEAT_1_AGAIN)
    assert (replaced["member"], replaced["provenance"]) == ("seat-1", "inferred")
    assert [place.rpartition(":")[2] for place in replaced["evidence"]] == ["2", "3"]
    (removed,) = rows(tmp_path, "member_removed")
    assert (removed["instance"], removed["time_us"] - replaced["time_us"]) == ("seat-1", 30_000_000)


def test_without_a_later_line_the_new_id_of_a_static_member_is_unknown(tmp_path: Path) -> None:
    import_texts(tmp_path, {"server.log": STATIC + RETURNED + RETURNED.replace("08:12", "08:13")})
    replaced = rows(tmp_path, "member_replaced")
    assert [row["member_id"] for row in replaced] == ["seat-1-unknown"] * 2
    assert [row["time_us"] for row in replaced] == [6_897_000, 66_897_000]
    assert {row["provenance"] for row in replaced} == {"missing"}
    assert {row["rule"] for row in replaced} == {
        "member_id: no line says it: add the log of the static member itself"
    }


@pytest.mark.parametrize("before", [STATIC, ""])
def test_the_id_of_another_member_is_not_the_new_id_of_a_static_member(tmp_path: Path, before: str) -> None:
    """The old id (that an earlier line names, or not), one of another instance, and a bare instance id."""
    names = (SEAT_1, SEAT_1_AGAIN.replace("seat-1", "seat-10"), "seat-1")
    others = [
        (f"08:12:0{at},000", f"Member {name} in group orders-static has failed, removing it from the group.")
        for at, name in enumerate(names, 1)
    ]
    import_texts(tmp_path, {"server.log": before + RETURNED + broker_lines(*others)})
    (replaced,) = rows(tmp_path, "member_replaced")
    assert replaced["member_id"] == "seat-1-unknown"
