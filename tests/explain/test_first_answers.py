"""Short logs: who was refused is said, and no group is called quiet that the log does not show to be."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest

from groupstorm.cli.explain import print_explanation
from groupstorm.explain.explanation import Explanation, explain
from groupstorm.problems import InputError
from tests.explain.explaining import (
    described_all_its_life,
    described_group,
    explained,
    imported_lists,
    names,
    trace_of,
)
from tests.imports.importing import client_line, import_texts, rows

RECORDED = Path(__file__).parents[1] / "imports" / "logs" / "real" / "kafka-4.4.0-librdkafka"
NOT_COORDINATOR = (
    "Request joining group due to: rebalance failed due to 'This is not the correct coordinator.' "
    "(NotCoordinatorException)"
)


def librdkafka_line(second: float, facility: str, message: str) -> str:
    return f"%7|{1772618400 + second:.3f}|{facility}|rdkafka#consumer-1| [thrd:main]: {message}\n"


def answer(folder: Path, log: str, name: str = "app.log") -> Explanation:
    import_texts(folder, {name: log})
    return explained(folder / "out")


def sentence(one: Explanation, pattern: str) -> str:
    (found,) = [finding for finding in one.findings if finding.pattern.name == pattern]
    return found.match.sentence


def printed(one: Explanation, capsys: pytest.CaptureFixture[str]) -> str:
    """The text that a user reads, on one line."""
    print_explanation(one, {}, False)
    return " ".join(capsys.readouterr().out.split())


def test_a_member_that_no_coordinator_takes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [
        client_line(3 * number + more, message)
        for number in range(10)
        for more, message in ((1, NOT_COORDINATOR), (1.004, "(Re-)joining group"))
    ]
    one = answer(tmp_path, "".join(lines))
    assert names(one) == ["coordinator-moved"]
    tried = (
        "c-1 tried to join 10 times in 27.0 s and got no generation: NOT_COORDINATOR (This is not the correct"
    )
    text = printed(one, capsys)
    assert f"{tried} coordinator)." in text
    assert "quiet" not in text
    assert text.startswith("Group g: the lines show no completed rebalance in 27.0 s")


def from_log_of(tmp_path: Path, recording: str, member: str, group: str) -> Explanation:
    """``group``, from nothing but the log of one member of a recorded group."""
    with gzip.open(RECORDED.with_name(recording) / f"{member}.log.gz", "rt", encoding="utf-8") as log:
        import_texts(tmp_path, {f"{member}.log": log.read()})
    (found,) = (one for one in explain(tmp_path / "out") if one.history.group == group)
    return found


def test_rounds_of_one_client_that_nobody_explains_ask_for_the_coordinators_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A recording of librdkafka: the member joins twice with a new process, and is told six times to join
    again. It does not lead, so its log does not say who came and went."""
    text = printed(from_log_of(tmp_path, "kafka-4.4.0-librdkafka", "app-0", "orders-dynamic"), capsys)
    assert (
        "No pattern found. No line says who began 6 of them, or why: add the log of the group's coor" in text
    )
    assert "app-0 new-member 1 " in text


