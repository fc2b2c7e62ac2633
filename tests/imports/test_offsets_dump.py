"""`__consumer_offsets` as Kafka's tools print it: outputs of Kafka 4.3.1's tools, and older forms by hand."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from groupstorm.imports.importing import Options, import_logs
from groupstorm.imports.lines import LINE_MAX, find_logs
from groupstorm.problems import InputError
from tests.imports.importing import broker_line, figures, import_texts, rows, states
from tests.imports.test_broker_rounds import OFFSETS as LOG_PLACE
from tests.imports.test_several_logs import FOLLOWER, LEADER, client_log
from tests.imports.test_several_logs import A as SEVERAL_A
from tests.imports.test_several_logs import B as SEVERAL_B

OFFSETS = Path(__file__).parent / "offsets"
DUMP = OFFSETS / "dump-4.3.1.txt"
SEGMENT = OFFSETS / "data" / "__consumer_offsets-0"

#: A line of kafka-dump-log of Kafka 3.x in front of its key.
_BATCH = (
    "baseOffset: {at} lastOffset: {at} count: 1 baseSequence: -1 lastSequence: -1 producerId: {producer} "
    "producerEpoch: -1 partitionLeaderEpoch: 0 isTransactional: {transactional} isControl: {control} "
    "deleteHorizonMs: OptionalLong.empty position: 0 CreateTime: {ms} size: 339 magic: 2 compresscodec: none "
    "crc: 810578779 isvalid: true\n"
    "| offset: {at} CreateTime: {ms} keySize: 12 valueSize: 257 sequence: -1 headerKeys: [] {rest}\n"
)


def record(at: int, ms: int, rest: str, producer: int = -1, control: bool = False) -> str:
    transactional = str(producer >= 0).lower()
    return _BATCH.format(
        at=at, ms=ms, rest=rest, producer=producer, transactional=transactional, control=str(control).lower()
    )


def told(folder: Path, out: str = "out") -> list[dict[str, Any]]:
    """The rows of a trace without the places of their lines."""
    from groupstorm.trace.reader import read_rows

    return [
        {name: value for name, value in row.items() if name not in ("evidence", "detail")}
        for row in read_rows(folder / out)
    ]


def import_files(folder: Path, *sources: Path, groups: frozenset[str] | None = None) -> Any:
    return import_logs(find_logs([str(one) for one in sources]), folder / "out", Options(groups=groups))


def test_the_segment_says_what_kafkas_own_dump_of_it_says(tmp_path: Path) -> None:
    (dump,) = import_files(tmp_path, DUMP).logs
    by_tool = told(tmp_path)
    (segment,) = import_files(tmp_path, SEGMENT).logs
    assert told(tmp_path) == by_tool
    assert dump.understood == segment.understood == segment.lines == 62
    assert dump.not_understood == segment.not_understood == 0
    assert (dump.damage, segment.damage) == ([], [])


def test_a_classic_group(tmp_path: Path) -> None:
    """Written down from the dump: one member, then two, then the first one alone, then none."""
    import_files(tmp_path, DUMP, groups=frozenset({"pay"}))
    assert states(tmp_path) == [
        ("Empty", "PreparingRebalance", "unknown", 0),
        ("PreparingRebalance", "CompletingRebalance", "unknown", 1),
        ("CompletingRebalance", "Stable", "assigned", 1),
        ("Stable", "PreparingRebalance", "unknown", 1),
        ("PreparingRebalance", "CompletingRebalance", "unknown", 2),
        ("CompletingRebalance", "Stable", "assigned", 2),
        ("Stable", "PreparingRebalance", "unknown", 2),
        ("PreparingRebalance", "CompletingRebalance", "unknown", 3),
        ("CompletingRebalance", "Stable", "assigned", 3),
        ("Stable", "PreparingRebalance", "unknown", 3),
        ("PreparingRebalance", "Empty", "no-members", 4),
    ]
    answered = [
        (row["member"], row["generation"], row["partitions"]) for row in rows(tmp_path, "sync_answered")
    ]
    assert answered == [
        ("app-a", 1, ["orders-0", "orders-1", "orders-2", "orders-3"]),
        ("app-a", 2, ["orders-0", "orders-1"]),
        ("app-b", 2, ["orders-2", "orders-3"]),
        ("app-a", 3, ["orders-0", "orders-1", "orders-2", "orders-3"]),
    ]
    # from the state of generation 4, which has no members, to the tombstone of the group
    assert figures(tmp_path)["pay"].unowned_max_seconds == pytest.approx(0.025)
    (gone,) = rows(tmp_path, "members_gone")  # from then on nobody is there to own anything
    assert gone["time_us"] == (1795405323527 - 1795405217768) * 1000
    (deleted,) = rows(tmp_path, "group_deleted")
    assert deleted["time_us"] == (1795405610279 - 1795405217768) * 1000


def test_how_the_rows_of_a_generation_are_known(tmp_path: Path) -> None:
    import_files(tmp_path, DUMP, groups=frozenset({"pay"}))
    second = [row for row in rows(tmp_path, "group_state_changed") if row.get("generation") == 2]
    completing, stable, _ = second
    (line,) = completing["evidence"]
    assert stable["evidence"] == [line]
    assert line.startswith(f"{DUMP}:")
    text = DUMP.read_text().splitlines()[int(line.rpartition(":")[2]) - 1]
    assert '"generation":2' in text
    since_ms = int(re.findall(r'"currentStateTimestamp":(\d+)', text)[0])
    assert completing["time_us"] == (since_ms - 1795405217768) * 1000
    assert (completing["provenance"], stable["provenance"]) == ("observed", "observed")
    came = next(row for row in rows(tmp_path, "member_added") if row["member"] == "app-b")
    assert came["provenance"] == "inferred"
    assert (came["earliest_us"], came["latest_us"]) == (3447000, completing["time_us"])


def test_commits_are_rows(tmp_path: Path) -> None:
    import_files(tmp_path, DUMP, groups=frozenset({"pay"}))
    commits = rows(tmp_path, "offsets_committed")
    assert len(commits) == 12
    assert (commits[0]["partitions"], commits[0]["positions"]) == (["orders-1"], [1])
    assert "generation" not in commits[0]
    assert "member_id" not in commits[0]
    assert commits[0]["rule"] == "member_id, generation: no record says who commits"


def test_a_consumer_group(tmp_path: Path) -> None:
    """Names of topics come from the topic ids of commits. n-1 gives up two partitions before n-2 has them."""
    import_files(tmp_path, DUMP, groups=frozenset({"new"}))
    steps = [
        (row["member"], row["generation"], row["state"], len(row["partitions"]), len(row["revoking"]))
        for row in rows(tmp_path, "member_reconciled")
    ]
    assert steps == [
        ("n-1", 2, "STABLE", 4, 0),
        ("n-2", 3, "UNRELEASED_PARTITIONS", 0, 0),
        ("n-1", 2, "UNREVOKED_PARTITIONS", 2, 2),
        ("n-1", 3, "STABLE", 2, 0),
        ("n-2", 3, "STABLE", 2, 0),
        ("n-1", 4, "STABLE", 4, 0),
    ]
    assert rows(tmp_path, "member_reconciled")[0]["partitions"] == [f"orders-{number}" for number in range(4)]
    assert [row["state"] for row in rows(tmp_path, "group_state_changed")][-1] == "Empty"
    assert [row["count"] for row in rows(tmp_path, "target_assigned")] == [1, 2, 1]
    # orders-2 and orders-3, from n-1's acknowledgement to n-2's heartbeat
    found = figures(tmp_path)["new"]
    assert found.unowned_partition_seconds is not None
    assert found.unowned_max_seconds is not None
    assert found.unowned_max_seconds >= 2.358


@pytest.mark.parametrize("name", ["console-group-metadata-4.3.1.txt", "console-offsets-4.3.1.txt"])
def test_objects_without_line_ends(name: str, tmp_path: Path) -> None:
    """The console consumer prints no time of a record, so a generation counts from its state on."""
    (done,) = import_files(tmp_path, OFFSETS / name, groups=frozenset({"pay"})).logs
    assert done.not_understood == 0
    if "offsets" in name:
        assert len(rows(tmp_path, "offsets_committed")) == 12
        return
    assert [row["generation"] for row in rows(tmp_path, "ownership_known")] == [1, 2, 3]
    stable = [row for row in rows(tmp_path, "group_state_changed") if row["state"] == "Stable"]
    assert {row["provenance"] for row in stable} == {"inferred"}
    assert all(row["earliest_us"] == row["time_us"] for row in stable)


def test_an_object_may_be_cut_by_the_longest_line(tmp_path: Path) -> None:
    text = (OFFSETS / "console-offsets-4.3.1.txt").read_text()
    objects = text[: text.rindex("}") + 1]
    repeats = LINE_MAX // len(objects) + 2
    (done,) = import_texts(tmp_path, {"all.txt": objects * repeats}).logs
    assert done.not_understood == 0
    assert done.understood == repeats * objects.count('{"key":')


A, B = "a-11111111-2222-3333-4444-555555555555", "b-11111111-2222-3333-4444-666666666666"


def old_generation(at: int, ms: int, number: int, assignment: str) -> str:
    value = f'{{"protocolType":"consumer","protocol":"range","generationId":{number},'
    value += f'"assignment":"{assignment}"}}'
    return record(at, ms, f"key: group_metadata::group=g payload: {value}")


def test_the_dump_of_kafka_3(tmp_path: Path) -> None:
    text = (
        old_generation(0, 1_664_531_116_000, 1, f"{{{A}=[t-0, t-1]}}")
        + record(1, 1_664_531_117_000, "key: offset_commit::group=g,partition=t-1 payload: offset=1")
        + record(
            2, 1_664_531_118_000, "key: offset_commit::group=g,partition=t-0 payload: offset=7,metadata=x"
        )
        + old_generation(3, 1_664_531_119_000, 2, f"{{{A}=[t-0],{B}=[t-1]}}")
        + record(4, 1_664_531_120_000, "key: group_metadata::group=g payload: <DELETE>")
    )
    (done,) = import_texts(tmp_path, {"dump.txt": text}).logs
    assert (done.understood, done.not_understood) == (5, 0)
    assert [row["partitions"] for row in rows(tmp_path, "sync_answered")] == [
        ["t-0", "t-1"],
        ["t-0"],
        ["t-1"],
    ]
    assert [row["positions"] for row in rows(tmp_path, "offsets_committed")] == [[1], [7]]
    assert [row["member"] for row in rows(tmp_path, "member_added")] == ["a", "b"]
    # when the join phase ended is not in the record
    completing = [row for row in rows(tmp_path, "group_state_changed") if row["state"].startswith("Compl")]
    assert [row["provenance"] for row in completing] == ["inferred", "inferred"]
    assert [row["latest_us"] for row in completing] == [0, 3_000_000]


def test_the_dump_of_kafka_1(tmp_path: Path) -> None:
    """One line a record, with the batch's fields in it; keys of their own."""
    line = (
        "offset: {} position: 0 CreateTime: 1530000000000 isvalid: true keysize: 12 valuesize: 24 magic: 2 "
        "compresscodec: NONE producerId: -1 producerEpoch: -1 sequence: -1 isTransactional: false "
        "headerKeys: [] key: {} payload: {}\n"
    )
    value = f'{{"protocolType":"consumer","protocol":"range","generationId":1,"assignment":"{{{A}=[t-0]}}"}}'
    text = line.format(0, '{"metadata":"g"}', value) + line.format(1, "offset::g:t:0", "17")
    (done,) = import_texts(tmp_path, {"dump.txt": text}).logs
    assert (done.understood, done.not_understood) == (2, 0)
    assert rows(tmp_path, "sync_answered")[0]["partitions"] == ["t-0"]
    assert rows(tmp_path, "offsets_committed")[0]["positions"] == [17]


