"""Imports of what kafka-consumer-groups --describe prints: outputs of Kafka 4.3.1, and the columns of older
releases."""

from __future__ import annotations

import json
import re
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from groupstorm.imports.importing import Options
from groupstorm.imports.times import MICRO, Instant, shown
from groupstorm.problems import InputError
from tests.command import groupstorm
from tests.imports.importing import broker_line, figures, import_texts, received, rows, stabilized, states
from tests.imports.offsets_dumps import OFFSETS

#: 2026-11-23T03:41:00Z
AT = Instant(1_795_405_260 * MICRO, True, MICRO)
TIMES = Options(times={"": AT})


def real(name: str) -> str:
    return (OFFSETS / f"{name}-4.3.1.txt").read_text("utf-8")


def owned(folder: Path) -> dict[str, list[str]]:
    answered = [*rows(folder, "sync_answered"), *rows(folder, "member_reconciled")]
    return {row["member"]: row["partitions"] for row in answered}


PAY = {"app-a": ["orders-0", "orders-1"], "app-b": ["orders-2", "orders-3"]}


@pytest.mark.parametrize("name", ["describe", "describe-verbose", "describe-classic-members"])
def test_a_classic_group(name: str, tmp_path: Path) -> None:
    (done,) = import_texts(tmp_path, {"d.txt": real(name)}, TIMES).logs
    assert done.not_understood == 0
    assert owned(tmp_path) == PAY
    assert {row["provenance"] for row in rows(tmp_path, "member_added")} == {"inferred"}
    assert not any("generation" in row for row in rows(tmp_path, "sync_answered"))
    committed = rows(tmp_path, "offsets_committed")
    assert [row["positions"] for row in committed] == ([] if "members" in name else [[3, 3, 3, 3]])


def test_a_consumer_group(tmp_path: Path) -> None:
    import_texts(tmp_path, {"d.txt": real("describe-consumer-group")}, TIMES)
    assert owned(tmp_path) == {"n-1": PAY["app-a"], "n-2": PAY["app-b"]}
    assert {(row["generation"], row["state"]) for row in rows(tmp_path, "member_reconciled")} == {
        (3, "STABLE")
    }


def test_several_groups_and_tables(tmp_path: Path) -> None:
    text = real("describe-all-groups") + real("describe-all-members") + real("describe-all-states")
    (done,) = import_texts(tmp_path, {"d.txt": text}, TIMES).logs
    assert done.not_understood == 0
    states = {
        row["group"]: (row["state"], row.get("protocol")) for row in rows(tmp_path, "group_state_changed")
    }
    assert states == {"new": ("Stable", "uniform"), "pay": ("Empty", None), "coop": ("Empty", None)}
    assert set(owned(tmp_path)) == {"n-1", "n-2"}


def test_without_a_time_nobody_knows_when_it_was_printed(tmp_path: Path) -> None:
    done = import_texts(tmp_path, {"d.txt": real("describe")})
    assert done.lacks == "time"
    assert json.loads((tmp_path / "out" / "import.json").read_text())["began"] == "an unknown time"
    (missing,) = [row for row in rows(tmp_path, "evidence_missing") if row["cause"] == "clock"]
    assert "--at TIME" in missing["detail"]


def test_it_meets_other_sources_only_with_a_time(tmp_path: Path) -> None:
    sources = {"d.txt": real("describe"), "dump.txt": real("dump")}
    with pytest.raises(InputError, match=r"d.txt: nothing says when .* --at"):
        import_texts(tmp_path, sources)
    import_texts(tmp_path, sources, TIMES)
    # the records say the same: no row of the description but the commits that are known already
    came = [row for row in rows(tmp_path, "member_added") if row["group"] == "pay"]
    assert [row["evidence"][0].rpartition(":")[0] for row in came] == [str(tmp_path / "dump.txt")] * 2


