"""Clients that say little of their groups: what their lines show, and which log they lack, by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from groupstorm.problems import InputError
from tests.explain.explaining import names
from tests.explain.test_first_answers import answer, client_line, printed
from tests.imports.importing import rows

SPRING = (
    "2026-03-04 10:{}.000  INFO 1 --- [ntainer#0-{}-C-1] o.s.k.l.KafkaMessageListenerContainer    : g: "
    "partitions {}\n"
)

#: A line of Spring, sarama, segmentio/kafka-go and brod each.
ONE_OF_EACH = (
    f"{SPRING.format('00:00', 0, 'assigned: [t-0, t-1]')}"
    "2026/03/04 10:00:01 Error from consumer: kafka server: The provided member is not known in the current "
    "generation\n"
    "2026/03/04 10:00:02 Failed to join group g: [16] Not Coordinator For Group: the broker is not it\n"
    "10:00:03.000 [info] Group member (g,coor=#PID<0.7.0>,cb=#PID<0.3.0>,generation=2):\nelected=true\n"
)


def test_spring_without_its_consumers_own_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = "".join(
        SPRING.format(*one)
        for one in (
            ("00:00", 0, "assigned: [t-0, t-1]"),
            ("01:00", 0, "revoked: [t-0, t-1]"),
            ("01:03", 0, "assigned: [t-0]"),
            ("01:03", 1, "assigned: [t-1]"),
        )
    )
    text = printed(answer(tmp_path, log), capsys)
    assert "Group g: at least 2 rebalances in 63.0 s" in text
    assert "ntainer#0-0-C-1 was given partitions 2 times, each time by a rebalance of which no line" in text


def test_spring_beside_its_consumers_own_lines(tmp_path: Path) -> None:
    """The container says again what the consumer has said."""
    own = client_line(3, "Adding newly assigned partitions: t-0")
    answer(tmp_path, own + SPRING.format("00:03", 0, "assigned: [t-0]"))
    assert [row["member"] for row in rows(tmp_path, "partitions_assigned")] == ["c-1"]


NEST = (
    '[Nest] 1  - {0}   {1} [ServerKafka] {1} {2} {{"timestamp":"2026-03-04T{0}Z","logger":"kafkajs",{3}}}\n'
)
OUT = '"error":"The group is rebalancing, so a rejoin is needed"'
OF_GROUP = '"groupId":"g","memberId":"x-1"'


def test_kafkajs_behind_a_frameworks_prefix(tmp_path: Path) -> None:
    log = NEST.format(
        "10:00:00.001", "WARN", "[Runner] The group is rebalancing, re-joining", f"{OF_GROUP},{OUT}"
    ) + NEST.format(
        "10:00:03.000",
        "INFO",
        "[ConsumerGroup] Consumer has joined the group",
        f'{OF_GROUP},"memberAssignment":{{"t":[0,1]}}',
    )
    answer(tmp_path, log)
    assert [row["cause"] for row in rows(tmp_path, "rejoin_requested")] == ["group-rebalancing"]
    assert [row["partitions"] for row in rows(tmp_path, "partitions_assigned")] == [["t-0", "t-1"]]


def test_kafkajs_that_crashes(tmp_path: Path) -> None:
    line = (
        '{{"level":"ERROR","timestamp":"2026-03-04T10:00:0{}.000Z","logger":"kafkajs","message":"{}",{}}}\n'
    )
    answered = line.format(
        0,
        "[Connection] Response JoinGroup(key: 11, version: 5)",
        '"clientId":"c","error":"The coordinator is not aware of this member"',
    )
    crashed = line.format(2, "[Consumer] Crash: KafkaJSNonRetriableError: no", '"groupId":"g"')
    one = answer(tmp_path, answered + crashed)
    assert names(one) == ["failing-members", "session-expired"]
    assert one.findings[0].match.sentence == "1 consumer ended with KafkaJSNonRetriableError."


def test_an_error_that_sarama_is_answered(tmp_path: Path) -> None:
    error = "kafka server: The provided member is not known in the current generation"
    one = answer(tmp_path, f"2026/03/04 10:00:00 Error from consumer: {error}\n")
    assert names(one) == ["session-expired"]
    assert "UNKNOWN_MEMBER_ID" in one.findings[0].match.sentence


def test_kafka_go_that_cannot_join(tmp_path: Path) -> None:
    error = "[16] Not Coordinator For Group: the broker is not the coordinator for this group"
    log = "".join(f"2026/03/04 10:00:{s:02} Failed to join group g: {error}\n" for s in (0, 5, 10))
    one = answer(tmp_path, log)
    assert names(one) == ["coordinator-moved"]
    assert one.findings[0].match.sentence.startswith("app tried to join 3 times in 10.0 s")


def test_the_generations_of_brod(tmp_path: Path) -> None:
    log = "".join(
        f"10:00:0{s}.000 [info] Group member "
        f"(g,coor=#PID<0.7.0>,cb=#PID<0.3.0>,generation={number}):\n{said}\n"
        for s, number, said in (
            (0, 2, "elected=true"),
            (4, 2, "re-joining group, reason:rebalance_in_progress"),
            (7, 3, "elected=true"),
        )
    )
    one = answer(tmp_path, log)
    assert [each.lasted_us for each in one.history.rebalances] == [0, 3_000_000]


SILENT = {
    "sarama": "[Sarama] 2026/03/04 10:00:00 client/coordinator requesting coordinator for consumergroup "
    "g from b\n",
    "segmentio/kafka-go": "2026/03/04 10:00:00 entering loop for consumer group, g\n",
}


@pytest.mark.parametrize(("client", "line"), SILENT.items())
def test_a_client_that_says_nothing_is_named(tmp_path: Path, client: str, line: str) -> None:
    with pytest.raises(InputError, match=f"these are lines of {client}, which does not log the rounds"):
        answer(tmp_path, line)


THREAD = "app-11111111-2222-3333-4444-555555555555-StreamThread-{}"


def stream_line(second: int, thread: int, message: str) -> str:
    name = THREAD.format(thread)
    return f"2026-03-04 10:00:0{second},000 WARN [{name}] StreamThread - stream-thread [{name}] {message}\n"


def test_threads_of_kafka_streams(tmp_path: Path) -> None:
    """Their consumers' lines are not there, so the application's id in the thread's name is the group."""
    died = "Encountered the following exception during processing and the thread is going to shut down: "
    fenced = "Detected that the thread is being fenced. This implies that this thread missed a rebalance."
    one = answer(
        tmp_path,
        stream_line(0, 1, "Handle new assignment with:")
        + "\tNew active tasks: [0_0]\n"
        + stream_line(1, 1, f"{died}org.apache.kafka.streams.errors.StreamsException: stopped")
        + stream_line(2, 2, fenced),
    )
    assert (one.history.group, names(one)) == ("app", ["failing-members", "session-expired"])
    assert one.findings[0].match.sentence == "1 consumer ended with StreamsException."
    assert one.findings[1].match.members == (THREAD.format(2),)


def test_a_client_that_logs_only_that_it_joined(tmp_path: Path) -> None:
    """As after `grep Successfully`: the round is there, and how long it took is not."""
    joined = "Successfully joined group with generation {}"
    one = answer(tmp_path, client_line(0, joined.format(866)) + client_line(90, joined.format(867)))
    assert [each.lasted_us for each in one.history.rebalances] == [0, 0]