def test_the_leaders_log_alone_says_who_was_gone_and_for_how_long(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The harness killed app-1 and started it again (generations 4 to 6 have 3, 2 and 3 members), and app-2
    stood still for longer than max.poll.interval.ms (generations 6 to 8)."""
    found = from_log_of(tmp_path, "kafka-3.8.1-librdkafka", "app-0", "orders-dynamic")
    assert [one.pattern.name for one in found.findings] == ["gone-unsaid"]
    text = printed(found, capsys)
    assert "app-1 was out of the group for about 4.0 s; app-2 was out of the group for about 5.0 s." in text
    assert "add their own logs, or the coordinator's" in text


def test_who_was_there_when_the_group_formed_replaces_nobody(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both came in the first list of members, less than a minute before the first of them went."""
    text = printed(explained(described_all_its_life(tmp_path)), capsys)
    assert "By the lists of members that the logs have: b and a went and did not come back." in text


def test_who_came_before_another_one_went_did_not_come_after_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """c comes 20 s before a goes, and has gone itself when a goes."""
    two, three = described_group("Stable", a="01", b="23"), described_group("Stable", a="0", b="2", c="13")
    one = described_group("Stable", b="0123")
    text = printed(explained(imported_lists(tmp_path, *5 * [two], three, three, two, one)), capsys)
    assert "By the lists of members that the logs have: c and a went and did not come back." in text


def test_a_member_that_left_for_good_does_not_leave_its_partitions_without_an_owner(tmp_path: Path) -> None:
    """app-0 closes at the end of its log: others may have its partitions in a generation that it does not
    see."""
    found = from_log_of(tmp_path, "kafka-4.4.0-librdkafka", "app-0", "orders-dynamic")
    assert not found.absences


def test_a_line_of_a_log_is_quoted_once_for_a_pattern(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An expired session is a row of the broker's log, and the end of what the member's own log shows."""
    logs = {}
    for name in ("app-1", "server-1", "server-2"):
        with gzip.open(
            RECORDED.with_name("kafka-4.4.0-java") / f"{name}.log.gz", "rt", encoding="utf-8"
        ) as log:
            logs[f"{name}.log"] = log.read()
    import_texts(tmp_path, logs)
    (found,) = (one for one in explain(tmp_path / "out") if one.history.group == "orders-dynamic")
    print_explanation(found, {}, False)
    for part in capsys.readouterr().out.split("\n\n"):
        quoted = re.findall(r"\| +\S*?([\w-]+\.log:\d+)", " ".join(part.split()))
        assert len(quoted) == len(set(quoted))


def test_two_lines_of_one_refusal(tmp_path: Path) -> None:
    failed = (
        "JoinGroup failed: This is not the correct coordinator. Marking coordinator unknown. Sent "
        "generation was "
        "Generation{generationId=-1, memberId='', protocol='null'}"
    )
    lines = [client_line(s, failed) + client_line(s + 0.002, NOT_COORDINATOR) for s in (1, 4, 7)]
    assert "3 times in 6.0 s" in sentence(answer(tmp_path, "".join(lines)), "coordinator-moved")


def test_librdkafka_that_no_coordinator_takes(tmp_path: Path) -> None:
    response = (
        "JoinGroup response: GenerationId -1, Protocol , LeaderId , my MemberId , member metadata count 0: "
    )
    lines = [
        librdkafka_line(5 * number, "JOIN", 'Group "g": join with 1 subscribed topic(s)')
        + librdkafka_line(5 * number + 1, "JOINGROUP", f"{response}Broker: Not coordinator")
        for number in range(4)
    ]
    one = answer(tmp_path, "".join(lines))
    assert "tried to join 4 times in 15.0 s and got no generation: NOT_COORDINATOR" in sentence(
        one, "coordinator-moved"
    )


def test_a_first_join_is_no_refusal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    needs = "The group member needs to have a valid member id before actually entering a consumer group"
    error = f"org.apache.kafka.common.errors.MemberIdRequiredException: {needs}"
    log = client_line(1, "(Re-)joining group") + client_line(1.008, f"Join group failed with {error}")
    one = answer(tmp_path, log)
    assert [row["cause"] for row in rows(tmp_path, "rejoin_requested")] == ["first-join"]
    text = printed(one, capsys)
    assert "No pattern found. c-1 said 1 time that it has to join. Too little to say more: 1 line" in text
    assert "over 8 ms; add the log of the group's coordinator" in text
    assert "quiet" not in text


def test_a_member_that_never_joins_again(tmp_path: Path) -> None:
    failed = "Attempt to heartbeat failed since group is rebalancing"
    one = answer(tmp_path, "".join(client_line(s, failed, "c-4") for s in (0, 3, 6, 306)))
    assert names(one) == ["never-rejoined"]
    assert sentence(one, "never-rejoined") == (
        "c-4's heartbeats were refused for 306 s, 4 times, because the group was rebalancing: it never "
        "joined "
        "again in this log."
    )


def test_a_member_that_joins_again_was_refused_as_any_other(tmp_path: Path) -> None:
    joined = (
        "Successfully joined group with generation Generation{generationId=7, memberId='c-1-1', protocol='r'}"
    )
    failed = "Attempt to heartbeat failed since group is rebalancing"
    log = "".join(client_line(s, failed) for s in (0, 3, 6, 12)) + client_line(13, joined)
    assert "never-rejoined" not in names(answer(tmp_path, log))


@pytest.mark.parametrize(
    ("error", "pattern"),
    [
        ("The consumer group has reached its max size.", "join-refused"),
        ("Not authorized to access group: Group authorization failed.", "join-refused"),
        ("The coordinator is not available.", "coordinator-moved"),
    ],
)
def test_a_member_that_cannot_join(tmp_path: Path, error: str, pattern: str) -> None:
    failed = f"JoinGroup failed due to fatal error: {error}"
    one = answer(tmp_path, "".join(client_line(s, failed) for s in (0, 10, 20)))
    assert names(one) == [pattern]


COMMITS = {
    "Offset commit failed on partition t-3 at offset 977: The coordinator is not aware of this member.": (
        "UNKNOWN_MEMBER_ID"
    ),
    "OffsetCommit failed with Generation{generationId=4, memberId='c-1-1', protocol='range'}: Specified "
    "group "
    "generation id is not valid.": "ILLEGAL_GENERATION",
    "Failing OffsetCommit request since the consumer is not part of an active group": "CommitFailedException",
}


@pytest.mark.parametrize(("message", "error"), COMMITS.items(), ids=COMMITS.values())
def test_a_refused_commit(
    tmp_path: Path, message: str, error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    one = answer(tmp_path, client_line(0, message))
    assert names(one) == ["zombie"]
    assert f"c-1's commits were refused 1 time: {error}" in sentence(one, "zombie")
    assert "Unknown: why it was out of the group: add its log from before" in printed(one, capsys)


def test_the_exception_belongs_to_the_client_of_the_line_before(tmp_path: Path) -> None:
    refused = client_line(0, next(iter(COMMITS)))
    thrown = (
        "org.apache.kafka.clients.consumer.CommitFailedException: Commit cannot be completed since the "
        "group has "
    )
    log = f"{refused}Caused by: {thrown}already rebalanced and assigned the partitions to another member.\n"
    one = answer(tmp_path, log)
    assert sentence(one, "zombie").startswith("c-1's commits were refused 1 time: UNKNOWN_MEMBER_ID")


def test_librdkafka_that_was_fenced(tmp_path: Path) -> None:
    fenced = "Broker: Static consumer fenced by other consumer with same group.instance.id"
    state = "in state up (join-state steady, 1 partition(s) assigned)"
    log = librdkafka_line(0, "HEARTBEAT", f'Group "g" heartbeat error response {state}: {fenced}')
    fatal = librdkafka_line(0, "FATAL", f"Fatal error: {fenced}: Fatal consumer error: {fenced}")
    one = answer(tmp_path, log + fatal)
    assert names(one) == ["static-fenced"]
    assert len(one.history.incidents["fenced"]) == 1
    assert one.findings[0].match.unknown.startswith("which id it is and who else has it")


def test_librdkafka_without_debug_names_no_group(tmp_path: Path) -> None:
    log = librdkafka_line(
        0,
        "MAXPOLL",
        "Application maximum poll interval (300000ms) exceeded by 88ms (adjust max.poll.interval.ms for "
        "long-running message processing): leaving group",
    )
    one = answer(tmp_path, log)
    assert (one.history.group, names(one)) == ("(unnamed)", ["max-poll-interval"])


def test_no_committed_offset(tmp_path: Path) -> None:
    position = (
        "FetchPosition{offset=0, offsetEpoch=Optional.empty, currentLeader=LeaderAndEpoch{leader=Optional"
    )
    log = client_line(6, "Found no committed offset for partition t-0") + client_line(
        6.009,
        f"Resetting offset for partition t-0 to position {position}[b:9092 (id: 1 rack: null)], epoch=2}}}}.",
    )
    one = answer(tmp_path, log)
    assert names(one) == ["no-committed-offset"]
    assert sentence(one, "no-committed-offset") == "1 partition had no committed offset: t-0 (began at 0)."


def test_the_reason_that_a_leader_gave_its_coordinator_is_read(tmp_path: Path) -> None:
    """Java's clients since 3.2 do (KIP-800); the broker's log has it."""
    why = "client reason: cached metadata has changed from (version4: {t=6}) to (version5: {t=12})"
    line = (
        "[2026-03-04 10:{}:00,000] INFO [GroupCoordinator 2]: Preparing to rebalance group g in state "
        "PreparingRebalance with old generation {} (__consumer_offsets-9) (reason: Leader c-1-{} re-joining "
        "group during Stable; {}) (kafka.coordinator.group.GroupCoordinator)\n"
    )
    member_id = "3333cccc-0000-4000-8000-000000000003"
    one = answer(tmp_path, line.format(10, 3, member_id, why), "server.log")
    assert names(one) == ["topics-changed"]
    assert sentence(one, "topics-changed") == "The topics' metadata changed, and 1 rebalance followed."
    no_reason = line.format(10, 3, member_id, "client reason: not provided")
    (tmp_path / "other").mkdir()
    assert names(answer(tmp_path / "other", no_reason, "server.log")) == ["leader-rejoined"]


def test_aiokafka_that_was_out_of_its_group(tmp_path: Path) -> None:
    error = "[Error 25] UnknownMemberIdError: hccm-sources"
    log = (
        f"2026-03-04 10:00:00,000 ERROR OffsetCommit failed for group g due to group error ({error}), "
        f"will rejoin\n"
    )
    one = answer(tmp_path, log)
    assert "app's commits were refused 1 time: UNKNOWN_MEMBER_ID" in sentence(one, "zombie")
    assert [row["cause"] for row in rows(tmp_path, "rejoin_requested")] == ["UNKNOWN_MEMBER_ID"]


def test_a_group_that_the_log_shows_to_be_quiet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    imported = {"s": 0, "event": "group_imported", "source": "world", "cause": "coordinator", "detail": "{}"}
    commit = {"event": "offsets_committed", "partitions": ["t-0"], "positions": [1]}
    commits = [commit | {"s": 40 * number, "evidence": [f"a.log:{number}"]} for number in range(1, 4)]
    assert "The group was quiet." in printed(explained(trace_of(tmp_path, [imported, *commits])), capsys)
    few = printed(explained(trace_of(tmp_path, [imported, *commits[:1]])), capsys)
    assert "Too little to say more: 1 line over 40.0 s; add the coordinator's log" in few


LOST = (
    "Group coordinator b:9092 (id: 2147483643 rack: null) is unavailable or invalid due to cause: error "
    "response "
)


def test_a_coordinator_that_is_lost_again_and_again(tmp_path: Path) -> None:
    after = "NOT_COORDINATOR. isDisconnected: false. Rediscovery will be attempted."
    one = answer(tmp_path, "".join(client_line(s, f"{LOST}{after}") for s in (0, 5, 10)))
    assert names(one) == ["coordinator-moved"]
    assert sentence(one, "coordinator-moved").startswith("c-1 lost its coordinator 3 times in 10.0 s")


def test_a_heartbeat_and_a_commit_are_two_refusals(tmp_path: Path) -> None:
    beat = "Attempt to heartbeat failed for since member id c-1-1 is not valid."
    one = answer(tmp_path, client_line(0, beat) + client_line(0.001, next(iter(COMMITS))))
    assert [each.api for each in one.history.refusals] == ["JoinGroup", "OffsetCommit"]
    assert set(names(one)) == {"out-of-group", "zombie"}


def test_a_position_that_the_partition_has_not(tmp_path: Path) -> None:
    out = (
        "Fetch position FetchPosition{offset=5, offsetEpoch=Optional.empty} is out of range for partition t-0"
    )
    reset = "Resetting offset for partition t-0 to offset 77."
    one = answer(tmp_path, client_line(0, f"{out}, resetting offset") + client_line(0.01, reset))
    assert (
        sentence(one, "no-committed-offset") == "1 partition had a position out of range: t-0 (began at 77)."
    )


def test_lines_that_are_read_and_tell_nothing_are_no_unknown_log(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match="1 of 1 lines are about groups, and none says what one did: add the log"
    ):
        answer(tmp_path, client_line(0, "Discovered group coordinator b:9092 (id: 1 rack: null)"))


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (
            "Lost previously assigned partitions t-0",
            "Partitions were lost 2 times, without onPartitionsRevoked: c-1.",
        ),
        ("Request joining group due to: rebalance enforced by user", "c-1 said 2 times that it has to join."),
    ],
)
def test_a_member_that_moves_is_not_quiet(
    tmp_path: Path, message: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = printed(answer(tmp_path, client_line(0, message) + client_line(90, message)), capsys)
    assert f"No pattern found. {said} Too little to say more: 2 lines over 90.0 s" in text


def test_who_began_a_round_that_only_others_heartbeats_show(tmp_path: Path) -> None:
    """A member leaves, as it did not poll; the others hear of the round with their next heartbeat. Nobody is
    named for the round after that, nor for one that begins much later."""
    joined = "Successfully joined group with generation {}"
    told = "Attempt to heartbeat failed since group is rebalancing"
    log = (
        client_line(0, joined.format(4))
        + client_line(0, joined.format(4), "c-2")
        + client_line(20, "consumer poll timeout has expired. It did not poll", "c-2")
        + client_line(23, told)
        + client_line(24, joined.format(5))
        + client_line(27, told)
        + client_line(28, joined.format(6))
        + client_line(40, "consumer poll timeout has expired. It did not poll", "c-3")
        + client_line(84, told)
        + client_line(85, joined.format(7))
    )
    one = answer(tmp_path, log)
    assert [each.culprit for each in one.history.rebalances] == ["", "c-2", "", ""]
    assert names(one) == ["max-poll-interval"]
    assert [each.number for each in one.findings[0].rebalances] == [2]
