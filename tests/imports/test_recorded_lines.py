"""Lines that real brokers and clients logged, and that were once misread: what each means."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from groupstorm.imports.importing import Options, import_logs
from groupstorm.imports.lines import find_logs
from tests.imports.importing import LOGS, import_texts, rows

#: aiokafka 0.14.0. It logs the same when it is closed and when its application does not poll.
AIOKAFKA = """\
2026-11-23 07:59:56,087 - aiokafka.consumer.subscription_state - INFO - Updating subscribed topics to: frozenset({'orders'})
2026-11-23 07:59:56,110 - aiokafka.consumer.group_coordinator - INFO - Discovered coordinator 1 for group orders-dynamic
2026-11-23 07:59:56,110 - aiokafka.consumer.group_coordinator - INFO - Revoking previously assigned partitions set() for group orders-dynamic
2026-11-23 07:59:56,111 - aiokafka.consumer.group_coordinator - INFO - (Re-)joining group orders-dynamic
2026-11-23 07:59:56,239 - aiokafka.consumer.group_coordinator - INFO - Joined group 'orders-dynamic' (generation 6) with member_id app-2-fead2f2c-c7d1-453c-b4a8-9b7c69ed858d
2026-11-23 07:59:56,250 - aiokafka.consumer.group_coordinator - INFO - Successfully synced group orders-dynamic with generation 6
2026-11-23 07:59:56,257 - aiokafka.consumer.group_coordinator - INFO - Setting newly assigned partitions {TopicPartition(topic='orders', partition=4)} for group orders-dynamic
"""  # noqa: E501
AIOKAFKA_LEFT = (
    "2026-11-23 08:00:17,457 - aiokafka.consumer.group_coordinator - INFO - LeaveGroup request succeeded\n"
)
AIOKAFKA_GOES_ON = (
    "2026-11-23 08:00:17,458 - aiokafka.consumer.group_coordinator - INFO - Revoking previously assigned "
    "partitions frozenset({TopicPartition(topic='orders', partition=4)}) for group orders-dynamic\n"
    "2026-11-23 08:00:23,412 - aiokafka.consumer.group_coordinator - INFO - (Re-)joining group "
    "orders-dynamic\n"
)


def revoked(folder: Path) -> list[tuple[list[str], str]]:
    return [(row["partitions"], row["cause"]) for row in rows(folder, "partitions_revoked")]


def test_aiokafka_that_is_closed_gives_up_what_it_has(tmp_path: Path) -> None:
    import_texts(tmp_path, {"app-2.log": AIOKAFKA + AIOKAFKA_LEFT})
    (started,) = rows(tmp_path, "member_started")
    assert (started["member"], started["topics"]) == ("app-2", ["orders"])
    assert revoked(tmp_path) == [(["orders-4"], "close")]
    assert [row["cause"] for row in rows(tmp_path, "member_closed")] == ["left"]
    assert not rows(tmp_path, "rejoin_requested")


def test_aiokafka_that_leaves_and_goes_on_was_not_polled(tmp_path: Path) -> None:
    import_texts(tmp_path, {"app-2.log": AIOKAFKA + AIOKAFKA_LEFT + AIOKAFKA_GOES_ON})
    assert not rows(tmp_path, "member_closed")
    assert [row["cause"] for row in rows(tmp_path, "rejoin_requested")] == ["poll-timeout"]
    assert revoked(tmp_path) == [(["orders-4"], "rebalance")]


def test_a_log_that_goes_on_with_another_process_tells_of_a_crash(tmp_path: Path) -> None:
    again = AIOKAFKA.replace("07:59:56", "08:01:00").replace("app-2-fead2f2c", "app-2-7fcb59e4")
    import_texts(tmp_path, {"app-2.log": AIOKAFKA + again})
    (crashed,) = rows(tmp_path, "member_crashed")
    assert crashed["partitions"] == ["orders-4"]
    assert crashed["member_id"] == "app-2-fead2f2c-c7d1-453c-b4a8-9b7c69ed858d"
    assert (crashed["earliest_us"], crashed["latest_us"]) == (170_000, 64_000_000)
    assert len(rows(tmp_path, "member_started")) == 2


#: kafka-python 3.0.12
KAFKA_PYTHON = """\
2026-11-23 08:01:46,847 - kafka.consumer.subscription_state - INFO - Updating subscribed topics to: ['orders']
2026-11-23 08:01:46,932 - kafka.coordinator - INFO - (Re-)joining group orders-static
2026-11-23 08:01:48,413 - kafka.coordinator - INFO - Successfully joined group orders-static <Generation 1 (member_id: seat-1-8077b5a8-6ca1-4de9-af85-e6fcbc3617ac, protocol: cooperative-sticky)>
2026-11-23 08:01:48,441 - kafka.coordinator.consumer - INFO - Cooperative rebalance complete for group orders-static: owned={TopicPartition(topic='orders', partition=3)}, assigned={TopicPartition(topic='orders', partition=4), TopicPartition(topic='orders', partition=1)}, revoked={TopicPartition(topic='orders', partition=3)}, added={TopicPartition(topic='orders', partition=4), TopicPartition(topic='orders', partition=1)}
2026-11-23 08:01:50,006 - kafka.coordinator.consumer - INFO - Revoking previously assigned partitions {TopicPartition(topic='orders', partition=4), TopicPartition(topic='orders', partition=1)} for group orders-static on close
"""  # noqa: E501
KAFKA_PYTHON_TOO_SLOW = """\
2026-11-23 08:01:49,387 - kafka.coordinator.heartbeat - WARNING - Consumer poll timeout has expired. This means the time between subsequent calls to poll() was longer than the configured max_poll_interval_ms, which typically implies that the poll loop is spending too much time processing messages.
2026-11-23 08:01:49,388 - kafka.coordinator - INFO - Leaving consumer group orders-static (member seat-1-8077b5a8-6ca1-4de9-af85-e6fcbc3617ac).
2026-11-23 08:01:52,925 - kafka.coordinator.consumer - INFO - Group orders-static lost membership; forcibly revoking {TopicPartition(topic='orders', partition=4), TopicPartition(topic='orders', partition=1)}
"""  # noqa: E501


def test_kafka_python_adds_and_gives_up_in_one_line(tmp_path: Path) -> None:
    import_texts(tmp_path, {"web-1.log": KAFKA_PYTHON})
    (assigned,) = rows(tmp_path, "partitions_assigned")
    assert sorted(assigned["partitions"]) == ["orders-1", "orders-4"]
    assert revoked(tmp_path) == [(["orders-3"], "assignment"), (["orders-4", "orders-1"], "close")]
    stable = rows(tmp_path, "group_state_changed")[-1]
    assert (stable["state"], stable["generation"], stable.get("count")) == ("Stable", 1, None)


def test_kafka_python_that_leaves_because_it_is_slow_is_not_closed(tmp_path: Path) -> None:
    lines = KAFKA_PYTHON.splitlines(keepends=True)
    import_texts(tmp_path, {"web-1.log": "".join(lines[:-1]) + KAFKA_PYTHON_TOO_SLOW})
    assert not rows(tmp_path, "member_closed")
    assert [row["cause"] for row in rows(tmp_path, "rejoin_requested")] == ["poll-timeout"]
    (lost,) = rows(tmp_path, "partitions_lost")
    assert (sorted(lost["partitions"]), lost["cause"]) == (["orders-1", "orders-4"], "poll-timeout")


#: librdkafka 2.16.0 with debug=cgrp
LIBRDKAFKA = """\
%7|1795421590.001|MEMBERID|app-2#consumer-1| [thrd:app]: Group "orders-dynamic": updating member id "(not-set)" -> ""
%7|1795421590.002|INIT|app-2#consumer-1| [thrd:app]: librdkafka v2.16.0 (0x21000ff) app-2#consumer-1 initialized (builtin.features gzip, debug 0x100)
%7|1795421590.003|SUBSCRIPTION|app-2#consumer-1| [thrd:main]:  Topic orders with 6 partition(s)
%7|1795421590.004|JOINGROUP|app-2#consumer-1| [thrd:main]: JoinGroup response: GenerationId 1, Protocol range, LeaderId app-1-b605b315-826d-42b0-820e-4837eafe2ef0, my MemberId app-2-a27be913-6146-4b25-ab85-907cffba076b, member metadata count 0: (no error)
%7|1795421590.005|SYNCGROUP|app-2#consumer-1| [thrd:main]: SyncGroup response: Success (34 bytes of MemberState data)
%7|1795421590.006|PARTADD|app-2#consumer-1| [thrd:main]: Group "orders-dynamic": add orders [5]
"""  # noqa: E501
LIBRDKAFKA_TOO_SLOW = """\
%4|1795421596.004|MAXPOLL|app-2#consumer-1| [thrd:main]: Application maximum poll interval (8000ms) exceeded by 436ms (adjust max.poll.interval.ms for long-running message processing): leaving group
%7|1795421596.005|LEAVE|app-2#consumer-1| [thrd:main]: Group "orders-dynamic": leave (in state up)
%7|1795421596.005|REBALANCE|app-2#consumer-1| [thrd:main]: Group "orders-dynamic" initiating rebalance (EAGER) in state up (join-state steady) with 2 assigned partition(s) (lost): max.poll.interval.ms exceeded
%7|1795421601.601|PARTDEL|app-2#consumer-1| [thrd:main]: Group "orders-dynamic": delete orders [5]
"""  # noqa: E501
LIBRDKAFKA_CLOSES = """\
%7|1795421596.005|REBALANCE|app-2#consumer-1| [thrd:main]: Group "orders-dynamic" initiating rebalance (EAGER) in state up (join-state steady) with 1 assigned partition(s): unsubscribe
%7|1795421596.006|PARTDEL|app-2#consumer-1| [thrd:main]: Group "orders-dynamic": delete orders [5]
%7|1795421596.007|LEAVE|app-2#consumer-1| [thrd:main]: Group "orders-dynamic": leave (in state up)
"""  # noqa: E501


def test_librdkafka_names_its_client_id(tmp_path: Path) -> None:
    import_texts(tmp_path, {"some.log": LIBRDKAFKA})
    assert {row["member"] for row in rows(tmp_path) if "member" in row} == {"app-2"}
    (started,) = rows(tmp_path, "member_started")
    assert started["topics"] == ["orders"]
    import_texts(tmp_path, {"some.log": LIBRDKAFKA.replace("app-2#consumer-1", "rdkafka#consumer-1")})
    assert {row["member"] for row in rows(tmp_path) if "member" in row} == {"some rdkafka#consumer-1"}


@pytest.mark.parametrize(("time", "cause"), [("0025", "first-join"), ("007", "metadata-changed")])
def test_librdkafka_learns_its_topics_before_it_joins(tmp_path: Path, time: str, cause: str) -> None:
    learns = (
        f'%7|1795421590.{time}|REBALANCE|app-2#consumer-1| [thrd:main]: Group "orders-dynamic" initiating '
        "rebalance (NONE) in state up (join-state wait-metadata) with 0 assigned partition(s): Metadata for "
        "subscribed topic(s) has changed\n"
    )
    import_texts(tmp_path, {"app-2.log": LIBRDKAFKA + learns})
    assert [row["cause"] for row in rows(tmp_path, "rejoin_requested")] == [cause]


def test_librdkafka_that_leaves_because_it_is_slow_is_not_closed(tmp_path: Path) -> None:
    import_texts(tmp_path, {"app-2.log": LIBRDKAFKA + LIBRDKAFKA_TOO_SLOW})
    assert not rows(tmp_path, "member_closed")
    assert [row["cause"] for row in rows(tmp_path, "rejoin_requested")] == ["poll-timeout"]
    assert [(row["partitions"], row["cause"]) for row in rows(tmp_path, "partitions_lost")] == [
        (["orders-5"], "poll-timeout")
    ]


def test_librdkafka_that_is_closed_does_not_join_again(tmp_path: Path) -> None:
    import_texts(tmp_path, {"app-2.log": LIBRDKAFKA + LIBRDKAFKA_CLOSES})
    assert revoked(tmp_path) == [(["orders-5"], "close")]
    assert [row["cause"] for row in rows(tmp_path, "member_closed")] == ["left"]
    assert not rows(tmp_path, "rejoin_requested")


#: librdkafka 2.16.0 in a consumer group (KIP-848)
LIBRDKAFKA_848 = """\
%7|1795421859.656|MEMBERID|app-1#consumer-1| [thrd:app]: Group "orders-dynamic": updating member id "(not-set)" -> "QpuoW8YhRHK64ZNxz2Estg"
%7|1795421859.770|HEARTBEAT|app-1#consumer-1| [thrd:main]: Sending new subscription "orders((null))[-1]"
%7|1795421861.781|HEARTBEAT|app-1#consumer-1| [thrd:main]: ConsumerGroupHeartbeat response received for member id "QpuoW8YhRHK64ZNxz2Estg" with epoch 4
%7|1795421861.789|PARTADD|app-1#consumer-1| [thrd:main]: Group "orders-dynamic": add orders [5]
"""  # noqa: E501


def test_librdkafka_in_a_consumer_group(tmp_path: Path) -> None:
    import_texts(tmp_path, {"app-1.log": LIBRDKAFKA_848})
    (started,) = rows(tmp_path, "member_started")
    (assigned,) = rows(tmp_path, "partitions_assigned")
    assert (started["member"], started["topics"]) == ("app-1", ["orders"])
    assert (assigned["member_id"], assigned["generation"]) == ("QpuoW8YhRHK64ZNxz2Estg", 4)
    assert not rows(tmp_path, "group_state_changed")


@pytest.mark.parametrize("line", ['Group "orders-dynamic": does what nobody has seen', "Group is odd"])
def test_a_line_of_librdkafka_about_a_group_is_counted_if_it_is_unknown(tmp_path: Path, line: str) -> None:
    new = f"%7|1795421590.007|NEW|app-2#consumer-1| [thrd:main]: {line}\n"
    done = import_texts(tmp_path, {"app-2.log": LIBRDKAFKA + new})
    assert done.logs[0].not_understood == line.startswith('Group "')


def test_a_consumers_configuration_is_read(tmp_path: Path) -> None:
    """Kafka prints nothing behind the colon, and its settings in the lines that follow."""
    recorded = LOGS / "real" / "kafka-4.3.1-java" / "app-0.log.gz"
    import_logs(find_logs([str(recorded)]), tmp_path / "out", Options())
    settings = json.loads(rows(tmp_path, "member_configured")[0]["detail"])
    assert settings["group.protocol"] == "classic"
    assert int(settings["session.timeout.ms"]) > int(settings["heartbeat.interval.ms"])
    assert settings["partition.assignment.strategy"].endswith("Assignor]")


def test_a_broker_logs_its_configuration_before_any_group(tmp_path: Path) -> None:
    """It counts from the first line of the group on, and no row is earlier."""
    recorded = LOGS / "real" / "kafka-4.3.1-java-consumer-group" / "server.log.gz"
    import_logs(find_logs([str(recorded)]), tmp_path / "out", Options())
    found = rows(tmp_path, "broker_configured")
    assert [row["group"] for row in found] == ["orders-dynamic", "orders-static"]
    assert {row["evidence"][0].rpartition(":")[2] for row in found} == {"1363"}  # the last of four times
    assert found[0]["time_us"] == 0
    settings = json.loads(found[0]["detail"])
    assert settings["group.consumer.session.timeout.ms"] == "15000"
    assert settings["group.initial.rebalance.delay.ms"] == "1000"
    assert all(name.startswith("group.") for name in settings)


def test_librdkafka_names_the_poll_interval_that_is_over(tmp_path: Path) -> None:
    import_texts(tmp_path, {"app-2.log": LIBRDKAFKA + LIBRDKAFKA_TOO_SLOW})
    (row,) = rows(tmp_path, "member_configured")
    assert (row["member"], json.loads(row["detail"])) == ("app-2", {"max.poll.interval.ms": "8000"})
