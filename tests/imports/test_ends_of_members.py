"""Members that come and go, where the coordinator's log and their own say it late or in part."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.imports.importing import (
    broker_line,
    emptied,
    generation,
    import_texts,
    java_line,
    joins,
    received,
    rows,
    stabilized,
)

A, B = "app-a-11111111-2222-3333-4444-555555555555", "app-b-11111111-2222-3333-4444-666666666666"
STATIC = "seat-11111111-2222-3333-4444-555555555555"
MODERN = "org.apache.kafka.coordinator.group.GroupMetadataManager"


def modern_line(time: str, message: str) -> str:
    place = "[GroupCoordinator id=1 topic=__consumer_offsets partition=0] [GroupId g]"
    return f"[2024-11-18 {time}] INFO {place} {message} ({MODERN})\n"


def removals(folder: Path) -> list[tuple[str, str, int]]:
    found = rows(folder, "member_removed")
    return [(row["member"], row["cause"], row["time_us"] // 1000) for row in found]


def evidence(row: Mapping[str, Any]) -> list[str]:
    return [place.rsplit("/", 1)[-1] for place in row["evidence"]]


#: Kafka 2.8 to 3.x: the group is empty first, and then comes the line about who has left.
EMPTIED = joins("10:00:00,000", 0, A) + stabilized("10:00:01,000", 1, 1) + emptied("10:00:09,000", 2)
LEFT = (
    f"Member MemberMetadata(memberId={A}, groupInstanceId=None, clientId=app-a, clientHost=/127.0.0.1, "
    "sessionTimeoutMs=6000, rebalanceTimeoutMs=6000, supportedProtocols=List(range)) has left group g "
    "through explicit `LeaveGroup`; client reason: not provided"
)


def test_the_line_after_the_empty_group_says_how_its_last_member_went(tmp_path: Path) -> None:
    import_texts(tmp_path, {"server.log": EMPTIED + broker_line("10:00:09,060", LEFT)})
    assert removals(tmp_path) == [("app-a", "left", 9_000)]
    (row,) = rows(tmp_path, "member_removed")
    assert evidence(row) == ["server.log:3", "server.log:4"]


def test_without_such_a_line_it_is_unknown(tmp_path: Path) -> None:
    import_texts(tmp_path, {"server.log": EMPTIED})
    assert removals(tmp_path) == [("app-a", "unknown", 9_000)]
    again = joins("10:01:00,000", 2, B)
    import_texts(tmp_path, {"server.log": EMPTIED + again + broker_line("10:01:00,001", LEFT)})
    assert removals(tmp_path)[0] == ("app-a", "unknown", 9_000)


def memberless(folder: Path) -> list[tuple[str, int]]:
    found = [row for row in rows(folder) if row["event"] in ("members_gone", "members_back")]
    return [(row["event"], row["time_us"] // 1000) for row in found]


def test_a_group_that_is_empty_has_no_members_until_one_comes(tmp_path: Path) -> None:
    again = joins("10:01:00,000", 2, B)
    import_texts(tmp_path, {"server.log": EMPTIED + again})
    assert memberless(tmp_path) == [("members_gone", 9_000), ("members_back", 60_000)]
    (gone,) = rows(tmp_path, "members_gone")
    assert gone["provenance"] == "inferred"
    assert evidence(gone) == ["server.log:3"]


ROUND = joins("10:00:00,010", 0, A) + stabilized("10:00:03,010", 1, 2) + received("10:00:03,050", 1)


def test_a_process_that_joins_in_a_round_of_another_one_comes_into_the_group(tmp_path: Path) -> None:
    """Before Kafka 4 no line of the coordinator says so: the member's own log does, if it has its start."""
    joined = java_line(
        "10:00:03,012", f"Successfully joined group with generation {generation(1, B)}", "app-b"
    )
    started = java_line("10:00:01,000", "Subscribed to topic(s): t", "app-b")
    import_texts(tmp_path, {"server.log": ROUND, "b.log": started + joined})
    found = rows(tmp_path, "member_added")
    assert [(row["member"], row["cause"]) for row in found] == [
        ("app-a", "new-member"),
        ("app-b", "new-member"),
    ]
    assert evidence(found[1]) == ["server.log:2", "b.log:2"]
    import_texts(tmp_path, {"server.log": ROUND, "b.log": joined})
    assert [row["member"] for row in rows(tmp_path, "member_added")] == ["app-a"]


GIVEN = java_line("10:00:03,060", "Adding newly assigned partitions: t-0", instance="seat")
REVOKED = java_line("10:00:20,000", "Revoke previously assigned partitions t-0", instance="seat")
JOINED = (
    java_line("10:00:01,000", "Subscribed to topic(s): t", instance="seat")
    + java_line(
        "10:00:03,012", f"Successfully joined group with generation {generation(1, STATIC)}", instance="seat"
    )
    + GIVEN
)


def test_a_static_member_that_says_nothing_more_was_closed(tmp_path: Path) -> None:
    import_texts(tmp_path, {"a.log": JOINED + REVOKED})
    assert [row["cause"] for row in rows(tmp_path, "partitions_revoked")] == ["close"]
    import_texts(tmp_path, {"a.log": (JOINED + REVOKED).replace("instanceId=seat, ", "")})
    assert [row["cause"] for row in rows(tmp_path, "partitions_revoked")] == ["rebalance"]


