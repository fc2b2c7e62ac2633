"""Lines of clients that stand alone, without their group, their prefix or their logger."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.explain.explaining import names
from tests.explain.test_first_answers import answer, printed
from tests.explain.test_other_clients import NEST, OF_GROUP, OUT
from tests.explain.test_published_lines import RD
from tests.imports.importing import client_line, failed, rows

STAMP: Final = "2026-03-04 10:00:00,000 "
UNKNOWN: Final = "kafka server: The provided member is not known in the current generation\n"
BROD: Final = (
    "2022-07-24 16:05:04.207 [info] Group member (g,coor=#PID<0.7.0>,cb=#PID<0.3.0>,generation=172):\n"
    "re-joining group, reason:{}\n"
)
HEARTBEAT: Final = f"{STAMP}[Consumer clientId=c, groupId=g] ConsumerGroupHeartbeatRequest failed "

#: A log, and what is said of it: the group, who was refused or why a member joins again, and the patterns.
LOGS: Final = (
    # -- librdkafka and its wrappers
    (RD.format("Offset commit (manual) failed for 1/1 partition(s): Broker: Unknown member: t[0]@3(Broker: "
               "Unknown member)"), "(unnamed): OffsetCommit UNKNOWN_MEMBER_ID: zombie"),
    (
        RD.format(
            "GroupCoordinator/3: Timed out HeartbeatRequest in flight (after 10963ms, timeout #0): possibly "
            "held back by preceeding OffsetCommitRequest with timeout in 48457ms"
        ),
        "(unnamed): Heartbeat REQUEST_TIMED_OUT: ",
    ),
    (
        RD.format(
            'Group "g" heartbeat error response in state up (join state started, 1 partition(s) assigned): '
            "Broker: Specified group generation id is not valid"
        ),
        "g: Heartbeat ILLEGAL_GENERATION: out-of-group",
    ),
    (
        RD.format(
            'Group "g" is rebalancing in state up (join-state started) with assignment: max.poll.interval.ms '
            "exceeded"
        ),
        "g: poll-timeout: max-poll-interval",
    ),
    ('1772618400.650 RDKAFKA-7-HEARTBEAT: rdkafka#consumer-1: Group "g" heartbeat error response in state '
     "up (join state assigned, 1 partition(s) assigned): Broker: Group rebalance in progress\n",
     "g: Heartbeat REBALANCE_IN_PROGRESS: "),
    ('%3|1772618400.100|GRPSYNC|rdkafka#consumer-4| Group "g": synchronization failed: Broker: Group '
     "rebalance in progress\n", "g: SyncGroup REBALANCE_IN_PROGRESS: "),
    (f'{STAMP} event.str()= Group "g" heartbeat error response in state up (join state assigned, 1 '
     "partition(s) assigned): Broker: Unknown member\n", "g: Heartbeat UNKNOWN_MEMBER_ID: out-of-group"),
    ("2026-03-04 10:00:00,001 [1] ERROR Worker - Local: Maximum application poll interval "
     "(max.poll.interval.ms) exceeded\n", "(unnamed): poll-timeout: max-poll-interval"),
    ('{"Timestamp":"2026-03-04T10:00:00Z","Message":"Broker: Unknown member ---> '
     "Confluent.Kafka.KafkaException: Broker: Unknown member\\n at Confluent.Kafka.Impl.SafeKafkaHandle."
     'Commit(IEnumerable`1 offsets)"}\n', "(unnamed): OffsetCommit UNKNOWN_MEMBER_ID: zombie"),
    (f'{STAMP}ERROR KafkaError{{code=_MAX_POLL_EXCEEDED,val=-147,str="Application maximum poll"}}\n',
     "(unnamed): poll-timeout: max-poll-interval"),
    (f'{STAMP}ERROR KafkaError{{FATAL,code=_FATAL,val=-150,str="Broker: Static consumer fenced by"}}\n',
     "(unnamed): : static-fenced"),
    (f'{STAMP}ERROR KafkaError{{code=ILLEGAL_GENERATION,val=22,str="Commit failed: Broker: Specified"}}\n',
     "(unnamed): OffsetCommit ILLEGAL_GENERATION: zombie"),
    # -- Java, Connect, Streams, Spring, and the broker
    (f"{HEARTBEAT}because member c-1 is unknown.\n", "g: Heartbeat UNKNOWN_MEMBER_ID: out-of-group"),
    (f"{HEARTBEAT}for member c-1 because epoch 7 is fenced.\n",
     "g: Heartbeat FENCED_MEMBER_EPOCH: out-of-group"),
    (f"{HEARTBEAT}because the group coordinator b:9092 (id: 7 rack: null) is incorrect. Will attempt to "
     "find the coordinator again and retry\n", "g: Heartbeat NOT_COORDINATOR: "),
    (f"{HEARTBEAT.replace('ConsumerGroup', 'StreamsGroup')}because instance id p-0 is fenced: in use. "
     "Check for another Streams instance using the same group instance id.\n",
     "g: Heartbeat FENCED_INSTANCE_ID: static-fenced"),
    (client_line(0, "Marking the coordinator bd-vagrant:9092 (id: 2147483647 rack: null) dead"),
     "g: FindCoordinator COORDINATOR_NOT_AVAILABLE: "),
    (client_line(0,
                 "Offset commit failed on partition t-0 at offset 7: This server does not host this "
                 "topic-partition"), "g: OffsetCommit UNKNOWN_TOPIC_OR_PARTITION: "),
    (
        client_line(
            0,
            "Offset commit failed on partition t-3 at offset 9: The group is rebalancing, so a rejoin is "
            "needed.",
        ),
        "g: OffsetCommit REBALANCE_IN_PROGRESS: commit-in-rebalance",
    ),
    (f"{STAMP}ERROR org.apache.kafka.clients.consumer.CommitFailedException: Offset commit cannot be "
     "completed since the consumer is not part of an active group for auto assignment\n",
     "(unnamed): OffsetCommit CommitFailedException: zombie"),
    (f"{STAMP}ERROR org.apache.kafka.common.errors.FencedInstanceIdException: The broker rejected\n",
     "(unnamed): : static-fenced"),
    (f"{STAMP}ERROR org.apache.kafka.common.errors.RebalanceInProgressException: Offset commit\n",
     "(unnamed): OffsetCommit REBALANCE_IN_PROGRESS: commit-in-rebalance"),
    ("2026-03-04 10:00:00 Member app-1-77aa sending LeaveGroup request to coordinator b:9092 (id: 7 "
     "rack: null) due to consumer poll timeout has expired. This means the time between polls\n",
     "(unnamed): poll-timeout: max-poll-interval"),
    # an exception has the time of the line above it
    ("2026-03-04 10:00:00 ERROR OrderService - batch 17 of 10:00:05 failed\n"
     "org.apache.kafka.clients.consumer.CommitFailedException: Commit cannot be completed since the "
     "group has already rebalanced\n", "(unnamed): OffsetCommit CommitFailedException: zombie"),
    ("2022-06-02 10:00:00.000 WARN 1 --- [ntainer#0-0-C-1] o.s.k.l.KafkaMessageListenerContainer    : "
     "Non-fatal commit failure\n\norg.apache.kafka.common.errors.RebalanceInProgressException: Offset "
     "commit cannot be completed since the consumer is undergoing a rebalance\n",
     "(unnamed): OffsetCommit REBALANCE_IN_PROGRESS: commit-in-rebalance"),
    # Confluent for Kubernetes puts the names of the pod's application behind the logger
    ("[2026-03-04 10:00:00,971] INFO [Worker clientId=w, groupId=g] JoinGroup failed: Coordinator b:9092 "
     "(id: 2147483647 rack: null isFenced: false) is loading the group. "
     "(org.apache.kafka.connect.runtime.distributed.WorkerCoordinator:700) - app=connect, clusterId=c, "
     "server=0\n", "g: JoinGroup COORDINATOR_LOAD_IN_PROGRESS: "),
    (f"{STAMP}[Schema registry clientId=sr-1, groupId=g] Cancelled in-flight HEARTBEAT request with "
     "correlation id 44 due to node 7 being disconnected (elapsed time since creation: 9041ms)\n",
     "g: Heartbeat REQUEST_TIMED_OUT: "),
    (f"{STAMP}An unexpected error occurred! {{:error=>org.apache.kafka.common.KafkaException: Unexpected "
     "error in join group response: The group is rebalancing, so a rejoin is needed., :backtrace=>[]}\n",
     "(unnamed): JoinGroup REBALANCE_IN_PROGRESS: "),
    ("[2018-10-24 01:06:06,367] WARN stream-thread [app-2fdba422-f172-45f0-966a-1fee31bfb44d-StreamThread-"
     "1] Detected task 0_0 that got migrated to another thread. This implies that this thread missed a "
     "rebalance and dropped out of the consumer group. Will try to rejoin the consumer group. "
     "(org.apache.kafka.streams.processor.StreamThread)\n",
     "app: unknown TaskMigratedException: out-of-group"),
    (f"{STAMP}ERROR given member.id pod-0-aa is identified as a known static member pod-0, but not "
     "matching the expected member.id pod-0-bb during join-group, will respond with instance fenced "
     "error (kafka.coordinator.group.GroupMetadata)\n",
     "(unnamed): JoinGroup FENCED_INSTANCE_ID: static-fenced"),
    # -- other clients
    (f"2026/03/04 10:00:00 Error from consumer: {UNKNOWN}",
     "(unnamed): unknown UNKNOWN_MEMBER_ID: out-of-group"),
    # of later versions of sarama (IBM/sarama, consumer_group.go:509 of bd98b3a)
    (f"2026/03/04 10:00:00 consumergroup/g: lost ownership of map[t:[0 1]] due to {UNKNOWN}",
     "g: unknown UNKNOWN_MEMBER_ID: out-of-group"),
    ("[sarama]2018/01/18 04:38:29 client/coordinator coordinator for consumergroup g is #146 (b:9092)\n"
     "[sarama]2018/01/18 04:38:29 rebalance error: kafka server: Request was for a consumer group that is "
     "not coordinated by this broker.\n", "g: unknown NOT_COORDINATOR: "),
    (f"{STAMP}D! [sarama] client/coordinator coordinator for consumer group g is not available\n",
     "g: unknown COORDINATOR_NOT_AVAILABLE: "),
    (NEST.format("10:00:00.001", "ERROR",
                 "[Runner] The coordinator is not aware of this member, re-joining the group",
                 f"{OF_GROUP},{OUT}"), "g: JoinGroup UNKNOWN_MEMBER_ID: out-of-group"),
    (f"{STAMP}kafka-go: Problem getting partitions during startup, [6] Not Leader For Partition: the "
     "broker is not the leader\n", "(unnamed): Metadata NOT_LEADER_OR_FOLLOWER: "),
    (BROD.format("{:connection_down, {:shutdown, :tcp_closed}}"), "g: JoinGroup COORDINATOR_NOT_AVAILABLE: "),
    (BROD.format(":timeout"), "g: JoinGroup REQUEST_TIMED_OUT: "),
    (f"{STAMP}Committing raised exception: CommitFailedError('Commit cannot be completed since the group "
     "has already rebalanced',)\n", "(unnamed): OffsetCommit CommitFailedException: zombie"),
    ("2026-03-04 10:00:00 - WARNING - Heartbeat poll expired, leaving group\n",
     "(unnamed): poll-timeout: max-poll-interval"),
    ('{"time":"2026-03-04T10:00:00Z","message":"join group failed","group":"g","err":'
     '"FENCED_INSTANCE_ID: The broker rejected this static consumer"}\n',
     "g: JoinGroup FENCED_INSTANCE_ID: static-fenced"),
    ("E, [2026-03-04T10:00:00.174 #9] ERROR -- : [[g] {}:] Error sending heartbeat: "
     "Kafka::UnknownMemberId\n"
     "I, [2026-03-04T10:00:00.175 #9]  INFO -- : [[g] {}:] Joining group `g`\n",
     "g: JoinGroup UNKNOWN_MEMBER_ID: out-of-group"),
)  # fmt: skip


@pytest.mark.parametrize(("log", "said"), LOGS, ids=map(str, range(len(LOGS))))
def test_what_an_error_alone_says(tmp_path: Path, log: str, said: str) -> None:
    one = answer(tmp_path, log)
    asked = rows(tmp_path, "rejoin_requested")
    told = [f"{each.api} {each.error}" for each in one.history.refusals] or [row["cause"] for row in asked]
    assert f"{one.history.group}: {', '.join(told)}: {', '.join(names(one))}" == said
    assert {row["time_us"] for row in (*rows(tmp_path, "request_refused"), *asked)} <= {0}


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
    had, given = rows(tmp_path, "partitions_assigned")
    assert (had["partitions"], had["provenance"]) == (["t-0", "t-1"], "inferred")
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
