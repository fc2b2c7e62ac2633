"""Imported logs: excerpts of public ones, and storms that are printed as logs and imported again."""

from __future__ import annotations

from pathlib import Path

import pytest

from groupstorm.explain.explanation import explain
from groupstorm.imports.importing import Options, import_logs
from groupstorm.imports.lines import find_logs
from groupstorm.trace.reader import read_rows
from tests.explain.explaining import explained, names, storm
from tests.imports.importing import LOGS, broker_line, joins, preparing, received, stabilized
from tests.soaking import one_in
from tools.log_printing.logs import LogKind, as_log

A = "app-a-11111111-2222-3333-4444-555555555555"

#: Excerpt -> the patterns that its group has, and who is behind the first one.
EXCERPTS: tuple[tuple[str, list[str], tuple[str, ...]], ...] = (
    ("E6", ["session-expired"], ("plus1connect",)),
    ("E7", ["session-expired"], ("d1ab40db-ab13-4b75-b73c-9fafb9580d0b",)),
    ("E14", ["static-fenced", "coordinator-moved"], ("1",)),
    ("E32b", ["out-of-group"], ("consumer-8dac1751-…-3",)),
    ("E34", ["session-expired"], ("E34",)),
    ("E9", ["leader-rejoined"], ()),
    # two members that come are no pattern
    ("E4", [], ()),
)


def imported(folder: Path, *logs: Path) -> Path:
    import_logs(find_logs([str(log) for log in logs]), folder, Options())
    return folder


@pytest.mark.parametrize(("excerpt", "patterns", "members"), EXCERPTS)
def test_an_excerpt(tmp_path: Path, excerpt: str, patterns: list[str], members: tuple[str, ...]) -> None:
    (found,) = explain(imported(tmp_path / "out", LOGS / f"{excerpt}.log"))
    assert names(found) == patterns
    if members:
        assert tuple(found.findings[0].match.members) == members
    assert found.history.unowned_us is None or excerpt.startswith("E3")


#: Storms as logs, the first pattern by the broker's log, alone and with the clients', and the patterns by the
#: clients' alone: who went and came back in order, but not whose session expired. A poison record shows as
#: the sessions that it costs: no log has positions.
ROUND_TRIPS: tuple[tuple[str, str, dict[str, int], str, list[str]], ...] = (
    ("slow-member-hostage", "eager", {"members": 4, "partitions": 8}, "held-join-phase", ["held-join-phase"]),
    ("aligned-restarts", "all-at-once", {"members": 4, "partitions": 8}, "aligned-restart",
     ["aligned-restart"]),
    ("rolling-deploy", "cooperative", {"members": 4, "partitions": 8}, "deploy-wave", ["deploy-wave"]),
    ("static-trap", "deployment", {"members": 10, "partitions": 20}, "static-orphan", ["held-join-phase"]),
    ("late-joiner-race", "seconds-later", {"members": 10, "partitions": 20}, "formed-in-rounds", []),
    ("stream-join", "range", {"partitions": 12}, "session-expired", []),
    ("poison-livelock", "crashes", {"members": 4, "partitions": 12}, "session-expired", ["held-join-phase"]),
)  # fmt: skip


@pytest.mark.parametrize(
    ("preset", "variant", "settings", "pattern", "by_clients"),
    one_in(3, ROUND_TRIPS),
    ids=lambda one: str(one)[:20],
)
def test_a_storm_as_logs(
    tmp_path: Path, preset: str, variant: str, settings: dict[str, int], pattern: str, by_clients: list[str]
) -> None:
    rows = [*read_rows(storm(tmp_path / "storm", preset, variant, settings))]
    logs = {}
    for kind in LogKind:
        logs[kind] = tmp_path / f"{kind}.log"
        logs[kind].write_text("".join(f"{line}\n" for line in as_log(rows, kind)), "utf-8")
    by_broker = explained(imported(tmp_path / "broker", logs[LogKind.BROKER]))
    assert names(by_broker)[:1] == [pattern]
    assert by_broker.history.unowned_us is None
    assert names(explained(imported(tmp_path / "java", logs[LogKind.JAVA]))) == by_clients
    by_both = explained(imported(tmp_path / "both", *logs.values()))
    assert names(by_both)[:1] == [pattern]


