"""Lines that real Java clients and brokers logged, and that were once misread: what each means."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.imports.importing import generation, import_texts, java_line, rows

APP_0 = "app-0-6a426cb7-ab42-410d-a1b4-61c0363293b1"


def client_lines(*messages: tuple[str, str]) -> str:
    return "".join(
        java_line(f"2026-11-23 {at}", said, "app-0", group="orders-dynamic") for at, said in messages
    )


def broker_lines(*messages: tuple[str, str], prefix: str = "[GroupCoordinator 1]: ") -> str:
    logger = "kafka.coordinator.group.GroupCoordinator"
    return "".join(f"[2026-11-23 {time}] INFO {prefix}{message} ({logger})\n" for time, message in messages)


JOINED = (
    ("08:19:23,000", "Subscribed to topic(s): orders"),
    ("08:19:23,500", f"Successfully joined group with generation {generation(1, APP_0)}"),
    (
        "08:19:23,510",
        f"Finished assignment for group at generation 1: {{{APP_0}=Assignment(partitions=[orders-0])}}",
    ),
)
SYNCED = (
    ("08:19:23,600", f"Successfully synced group in generation {generation(1, APP_0)}"),
    ("08:19:23,610", "Notifying assignor about the new Assignment(partitions=[orders-0])"),
    ("08:19:23,620", "Adding newly assigned partitions: orders-0"),
)


def test_an_assignment_that_nobody_was_given_is_not_one(tmp_path: Path) -> None:
    """Another round began before the leader's assignment was there (Kafka 4.3.1)."""
    import_texts(tmp_path, {"app-0.log": client_lines(*JOINED)})
    assert not rows(tmp_path, "sync_answered")
    assert not rows(tmp_path, "ownership_known")
    assert [row["state"] for row in rows(tmp_path, "group_state_changed")][-1] == "CompletingRebalance"
    import_texts(tmp_path, {"app-0.log": client_lines(*JOINED, *SYNCED)})
    assert [row["partitions"] for row in rows(tmp_path, "sync_answered")] == [["orders-0"]]


def test_kafka_2_8_names_the_poll_timeout_in_the_line_of_the_leave_group(tmp_path: Path) -> None:
    late = client_lines(
        (
            "08:06:38,043",
            f"Member {APP_0} sending LeaveGroup request to coordinator 127.0.0.1:38153 (id: 2147483646 rack: "
            "null) due to consumer poll timeout has expired. This means the time between subsequent calls to "
            "poll() was longer than the configured max.poll.interval.ms, which typically implies that the "
            "poll loop is spending too much time processing messages.",
        ),
        ("08:06:44,100", "Lost previously assigned partitions orders-0"),
    )
    lines = client_lines(*JOINED, *SYNCED).replace("08:19", "08:05")
    import_texts(tmp_path, {"app-0.log": lines + late})
    assert [row["cause"] for row in rows(tmp_path, "rejoin_requested")] == ["poll-timeout"]
    assert [row["cause"] for row in rows(tmp_path, "partitions_lost")] == ["poll-timeout"]
    assert not rows(tmp_path, "member_closed")


def test_a_member_of_a_consumer_group_that_leaves_because_it_is_slow_is_not_closed(tmp_path: Path) -> None:
    member = "Member d5OPcJVEQhOX9bihu9BikA with epoch"
    lines = client_lines(
        ("08:03:00,000", "Subscribed to topic(s): orders"),
        ("08:03:00,100", f"{member} 0 transitioned from UNSUBSCRIBED to JOINING."),
        ("08:03:00,200", f"{member} 12 transitioned from JOINING to RECONCILING."),
        ("08:03:00,300", "Adding newly assigned partitions: [orders-2]"),
        (
            "08:03:18,520",
            "Consumer poll timeout has expired. This means the time between subsequent calls to poll() was "
            "longer than the configured max.poll.interval.ms, which typically implies that the poll loop is "
            "spending too much time processing messages.",
        ),
        ("08:03:18,521", f"{member} 12 transitioned from STABLE to PREPARE_LEAVING."),
        ("08:03:18,521", f"{member} -1 transitioned from PREPARE_LEAVING to LEAVING."),
        ("08:03:18,522", f"{member} -1 transitioned from LEAVING to STALE."),
        ("08:03:23,812", "Lost previously assigned partitions [orders-2]"),
        ("08:03:23,830", f"{member} 0 transitioned from STALE to JOINING."),
        ("08:03:30,000", f"{member} -1 transitioned from PREPARE_LEAVING to LEAVING."),
    )
    import_texts(tmp_path, {"app-0.log": lines})
    assert [row["time_us"] for row in rows(tmp_path, "member_closed")] == [30_000_000]
    assert [row["cause"] for row in rows(tmp_path, "partitions_lost")] == ["poll-timeout"]


