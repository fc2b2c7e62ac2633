"""Lines of clients that stand alone, without their group, their prefix or their logger."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.explain.test_first_answers import answer, printed
from tests.explain.test_published_lines import RD
from tests.imports.importing import client_line, failed, rows

STAMP: Final = "2026-03-04 10:00:01,000 "


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            '%3|1772618400.100|GRPSYNC|rdkafka#consumer-4| Group "g": synchronization failed: Broker: '
            "Group rebalance in progress",
            ("SyncGroup", "REBALANCE_IN_PROGRESS"),
        ),
        (
            ' event.str()= Group "g" heartbeat error response in state up (join state assigned, 1 '
            "partition(s) assigned): Broker: Unknown member",
            ("Heartbeat", "UNKNOWN_MEMBER_ID"),
        ),
        (
            "Committing raised exception: CommitFailedError('Commit cannot be completed since the group has "
            "already rebalanced',)",
            ("OffsetCommit", "CommitFailedException"),
        ),
        (
            "D! [sarama] client/coordinator coordinator for consumer group g is not available",
            ("unknown", "COORDINATOR_NOT_AVAILABLE"),
        ),
        (
            "An unexpected error occurred! {:error=>org.apache.kafka.common.KafkaException: Unexpected error "
            "in join group response: The group is rebalancing, so a rejoin is needed., :backtrace=>[]}",
            ("JoinGroup", "REBALANCE_IN_PROGRESS"),
        ),
        (
            "kafka-go: Problem getting partitions during startup, [6] Not Leader For Partition: the broker "
            "is not the leader",
            ("Metadata", "NOT_LEADER_OR_FOLLOWER"),
        ),
        (
            "[Schema registry clientId=sr-1, groupId=g] Cancelled in-flight HEARTBEAT request with "
            "correlation id 44 due to node 7 being disconnected (elapsed time since creation: 9041ms)",
            ("Heartbeat", "REQUEST_TIMED_OUT"),
        ),
    ],
    ids=["rd-0.9", "rd-event", "faust", "sarama", "logstash", "kafka-go", "schema-registry"],
)
def test_what_a_line_alone_says_to_be_refused(tmp_path: Path, line: str, said: tuple[str, str]) -> None:
    answer(tmp_path, f"2026-03-04 10:00:00,001 INFO start\n{'' if line[0] == '%' else STAMP}{line}\n")
    (row,) = rows(tmp_path, "request_refused")
    assert (row["api"], row["error"]) == said


def test_events_of_the_client_for_go_belong_to_the_only_client_of_librdkafka(tmp_path: Path) -> None:
    log = RD.format('Group "g": join with 1 (1) subscribed topic(s)') + (
        'time="2020-12-01T14:14:54Z" msg="AssignedPartitions: [t[4]@unset t[11]@-1001]"\n'
        'time="2020-12-01T14:15:54Z" msg="RevokedPartitions: [t[4]@unset t[11]@unset]"\n'
    )
    answer(tmp_path, log)
    (given,) = rows(tmp_path, "partitions_assigned")
    assert (given["group"], given["member"]) == ("g", "app rdkafka#consumer-10")
    assert given["partitions"] == ["t-4", "t-11"]
    assert len(rows(tmp_path, "partitions_revoked")) == 1


def test_lines_of_java_that_somebody_has_stripped(tmp_path: Path) -> None:
    lines = (
        "Revoke previously assigned partitions t-0, t-1",
        "(Re-)joining group",
        "Adding newly assigned partitions: t-0",
    )
    answer(tmp_path, "".join(f"2026-03-04 10:00:0{at},123 INFO {line}\n" for at, line in enumerate(lines)))
    (given,) = rows(tmp_path, "partitions_assigned")
    assert (given["group"], given["partitions"]) == ("(unnamed)", ["t-0"])


def test_franz_go_names_its_group_in_another_line(tmp_path: Path) -> None:
    fields = (
        '"message":"beginning heartbeat loop","group":"g"',
        '"message":"forced rejoin quitting heartbeat loop","why":"cooperative rejoin after revoking what we '
        'lost from a rebalance"',
        '"message":"joining group","group":"g"',
    )
    answer(
        tmp_path, "".join(f'{{"time":"2026-03-04T10:00:0{at}Z",{one}}}\n' for at, one in enumerate(fields))
    )
    assert [row["cause"] for row in rows(tmp_path, "rejoin_requested")] == ["revoked-partitions"]


def test_listeners_of_smallrye_below_words_of_a_page(tmp_path: Path) -> None:
    """Lines of one width are no parts of a wrapped one, whatever stands above them."""
    line = (
        '{{"@timestamp":"2026-03-04T10:0{}:00.159Z","logger_name":"io.smallrye","message":"SRMSG18224: '
        "Executing consumer revoked re-balance listener for group 'g'\"}}\n"
    )
    one = answer(tmp_path, "...messages...\n" + "".join(map(line.format, range(3))))
    assert one.history.attempts == {"app": 3}


def test_members_with_the_client_id_of_their_library_are_several(tmp_path: Path) -> None:
    ids = [f"rdkafka-{number}{number:07}-1111-2222-3333-444444444444" for number in range(1, 4)]
    log = "".join(failed(f"10:00:0{at},000", one) for at, one in enumerate(ids))
    one = answer(tmp_path, log)
    assert {change.member for change in one.history.went()} == {*ids}


def test_a_worker_that_is_told_of_generations_without_end(tmp_path: Path) -> None:
    worker = "[Worker clientId=w-1, groupId=g]"
    begun = (
        "SyncGroup failed: The group began another rebalance. Need to re-join the group. Sent generation was"
    )
    joined = "Successfully joined group with generation"
    log = "".join(
        f"[2026-03-04 10:00:{at:02},000] INFO {worker} {said} Generation{{generationId={number}, "
        "memberId='w-1-0a', protocol='sessioned'}\n"
        for at, number, said in ((1, 39, joined), (2, 39, begun), (5, 52, begun), (6, 53, joined))
    )
    one = answer(tmp_path, log)
    (found,) = one.findings
    assert found.pattern.name == "livelock"
    assert "15 generations within 5.0 s" in found.match.sentence
    assert found.pattern.advice.startswith("Look in the coordinator's log for the worker")
    assert not found.pattern.presets  # storms are of consumers


def test_the_rounds_of_one_member_are_counted_as_least(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = client_line(1, "(Re-)joining group") + client_line(
        4, "Successfully joined group with generation 64"
    )
    assert "at least 1 rebalance (1 round)" in printed(answer(tmp_path, log), capsys)