def test_offsets_of_transactions_count_if_they_commit(tmp_path: Path) -> None:
    commit = "key: offset_commit::group=g,partition=t-0 payload: offset={}"
    marker = "endTxnMarker: {} coordinatorEpoch: 0"
    text = (
        record(0, 1_000_000, commit.format(5), producer=7)
        + record(1, 1_001_000, commit.format(6), producer=8)
        + record(2, 1_002_000, marker.format("ABORT"), producer=7, control=True)
        + record(3, 1_003_000, marker.format("COMMIT"), producer=8, control=True)
        + record(4, 1_004_000, commit.format(9), producer=9)
    )
    import_texts(tmp_path, {"dump.txt": text})
    (row,) = rows(tmp_path, "offsets_committed")
    assert (row["positions"], row["time_us"]) == ([6], 0)
    assert row["evidence"] == [f"{tmp_path / 'dump.txt'}:4"]


@pytest.mark.parametrize(
    ("line", "offset"),
    [
        (
            "[g,t,0]::OffsetAndMetadata(offset=5, leaderEpoch=Optional[0], metadata=, "
            "commitTimestamp=1672913436699, expireTimestamp=None)",
            5,
        ),
        (
            "[g,t,0]::[OffsetMetadata[176955,NO_METADATA],CommitTime 1522069325297,"
            "ExpirationTime 1522155725297]",
            176955,
        ),
    ],
)
def test_the_console_formatters_of_kafka_1_to_3(line: str, offset: int, tmp_path: Path) -> None:
    group = (
        f"g::GroupMetadata(groupId=g, generation=1, protocolType=Some(consumer), currentState=Stable, "
        f"members=Map({A} -> MemberMetadata(memberId={A}, groupInstanceId=Some(null), clientId=a, "
        "clientHost=/127.0.0.1, sessionTimeoutMs=10000, rebalanceTimeoutMs=300000, "
        "supportedProtocols=List(range), )))"
    )
    (done,) = import_texts(tmp_path, {"console.txt": f"{line}\n{group}\n[g,t,0]::NULL\n"}).logs
    assert (done.understood, done.untimed) == (3, 1)
    assert [row["positions"] for row in rows(tmp_path, "offsets_committed")] == [[offset]]


