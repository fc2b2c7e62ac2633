"""Logs of Kafka 2.8 to 4.4 and of four client libraries, imported and held against what the harness saw.

`python -m tests.imports.record` records them. The table in docs/import.md counts what each gives.
"""

from __future__ import annotations

import asyncio
import gzip
import os
import re
import time
from collections.abc import Sequence
from itertools import groupby, pairwise
from pathlib import Path

import pytest

from groupstorm.clients.profiles import GroupProtocol
from groupstorm.imports.source import shapes_of
from groupstorm.problems import InputError
from tests.generated_pages import check_section
from tests.imports.real_logs import (
    BOTH,
    BROKER,
    CLIENTS,
    REAL,
    SOURCES,
    ImportedRecording,
    Recording,
    Traces,
    each,
    imported,
    recorded,
    recordings,
)
from tests.imports.recording.recording import record
from tests.imports.recording.releases import CLIENTS as LIBRARIES
from tests.imports.recording.situation import STATIC
from tests.imports.recovered import COLUMNS, recovered, wrong
from tests.needs import needed
from tests.soaking import one_in

RECORDINGS = recordings()
EVERY = each(RECORDINGS)
CLASSIC = each(one for one in RECORDINGS if not one.is_consumer_group)

#: Lines that look like a group's and are not understood, by their beginnings: an announcement that Kafka's
#: classic consumer logs as an empty line and some more.
LEFT_OVER = {""}


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Traces:
    return Traces(tmp_path_factory.mktemp("traces"))


@pytest.mark.parametrize("source", one_in(4, SOURCES))
@EVERY
def test_the_trace_says_nothing_wrong(recording: Recording, source: str, traces: Traces) -> None:
    assert wrong(traces.of(recording, source)) == []


@EVERY
def test_all_logs_together_say_everything(recording: Recording, traces: Traces) -> None:
    trace = traces.of(recording, BOTH)
    assert all(is_complete(trace, column) for column in COLUMNS)


def is_complete(trace: ImportedRecording, column: str) -> bool:
    found = recovered(trace, column)
    return found.found == found.of > 0


@EVERY
def test_a_brokers_log_alone_does_not_say_who_owns_what(recording: Recording, traces: Traces) -> None:
    trace = traces.of(recording, BROKER)
    assert is_complete(trace, "generations")
    assert recovered(trace, "ownership").found == 0
    for group in recorded(recording):
        missing = {row["cause"] for row in trace.of(group, "evidence_missing")}
        assert "ownership" in missing
        assert not [row for row in trace.of(group) if row.get("partitions")]


@CLASSIC
def test_a_brokers_log_tells_of_a_returning_static_member(recording: Recording, traces: Traces) -> None:
    """Kafka 2.8 logs the new member id. Since 3.4 only the replaced one is logged: a later line has it."""
    written = [
        member["member_id"]
        for generation in recorded(recording)[STATIC]["written"]
        for member in generation["members"]
        if member["instance"] == "seat-1"
    ]
    changes = {(old, new) for old, new in pairwise(written) if old != new}
    replaced = [*traces.of(recording, BROKER).of(STATIC, "member_replaced")]
    said = {(row["previous_member_id"], row["member_id"]) for row in replaced}
    assert len(replaced) == len(said)
    assert said <= changes
    assert all(row["instance"] == "seat-1" for row in replaced)
    provenance = "observed" if recording.release == "2.8.2" else "inferred"
    assert {row["provenance"] for row in replaced} <= {provenance}
    # in this recording the session of the old process expired before the new one came
    assert len(replaced) == (0 if recording.name == "kafka-3.8.1-java" else 1)


@EVERY
def test_every_log_is_known_by_who_wrote_it(recording: Recording, traces: Traces) -> None:
    library = recording.clients.removesuffix("-consumer-group")
    for log in traces.of(recording, BOTH).done.logs:
        expected = "broker" if "/server" in log.log.name else library
        assert {*map(str, log.writers)} == {expected}


@CLASSIC
def test_clients_do_not_say_that_their_group_is_empty(recording: Recording, traces: Traces) -> None:
    """The last generation of each group has no member that could log it; before, members that close one
    after the other may have gone when they get their assignments."""
    empty = short = 0
    for saw in recorded(recording).values():
        for written, following in pairwise(saw["written"]):
            short += bool(written["members"]) and following["time_ms"] - written["time_ms"] < 1_000
        empty += not saw["written"][-1]["members"]
    found = recovered(traces.of(recording, CLIENTS), "generations")
    assert empty == len(recorded(recording))
    assert empty <= found.of - found.found <= empty + short


