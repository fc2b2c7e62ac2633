"""Clients that say little of their groups: what their lines show, and which log they lack, by name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from groupstorm.problems import InputError
from tests.explain.explaining import names
from tests.explain.test_first_answers import answer, printed
from tests.imports.importing import client_line, figures, generation, import_texts, rows

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
    "I, [2026-03-04T10:00:04.000000 #1]  INFO -- : Joining group `g`\n"
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


def test_a_rotated_log_that_begins_with_springs_container(tmp_path: Path) -> None:
    """The consumer's own line is in the file before."""
    container = SPRING.format("00:00", 0, "assigned: [t-0]")
    answer(tmp_path, container + client_line(60, "Adding newly assigned partitions: t-0"))
    assert [row["member"] for row in rows(tmp_path, "partitions_assigned")] == ["c-1"]


def test_spring_beside_a_consumer_that_logs_warnings_alone(tmp_path: Path) -> None:
    late = client_line(60, "consumer poll timeout has expired. This means the time between")
    log = SPRING.format("00:00", 0, "assigned: [t-0]") + late + SPRING.format("02:00", 0, "lost: [t-0]")
    answer(tmp_path, log)
    assert [row["partitions"] for row in rows(tmp_path, "partitions_lost")] == [["t-0"]]


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
    assert (figures(tmp_path)["g"].answer or "").startswith("at least 0 generations; ")  # it names none


def test_the_leader_of_franz_go_in_json(tmp_path: Path) -> None:
    """zap and slog have its fields beside the message, and a boolean is none of Python's."""
    beside = {"group": "g", "member_id": "kgo-1", "instance_id": "<nil>", "generation": 4}
    fields = {**beside, "balance_protocol": "cooperative-sticky", "leader": True}
    lines = [
        {"ts": "2026-10-02T09:00:03.100Z", "msg": "joined, balancing group", **fields},
        {"ts": "2026-10-02T09:00:03.150Z", "msg": "synced", "group": "g", "assigned": "t[0 1]"},
    ]
    import_texts(tmp_path, {"app.log": "".join(json.dumps(line) + "\n" for line in lines)})
    stable = [row for row in rows(tmp_path, "group_state_changed") if row["state"] == "Stable"]
    assert [(row["generation"], row["protocol"]) for row in stable] == [(4, "cooperative-sticky")]


def test_a_heartbeat_of_franz_go_that_is_refused(tmp_path: Path) -> None:
    """The loop around it says its error again, before it joins."""
    error = "err: UNKNOWN_MEMBER_ID: The coordinator is not aware of this member."
    said = (
        f"heartbeat errored; group: g, {error}",
        f"join and sync loop errored; group: g, {error}, consecutive_errors: 1, backoff: 250ms",
        "joining group; group: g",
        f"join and sync loop errored; group: g, {error}, consecutive_errors: 2, backoff: 500ms",
    )
    log = "".join(f"2026-03-04 10:00:0{at} [ERROR] {one}\n" for at, one in enumerate(said))
    import_texts(tmp_path, {"app.log": log})
    assert [row["api"] for row in rows(tmp_path, "request_refused")] == ["Heartbeat", "JoinGroup"]


@pytest.mark.parametrize(
    "line",
    [
        '2026-03-04 10:00:00.371 +00:00 [DBG] app#consumer-1 CGRP {} {{"Source":"W","Pod":"a-1"}}\n',
        "2026-03-04 10:00:00,371 - consumer - DEBUG - CGRP [app#consumer-1] {}\n",
        "[2026-03-04 10:00:00.371 +0000 UTC][CGRP][app#consumer-1][7]{}\n",
    ],
    ids=["Serilog", "confluent-kafka-python", "confluent-kafka-go"],
)
def test_librdkafka_in_the_logs_of_its_wrappers(tmp_path: Path, line: str) -> None:
    joined = "[thrd:main]: JoinGroup response: GenerationId 4, Protocol range, LeaderId app-1, my MemberId "
    said = (f"{joined}app-1, member metadata count 1: (no error)", '[thrd:main]: Group "g": add t [0]')
    import_texts(tmp_path, {"app.log": "".join(map(line.format, said))})
    answered = [(row["member"], row["generation"]) for row in rows(tmp_path, "join_answered")]
    assert answered == [("app", 4)]


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
    assert names(one) == ["failing-members", "out-of-group"]
    assert one.findings[0].match.sentence == "1 consumer ended with KafkaJSNonRetriableError."


def test_kafka_go_that_cannot_join(tmp_path: Path) -> None:
    error = "[16] Not Coordinator For Group: the broker is not the coordinator for this group"
    log = "".join(f"2026/03/04 10:00:{s:02} Failed to join group g: {error}\n" for s in (0, 5, 10))
    one = answer(tmp_path, log)
    assert names(one) == ["coordinator-moved"]
    assert one.findings[0].match.sentence.startswith("app tried to join 3 times in 10.0 s")


