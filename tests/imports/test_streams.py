"""Follow-up rebalances of Kafka Streams, from an application's log."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from groupstorm.explain.explanation import explain
from groupstorm.problems import InputError
from groupstorm.report.story import Selection, story
from groupstorm.trace.reader import read_rows
from tests.imports.importing import import_texts, rows

THREAD = "orders-11111111-2222-3333-4444-555555555555-StreamThread-1"
ASSIGNOR = "org.apache.kafka.streams.processor.internals.StreamsPartitionAssignor"
THREADS = "org.apache.kafka.streams.processor.internals.StreamThread"
CONSUMER = "org.apache.kafka.clients.consumer.internals.ConsumerCoordinator"


def line(time: str, prefix: str, message: str, logger: str) -> str:
    return f"[2026-03-01 {time}] INFO {prefix} {message} ({logger})\n"


def of_consumer(time: str, message: str) -> str:
    return line(time, f"[Consumer clientId={THREAD}-consumer, groupId=orders]", message, CONSUMER)


def of_assignor(time: str, message: str) -> str:
    return line(time, f"stream-thread [{THREAD}-consumer]", message, ASSIGNOR)


LOG = (
    of_consumer("10:00:00,000", "(Re-)joining group")
    + of_consumer(
        "10:00:03,000",
        "Successfully joined group with generation "
        "Generation{generationId=1, memberId='m-1', protocol='stream'}",
    )
    + of_assignor("10:00:03,001", "Assigned 4 total tasks including 2 stateful tasks to 2 client nodes.")
    + of_consumer("10:00:03,010", "Adding newly assigned partitions: [in-0]")
    + of_assignor(
        "10:00:03,011",
        "Requested to schedule next probing rebalance at 2026-03-01 10:10:03,011 +00:00 to try for a more "
        "balanced assignment.",
    )
    + line(
        "10:10:03,050",
        f"stream-thread [{THREAD}]",
        "Triggering the followup rebalance scheduled for 2026-03-01 10:10:03,011 +00:00.",
        THREADS,
    )
    + of_consumer("10:10:03,051", "Request joining group due to: rebalance enforced by user")
    + of_consumer(
        "10:10:06,000",
        "Successfully joined group with generation "
        "Generation{generationId=2, memberId='m-1', protocol='stream'}",
    )
    + of_assignor(
        "10:10:06,010",
        "Requested to schedule immediate rebalance for new tasks to be safely revoked from current owner.",
    )
)


def test_follow_ups_are_rows_of_their_thread(tmp_path: Path) -> None:
    import_texts(tmp_path, {"app.log": LOG})
    probing, at_once = rows(tmp_path, "follow_up_scheduled")
    assert (probing["group"], probing["member"], probing["cause"]) == ("orders", THREAD, "probing")
    assert "duration_us" not in probing
    assert (at_once["cause"], at_once["duration_us"]) == ("tasks-change-owner", 0)
    [due] = rows(tmp_path, "follow_up_due")
    assert (due["member"], due["cause"], due["provenance"]) == (THREAD, "probing", "observed")
    assert "cause: of the last follow-up" in due["rule"]


def test_lines_of_streams_are_understood(tmp_path: Path) -> None:
    done = import_texts(tmp_path, {"app.log": LOG})
    assert [source.not_understood for source in done.logs] == [0]


def test_explain_names_follow_ups(tmp_path: Path) -> None:
    import_texts(tmp_path, {"app.log": LOG})
    [found] = explain(tmp_path / "out" / "trace.jsonl")
    assert "follow-up-rebalances" in [one.pattern.name for one in found.findings]


def test_a_follow_up_of_which_no_line_says_why(tmp_path: Path) -> None:
    """The story tells it in the log's own word."""
    scheduled = of_assignor("10:00:03,011", "Requested to schedule immediate rebalance for new tasks.")
    import_texts(tmp_path, {"app.log": of_consumer("10:00:00,000", "(Re-)joining group") + scheduled})
    assert [*story(read_rows(tmp_path / "out"), Selection(everything=True))]


