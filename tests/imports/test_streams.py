"""Follow-up rebalances of Kafka Streams, from an application's log."""

from __future__ import annotations

from pathlib import Path

from groupstorm.explain.explanation import explain
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