KAFKA_GO = """\
2019/12/18 11:17:56 joined group history as member main@localhost (github.com/segmentio/kafka-go)-df42 in generation 17
2019/12/18 11:17:56 Joined group history as member main@localhost (github.com/segmentio/kafka-go)-df42 in generation 17
2019/12/18 11:17:56 subscribed to topics and partitions: map[{topic:history partition:0}:12 {topic:history partition:2}:-1]
2019/12/18 11:20:00 [27] Rebalance In Progress: the coordinator has begun rebalancing the group, the client should rejoin the group
2019/12/18 11:20:03 Failed to sync group history: [25] Unknown Member ID: the member id is not in the current generation
2019/12/18 11:20:09 Partition changes found, reblancing group: history.
"""  # noqa: E501


def test_what_kafka_go_has_and_is_refused(tmp_path: Path) -> None:
    """Each line as its own sources print it; one of them logs each generation twice."""
    one = answer(tmp_path, KAFKA_GO)
    assert one.history.group == "history"
    assert names(one) == ["out-of-group", "topics-changed"]
    assert [row["partitions"] for row in rows(tmp_path, "partitions_assigned")] == [
        ["history-0", "history-2"]
    ]
    assert [(row["api"], row["error"]) for row in rows(tmp_path, "request_refused")] == [
        ("unknown", "REBALANCE_IN_PROGRESS"),
        ("SyncGroup", "UNKNOWN_MEMBER_ID"),
    ]
    assert len(rows(tmp_path, "join_answered")) == 1


def test_librdkafka_without_debug_that_is_too_slow_again(tmp_path: Path) -> None:
    """It logs nothing else: a whole interval later it must have polled in between."""
    log = "".join(
        f"%4|{1772618400 + second}.371|MAXPOLL|rdkafka#consumer-1| [thrd:main]: Application maximum poll "
        "interval (300000ms) exceeded by 255ms (adjust max.poll.interval.ms for long-running message "
        "processing): leaving group\n"
        for second in (0, 600, 1_200)
    )
    one = answer(tmp_path, log)
    assert names(one) == ["max-poll-interval"]
    assert "3 times" in one.findings[0].match.sentence


def test_librdkafka_without_debug_that_is_too_slow_and_later_silent(tmp_path: Path) -> None:
    """Its answer after the slow batch is not why its session ended, and the slow batch is known."""
    at = "%4|{}.000|{}|rdkafka#consumer-1| [thrd:main]: {}\n"
    late = "Application maximum poll interval (300000ms) exceeded by 2ms (adjust it): leaving group"
    refused = 'KafkaError{code=UNKNOWN_MEMBER_ID,val=25,str="Commit failed: Broker: Unknown member"}\n'
    silent = (
        "after 45010 ms without a successful response from the group coordinator (broker 2, last error was "
    )
    log = (
        at.format(1772618400, "MAXPOLL", late)
        + f"2026-03-04 10:04:00,000 ERROR app {refused}"
        + at.format(
            1772620200,
            "SESSTMOUT",
            f"Consumer group session timed out (in join-state steady) {silent}Broker: Not coordinator): "
            "revoking assignment and rejoining group",
        )
    )
    matches = {finding.pattern.name: finding.match for finding in answer(tmp_path, log).findings}
    assert matches["session-expired"].sentence.endswith("rdkafka#consumer-1 was answered NOT_COORDINATOR.")
    assert "UNKNOWN_MEMBER_ID" not in matches["session-expired"].sentence
    assert not matches["zombie"].unknown


def test_a_reader_of_flink_whose_commits_are_refused(tmp_path: Path) -> None:
    """It assigns its partitions by hand: it is no member that works on, and has no onPartitionsLost."""
    log = client_line(0, "Assigned to partition(s): t-0, t-1", "flink-0") + "".join(
        client_line(
            60 * minute,
            "Offset commit failed on partition t-0 at offset 7: The coordinator is not aware of this member.",
            "flink-0",
        )
        for minute in (1, 2)
    )
    one = answer(tmp_path, log)
    assert names(one) == ["assigned-by-hand"]
    said = "flink-0's simple OffsetCommit requests were refused 2 times in 60.0 s"
    assert one.findings[0].match.sentence.startswith(said)
    joined = f"Successfully joined group with generation {generation(1, 'app-1')}"
    late = "consumer poll timeout has expired. It did not poll"
    lines = ("Subscribed to topic(s): t", "(Re-)joining group", joined, late)
    beside = answer(tmp_path, "".join(client_line(0, line, "app") for line in lines) + log)
    assert beside.alone is not None, "one member alone is heard"
    assert "subscriptions" not in beside.history.missing


def test_consumers_of_a_group_whose_coordinators_log_is_not_there(tmp_path: Path) -> None:
    """No client of a consumer group assigns: no log of a leader would help."""
    log = client_line(0, "Member aB3 with epoch 1 transitioned from JOINING to RECONCILING.")
    assert answer(tmp_path, log).history.missing["ownership"] == (
        "who owned which partition is not known: add the records of __consumer_offsets, or the log of the "
        "group's coordinator"
    )