def streams_line(time: str, member: str, message: str) -> str:
    """A coordinator's line about a streams group (KIP-1071); ``member``: "" without one."""
    who = f"[GroupId app][MemberId {member}]" if member else "[GroupId app]"
    place = "[GroupCoordinator id=1 topic=__consumer_offsets partition=0]"
    name = "org.apache.kafka.coordinator.group.GroupMetadataManager"
    return f"[2026-03-01 {time}] INFO {place} {who} {message} ({name})\n"


def streams_epoch(time: str, epoch: int, member: str) -> str:
    bumped = f"Bumped streams group epoch to {epoch} with metadata hash 7 and validated topic epoch 0."
    computed = f"Computed a new target assignment for epoch {epoch} with 'sticky' assignor in 1ms."
    return streams_line(f"{time},001", member, bumped) + streams_line(f"{time},002", "", computed)


def stable(time: str, epoch: int, member: str, tasks: str) -> str:
    state = f"epoch={epoch}, previousEpoch={epoch - 1}, state=STABLE, assignedTasks={tasks}"
    return streams_line(
        time, member, f"Member's new assignment state: {state} and tasksPendingRevocation={{}}."
    )


STREAMS_GROUP = (
    streams_line("10:00:00,000", "m-1", "Member joins the streams group.")
    + streams_epoch("10:00:00", 2, "m-1")
    + stable("10:00:00,003", 2, "m-1", "{0=[0, 1]}")
    + streams_line("10:01:00,000", "m-2", "Member joins the streams group.")
    + streams_epoch("10:01:00", 3, "m-2")
    + stable("10:01:02,000", 3, "m-1", "{0=[0]}")
    + stable("10:01:03,001", 3, "m-2", "{0=[1]}")
    + streams_line(
        "10:02:00,000", "", "Streams member m-2 fenced from the group because the member session expired."
    )
    + streams_epoch("10:02:00", 4, "m-2")
    + stable("10:02:01,001", 4, "m-1", "{0=[0, 1]}")
    + streams_line("10:03:00,000", "m-1", "Member updated its topology epoch to 2.")
    + streams_epoch("10:03:00", 5, "m-1")
)


def test_the_epochs_of_a_streams_group(tmp_path: Path) -> None:
    (tmp_path / "server.log").write_text(STREAMS_GROUP, "utf-8")
    found = explained(imported(tmp_path / "out", tmp_path / "server.log"))
    assert [(one.cause, one.culprit, one.lasted_us // 1000) for one in found.history.rebalances] == [
        ("new-member", "m-1", 2),
        ("new-member", "m-2", 3_000),
        ("session-expired", "m-2", 1_001),  # the epoch counts up as the member goes
        ("member-updated", "m-1", 0),
    ]
    assert names(found) == ["session-expired"]
    assert "a streams group has tasks" in found.history.missing["ownership"]


def test_members_of_a_share_group_own_nothing(tmp_path: Path) -> None:
    joined = streams_line("10:00:00,000", "", "Member m-1 joins the share group using the share protocol.")
    log = joined + streams_line("10:00:00,001", "", "Bumped group epoch to 1 with metadata hash 7.")
    target = "Computed a new target assignment for epoch 1 with 'simple' assignor in 1ms."
    (tmp_path / "server.log").write_text(log + streams_line("10:00:00,002", "", target), "utf-8")
    found = explained(imported(tmp_path / "out", tmp_path / "server.log"))
    assert "share group own no partitions" in found.history.missing["ownership"]
    assert len(found.history.rebalances) == 1


def test_a_time_out_that_a_broker_logs_twice_is_one(tmp_path: Path) -> None:
    """With the round that it begins, and with the member that has left."""
    reason = "client reason: consumer poll timeout has expired."
    left = f"Member MemberMetadata(memberId={A}, groupInstanceId=None, clientId=app-a, clientHost=/10.0.0.1, "
    left += "sessionTimeoutMs=6000, rebalanceTimeoutMs=8000, supportedProtocols=List(range)) has left group g"
    log = tmp_path / "server.log"
    log.write_text(
        joins("10:00:00,000", 0, A)
        + stabilized("10:00:03,000", 1, 1)
        + received("10:00:03,100", 1, 1, leader=A)
        + preparing("10:05:00,000", 1, f"Removing member {A} on LeaveGroup; {reason}")
        + broker_line("10:05:00,001", f"{left} through explicit `LeaveGroup`; {reason}"),
        "utf-8",
    )
    (found,) = explain(imported(tmp_path / "out", log))
    (finding,) = [one for one in found.findings if one.pattern.name == "max-poll-interval"]
    assert finding.match.sentence.startswith("1 member left the group 1 time because")
