"""Chrome's trace events: the format's rules, and that they say what the trace says."""

from __future__ import annotations

import os
import signal
import sys
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from groupstorm.figures.accumulator import WHOLE, Window
from groupstorm.problems import InputError, OutputError
from groupstorm.report.lanes.members import Activity
from groupstorm.report.lanes.perfetto import UNOWNED, write_perfetto
from groupstorm.trace.reader import read_rows
from tests.broker.test_connections import join
from tests.broker.test_serve import serving
from tests.broker.wire import RawClient
from tests.command import environment_of_command
from tests.figures.tracing import SECOND, Trace
from tests.imports.real_logs import BOTH, BROKER, Recording, imported, recordings
from tests.processes import outcome_of, run_process
from tests.report.lanes.drawing import of_coordinator, recorded, written
from tests.report.lanes.trace_event_rules import Event, check_events, read_events
from tests.waiting import wait_until

STORMS = ("eager", "cooperative", "consumer", "slow")
#: One of a classic group and one of a consumer group.
RECORDINGS = [
    one for one in recordings() if one.name in ("kafka-4.3.1-java", "kafka-4.3.1-java-consumer-group")
]


def events_of(trace: Path, folder: Path, window: Window = WHOLE, name: str = "out.json") -> list[Event]:
    """The events of a trace, which keep the rules of the format."""
    count = write_perfetto(trace, folder / name, frozenset(), window)
    events = read_events(folder / name)
    assert len(events) == count
    check_events(events)
    return events


def names(events: Sequence[Event], phase: str) -> Counter[str]:
    return Counter(event["name"] for event in events if event["ph"] == phase)


def lane(events: Sequence[Event], name: str) -> list[tuple[str, float, float]]:
    """The slices of a thread: name, begin and end in seconds, in the order of their ends."""
    (where,) = (
        (one["pid"], one["tid"])
        for one in events
        if one["name" if "name" in one else "ph"] == "thread_name" and one["args"]["name"] == name
    )
    open_slices: list[Event] = []
    found = []
    for event in events:
        if (event["pid"], event.get("tid")) != where:
            continue
        if event["ph"] == "B":
            open_slices.append(event)
        elif event["ph"] == "E":
            begun = open_slices.pop()
            found.append((begun["name"], begun["ts"] / SECOND, event["ts"] / SECOND))
    return found


@pytest.mark.parametrize("name", STORMS)
def test_storms_keep_the_rules(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    events = events_of(request.getfixturevalue(name), tmp_path)
    assert names(events, "B")["joins"] > 5
    assert any(name.startswith("handover of") for name in names(events, "s"))


def test_the_rows_of_the_coordinator_keep_the_rules(cooperative: Path, tmp_path: Path) -> None:
    events = events_of(of_coordinator(cooperative, tmp_path / "served"), tmp_path)
    assert names(events, "s")


@pytest.mark.slow
def test_a_trace_of_serve_keeps_the_rules(tmp_path: Path) -> None:
    with serving("--topic", "orders:4", "--trace", str(tmp_path / "trace")) as (process, address):
        with RawClient(address) as client:
            client.send(join("g"))
            wait_until(lambda: list((tmp_path / "trace").glob("*.jsonl")))
        process.send_signal(signal.SIGTERM)
        outcome_of(process, 20)
    events = events_of(tmp_path / "trace", tmp_path)
    assert names(events, "B")["joins"] == 1


@pytest.mark.parametrize("source", [BOTH, BROKER])
@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda one: one.name)
def test_imported_logs_keep_the_rules(recording: Recording, source: str, tmp_path: Path) -> None:
    imported(recording, source, tmp_path / "imported")
    events = events_of(tmp_path / "imported", tmp_path)
    knows_owners = source == BOTH
    assert bool(names(events, "s")) == knows_owners
    assert bool(names(events, "B")["unknown"]) != knows_owners