def test_generations_without_times_are_refused(tmp_path: Path) -> None:
    text = "g::GroupMetadata(groupId=g, generation=2, protocolType=None, currentState=Empty, members=Map())\n"
    with pytest.raises(InputError, match="none says when"):
        import_texts(tmp_path, {"console.txt": text * 2})


def test_a_missing_generation_is_said(tmp_path: Path) -> None:
    text = old_generation(0, 1_000_000, 4, f"{{{A}=[t-0]}}") + old_generation(
        1, 1_060_000, 7, f"{{{A}=[t-0]}}"
    )
    import_texts(tmp_path, {"dump.txt": text})
    sentences = [row["detail"] for row in rows(tmp_path, "evidence_missing")]
    assert any("between generation 4 and generation 7" in one for one in sentences)


@pytest.mark.parametrize("zone_hours", [0, 2, -5])
def test_the_brokers_log_gives_causes_and_the_record_partitions(zone_hours: int, tmp_path: Path) -> None:
    """The log's times name no zone; the record's are in UTC."""
    dump = old_generation(0, 1_731_924_003_052, 1, f"{{{A}=[t-0],{B}=[t-1]}}") + old_generation(
        1, 1_731_924_302_033, 2, f"{{{A}=[t-0, t-1]}}"
    )

    def log(time: str, message: str) -> str:
        hour = 10 + zone_hours
        return broker_line(f"{hour:02d}{time[2:]}", message)

    text = (
        log(
            "10:00:00,010",
            f"Preparing to rebalance group g in state PreparingRebalance with old generation 0 ({LOG_PLACE}) "
            f"(reason: Adding new member {A} with group instance id None)",
        )
        + log("10:00:03,010", f"Stabilized group g generation 1 ({LOG_PLACE}) with 2 members")
        + log(
            "10:00:03,050",
            f"Assignment received from leader {A} for group g for generation 1. The group has 2 members, 0 "
            "of which are static.",
        )
        + log("10:05:00,000", f"Member {B} in group g has failed, removing it from the group")
        + log(
            "10:05:00,000",
            f"Preparing to rebalance group g in state PreparingRebalance with old generation 1 ({LOG_PLACE}) "
            f"(reason: removing member {B} on heartbeat expiration)",
        )
        + log("10:05:02,000", f"Stabilized group g generation 2 ({LOG_PLACE}) with 1 members")
        + log(
            "10:05:02,030",
            f"Assignment received from leader {A} for group g for generation 2. The group has 1 members, 0 "
            "of which are static.",
        )
    )
    done = import_texts(tmp_path, {"server.log": text, "dump.txt": dump})
    assert done.offsets[0].us == zone_hours * 3_600_000_000
    assert [row[2] for row in states(tmp_path)][3:] == ["session-expired", "all-joined", "assigned"]
    assert len(states(tmp_path)) == 6
    assert [row["partitions"] for row in rows(tmp_path, "sync_answered")] == [
        ["t-0"],
        ["t-1"],
        ["t-0", "t-1"],
    ]
    assert [(row["member"], row["cause"]) for row in rows(tmp_path, "member_removed")] == [
        ("b", "session-expired")
    ]
    # t-1 from the failure at 10:05:00.000 to the assignment at 10:05:02.030
    assert figures(tmp_path)["g"].unowned_max_seconds == pytest.approx(2.03)