def test_java_3_8_adds_no_partitions(tmp_path: Path) -> None:
    """Nothing stands behind the colon, and whitespace at the end of a message does not count."""
    lines = client_lines(*JOINED, *SYNCED[:2], ("08:19:23,620", "Adding newly assigned partitions: "))
    done = import_texts(tmp_path, {"app-0.log": lines})
    assert done.logs[0].not_understood == 0
    assert [row.get("partitions", []) for row in rows(tmp_path, "partitions_assigned")] == [[]]


LEFT = (
    (
        "08:19:29,765",
        "Preparing to rebalance group orders-dynamic in state PreparingRebalance with old generation 1 "
        f"(__consumer_offsets-0) (reason: Removing member {APP_0} on LeaveGroup; client reason: the consumer "
        "is being closed)",
    ),
    (
        "08:19:29,782",
        f"Member MemberMetadata(memberId={APP_0}, groupInstanceId=None, clientId=app-0, "
        "clientHost=/127.0.0.1, sessionTimeoutMs=6000, rebalanceTimeoutMs=8000, "
        "supportedProtocols=List(range)) has left group orders-dynamic through explicit `LeaveGroup`; client "
        "reason: the consumer is being closed",
    ),
)


def test_kafka_3_8_says_twice_that_a_member_leaves(tmp_path: Path) -> None:
    joined = (
        "08:19:23,000",
        "Preparing to rebalance group orders-dynamic in state PreparingRebalance with old generation 0 "
        f"(__consumer_offsets-0) (reason: Adding new member {APP_0} with group instance id None; client "
        "reason: not provided)",
    )
    import_texts(tmp_path, {"server.log": broker_lines(joined, *LEFT)})
    (removed,) = rows(tmp_path, "member_removed")
    assert (removed["member"], removed["cause"], removed["time_us"]) == ("app-0", "left", 6_765_000)


SEAT_1 = "seat-1-070c6537-6e81-4781-916c-dc6e44c5f317"
STATIC = broker_lines(
    (
        "08:11:53,103",
        f"Static member with groupInstanceId=seat-1 and unknown member id joins group orders-static in Empty "
        f"state. Created a new member id {SEAT_1} for this member and added to the group.",
    ),
    prefix="[GroupCoordinator id=1 topic=__consumer_offsets partition=0] ",
)
STATIC_CLIENT = java_line(
    "2026-11-23 08:11:55,165",
    f"Successfully joined group with generation {generation(1, SEAT_1, 'cooperative-sticky')}",
    "web-1",
    "seat-1",
    "orders-static",
)


def test_a_static_members_client_id_is_not_its_instance(tmp_path: Path) -> None:
    import_texts(tmp_path, {"server.log": STATIC})
    (added,) = rows(tmp_path, "member_added")
    assert (added["member"], added["instance"]) == ("seat-1", "seat-1")
    assert added["rule"] == "member: no line says the client id, group.instance.id stands in its place"


def test_a_later_line_of_another_log_may_say_a_client_id(tmp_path: Path) -> None:
    import_texts(tmp_path, {"server.log": STATIC, "web-1.log": STATIC_CLIENT})
    (added,) = rows(tmp_path, "member_added")
    assert (added["member"], added["instance"], added.get("rule")) == ("web-1", "seat-1", None)