def test_the_plan_of_a_leader_of_kafka_go(tmp_path: Path) -> None:
    """It stands in front of the line that says the generation; a member's id has slashes."""
    ids = ("main@h (github.com/segmentio/kafka-go)-df42", "main@i (github.com/segmentio/kafka-go)-ee11")
    log = "".join(
        f"2026/03/04 10:00:0{second} {said}\n"
        for second, said in (
            (0, "selected as leader for group, history"),
            (0, f"assigned member/topic/partitions {ids[0]}/events/[0 2]"),
            (0, f"assigned member/topic/partitions {ids[1]}/events/[1]"),
            (0, f"assigned member/topic/partitions {ids[1]}/clicks/[0]"),
            (1, f"joinGroup succeeded for response, history.  generationID=17, memberID={ids[0]}"),
            (2, "sync group finished for group, history"),
        )
    )
    answer(tmp_path, log)
    assert {row["member_id"]: row["partitions"] for row in rows(tmp_path, "sync_answered")} == {
        ids[0]: ["events-0", "events-2"],
        ids[1]: ["events-1", "clicks-0"],
    }
    assert len(rows(tmp_path, "ownership_known")) == 1


def test_the_message_of_spring_without_its_logger(tmp_path: Path) -> None:
    """In a JSON log the logger has a field of its own, and the message begins with the group."""
    line = '{{"@timestamp":"2026-03-04T10:0{}:00Z","message":"g: partitions {}: [t-0]","logger_name":"x"}}\n'
    answer(tmp_path, line.format(0, "assigned") + line.format(1, "revoked"))
    assert [(row["group"], row["partitions"]) for row in rows(tmp_path, "partitions_revoked")] == [
        ("g", ["t-0"])
    ]


def test_the_sessions_of_sarama(tmp_path: Path) -> None:
    """Each line is about a session that is over: the next one shows that the member joined again."""
    log = "".join(
        f"[sarama] 2026/03/04 10:00:{second}0 consumergroup/session/sarama-7ad0/{generation} released\n"
        for second, generation in ((1, 16), (2, 17), (3, 19))
    )
    answer(tmp_path, log)
    asked = rows(tmp_path, "rejoin_requested")
    assert [(row["time_us"], row["generation"]) for row in asked] == [(0, 16), (10_000_000, 17)]


@pytest.mark.parametrize("between", ["\n", ", "], ids=["Elixir", "OTP"])
def test_the_generations_of_brod(tmp_path: Path, between: str) -> None:
    """Its message goes on in the line after its first one; OTP puts commas in place of new lines."""
    has = f"assignments received:{between}  t:{between}    partition=3 begin_offset=undefined"
    log = "".join(
        f"10:00:0{s}.000 [info] Group member "
        f"(g,coor=#PID<0.7.0>,cb=#PID<0.3.0>,generation={number}):{between}{said}\n"
        for s, number, said in (
            (0, 9, "elected=true"),
            (1, 9, has),
            (4, 9, "re-joining group, reason::unknown_member_id"),
            (7, 10, "elected=true"),
        )
    )
    one = answer(tmp_path, log)
    assert [each.lasted_us for each in one.history.rebalances] == [0, 3_000_000]
    assert names(one) == ["out-of-group"]
    assert one.findings[0].match.members == ("#PID<0.7.0>",)
    assert [row["partitions"] for row in rows(tmp_path, "partitions_assigned")] == [["t-3"]]


def test_brod_of_2017(tmp_path: Path) -> None:
    log = (
        "10:00:00.000 [info] group coordinator (groupId=g,memberId=foo@mypc/<0.276.0>-ef0b,generation=75,"
        "pid=#PID<0.276.0>):\nre-joining group, reason::RebalanceInProgress\n"
    )
    answer(tmp_path, log)
    assert [row["cause"] for row in rows(tmp_path, "rejoin_requested")] == ["group-rebalancing"]


SARAMA = "[Sarama] 2026/03/04 10:00:00 client/coordinator requesting coordinator for {} g from b\n"
SILENT = (
    ("sarama", SARAMA.format("consumergroup")),
    ("sarama", SARAMA.format("consumergoup")),
    ("Spring Kafka", "2026-03-04 10:00:00 ERROR KafkaMessageListenerContainer - Consumer exception\n"),
)


@pytest.mark.parametrize(("client", "line"), SILENT)
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
    assert (one.history.group, names(one)) == ("app", ["failing-members", "out-of-group"])
    assert one.findings[0].match.sentence == "1 consumer ended with StreamsException."
    assert one.findings[1].match.members == (THREAD.format(2),)


def test_a_client_that_logs_only_that_it_joined(tmp_path: Path) -> None:
    """As after `grep Successfully`: the round is there, and how long it took is not."""
    joined = "Successfully joined group with generation {}"
    one = answer(tmp_path, client_line(0, joined.format(866)) + client_line(90, joined.format(867)))
    assert [each.lasted_us for each in one.history.rebalances] == [0, 0]