def test_a_group_that_changes_its_protocol_ends_and_begins_anew(tmp_path: Path) -> None:
    """Classic, then a consumer group, then classic again, and deleted."""

    def modern(at: int, key_type: int, member: str, value: str) -> str:
        key = f'{{"type":"{key_type}","data":{{"groupId":"g"{member}}}}}'
        return record(at, 1_000_000 + at, f"key: {key} payload: {value}")

    gone, of_a = "<DELETE>", f',"memberId":"{A}"'
    member = (
        '{"version":"0","data":{"clientId":"a","subscribedTopicNames":["t"],"rebalanceTimeoutMs":300000}}'
    )
    parts = [
        old_generation(0, 1_000_000, 1, f"{{{A}=[t-0]}}"),
        record(1, 1_000_001, "key: group_metadata::group=g payload: <DELETE>"),
        modern(2, 5, of_a, member),
        modern(3, 3, "", '{"version":"0","data":{"epoch":2}}'),
        modern(4, 5, of_a, gone),
        modern(5, 3, "", gone),
        old_generation(6, 1_000_006, 3, f"{{{A}=[t-0]}}"),
        record(7, 1_000_007, "key: group_metadata::group=g payload: <DELETE>"),
    ]
    (done,) = import_texts(tmp_path, {"dump.txt": "".join(parts)}).logs
    assert done.not_understood == 0
    assert [row["time_us"] for row in rows(tmp_path, "group_deleted")] == [1_000, 5_000, 7_000]
    assert [row["generation"] for row in rows(tmp_path, "sync_answered")] == [1, 3]
    assert [row["generation"] for row in rows(tmp_path, "group_epoch_bumped")] == [2]


