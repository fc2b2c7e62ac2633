"""Members that have one client id at once, as by Java's default, go by their logs or by their member ids."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.imports.importing import (
    broker_line,
    failed,
    figures,
    generation,
    import_texts,
    java_line,
    preparing,
    received,
    rows,
    stabilized,
)

A, B, C = [f"consumer-g-1-{number}1111111-2222-3333-4444-555555555555" for number in (1, 2, 3)]


def comes(time: str, member_id: str, state: str) -> str:
    text = (
        f"Pending dynamic member with id {member_id} joins group g in {state} state. Adding to the group now."
    )
    return broker_line(time, text)


def begins(time: str, old: int, member_id: str) -> str:
    return preparing(time, old, f"Adding new member {member_id} with group instance id None")


ALONE = comes("10:00:00,000", A, "Empty") + begins("10:00:00,000", 0, A)
TWO = (
    ALONE
    + comes("10:00:01,000", B, "PreparingRebalance")
    + stabilized("10:00:03,000", 1, 2)
    + received("10:00:03,100", 1, 2)
)
#: A process that has died, and its successor joins before its session has expired.
SUCCESSOR = (
    ALONE
    + stabilized("10:00:03,000", 1, 1)
    + received("10:00:03,100", 1, 1)
    + comes("10:05:00,000", C, "Stable")
    + begins("10:05:00,000", 1, C)
    + failed("10:05:20,000", A)
    + stabilized("10:05:20,000", 2, 1)
    + received("10:05:20,100", 2, 1)
)


@pytest.mark.parametrize(
    ("log", "names"), [(TWO, [A, B]), (SUCCESSOR, ["consumer-g-1", "consumer-g-1"])], ids=["two", "successor"]
)
def test_members_of_one_generation_are_several_processes(tmp_path: Path, log: str, names: list[str]) -> None:
    import_texts(tmp_path, {"server.log": log})
    assert [row["member"] for row in rows(tmp_path, "member_added")] == names
    missing = [row["detail"] for row in rows(tmp_path, "evidence_missing") if row["cause"] == "names"]
    assert len(missing) == (names[0] != names[1])
    assert all("several members have the client id consumer-g-1 at once" in one for one in missing)


def own(member_id: str, partition: str) -> str:
    got = generation(1, member_id)
    said = (
        java_line("10:00:00,000", "Subscribed to topic(s): t", "consumer-g-1"),
        java_line("10:00:03,010", f"Successfully joined group with generation {got}", "consumer-g-1"),
        java_line("10:00:03,120", f"Successfully synced group in generation {got}", "consumer-g-1"),
        java_line("10:00:03,130", f"Adding newly assigned partitions: {partition}", "consumer-g-1"),
    )
    return "".join(said)


def test_their_logs_say_who_owned_what(tmp_path: Path) -> None:
    import_texts(tmp_path, {"server.log": TWO, "a.log": own(A, "t-0"), "b.log": own(B, "t-1")})
    owners = [(row["member"], row["partitions"]) for row in rows(tmp_path, "partitions_assigned")]
    assert sorted(owners) == [("a consumer-g-1", ["t-0"]), ("b consumer-g-1", ["t-1"])]
    found = figures(tmp_path)["g"]
    assert (found.unowned_partition_seconds, found.dual_owner_seconds, found.imbalance_max) == (0, 0, 0)


def test_without_the_coordinators_log_a_generation_shows_them_too(tmp_path: Path) -> None:
    plan = ", ".join(f"{one}=Assignment(partitions=[t-{at}])" for at, one in enumerate((A, B)))
    text = f"Finished assignment for group at generation 1: {{{plan}}}"
    led = own(A, "t-0") + java_line("10:00:03,100", text, "consumer-g-1")
    import_texts(tmp_path, {"a.log": led, "b.log": own(B, "t-1")})
    names = sorted(row["member"] for row in rows(tmp_path, "partitions_assigned"))
    assert names == ["a consumer-g-1", "b consumer-g-1"]


@pytest.mark.parametrize(
    ("second", "name"),
    [
        (own(B, "t-1").replace("10:00:0", "10:01:0"), "consumer-g-1"),  # the next process of the same pod
        (own(A, "t-0"), "consumer-g-1"),  # the same lines, collected twice
        (own(B, "t-1"), "a consumer-g-1"),
    ],
)
def test_logs_are_of_several_processes_if_these_are_there_at_once(
    tmp_path: Path, second: str, name: str
) -> None:
    import_texts(tmp_path, {"a.log": own(A, "t-0"), "b.log": second})
    assert rows(tmp_path, "member_started")[0]["member"] == name


def test_processes_that_share_a_log_and_a_client_id(tmp_path: Path) -> None:
    """No line says that one died, though another one starts; nor who owns what."""
    import_texts(
        tmp_path,
        {
            "all.log": own(A, "t-0")
            + own(B, "t-1").replace("10:00:0", "10:01:0")
            + java_line("10:02:00,000", "Request joining group due to: rebalance failed", "consumer-g-1")
            + own(A, "t-0").replace("10:00:0", "10:02:0").partition("\n")[2]
        },
    )
    assert not rows(tmp_path, "member_crashed")
    assert {row["member"] for row in rows(tmp_path, "join_answered")} == {A, B}
    missing = [one for one in rows(tmp_path, "evidence_missing") if "two processes log as" in one["detail"]]
    assert {one["cause"] for one in missing} == {"ownership"}


def test_a_description_that_lists_them_shows_them_too(tmp_path: Path) -> None:
    """Two processes of one client id: the second one goes, and another one comes."""
    head = "GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID"
    series = "".join(
        f"2026-11-30T10:00:{second}Z\n{head}\n"
        + "".join(
            f"g t {number} 1 1 0 {owner} /10.0.0.1 consumer-g-1\n" for number, owner in enumerate(owners)
        )
        for second, owners in (("00", (A, B)), ("10", (A, A)), ("20", (A, C)))
    )
    import_texts(tmp_path, {"series.txt": series})
    assert [row["member"] for row in rows(tmp_path, "member_added")] == [A, B, C]
    (missing,) = [row for row in rows(tmp_path, "evidence_missing") if row["cause"] == "names"]
    assert "several members have the client id consumer-g-1 at once" in missing["detail"]
