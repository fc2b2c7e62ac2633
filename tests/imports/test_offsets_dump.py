"""`__consumer_offsets` as Kafka's tools print it: outputs of Kafka 4.3.1's tools, and older forms by hand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from groupstorm.imports.lines import LINE_MAX
from groupstorm.problems import InputError
from tests.imports.importing import figures, import_texts, rows, states
from tests.imports.offsets_dumps import (
    DUMP,
    OFFSETS,
    SEGMENT,
    A,
    B,
    import_files,
    old_generation,
    record,
    told,
)


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
        ("[g,t,0]::OffsetAndMetadata(offset=5, leaderEpoch=Optional[0], metadata=, "
         "commitTimestamp=1672913436699, expireTimestamp=None)", 5),
        ("[g,t,0]::[OffsetMetadata[176955,NO_METADATA],CommitTime 1522069325297,"
         "ExpirationTime 1522155725297]", 176955),
    ],
)  # fmt: skip
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
    """The record then says the rest of the member, and no partitions."""
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