def test_the_logs_of_the_members_meet_the_records(tmp_path: Path) -> None:
    """Clocks of clients are 40 ms ahead. The record says what the leader's log says, a little later."""
    ahead = timedelta(milliseconds=40)
    dump = old_generation(0, 1_731_924_003_052, 1, f"{{{SEVERAL_A}=[t-0],{SEVERAL_B}=[t-1]}}")
    dump += old_generation(1, 1_731_924_302_033, 2, f"{{{SEVERAL_A}=[t-0, t-1]}}")
    sources = {
        "a.log": client_log("app-a", LEADER, ahead),
        "b.log": client_log("app-b", FOLLOWER, ahead),
        "dump.txt": dump,
    }
    done = import_texts(tmp_path, sources)
    # "Finished assignment" is at 3.060 s on the leader's clock, and before the record at 3.052 s
    assert 7_000 <= done.offsets[0].us <= 45_000
    assert done.offsets[2].us == 0
    assert [(row[1], row[3]) for row in states(tmp_path)] == [
        ("PreparingRebalance", 0),
        ("CompletingRebalance", 1),
        ("Stable", 1),
        ("PreparingRebalance", 1),
        ("CompletingRebalance", 2),
        ("Stable", 2),
    ]
    answered = [(row["member"], row["partitions"]) for row in rows(tmp_path, "sync_answered")]
    assert answered == [("app-a", ["t-0"]), ("app-b", ["t-1"]), ("app-a", ["t-0", "t-1"])]
    assert rows(tmp_path, "group_imported")[0]["cause"] == "members"