def test_kafka_2_8_names_the_instance_in_the_second_line_of_a_static_member(tmp_path: Path) -> None:
    lines = broker_lines(
        (
            "07:55:54,702",
            f"Static Member with unknown member id joins group orders-static in Empty state. Created a new "
            f"member id {SEAT_1} for this member and add to the group.",
        ),
        (
            "07:55:54,706",
            f"Adding new static member Some(seat-1) to group orders-static with member id {SEAT_1}.",
        ),
    )
    import_texts(tmp_path, {"server.log": lines})
    (added,) = rows(tmp_path, "member_added")
    assert (added["instance"], added["cause"]) == ("seat-1", "static-member")


def test_a_static_member_that_is_back_bounds_no_clock(tmp_path: Path) -> None:
    """kafka-python does not log its instance: it joins a generation that it has joined before."""
    broker = broker_lines(
        ("08:00:01,000", "Stabilized group g generation 1 (__consumer_offsets-0) with 1 members"),
        ("08:00:01,010", "Assignment received from leader m for group g for generation 1"),
    )
    client = ""
    for minute in ("00", "05"):
        client += (
            f"2026-11-23 08:{minute}:00,950 - kafka.coordinator - INFO - (Re-)joining group g\n"
            f"2026-11-23 08:{minute}:01,005 - kafka.coordinator - INFO - Successfully joined group g "
            f"<Generation 1 (member_id: m{minute}, protocol: range)>\n"
        )
    done = import_texts(tmp_path, {"server.log": broker, "web-1.log": client})
    assert (done.offsets[1].us, done.offsets[1].contradiction) == (0, False)


SEAT_1_AGAIN = "seat-1-9e2c5b50-1dee-4330-8c61-b523210d500b"
RETURNED = broker_lines(
    (
        "08:12:00,000",
        "Static member with groupInstanceId=seat-1 and unknown member id joins group orders-static in Stable "
        f"state. Replacing previously mapped member {SEAT_1} with this groupInstanceId.",
    )
)


def test_a_later_line_says_the_new_id_of_a_static_member(tmp_path: Path) -> None:
    failed = f"Member {SEAT_1_AGAIN} in group orders-static has failed, removing it from the group."
    import_texts(tmp_path, {"server.log": STATIC + RETURNED + broker_lines(("08:12:30,000", failed))})
    (replaced,) = rows(tmp_path, "member_replaced")
    assert (replaced["previous_member_id"], replaced["member_id"]) == (SEAT_1, SEAT_1_AGAIN)
    assert (replaced["member"], replaced["provenance"]) == ("seat-1", "inferred")
    assert [place.rpartition(":")[2] for place in replaced["evidence"]] == ["2", "3"]
    (removed,) = rows(tmp_path, "member_removed")
    assert (removed["instance"], removed["time_us"] - replaced["time_us"]) == ("seat-1", 30_000_000)


def test_without_a_later_line_the_new_id_of_a_static_member_is_unknown(tmp_path: Path) -> None:
    import_texts(tmp_path, {"server.log": STATIC + RETURNED + RETURNED.replace("08:12", "08:13")})
    replaced = rows(tmp_path, "member_replaced")
    assert [row["member_id"] for row in replaced] == ["seat-1-unknown"] * 2
    assert [row["time_us"] for row in replaced] == [6_897_000, 66_897_000]
    assert {row["provenance"] for row in replaced} == {"missing"}
    assert {row["rule"] for row in replaced} == {
        "member_id: no line says it: add the log of the static member itself"
    }


@pytest.mark.parametrize("before", [STATIC, ""])
def test_the_id_of_another_member_is_not_the_new_id_of_a_static_member(tmp_path: Path, before: str) -> None:
    """The old id (that an earlier line names, or not), one of another instance, and a bare instance id."""
    names = (SEAT_1, SEAT_1_AGAIN.replace("seat-1", "seat-10"), "seat-1")
    others = [
        (f"08:12:0{at},000", f"Member {name} in group orders-static has failed, removing it from the group.")
        for at, name in enumerate(names, 1)
    ]
    import_texts(tmp_path, {"server.log": before + RETURNED + broker_lines(*others)})
    (replaced,) = rows(tmp_path, "member_replaced")
    assert replaced["member_id"] == "seat-1-unknown"