@EVERY
def test_clients_tell_all_but_the_sessions_that_expire(recording: Recording, traces: Traces) -> None:
    """A member that was closed without leaving, as a static one, does not see its session's end, nor does one
    that was killed and not started again; and a coordinator that moves is no member's affair."""
    trace = traces.of(recording, CLIENTS)
    expired = {
        row["member_id"]
        for group in recorded(recording)
        for row in traces.of(recording, BROKER).of(group, "member_removed")
        if row["cause"] == "session-expired" and row.get("instance")
    }
    kills = sum(one["do"] == "kill" for saw in recorded(recording).values() for one in saw["actions"])
    moves = sum(one["do"] == "fail-over" for saw in recorded(recording).values() for one in saw["actions"])
    found = recovered(trace, "causes")
    assert 0 < found.of - found.found <= max(3, len(expired) + kills + 2 * moves)


@EVERY
def test_every_line_about_a_group_is_understood(recording: Recording, traces: Traces) -> None:
    shapes = shapes_of(traces.of(recording, BOTH).done.logs)
    assert {first for _, first, _ in shapes} <= LEFT_OVER


@pytest.mark.slow
def test_what_is_left_over_is_in_a_log(traces: Traces) -> None:
    shapes = [shape for one in RECORDINGS for shape in shapes_of(traces.of(one, BOTH).done.logs)]
    assert {first for _, first, _ in shapes} == LEFT_OVER


@pytest.mark.slow
def test_the_recordings_are_small_and_name_no_machine() -> None:
    files = [file for file in REAL.rglob("*") if file.is_file()]
    assert sum(file.stat().st_size for file in files) < 1_500_000
    for file in files:
        text = gzip.decompress(file.read_bytes()).decode()
        paths = set(re.findall(r"(?<![\w.])/(?:root|home|tmp|work)/[\w-]+(?:\.[\w-]+)*", text))
        assert paths <= {"/tmp/kafka-logs"}, file
        assert {*re.findall(r"\b\d+\.\d+\.\d+\.\d+\b", text)} <= {"127.0.0.1", "0.0.0.0"}, file


# -- the table -----------------------------------------------------------------------------------


def row(recordings: Sequence[Recording], traces: Traces) -> str:
    """Return the sums of each column over the releases: of the broker's log, of the clients', and of both."""
    cells = []
    for column in COLUMNS:
        counts = [[recovered(traces.of(one, source), column) for one in recordings] for source in SOURCES]
        found = ", ".join(str(sum(one.found for one in each)) for each in counts)
        cells.append(f"{found} of {sum(one.of for one in counts[-1])}")
    releases = ", ".join(one.release.rpartition(".")[0] for one in recordings)
    return f"| {' | '.join(_clients(recordings[0]))} | {releases} | {' | '.join(cells)} |"


def _clients(recording: Recording) -> tuple[str, str]:
    library = recording.clients.removesuffix("-consumer-group")
    return library, "consumer" if recording.is_consumer_group else "classic"


@pytest.mark.slow
def test_the_table_of_what_logs_give(traces: Traces) -> None:
    header = [
        f"| clients | group.protocol | Kafka | {' | '.join(COLUMNS)} |",
        "|---|---|---|" + "---|" * len(COLUMNS),
    ]
    kinds = [[*each] for _, each in groupby(sorted(RECORDINGS, key=_clients), _clients)]
    check_section("import.md", "recovered", "\n".join([*header, *(row(each, traces) for each in kinds)]))


# -- a new recording -----------------------------------------------------------------------------


@pytest.mark.soak
def test_a_new_recording_says_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kafka 4.3.1 and its own consumer, recorded now."""
    pytest.importorskip("aiokafka", reason="pip install 'groupstorm[kafka]'")
    java = LIBRARIES["java"]
    assert java.protocol is GroupProtocol.CLASSIC
    monkeypatch.setitem(os.environ, "TZ", "UTC")
    time.tzset()
    recording = Recording(tmp_path / "kafka-4.3.1-java")
    try:
        with needed(InputError):
            asyncio.run(record("4.3.1", java, recording.folder))
    finally:
        monkeypatch.undo()
        time.tzset()
    for source in SOURCES:
        trace = imported(recording, source, tmp_path / source)
        assert wrong(trace) == []
    both = imported(recording, BOTH, tmp_path / "again")
    assert is_complete(both, "generations")
    assert is_complete(both, "causes")
    assert is_complete(both, "ownership")