def test_a_static_member_that_comes_back(tmp_path: Path) -> None:
    def generation(at: int, ms: int, member_id: str) -> str:
        member = (
            f'{{"memberId":"{member_id}","groupInstanceId":"i-0","clientId":"a","clientHost":"/127.0.0.1",'
            '"rebalanceTimeout":300000,"sessionTimeout":45000,"subscription":{"topics":["t"]},'
            '"assignment":{"assignedPartitions":[{"topic":"t","partitions":[0]}],"userData":null}}'
        )
        return record(
            at,
            ms,
            'key: {"type":"2","data":{"group":"g"}} payload: {"version":"3","data":{'
            f'"protocolType":"consumer","generation":3,"protocol":"range","leader":"{member_id}",'
            f'"currentStateTimestamp":{ms - 5},'
            f'"members":[{member}]}}}}',
        )

    import_texts(
        tmp_path, {"dump.txt": generation(0, 1_000_000, "i-0-x") + generation(1, 1_009_000, "i-0-y")}
    )
    (replaced,) = rows(tmp_path, "member_replaced")
    assert (replaced["previous_member_id"], replaced["member_id"]) == ("i-0-x", "i-0-y")
    assert len(rows(tmp_path, "sync_answered")) == 1
    assert rows(tmp_path, "member_removed") == []


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, 32_000), st.sampled_from('0123456789{}[]",:=|xn-')), max_size=6))
def test_no_change_of_the_text_breaks_the_import(tmp_path: Path, changes: list[tuple[int, str]]) -> None:
    text = DUMP.read_text("utf-8")
    for at, sign in changes:
        text = text[:at] + sign + text[at + 1 :]
    with suppress(InputError):
        import_texts(tmp_path, {"dump.txt": text})


@pytest.mark.parametrize(
    "rest",
    [
        'key: {"type":"2","data":{"group":"g"}} payload: {"version":"3","data":{"generation":"x"}}',
        'key: {"type":"2","data":{"group":"g"}} payload: {"version":"3","data":{"generation":1',
        'key: {"type":"two","data":{}} payload: {"version":"3","data":{}}',
        'key: {"type":"\u00b2","data":{}} payload: {"version":"3","data":{}}',
        'key: {"type":"8","data":{"groupId":"g","memberId":5}} payload: <DELETE>',
        "key: something payload: else",
        'key: {"type":"8","data":{"groupId":"g","memberId":"m"}} payload: {"version":"0","data":{'
        '"memberEpoch":1,"state":0,"assignedPartitions":[{"topicId":"x","partitions":[1,"2"]}],'
        '"partitionsPendingRevocation":[]}}',
        'key: {"type":"2","data":{"group":"g"}} payload: {"version":"3","data":{"protocolType":"consumer",'
        '"generation":1,"currentStateTimestamp":99999999999999999999,"members":[]}}',
    ],
)
def test_records_that_are_none_are_counted(rest: str, tmp_path: Path) -> None:
    good = record(0, 1_000_000, "key: offset_commit::group=g,partition=t-0 payload: 5")
    (done,) = import_texts(tmp_path, {"dump.txt": good + record(1, 1_000_001, rest)}).logs
    assert (done.understood, done.not_understood) == (1, 1)


def test_an_assignment_that_is_no_base64_is_not_known(tmp_path: Path) -> None:
    """Of a member the record says no partitions then, and the rest."""
    member = (
        '{"memberId":"m","groupInstanceId":null,"clientId":"c","clientHost":"/h","rebalanceTimeout":1,'
        '"sessionTimeout":1,"subscription":"AA==","assignment":"\u00e9"}'
    )
    text = record(
        0,
        1_000_000,
        'key: {"type":"2","data":{"group":"g"}} payload: {"version":"3","data":{"protocolType":"consumer",'
        '"generation":3,"protocol":"range","leader":"m","currentStateTimestamp":999995,'
        f'"members":[{member}]}}}}',
    )
    import_texts(tmp_path, {"dump.txt": text})
    assert [row["member"] for row in rows(tmp_path, "member_added")] == ["c"]
    assert all("partitions" not in row for row in rows(tmp_path, "sync_answered"))