def test_lanes_of_a_handover(tmp_path: Path) -> None:
    trace = Trace.begun("t-0", "t-1")
    trace.start(0, "a")
    trace.start(1, "b")
    trace.take(2, "a", 1, "t-0")
    trace.take(2, "b", 1, "t-1")
    trace.revoke(10, "a", 1, "t-0", callback_s=1, cause="assignment")
    trace.rejoin(10.5, "b")
    trace.take(14, "b", 2, "t-0", callback_s=2)
    trace.pause(15, "b", "t-0", "t-1")
    trace.resume(16, "b", "t-0", "t-1")
    trace.end(20)
    events = events_of(written(tmp_path / "trace", trace), tmp_path)
    assert lane(events, "a") == [
        ("joins", 0, 2),
        ("owns 1 partition", 2, 10),
        ("onPartitionsRevoked", 10, 11),
        ("is in the group, owns no partitions", 10, 20),
    ]
    assert lane(events, "b") == [
        ("joins", 1, 2),
        ("onPartitionsAssigned", 12, 14),
        ("joins", 10.5, 14),
        ("owns 1 partition", 2, 14),
        ("stands still", 15, 16),
        ("owns 2 partitions", 14, 20),
    ]
    (begun,) = (event for event in events if event["ph"] == "s")
    (ended,) = (event for event in events if event["ph"] == "f")
    assert (begun["ts"], ended["ts"]) == (10 * SECOND - 1, 14 * SECOND)
    assert begun["name"] == "handover of 1 partition"
    assert begun["tid"] != ended["tid"]
    counted = [(one["ts"] / SECOND, one["args"][UNOWNED]) for one in events if one["ph"] == "C"]
    assert counted == [(0, 2), (2, 0), (10, 1), (14, 0)]


def test_a_callback_is_cut_if_its_member_changes_meanwhile(tmp_path: Path) -> None:
    trace = Trace()
    trace.start(0, "a")
    trace.take(1, "a", 1, "t-0", "t-1")
    trace.revoke(5, "a", 1, "t-0", callback_s=4)
    trace.rejoin(7, "a")
    trace.end(20)
    events = events_of(written(tmp_path / "trace", trace), tmp_path)
    assert ("onPartitionsRevoked", 5, 7) in lane(events, "a")
    assert ("onPartitionsRevoked", 7, 9) in lane(events, "a")


def test_a_callback_that_has_returned_begins_after_the_last_change_of_its_lane(tmp_path: Path) -> None:
    """Slices of a thread nest: this one would cut the begin of the join."""
    trace = Trace()
    trace.start(0, "a")
    trace.take(1, "a", 1, "t-0")
    trace.rejoin(13, "a")
    trace.take(14, "a", 2, "t-1", callback_s=2)
    trace.end(20)
    events = events_of(written(tmp_path / "trace", trace), tmp_path)
    assert ("onPartitionsAssigned", 13, 14) in lane(events, "a")


def test_a_partition_that_returns_to_its_owner_is_no_handover(tmp_path: Path) -> None:
    trace = Trace()
    trace.start(0, "a")
    trace.take(1, "a", 1, "t-0")
    trace.revoke(5, "a", 1, "t-0")
    trace.take(7, "a", 2, "t-0")
    trace.end(20)
    assert not names(events_of(written(tmp_path / "trace", trace), tmp_path), "s")