MEMBERS_2 = """
GROUP   CONSUMER-ID                             HOST        CLIENT-ID  #PARTITIONS  ASSIGNMENT
g       a-11111111-2222-3333-4444-555555555555  /127.0.0.1  a          3            t(0,1), other.t(2)
g       b-11111111-2222-3333-4444-555555555555  /127.0.0.1  b          0            -
"""
WITHOUT_GROUP = """
TOPIC  PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG  CONSUMER-ID  HOST        CLIENT-ID
t      0          5               7               2    a-x          /127.0.0.1  a
t      1          -               7               -    -            -           -
-      -          -               -               -    b-x          /127.0.0.1  b
"""
STATIC = """
GROUP  CONSUMER-ID  GROUP-INSTANCE-ID  HOST        CLIENT-ID  #PARTITIONS  ASSIGNMENT
g      i-0-x        i-0                /127.0.0.1  a          1            t(0)
"""


def test_the_columns_of_kafka_2_and_3(tmp_path: Path) -> None:
    import_texts(tmp_path, {"d.txt": MEMBERS_2}, TIMES)
    assert owned(tmp_path) == {"a": ["t-0", "t-1", "other.t-2"], "b": []}
    import_texts(tmp_path, {"d.txt": STATIC}, TIMES)
    assert [row["instance"] for row in rows(tmp_path, "member_added")] == ["i-0"]


def test_tables_without_the_group(tmp_path: Path) -> None:
    """Before Kafka 2.4 the group is what the user asked for."""
    with pytest.raises(InputError, match=r"d.txt:3: the table names no group: name it with --group"):
        import_texts(tmp_path, {"d.txt": WITHOUT_GROUP})
    import_texts(tmp_path, {"d.txt": WITHOUT_GROUP}, Options(groups=frozenset({"g"}), times={"": AT}))
    assert owned(tmp_path) == {"a": ["t-0"], "b": []}
    (committed,) = rows(tmp_path, "offsets_committed")
    assert (committed["partitions"], committed["positions"]) == (["t-0"], [5])


def series(*parts: tuple[str, str]) -> dict[str, str]:
    return {"d.txt": "".join(f"2026-11-23T03:{time}+00:00\n{text}\n" for time, text in parts)}


def test_a_series_tells_what_changed_in_between(tmp_path: Path) -> None:
    """Every row of a change lies between two times, and is placed at the second."""
    ids = [re.findall(r"app-a-\S+", real("describe"))[0], re.findall(r"app-b-\S+", real("describe"))[0]]
    alone = real("describe").replace(ids[1], ids[0]).replace("app-b", "app-a")
    import_texts(tmp_path, series(("41:00", real("describe")), ("42:00", alone)))
    (removed,) = rows(tmp_path, "member_removed")
    assert (removed["member"], removed["earliest_us"], removed["latest_us"]) == ("app-b", 0, 60_000_000)
    last: dict[str, Any] = dict(rows(tmp_path, "sync_answered")[-1])
    assert (last["member"], last["time_us"]) == ("app-a", 60_000_000)
    assert last["partitions"] == [f"orders-{number}" for number in range(4)]
    assert len(rows(tmp_path, "offsets_committed")) == 1


def described(*members: tuple[str, str]) -> str:
    """Client ids, and partitions of orders: "a 0,1"; a capital letter stands for the same process of a
    static member under another id."""
    head = "GROUP CONSUMER-ID GROUP-INSTANCE-ID HOST CLIENT-ID #PARTITIONS ASSIGNMENT"
    return "\n".join(
        [head]
        + [
            f"pay {name}-1 {name.lower()} /127.0.0.1 {name.lower()} {len(has.split(','))} orders({has})"
            for name, has in members
        ]
    )


A, B, BOTH = ("a", "0"), ("b", "1"), ("a", "0,1")


