"""Generations in `__consumer_offsets` that follow on each other, alone and beside the logs of others."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from tests.imports.importing import figures, import_texts, rows, states
from tests.imports.offsets_dumps import A, B, old_generation, record
from tests.imports.test_several_logs import BROKER, FOLLOWER, LEADER, client_log
from tests.imports.test_several_logs import A as SEVERAL_A
from tests.imports.test_several_logs import B as SEVERAL_B


@pytest.mark.parametrize("zone_hours", [0, 2, -5])
def test_the_brokers_log_gives_causes_and_the_record_partitions(zone_hours: int, tmp_path: Path) -> None:
    """The log's times name no zone; the record's are in UTC."""
    dump = old_generation(0, 1_731_924_003_052, 1, f"{{{A}=[t-0],{B}=[t-1]}}") + old_generation(
        1, 1_731_924_302_033, 2, f"{{{A}=[t-0, t-1]}}"
    )

    text = BROKER.replace("app-", "").replace(" 10:0", f" {10 + zone_hours:02d}:0")
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