def test_a_static_member_that_says_that_it_leaves_was_closed(tmp_path: Path) -> None:
    leaves = java_line(
        "10:00:20,001",
        "Resetting generation and member id due to: consumer pro-actively leaving the group",
        instance="seat",
    )
    later = java_line("10:00:20,002", "Request joining group due to: group is rebalancing", instance="seat")
    import_texts(tmp_path, {"a.log": JOINED + REVOKED + leaves + later})
    assert [row["cause"] for row in rows(tmp_path, "partitions_revoked")] == ["close"]
    import_texts(tmp_path, {"a.log": JOINED + REVOKED + later})
    assert [row["cause"] for row in rows(tmp_path, "partitions_revoked")] == ["rebalance"]


def transition(time: str, epoch: int, before: str, state: str) -> str:
    return java_line(time, f"Member a-1 with epoch {epoch} transitioned from {before} to {state}.")


MODERN_SERVER = (
    modern_line("10:00:00,000", "Member a-1 joins the consumer group using the consumer protocol.")
    + modern_line("10:00:00,001", "Bumped group epoch to 2 with metadata hash 7.")
    + modern_line(
        "10:00:00,002", "Computed a new target assignment for epoch 2 with 'uniform' assignor in 1ms."
    )
    + modern_line("10:00:30,005", "Member a-1 left the consumer group.")
    + modern_line("10:00:30,006", "Bumped group epoch to 3.")
)
MODERN_CLIENT = (
    java_line("09:59:59,000", "Subscribed to topic(s): t")
    + transition("09:59:59,900", 0, "UNSUBSCRIBED", "JOINING")
    + transition("10:00:00,010", 2, "JOINING", "RECONCILING")
    + java_line("10:00:00,020", "Adding newly assigned partitions: [t-0]")
    + transition("10:00:00,030", 2, "RECONCILING", "ACKNOWLEDGING")
    + java_line("10:00:30,000", "Revoke previously assigned partitions [t-0]")
    + transition("10:00:30,001", 2, "STABLE", "PREPARE_LEAVING")
)


def test_a_static_member_of_a_consumer_group_goes_by_its_id_to_the_end(tmp_path: Path) -> None:
    """Only the line on its coming has it; its member id is a UUID."""
    comes = "Static member rXb7 with instance id seat-1 joins the consumer group using the consumer protocol."
    ends = "Member rXb7 fenced from the group because the member session expired."
    import_texts(
        tmp_path, {"server.log": modern_line("10:00:00,000", comes) + modern_line("10:05:00,000", ends)}
    )
    assert [row["member"] for row in rows(tmp_path, "member_removed")] == ["seat-1"]


def test_a_member_of_a_consumer_group_gives_up_its_partitions_before_it_says_that_it_leaves(
    tmp_path: Path,
) -> None:
    import_texts(tmp_path, {"server.log": MODERN_SERVER, "a.log": MODERN_CLIENT})
    (row,) = rows(tmp_path, "partitions_revoked")
    assert row["cause"] == "close"


def test_two_lines_of_one_revocation_are_one(tmp_path: Path) -> None:
    begins = java_line("10:00:29,000", "Revoking previously assigned partitions [t-0]")
    log = MODERN_CLIENT.replace("[2024-11-18 10:00:30,000]", begins + "[2024-11-18 10:00:30,000]")
    import_texts(tmp_path, {"server.log": MODERN_SERVER, "a.log": log})
    (row,) = rows(tmp_path, "partitions_revoked")
    assert evidence(row) == ["a.log:6"]


LEADER = java_line(
    "10:00:03,015",
    f"Finished assignment for group at generation 1: {{{STATIC}=Assignment(partitions=[t-0])}}",
    instance="seat",
)
SYNCED = java_line(
    "10:00:03,050", f"Successfully synced group in generation {generation(1, STATIC)}", instance="seat"
)


def test_without_a_coordinators_log_the_members_say_when_all_of_them_had_left(tmp_path: Path) -> None:
    log = JOINED.replace(GIVEN, LEADER + SYNCED + GIVEN) + REVOKED
    back = java_line("10:00:40,000", "Subscribed to topic(s): t", instance="seat")
    import_texts(tmp_path, {"a.log": log + back})
    assert memberless(tmp_path) == [("members_gone", 19_000), ("members_back", 39_000)]
    import_texts(tmp_path, {"a.log": log.replace(LEADER, "") + back})
    assert memberless(tmp_path) == []  # there may be other members


def test_a_generation_that_no_group_has_is_none(tmp_path: Path) -> None:
    """A damaged line has a number of more than 64 bits: the trace has no column for it."""
    log = JOINED + java_line(
        "10:01:00,000", f"Successfully joined group with generation {generation(10**20, STATIC)}"
    )
    import_texts(tmp_path, {"a.log": log})
    assert {row.get("generation") for row in rows(tmp_path, "join_answered")} == {1}