@pytest.mark.parametrize(
    ("descriptions", "rebalances"),
    [
        ([[BOTH], [A, B], [A, B], [BOTH]], [60, 180]),
        ([[A, B], [("a", "1"), ("b", "0")]], [60]),
        ([[BOTH], [("a", "1,0")]], []),
        ([[A, B], [("A", "0"), B]], []),
        ([[A, B], [("A", "1"), ("b", "0")]], [60]),
        ([[], [A, B], []], [60, 120]),
    ],
)
def test_what_differs_shows_a_rebalance(
    descriptions: list[list[tuple[str, str]]], rebalances: list[int], tmp_path: Path
) -> None:
    """A static member that is back under a new id, with what it had, is none (KIP-345)."""
    texts = [
        (f"4{at}:00", described(*members) if members else "Consumer group 'pay' has no active members.")
        for at, members in enumerate(descriptions, 1)
    ]
    done = import_texts(tmp_path, series(*texts))
    begun = [row for row in rows(tmp_path, "group_state_changed") if row["state"] == "PreparingRebalance"]
    assert [row["time_us"] // 1_000_000 for row in begun] == rebalances
    assert {row["latest_us"] - row["earliest_us"] for row in begun} <= {60_000_000}
    assert done.groups[0].rebalances_seen == len(rebalances)
    found = figures(tmp_path)["pay"]
    assert str(found.answer).startswith(f"at least {found.generations} generation")
    assert (found.unowned_max_seconds is None) == bool(rebalances)
    assert found.rounds_per_change is None


def of_consumer_group(*members: tuple[str, int, str]) -> str:
    """Client ids, epochs, and partitions of orders."""
    head = (
        "GROUP CONSUMER-ID HOST CLIENT-ID #PARTITIONS CURRENT-EPOCH CURRENT-ASSIGNMENT TARGET-EPOCH "
        "TARGET-ASSIGNMENT"
    )
    return "\n".join(
        [head]
        + [
            f"new {name}-1 /127.0.0.1 {name} {len(has.split(','))} {epoch} orders:{has} {epoch} orders:{has}"
            for name, epoch, has in members
        ]
    )


def test_epochs_show_the_rebalances_of_a_consumer_group(tmp_path: Path) -> None:
    """The first epoch is older than the first description; what happens to owners in between is not known."""
    texts = (
        ("41:00", of_consumer_group(("a", 3, "0,1"))),
        ("42:00", of_consumer_group(("a", 3, "0,1"))),
        ("43:00", of_consumer_group(("a", 5, "0"), ("b", 5, "1"))),
    )
    (record,) = import_texts(tmp_path, series(*texts)).groups
    bumped = [
        (row["time_us"] // 1_000_000, row["generation"]) for row in rows(tmp_path, "group_epoch_bumped")
    ]
    assert bumped == [(120, 5)]
    assert record.rebalances_seen == 1
    missing = [row["time_us"] for row in rows(tmp_path, "evidence_missing") if row["cause"] == "ownership"]
    assert missing == [60_000_000]
    assert len(rows(tmp_path, "ownership_known")) == 2
    assert figures(tmp_path)["new"].unowned_max_seconds is None


def test_a_member_of_a_consumer_group_that_has_nothing_changes_no_owner(tmp_path: Path) -> None:
    newcomer = "new b-1 /127.0.0.1 b 0 4 - 4 -"
    texts = (
        ("41:00", of_consumer_group(("a", 3, "0,1"))),
        ("42:00", of_consumer_group(("a", 4, "0,1")) + "\n" + newcomer),
    )
    import_texts(tmp_path, series(*texts))
    assert [row["member"] for row in rows(tmp_path, "member_added")] == ["a", "b"]
    assert not any(row["cause"] == "ownership" for row in rows(tmp_path, "evidence_missing"))


def test_what_other_sources_tell_is_not_told_again(tmp_path: Path) -> None:
    """The generations of the group are in its records."""
    logs = series(("30:00", described(BOTH)), ("55:00", described(A, B)))
    import_texts(tmp_path, logs | {"dump.txt": real("dump")})
    changed = [row for row in rows(tmp_path, "group_state_changed") if row["group"] == "pay"]
    assert any("generation" in row for row in changed)
    assert not any("descriptions" in row.get("rule", "") for row in changed)
    assert not any(row["cause"] == "rebalances" for row in rows(tmp_path, "evidence_missing"))


def test_explain_says_that_it_counts_what_is_seen(tmp_path: Path) -> None:
    import_texts(tmp_path, series(("41:00", described(BOTH)), ("42:00", described(A, B))))
    said = groupstorm("explain", "out", "--all", cwd=tmp_path).stdout
    assert said.startswith("Group pay: at least 1 rebalance (1 round) in 60.0 s")
    assert re.search(r"60.000 s +unknown +b +1 +unknown +unknown", said)
    assert "Not known: what happened between two descriptions" in said
    (group,) = json.loads(groupstorm("explain", "out", "--json", cwd=tmp_path).stdout)["groups"]
    assert [one["lasted_us"] for one in group["rebalances"]] == [None]
    assert "rebalances" in group["unknown"]


def test_explain_says_that_it_saw_no_rebalance_between_descriptions_that_are_the_same(tmp_path: Path) -> None:
    import_texts(tmp_path, series(("41:00", described(A, B)), ("42:00", described(A, B))))
    said = groupstorm("explain", "out", "--all", cwd=tmp_path).stdout
    assert said.startswith("Group pay: no rebalance seen (0 rounds)")
    assert "Not known: what happened between two descriptions" in said


def test_states_of_a_group_that_has_no_assignor_now(tmp_path: Path) -> None:
    """Before Kafka 4 its cell is blank."""
    head = "GROUP  COORDINATOR (ID)  ASSIGNMENT-STRATEGY  STATE               #MEMBERS\n"
    stable = f"\n{head}pay    b:9092 (1)        range                Stable              3\n"
    preparing = stable.replace("range ", " " * 6).replace("Stable            ", "PreparingRebalance")
    done = import_texts(tmp_path, series(("41:00", stable), ("42:00", preparing), ("43:00", stable)))
    assert [log.not_understood for log in done.logs] == [0]
    assert [one[1] for one in states(tmp_path)] == ["Stable", "PreparingRebalance", "Stable"]
    assert done.groups[0].has_members
    said = groupstorm("explain", "out", cwd=tmp_path).stdout
    assert said.startswith("Group pay: at least 1 rebalance (1 round)")


def test_a_rebalance_in_between_is_not_known(tmp_path: Path) -> None:
    warning = "Warning: Consumer group 'pay' is rebalancing.\n" + "\n".join(
        line for line in real("describe-classic-members").replace("orders:0,1", "-").splitlines()
    ).replace("orders:2,3", "-")
    import_texts(
        tmp_path, series(("41:00", real("describe")), ("42:00", warning), ("43:00", real("describe")))
    )
    changed = [(row["state"], row["time_us"]) for row in rows(tmp_path, "group_state_changed")]
    assert changed == [("Stable", 0), ("PreparingRebalance", 60_000_000), ("Stable", 120_000_000)]
    missing = [row["time_us"] for row in rows(tmp_path, "evidence_missing") if row["cause"] == "ownership"]
    assert missing == [60_000_000]
    assert len(rows(tmp_path, "ownership_known")) == 2


def test_the_same_group_twice_needs_times(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="group pay is described once more, and no line says when"):
        import_texts(tmp_path, {"d.txt": real("describe") * 2})


def test_no_active_members(tmp_path: Path) -> None:
    text = "\nConsumer group 'pay' has no active members.\n" + real("describe-all-groups")
    import_texts(tmp_path, {"d.txt": text}, TIMES)
    (state,) = [row for row in rows(tmp_path, "group_state_changed") if row["group"] == "pay"]
    assert state["state"] == "Empty"


def test_rows_that_do_not_fit_are_counted(tmp_path: Path) -> None:
    text = real("describe") + "pay orders x 3 3 0 c /h i\nand another line\n"
    (done,) = import_texts(tmp_path, {"d.txt": text}, TIMES).logs
    assert done.not_understood == 2


def test_a_row_with_a_damaged_number_says_nothing(tmp_path: Path) -> None:
    """The columns of another table run into its own: its member is none, and the other one is as it was."""
    text = real("describe-consumer-group").replace("orders:0,1           3  ", "orders:0,1           n-1", 1)
    (done,) = import_texts(tmp_path, {"d.txt": text}, TIMES).logs
    assert owned(tmp_path) == {"n-2": ["orders-2", "orders-3"]}
    assert done.not_understood == 1


REBALANCING = f"""date; kafka-consumer-groups.sh --bootstrap-server b:9092 --describe --group g
12:00:01
Warning: Consumer group 'g' is rebalancing.
---
12:00:02
{MEMBERS_2.strip()}
"""


def test_clocks_in_front_of_tables(tmp_path: Path) -> None:
    done = import_texts(tmp_path, {"d.txt": REBALANCING}, Options(days={"": date(2026, 3, 4)}))
    assert [shown(done.began_us), shown(done.ended_us)] == [
        "2026-03-04 12:00:01.000",
        "2026-03-04 12:00:02.000",
    ]
    assert [row[1] for row in states(tmp_path)] == ["PreparingRebalance", "Stable"]
    assert {row["cause"] for row in rows(tmp_path, "member_added")} == {"unknown"}
    assert owned(tmp_path) == {"a": ["t-0", "t-1", "other.t-2"], "b": []}
    assert import_texts(tmp_path, {"d.txt": REBALANCING}).lacks == "date"


ROUND = stabilized("10:00:02,000", 4, 2) + received("10:00:02,010", 4, leader="a-x")
ROUND += broker_line("10:05:00,000", "Something else")
SHARE_GROUP = "GROUP  TOPIC  PARTITION  LEADER-EPOCH  START-OFFSET\ng  t  0  0  12\n"


def test_a_table_between_the_lines_of_a_log(tmp_path: Path) -> None:
    import_texts(tmp_path, {"server.log": ROUND + "$ describe\n" + MEMBERS_2.strip() + "\n" + ROUND})
    assert owned(tmp_path) == {"a": ["t-0", "t-1", "other.t-2"], "b": []}
    (known,) = rows(tmp_path, "ownership_known")
    assert known["time_us"] == (4 * 60 + 58) * 1_000_000
    import_texts(tmp_path, {"server.log": MEMBERS_2.strip() + "\n" + ROUND})
    assert rows(tmp_path, "ownership_known")[0]["time_us"] == 0


def test_share_groups_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"d.txt:1: a table of kafka-share-groups is not read"):
        import_texts(tmp_path, {"d.txt": SHARE_GROUP})
    done = import_texts(tmp_path, {"server.log": ROUND + SHARE_GROUP + ROUND})
    (damage,) = [sentence for log in done.logs for sentence in log.damage]
    assert damage.startswith(f"{tmp_path / 'server.log'}:4: a table of kafka-share-groups is not read")


OFFSETS_ONLY = "GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID\n"
HIDDEN = f"Warning: Consumer group 'pay' is rebalancing.\n\n{OFFSETS_ONLY}pay orders 0 3 9 6 - - -"


def test_members_of_a_rebalancing_group_that_are_not_printed_have_not_gone(tmp_path: Path) -> None:
    """A classic group's have no partitions then, and the table of partitions names nobody else."""
    texts = series(("41:00", described(A, B)), ("42:00", HIDDEN), ("43:00", described(BOTH)))
    import_texts(tmp_path, texts)
    (gone,) = rows(tmp_path, "member_removed")
    assert (gone["member"], gone["earliest_us"], gone["time_us"]) == ("b", 0, 120_000_000)
    assert [row["member"] for row in rows(tmp_path, "member_added")] == ["a", "b"]
    assert [row[1] for row in states(tmp_path)] == ["Stable", "PreparingRebalance", "Stable"]
    said = " ".join(groupstorm("explain", "out", cwd=tmp_path).stdout.split())
    assert "By the lists of members that the logs have: b went and did not come back." in said