@pytest.mark.parametrize("name", STORMS)
def test_the_counter_is_that_of_the_figures(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    run: Path = request.getfixturevalue(name)
    history = recorded(run)[0].history
    events = events_of(run, tmp_path, Window(history.from_us))
    counts = [(one["ts"], one["args"][UNOWNED]) for one in events if one["ph"] == "C"]
    points = [*counts, (history.to_us, 0)]
    area_us = sum(value * (after - ts) for (ts, value), (after, _) in pairwise(points))
    assert history.figures is not None
    assert area_us / SECOND == history.figures.unowned_partition_seconds


def test_every_row_of_a_step_and_every_round_is_there(eager: Path, tmp_path: Path) -> None:
    rows, events = [*read_rows(eager)], events_of(eager, tmp_path)
    steps = Counter(row["event"] for row in rows)["step_taken"]
    began = sum(row.get("state") == "PreparingRebalance" for row in rows)
    assert sum(count for name, count in names(events, "i").items() if name.startswith("rolling-re")) > 0
    assert sum(event["ph"] == "B" and event["name"].startswith("round: ") for event in events) == began
    scenario = {one["tid"] for one in events if one["ph"] == "M" and one["args"].get("name") == "scenario"}
    assert sum(event["ph"] == "i" and event["tid"] in scenario for event in events) == steps


def test_a_window_begins_with_what_is_open(cooperative: Path, tmp_path: Path) -> None:
    window = Window(100 * SECOND, 150 * SECOND)
    events = events_of(cooperative, tmp_path, window, "out.json.gz")
    times = [event["ts"] for event in events if "ts" in event]
    assert min(times) == window.from_us
    assert max(times) <= 150 * SECOND
    begun = [event for event in events if event["ph"] == "B" and event["ts"] == window.from_us]
    members = recorded(cooperative)[1].activities.values()
    assert len(begun) == sum(one.at(window.from_us) is not Activity.GONE for one in members) >= 4
    assert (tmp_path / "out.json.gz").read_bytes()[:2] == b"\x1f\x8b"


def test_a_window_within_a_round_begins_with_it(eager: Path, tmp_path: Path) -> None:
    joining = next(row["time_us"] for row in read_rows(eager) if row.get("state") == "PreparingRebalance")
    events = events_of(eager, tmp_path, Window(joining + 1))
    begun = [event["name"] for event in events if event["ph"] == "B" and event["ts"] == joining + 1]
    assert begun[-2:] == ["round: pending-member (member-3)", "PreparingRebalance"]


def test_nothing_half_written_is_left(eager: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--group g: not in the trace; there are: storm"):
        write_perfetto(eager, tmp_path / "out.json", frozenset({"g"}), WHOLE)
    with pytest.raises(OutputError, match="cannot be written: No such file or directory"):
        write_perfetto(eager, tmp_path / "missing" / "out.json", frozenset(), WHOLE)
    assert not list(tmp_path.iterdir())


def test_a_pipe_and_a_link_are_written_and_not_replaced(eager: Path, tmp_path: Path) -> None:
    """`--perfetto /dev/stdout` as root took the device away and put a file there."""
    pipe, link, named = tmp_path / "pipe.json", tmp_path / "link.json", tmp_path / "named.json"
    os.mkfifo(pipe)
    link.symlink_to(named)
    reader = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)  # so that neither end waits for the other
    try:
        few = Window(0, 1)
        write_perfetto(eager, pipe, frozenset(), few)
        write_perfetto(eager, link, frozenset(), few)
        assert os.read(reader, 1 << 20) == named.read_bytes()
    finally:
        os.close(reader)
    assert pipe.is_fifo()
    assert link.is_symlink()


@pytest.mark.slow
def test_a_long_trace_needs_little_memory(tmp_path: Path) -> None:
    """Twenty times the rows, not twenty times the memory."""
    peaks = [_peak_kib(tmp_path / str(rounds), rounds) for rounds in (100, 2000)]
    assert peaks[1] < peaks[0] * 1.5


def _peak_kib(folder: Path, rounds: int) -> int:
    trace = Trace.begun("t-0", "t-1")
    for number in range(rounds):
        for at_s, member in ((2 * number, "a"), (2 * number + 1, "b")):
            trace.take(at_s, member, number, "t-0", "t-1")
            trace.revoke(at_s + 0.5, member, number, "t-0", "t-1")
    written(folder, trace)
    code = (
        "import resource, sys; from pathlib import Path; "
        "from groupstorm.report.lanes.perfetto import write_perfetto; "
        "from groupstorm.figures.accumulator import WHOLE; "
        "write_perfetto(Path(sys.argv[1]), Path(sys.argv[1]) / 'out.json', frozenset(), WHOLE); "
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    command = [sys.executable, "-c", code, str(folder)]
    return int(run_process(command, stdout=-1, text=True, env=environment_of_command(), check=True).stdout)
