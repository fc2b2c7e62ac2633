"""Lines that users of other clients and of old releases have published, and what should come of them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from groupstorm.explain.advice import advice_for
from groupstorm.problems import InputError
from tests.explain.explaining import names
from tests.explain.test_first_answers import answer
from tests.imports.importing import preparing, received, rows, stabilized

# -- kafkajs: what its loggers make of a record ---------------------------------------------------

OUT: Final = '"error":"The group is rebalancing, so a rejoin is needed"'
HEARTBEAT: Final = "[Connection] Response Heartbeat(key: 12, version: 3)"
REJOINS: Final = "[Runner] The group is rebalancing, re-joining"
HAS_JOINED: Final = "[ConsumerGroup] Consumer has joined the group"
OF_MEMBER: Final = '"groupId":"orders","memberId":"api-0f2d"'

PINO: Final = (
    f'{{"level":50,"time":1772618400123,"pid":17,"clientId":"api",{OUT},"msg":"{HEARTBEAT}"}}\n'
    f'{{"level":40,"time":1772618400125,"pid":17,{OF_MEMBER},{OUT},"msg":"{REJOINS}"}}\n'
    f'{{"level":30,"time":1772618403126,"pid":17,{OF_MEMBER},"memberAssignment":{{"t":[0,1]}},'
    f'"msg":"{HAS_JOINED}"}}\n'
)
#: Message, second, and what is beside them.
RECORDS: Final = (
    (HEARTBEAT, "0.123", f'"clientId":"api",{OUT}'),
    (REJOINS, "0.125", f"{OF_MEMBER},{OUT}"),
    (HAS_JOINED, "3.126", f'{OF_MEMBER},"memberAssignment":{{"t":[0,1]}}'),
)
#: As the documentation of kafkajs has it: what is beside the message, its time too, is in an object.
WINSTON: Final = "".join(
    f'{{"level":"warn","message":"{message}","extra":{{"timestamp":"2026-03-04T10:00:0{at}Z",{more}}}}}\n'
    for message, at, more in RECORDS
)
PINO_PRETTY: Final = f"""\
[2026-03-04 10:00:00.123] ERROR (17): {HEARTBEAT}
    clientId: "api"
    error: "The group is rebalancing, so a rejoin is needed"
    correlationId: 63
[2026-03-04 10:00:00.125] WARN (17): {REJOINS}
    groupId: "orders"
    memberId: "api-0f2d"
[2026-03-04 10:00:03.126] INFO (17): {HAS_JOINED}
    groupId: "orders"
    memberId: "api-0f2d"
    memberAssignment: {{
      "t": [
        0,
        1
      ]
    }}
