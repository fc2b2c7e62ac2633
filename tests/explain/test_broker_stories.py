"""Lines of a broker that say one thing alone: a store that fails, an expiration, a leave."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.explain.explaining import names
from tests.explain.test_first_answers import answer, printed, sentence
from tests.imports.importing import (
    broker_line,
    emptied,
    failed,
    import_texts,
    preparing,
    received,
    rows,
    stabilized,
)

C_1, C_3 = "c-1-11111111-2222-3333-4444-555555555555", "c-3-33333333-3333-3333-3333-333333333333"
NOT_ENOUGH = (
    "org.apache.kafka.common.errors.NotEnoughReplicasException: The size of the current ISR Set(0) is "
    "insufficient to satisfy the min.isr requirement of 2 for partition __consumer_offsets-{}\n"
)


def round_lines(second: int, old: int, reason: str, members: int = 1) -> str:
    return (
        preparing(f"10:00:{second:02},100", old, reason)
        + stabilized(f"10:00:{second:02},300", old + 1, members)
        + received(f"10:00:{second:02},301", old + 1, members)
    )


@pytest.mark.parametrize(("expired_at", "is_unheard"), [("10:01:05,120", True), ("10:01:07,120", False)])
def test_a_session_that_began_as_the_next_coordinator_loaded_the_group(
    tmp_path: Path, expired_at: str, is_unheard: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """It lasts 45 s: no heartbeat has come since, or one 2 s later."""
    described = f"memberId={C_1}, groupInstanceId=None, clientId=c-1, clientHost=/10.0.0.1"
    member = f"MemberMetadata({described}, sessionTimeoutMs=45000, rebalanceTimeoutMs=300000)"
    log = (
        broker_line("10:00:20,000", f"Loaded member {member} in group g with generation 4.")
        + broker_line("10:00:20,100", "Loading group metadata for g with generation 4")
        + failed(expired_at, C_1)
        + emptied(expired_at, 5)
    )
    text = printed(answer(tmp_path, log), capsys)
    loaded = "no heartbeat of it came after its coordinator loaded the group, at 0.100 s"
    assert (loaded in text) == is_unheard
    assert ("its last heartbeat came at 2.120 s" in text) == (not is_unheard)
    assert ("If the process had died before" in text) == is_unheard


UNSTORED = f"error when storing group assignment during SyncGroup (member: {C_1})"


def test_an_assignment_that_cannot_be_stored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = "".join(round_lines(s, 20 + s, UNSTORED) + NOT_ENOUGH.format(1) for s in range(4))
    one = answer(tmp_path, log, "server.log")
    assert names(one) == ["append-failed"]
    text = printed(one, capsys)
    assert "4 times in 3.0 s the coordinator could not write the group's assignment." in text
    assert "__consumer_offsets-1 is below min.insync.replicas (in sync: Set(0), needed: 2)." in text
    assert "append-failed 4 " in text


def test_another_partition_of_the_topic_is_no_reason(tmp_path: Path) -> None:
    log = "".join(round_lines(s, 20 + s, UNSTORED) + NOT_ENOUGH.format(8) for s in range(2))
    one = answer(tmp_path, log, "server.log")
    assert "min.insync.replicas" not in sentence(one, "append-failed")
    assert one.findings[0].match.unknown.startswith("why: add the broker's whole log")


def test_an_expiration_that_only_the_reason_tells(tmp_path: Path) -> None:
    """As after `grep Preparing`."""
    log = round_lines(34, 3, f"removing member {C_3} on heartbeat expiration", 2)
    one = answer(tmp_path, log, "server.log")
    assert names(one) == ["session-expired"]
    assert one.findings[0].match.members == ("c-3",)


def test_an_expiration_that_both_lines_tell_happens_once(tmp_path: Path) -> None:
    log = failed("10:00:34,099", C_3)
    log += round_lines(34, 3, f"removing member {C_3} on heartbeat expiration", 2)
    import_texts(tmp_path, {"server.log": log})
    assert [row["cause"] for row in rows(tmp_path, "member_removed")] == ["session-expired"]


@pytest.mark.parametrize(
    "message",
    [
        f"[GroupId g] Dynamic member {C_3} has left group through explicit `LeaveGroup` request",
        f"[GroupId g] Member {C_3} has left group through explicit `LeaveGroup` request.",
        f"Member MemberMetadata(memberId={C_3}, groupInstanceId=None, clientId=c-3, clientHost=/172.18.0.4, "
        "sessionTimeoutMs=10000, rebalanceTimeoutMs=300000, supportedProtocols=List(range)) has left "
        "group g through "
        "explicit `LeaveGroup` request",
    ],
)
def test_a_leave_without_a_reason(tmp_path: Path, message: str) -> None:
    import_texts(tmp_path, {"server.log": broker_line("10:00:00,000", message)})
    assert [(row["member"], row["cause"]) for row in rows(tmp_path, "member_removed")] == [("c-3", "left")]


@pytest.mark.parametrize(("again", "found"), [("c-3", []), ("c-2", ["gone-unsaid"])])
def test_a_member_that_leaves_under_an_id_that_nobody_saw_coming_was_back(
    tmp_path: Path, again: str, found: list[str]
) -> None:
    """It came where lines are missing, and its former id is no member any more."""
    left = f"Removing member {C_3.replace('c-3', again).replace('-3333', '-1111', 1)} on LeaveGroup"
    log = preparing("10:00:00,000", 0, f"Adding new member {C_3} with group instance id None")
    log += stabilized("10:00:03,000", 1, 1) + received("10:00:03,010", 1, 1)
    log += stabilized("10:10:03,000", 5, 1) + received("10:10:03,010", 5, 1)
    log += preparing("10:20:00,000", 5, left) + emptied("10:20:00,010", 6)
    assert [name for name in names(answer(tmp_path, log, "server.log")) if name == "gone-unsaid"] == found


DESCRIBED = """
Warning: Consumer group 'g' is rebalancing.

GROUP  CONSUMER-ID                               HOST         CLIENT-ID  #PARTITIONS  ASSIGNMENT
g      c-1-22222222-2222-2222-2222-222222222222  /172.18.0.4  c-1        2            t(0,1)
g      c-2-22222222-2222-2222-2222-222222222222  /172.18.0.5  c-2        0            -
"""


def test_no_culprit_without_evidence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A group that was rebalancing when it was described: nothing says who began that, or why."""
    one = answer(tmp_path, DESCRIBED)
    assert [(each.cause, each.culprit) for each in one.history.rebalances] == [("unknown", "")]
    assert "Who began the rebalances" not in printed(one, capsys)
