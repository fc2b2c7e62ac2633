"""Rounds of classic groups from a broker's log: states, causes, members, and what the log does not say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from groupstorm.imports.importing import Options
from groupstorm.problems import InputError
from tests.imports.importing import (
    OFFSETS,
    broker_line,
    emptied,
    failed,
    figures,
    import_texts,
    joins,
    preparing,
    received,
    rows,
    stabilized,
    states,
)

A, B = "app-a-11111111-2222-3333-4444-555555555555", "app-b-11111111-2222-3333-4444-666666666666"
ROUND = (
    broker_line(
        "10:00:00,000",
        f"Dynamic member with unknown member id joins group g in Empty state. Created a new member id {A} "
        "and request the member to rejoin with this id.",
    )
    + broker_line(
        "10:00:00,010",
        f"Preparing to rebalance group g in state Empty with old generation 0 ({OFFSETS}) "
        f"(reason: Adding new member {A} with group instance id None; client reason: need to re-join with "
        f"the given member-id: {A})",
    )
    + stabilized("10:00:03,010", 1, 1)
    + received("10:00:03,050", 1, 1, leader=A)
    + failed("10:05:00,000", A)
    + preparing("10:05:00,000", 1, f"removing member {A} on heartbeat expiration")
    + emptied("10:05:00,001", 2)
)


def test_a_group_from_its_first_member_to_its_last(tmp_path: Path) -> None:
    import_texts(tmp_path, {"server.log": ROUND})
    assert states(tmp_path) == [
        ("Empty", "PreparingRebalance", "pending-member", 0),
        ("PreparingRebalance", "CompletingRebalance", "initial-delay", 1),
        ("CompletingRebalance", "Stable", "assigned", 1),
        ("Stable", "PreparingRebalance", "session-expired", 1),
        ("PreparingRebalance", "Empty", "no-members", 2),
    ]
    (removed,) = rows(tmp_path, "member_removed")
    assert (removed["member"], removed["member_id"], removed["cause"]) == ("app-a", A, "session-expired")
    assert removed["time_us"] == 300_000_000


def test_all_groups_of_a_log_and_one_of_them(tmp_path: Path) -> None:
    text = ROUND + ROUND.replace("group g", "group my other group!")
    import_texts(tmp_path, {"server.log": text})
    assert {row["group"] for row in rows(tmp_path)} == {"g", "my other group!"}
    import_texts(tmp_path, {"server.log": text}, Options(groups=frozenset({"g"})))
    assert {row["group"] for row in rows(tmp_path)} == {"g"}
    with pytest.raises(InputError, match="--group x: no line of the logs names it"):
        import_texts(tmp_path, {"server.log": text}, Options(groups=frozenset({"x"})))


def test_members_that_no_line_names_are_missing(tmp_path: Path) -> None:
    import_texts(tmp_path, {"server.log": ROUND.replace("with 1 members", "with 3 members")})
    (found,) = [row for row in rows(tmp_path, "evidence_missing") if row["cause"] == "members"]
    assert found["detail"].startswith("2 of 3 members of generation 1 are not named: ")


def test_generations_that_are_not_in_the_log_are_missing(tmp_path: Path) -> None:
    later = ROUND.replace("generation 1", "generation 5").replace("generation 0", "generation 4")
    import_texts(tmp_path, {"server.log": ROUND + later.replace("10:0", "11:0")})
    (found,) = [row for row in rows(tmp_path, "evidence_missing") if row["cause"] == "generations"]
    assert found["detail"].startswith("between generation 2 and generation 4 lines are missing: ")


def test_a_log_without_groups_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"none of 2 lines says what a group did: expected the log of a broker"
    ):
        import_texts(tmp_path, {"server.log": "nothing\nof a group\n"})
    assert not (tmp_path / "out").exists()


def test_members_that_join_an_open_round_are_inferred_from_its_count(tmp_path: Path) -> None:
    """Kafka 3.4 to 3.9: ids are handed out in lines, and then no line says who joins."""
    second = broker_line(
        "10:00:00,500",
        f"Dynamic member with unknown member id joins group g in PreparingRebalance state. Created a new "
        f"member "
        f"id {B} and request the member to rejoin with this id.",
    )
    lines = ROUND.splitlines(keepends=True)
    text = "".join([*lines[:2], second, lines[2].replace("with 1 members", "with 2 members")])
    import_texts(tmp_path, {"server.log": text})
    added = rows(tmp_path, "member_added")
    assert [(row["member_id"], row["provenance"]) for row in added] == [(A, "inferred"), (B, "inferred")]
    assert added[1]["cause"] == "pending-member"
    assert not [row for row in rows(tmp_path, "evidence_missing") if row["cause"] == "members"]


def test_a_client_says_why_it_joins_or_leaves(tmp_path: Path) -> None:
    """KIP-800: the reason stands behind the coordinator's own, and in the line about a LeaveGroup."""
    left = broker_line(
        "10:06:00,000",
        f"Member MemberMetadata(memberId={B}, groupInstanceId=None, clientId=app-b, clientHost=/10.0.0.7, "
        "sessionTimeoutMs=45000, rebalanceTimeoutMs=300000, supportedProtocols=List(range)) has left group g "
        "through explicit `LeaveGroup`; client reason: the consumer is being closed",
    )
    import_texts(tmp_path, {"server.log": ROUND + left})
    said = [(row["member"], row["detail"]) for row in rows(tmp_path, "client_reason")]
    assert said == [
        ("app-a", f"need to re-join with the given member-id: {A}"),
        ("app-b", "the consumer is being closed"),
    ]
    (configured,) = rows(tmp_path, "member_configured")
    assert json.loads(configured["detail"])["client.host"] == "10.0.0.7"


def test_a_group_that_was_deleted_counts_its_generations_anew(tmp_path: Path) -> None:
    life = joins("10:00:00,000", 0, A) + stabilized("10:00:03,000", 1, 1)
    life += received("10:00:04,000", 1) + emptied("10:00:09,000", 2)
    import_texts(tmp_path, {"server.log": life + life.replace(" 10:00:", " 10:30:")})
    assert [one for one in states(tmp_path) if one[1] == "Stable"] == [
        ("CompletingRebalance", "Stable", "assigned", 1),
        ("CompletingRebalance", "Stable", "assigned", 1),
    ]
    assert "generations" not in [row["cause"] for row in rows(tmp_path, "evidence_missing")]
    assert figures(tmp_path)["g"].generations == 2


def test_a_failed_member_whose_round_stands_before_it_goes_once(tmp_path: Path) -> None:
    """Collectors sort by milliseconds, and mix the lines of one."""
    round_first = (
        joins("10:00:00,000", 0, A)
        + stabilized("10:00:03,000", 1, 1)
        + received("10:00:03,100", 1, 1, leader=A)
        + preparing("10:05:00,000", 1, f"removing member {A} on heartbeat expiration")
        + failed("10:05:00,000", A)
    )
    import_texts(tmp_path, {"server.log": round_first})
    assert [row["member_id"] for row in rows(tmp_path, "member_removed")] == [A]