SHOP: Final = "shop-1-StreamThread-1"
SHOP_ID: Final = f"{SHOP}-consumer-11111111-2222-3333-4444-555555555555"
REMOVED: Final = {
    "server.log": (
        "[2026-03-01 10:00:45,900] INFO [GroupCoordinator 2]: Member "
        f"{SHOP_ID} in group orders has failed, removing it from the group "
        "(kafka.coordinator.group.GroupCoordinator)\n"
    )
}
TOLD: Final = line("10:00:00,000", f"stream-thread [{SHOP}]", "Informed to shut down", THREADS)
CLEAN: Final = line("10:00:00,001", f"stream-thread [{SHOP}]", "Shutting down clean", THREADS)
DEAD: Final = line(
    "10:00:00,300", f"stream-thread [{SHOP}]", "State transition from PENDING_SHUTDOWN to DEAD", THREADS
)
OF_SHOP: Final = f"[Consumer clientId={SHOP}-consumer, groupId=orders]"
OWNS: Final = line(
    "09:59:00,000",
    OF_SHOP,
    f"Successfully joined group with generation Generation{{generationId=4, memberId='{SHOP_ID}', "
    "protocol='stream'}",
    CONSUMER,
) + line("09:59:00,100", OF_SHOP, "Adding newly assigned partitions: in-0", CONSUMER)


def closed(folder: Path, log: str) -> list[tuple[str, str]]:
    """The members that closed by the application's log and the broker's, and how."""
    import_texts(folder, {"app.log": log, **REMOVED})
    return [(row["member_id"], row["cause"]) for row in rows(folder, "member_closed")]


def test_a_thread_that_was_shut_down_closed_without_leaving(tmp_path: Path) -> None:
    """Its own lines name neither the group nor the member: the coordinator's member id begins with them."""
    assert closed(tmp_path, TOLD + CLEAN + DEAD) == [(SHOP_ID, "silent")]
    [found] = explain(tmp_path / "out" / "trace.jsonl")
    [finding] = [one for one in found.findings if one.pattern.name == "closed-silently"]
    assert "closed at 0.300 s, removed at 45.900 s" in finding.match.sentence
    assert "session-expired" not in [one.pattern.name for one in found.findings]


def test_the_end_of_a_thread_alone_says_nothing_of_its_group(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="none says what one did"):
        import_texts(tmp_path, {"app.log": (TOLD + CLEAN + DEAD).replace(SHOP, THREAD)})


def test_before_kafka_4_the_consumer_of_a_closed_thread_does_not_say_what_it_gives_up(tmp_path: Path) -> None:
    assert closed(tmp_path, OWNS + TOLD + CLEAN + DEAD) == [(SHOP_ID, "silent")]
    [revoked] = rows(tmp_path, "partitions_revoked")
    assert (revoked["cause"], revoked["partitions"]) == ("close", ["in-0"])
    assert not rows(tmp_path, "member_crashed")


def test_a_thread_that_an_exception_ended_was_not_shut_down(tmp_path: Path) -> None:
    """Nobody told it to; or somebody did, and the exception came first."""
    died = line(
        "10:00:00,000",
        f"stream-thread [{SHOP}]",
        "Encountered the following exception during processing and the thread is going to shut down:",
        THREADS,
    )
    assert not closed(tmp_path, died + CLEAN + DEAD)
    assert not closed(tmp_path, died + TOLD + CLEAN.replace("clean", "unclean") + DEAD)


def test_a_thread_whose_consumer_sends_leave_group_leaves(tmp_path: Path) -> None:
    leaves = line(
        "10:00:00,200",
        OF_SHOP,
        f"Member {SHOP_ID} sending LeaveGroup request to coordinator b:9092 (id: 1 rack: null) due to the "
        "consumer unsubscribed from all topics",
        CONSUMER,
    )
    assert closed(tmp_path, OWNS + TOLD + leaves + DEAD) == [(SHOP_ID, "left")]


def test_a_thread_died_its_consumers_session_before_it_was_removed(tmp_path: Path) -> None:
    """Its task has been down since then, and not since the coordinator's line."""
    configured = (
        "[2026-03-01 09:58:00,000] INFO ConsumerConfig values:\n"
        f"\tclient.id = {SHOP}-consumer\n\tgroup.id = orders\n\tsession.timeout.ms = 10000\n"
    )
    runs = line("09:59:00,200", f"stream-thread [{SHOP}]", "task [0_0] Restored and ready to run", THREADS)
    assert not closed(tmp_path, configured + OWNS + runs)
    [suspended] = rows(tmp_path, "task_suspended")
    [removed] = rows(tmp_path, "member_removed")
    assert removed["time_us"] - suspended["time_us"] > 5_000_000