"""
BACKSLASHED: Final = "".join(
    f'{{"loglevel":"error","msg":"ERROR {message} {{{record}}}"}}\n'
    for message, record in (
        (message, f'"timestamp":"2026-03-04T10:00:0{at}Z",{more}'.replace('"', '\\"'))
        for message, at, more in RECORDS
    )
)


@pytest.mark.parametrize(
    "log", [PINO, WINSTON, PINO_PRETTY, BACKSLASHED], ids=["pino", "winston", "pretty", "text"]
)
def test_one_member_of_kafkajs_by_its_client_id_and_its_member_id(tmp_path: Path, log: str) -> None:
    one = answer(tmp_path, log)
    assert one.history.group == "orders"
    (refused,) = one.history.refusals
    assert (refused.member, refused.error, refused.is_over) == ("api", "REBALANCE_IN_PROGRESS", True)
    (assigned,) = rows(tmp_path, "partitions_assigned")
    assert (assigned["member"], assigned["time_us"]) == ("api", 3_003_000)
    assert assigned["partitions"] == ["t-0", "t-1"]


def test_a_second_member_of_one_client_of_kafkajs_has_its_own_name(tmp_path: Path) -> None:
    second = PINO.replace("api-0f2d", "api-77aa").splitlines(keepends=True)[-1]
    answer(tmp_path, PINO + second)
    assert [row["member"] for row in rows(tmp_path, "partitions_assigned")] == ["api", "api-77aa"]


def test_a_member_of_kafkajs_that_is_named_before_its_client(tmp_path: Path) -> None:
    first, *others = PINO.splitlines(keepends=True)
    answer(tmp_path, "".join([*others, first.replace("1772618400123", "1772618410000")]))
    assert {row["member"] for row in rows(tmp_path) if "member" in row} == {"api-0f2d"}


# -- sarama, and sarama-cluster -------------------------------------------------------------------


def test_the_notifications_of_sarama_cluster(tmp_path: Path) -> None:
    lines = (
        "Rebalanced: &{Type:rebalance start Claimed:map[] Released:map[] Current:map[]}",
        "Rebalanced: &{Type:rebalance OK Claimed:map[t:[0 1]] Released:map[] Current:map[t:[0 1] u:[3]]}",
        "Rebalanced: &{Type:rebalance start Claimed:map[] Released:map[] Current:map[t:[0 1] u:[3]]}",
        "Error: kafka server: The provided member is not known in the current generation.",
        "Rebalanced: &{Type:rebalance error Claimed:map[] Released:map[] Current:map[]}",
    )
    answer(tmp_path, "".join(f"2026/03/04 10:00:{s:02} {line}\n" for s, line in enumerate(lines)))
    assert [row["time_us"] for row in rows(tmp_path, "rejoin_requested")] == [0, 2_000_000]
    assert [row["partitions"] for row in rows(tmp_path, "partitions_assigned")] == [["t-0", "t-1", "u-3"]]
    (refused,) = rows(tmp_path, "request_refused")
    assert (refused["api"], refused["error"]) == ("JoinGroup", "UNKNOWN_MEMBER_ID")


def test_sarama_cluster_of_2016(tmp_path: Path) -> None:
    """It says nothing before a rebalance is over."""
    log = (
        "2026/03/04 10:00:00 Rebalanced: &{Claimed:map[t:[0 1]] Released:map[] Current:map[t:[0 1]]}\n"
        "2026/03/04 10:00:06 Rebalanced: &{Claimed:map[] Released:map[t:[0]] Current:map[t:[1]]}\n"
    )
    answer(tmp_path, log)
    assert [row["partitions"] for row in rows(tmp_path, "partitions_revoked")] == [["t-0"]]


# -- franz-go with a structured logger ------------------------------------------------------------


def test_franz_go_with_its_fields_beside_the_message(tmp_path: Path) -> None:
    """A `synced` of zerolog, behind the 42 s for which the member waited for the others."""
    lines = (
        '"time":"2026-03-04T10:00:00Z","message":"joining group","group":"g"',
        '"time":"2026-03-04T10:00:42Z","message":"joined","group":"g","member_id":"m-1","instance_id":{},'
        '"generation":693,"leader":false',
        '"time":"2026-03-04T10:00:43Z","message":"synced","group":"g","assigned":{"t":[4,8]}',
        '"time":"2026-03-04T10:00:43Z","message":"new group session begun","group":"g","added":{"t":[4,8]},'
        '"lost":{}',
        '"time":"2026-03-04T10:09:00Z","message":"heartbeat errored","group":"g","err":"UNKNOWN_MEMBER_ID"',
    )
    one = answer(tmp_path, "".join(f'{{"level":"info",{line}}}\n' for line in lines))
    assert names(one) == ["held-join-phase", "out-of-group"]
    (assigned,) = rows(tmp_path, "partitions_assigned")
    assert (assigned["member_id"], assigned["partitions"]) == ("m-1", ["t-4", "t-8"])
    assert [row["generation"] for row in rows(tmp_path, "join_answered")] == [693]


# -- librdkafka and its wrappers ------------------------------------------------------------------

RD: Final = "%4|1606832093.118|X|rdkafka#consumer-10| [thrd:main]: {}\n"


# -- old releases of Kafka ------------------------------------------------------------------------


def test_a_broker_of_2_2_names_who_joins(tmp_path: Path) -> None:
    reason = "Adding new member source-37a1ef73-34e0-4dc2-a587-1ffa64c24109"
    one = answer(tmp_path, preparing("10:00:00,000", 12, reason))
    assert [(each.cause, each.culprit) for each in one.history.rebalances] == [("new-member", "source")]


def test_a_join_behind_generations_that_the_log_does_not_have(tmp_path: Path) -> None:
    """The round of generation 223 did not begin when the member was out of that of generation 220."""
    lines = (
        ("06:22:05", "INFO - Successfully joined group g with generation 220"),
        (
            "06:25:37",
            "WARNING - Marking the coordinator dead (node 0) for group g: Heartbeat session expired.",
        ),
        ("07:26:02", "INFO - (Re-)joining group g"),
        ("07:26:03", "INFO - Successfully joined group g with generation 223"),
    )
    one = answer(
        tmp_path, "".join(f"2019-04-10 {at},000 - kafka.coordinator - {said}\n" for at, said in lines)
    )
    assert names(one) == ["session-expired"]
    assert one.history.rebalances[-1].lasted_us == 1_000_000


# -- errors that stand alone, and what an application logs of them ---------------------------------


def test_an_exception_has_the_time_of_the_line_above_and_not_of_the_last_line_of_kafka(
    tmp_path: Path,
) -> None:
    log = (
        "2026-03-04 10:00:00 [Consumer clientId=a, groupId=g] (Re-)joining group\n"
        "2026-03-04 10:30:00 ERROR Service - failed\n"
        "java.lang.IllegalStateException\n"
        "\tat Service.run(Service.java:7)\n"
        "Caused by: org.apache.kafka.clients.consumer.CommitFailedException: Commit cannot be completed\n"
    )
    answer(tmp_path, log)
    (refused,) = rows(tmp_path, "request_refused")
    assert (refused["member"], refused["time_us"]) == ("a", 1_800_000_000)


def test_a_session_without_an_answer_of_a_coordinator_that_moved(tmp_path: Path) -> None:
    line = (
        'Group "g" is rebalancing in state up (join-state started) with assignment: Consumer group session '
        "timed out (in join-state started) after 10499 ms without a successful response from the group "
        "coordinator (broker 0, last error was Broker: Not coordinator)"
    )
    one = answer(tmp_path, RD.format(line))
    (found,) = one.findings
    assert found.match.sentence.endswith("app rdkafka#consumer-10 was answered NOT_COORDINATOR.")
    assert found.match.unknown == ""
    assert "look at the brokers' log" in advice_for(found, one.history)


def test_librdkafka_names_the_group_when_it_asks_for_its_coordinator(tmp_path: Path) -> None:
    lines = (
        "Heartbeat failed due to coordinator (b:9092/0) no longer available: Broker: Not coordinator for "
        "group: re-querying for coordinator",
        'b:9092/0: Group "g": querying for coordinator: intervaled in state up',
    )
    assert answer(tmp_path, "".join(map(RD.format, lines))).history.group == "g"


def test_a_consumer_of_franz_go_that_is_closed_does_not_join_again(tmp_path: Path) -> None:
    log = '{"time":"2026-03-04T10:00:00Z","msg":"heartbeat errored","group":"g","err":"context canceled"}\n'
    answer(tmp_path, log)
    assert rows(tmp_path, "rejoin_requested") == []


def test_a_leader_alone_in_its_group_begins_two_rebalances(tmp_path: Path) -> None:
    """A second round only finishes the first where partitions go to somebody."""
    reason = "leader app-1-77 re-joining group during Stable"
    log = ""
    for second, generation in ((15, 8), (23, 9)):
        log += preparing(f"10:00:{second},100", generation, reason)
        log += stabilized(f"10:00:{second},101", generation + 1, 1)
        log += received(f"10:00:{second},102", generation + 1, 1)
    assert len(answer(tmp_path, log).history.rebalances) == 2


def test_a_log_that_ends_as_its_member_begins_to_join(tmp_path: Path) -> None:
    answer(tmp_path, "2026-03-04 10:00:00 [Consumer clientId=a, groupId=g] (Re-)joining group\n")
    (asked,) = rows(tmp_path, "rejoin_requested")
    assert (asked["member"], asked["cause"]) == ("a", "unknown")


# -- logfmt, and Java before its lines had a prefix -------------------------------------------------


def test_a_line_of_logfmt_with_its_prefix_in_a_field_of_its_own(tmp_path: Path) -> None:
    log = (
        'msg="(Re-)joining group" time=2026-03-04T10:00:00.300Z prefix="[Consumer clientId=c, groupId=g] "\n'
        "message=\"Successfully joined group with generation Generation{generationId=7, memberId='c-1', "
        'protocol=\'range\'}" context="[Consumer clientId=c, groupId=g]" time=2026-03-04T10:00:03.300Z\n'
    )
    assert answer(tmp_path, log).history.group == "g"
    (joined,) = rows(tmp_path, "join_answered")
    assert (joined["member"], joined["generation"], joined["time_us"]) == ("c", 7, 3_000_000)


def test_franz_go_in_logfmt(tmp_path: Path) -> None:
    log = (
        'time=2026-03-04T10:00:00Z level=info msg="heartbeat errored" group=g err=REBALANCE_IN_PROGRESS\n'
        'time=2026-03-04T10:00:00Z level=info msg="joining group" @service=benthos group=g label=""\n'
        "time=2026-03-04T10:00:02Z msg=joined group=g member_id=kgo-1 generation=7 leader=false\n"
        'time=2026-03-04T10:00:02Z msg=synced group=g assigned="t[0 1]"\n'
        'time=2026-03-04T10:00:02Z msg="new group session begun" group=g added="t[0 1]" lost=""\n'
    )
    answer(tmp_path, log)
    (assigned,) = rows(tmp_path, "partitions_assigned")
    assert (assigned["member_id"], assigned["partitions"]) == ("kgo-1", ["t-0", "t-1"])


def test_a_consumer_of_java_0_10(tmp_path: Path) -> None:
    lines = (
        "(Re-)joining group g",
        "Successfully joined group g with generation 7",
        "Setting newly assigned partitions [t-0, t-1] for group g",
        "Attempt to heartbeat failed for group g since it is rebalancing.",
        "Marking the coordinator b:9092 (id: 7 rack: null) dead for group g",
        "Auto offset commit failed for group g: Commit cannot be completed since the group has already "
        "rebalanced and assigned the partitions to another member.",
    )
    answer(tmp_path, "".join(f"2026-03-04 10:00:0{n},000 INFO x - {line}\n" for n, line in enumerate(lines)))
    (told,) = rows(tmp_path, "rejoin_requested")
    assert told["cause"] == "group-rebalancing"
    refused = [(row["api"], row["error"]) for row in rows(tmp_path, "request_refused")]
    assert refused == [
        ("FindCoordinator", "COORDINATOR_NOT_AVAILABLE"),
        ("OffsetCommit", "CommitFailedException"),
    ]


def test_what_a_member_of_franz_go_gives_up(tmp_path: Path) -> None:
    """Loggers of structured records print an error as an object whose fields they do not know."""
    at = '"time":"2026-03-04T10:00:0%d.5Z","level":"info","group":"g"'
    log = (
        f'{{{at % 0},"message":"new group session begun","added":{{"t":[0,1]}},"lost":{{}}}}\n'
        f'{{{at % 1},"message":"cooperative consumer calling onRevoke","lost":{{"t":[1]}},"stage":0}}\n'
        f'{{{at % 2},"message":"heartbeat errored","err":{{"Key":"error","Value":{{}}}}}}\n'
        f'{{{at % 3},"message":"eager consumer revoking prior assigned partitions","revoking":{{"t":[0]}}}}\n'
    )
    answer(tmp_path, log)
    assert [row["partitions"] for row in rows(tmp_path, "partitions_revoked")] == [["t-1"], ["t-0"]]
    (told,) = rows(tmp_path, "rejoin_requested")
    assert told["cause"] == "unknown"


STRIPPED: Final = (
    "2026-03-04 10:00:00,000 INFO Request joining group due to: group is already rebalancing\n"
    "2026-03-04 10:00:03,000 INFO Successfully joined group with generation "
    "Generation{generationId=12, memberId='app-1-0a0a0a0a-1111-2222-3333-444444444444', protocol='range'}\n"
    "2026-03-04 10:00:09,000 INFO Request joining group due to: consumer pro-actively leaving the group\n"
)


def test_lines_of_java_without_their_prefix(tmp_path: Path) -> None:
    answer(tmp_path, STRIPPED)
    (told,) = rows(tmp_path, "rejoin_requested")
    assert (told["group"], told["cause"]) == ("(unnamed)", "group-rebalancing")
    ids = {row["member_id"] for row in rows(tmp_path) if row.get("generation") == 12 and row.get("member_id")}
    assert ids == {"app-1-0a0a0a0a-1111-2222-3333-444444444444"}


def test_lines_without_a_prefix_beside_others_are_of_an_unknown_consumer(tmp_path: Path) -> None:
    whole = "2026-03-04 10:00:00,000 INFO [Consumer clientId=app-2, groupId=g] (Re-)joining group\n"
    answer(tmp_path, whole + STRIPPED)
    assert {row["group"] for row in rows(tmp_path)} == {"g"}
    assert {row["member"] for row in rows(tmp_path) if "member" in row} <= {"app-2"}


def test_heartbeats_that_were_answered_say_too_little(tmp_path: Path) -> None:
    line = (
        "2026-03-04 10:00:00,000 DEBUG group_coordinator - Received successful heartbeat response for group g"
    )
    with pytest.raises(InputError, match="1 of 1 lines are about groups, and none says what one did"):
        answer(tmp_path, f"{line}\n")
