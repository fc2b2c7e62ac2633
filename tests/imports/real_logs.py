"""Recorded logs of real brokers and clients (`logs/real`), imported, beside what the harness saw.

Each part of a recording (a generation, a cause, a member, an interval of ownership) is recovered if the trace
says it, unknown if it does not, and wrong if the trace says something else.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from groupstorm.imports.importing import Options, import_logs
from groupstorm.imports.lines import find_logs
from groupstorm.imports.output import Imported
from groupstorm.trace.reader import read_rows

REAL: Final = Path(__file__).parent / "logs" / "real"
BROKER, CLIENTS, BOTH = "broker", "clients", "both"
SOURCES: Final = (BROKER, CLIENTS, BOTH)

Row = Mapping[str, Any]


class Recording(NamedTuple):
    """One folder of `logs/real`."""

    folder: Path

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def release(self) -> str:
        return self.name.split("-")[1]

    @property
    def clients(self) -> str:
        return self.name.split("-", 2)[2]

    @property
    def is_consumer_group(self) -> bool:
        return self.clients.endswith("-consumer-group")

    def logs(self, source: str) -> list[str]:
        """The paths of the logs that this source has: the broker's, the clients', or both."""
        logs = sorted(self.folder.glob("*.log.gz"))
        kept = {
            BROKER: [log for log in logs if log.name.startswith("server")],
            CLIENTS: [log for log in logs if not log.name.startswith("server")],
            BOTH: logs,
        }
        return [str(log) for log in kept[source]]


def recordings() -> list[Recording]:
    return [Recording(folder) for folder in sorted(REAL.iterdir())]


#: The newest release, without the longest of its logs, and the oldest one with Java's client; the other
#: recordings are read in slow tests.
_QUICK: Final = (
    *(
        "kafka-4.4.0-aiokafka",
        "kafka-4.4.0-java",
        "kafka-4.4.0-java-consumer-group",
        "kafka-4.4.0-librdkafka",
    ),
    "kafka-2.8.2-java",
)


def each(recordings: Iterable[Recording]) -> pytest.MarkDecorator:
    """A test for each of the recordings, as its parameter `recording`."""
    return pytest.mark.parametrize(
        "recording",
        [
            pytest.param(one, id=one.name, marks=[] if one.name in _QUICK else pytest.mark.slow)
            for one in recordings
        ],
    )


@cache
def recorded(recording: Recording) -> Mapping[str, Mapping[str, Any]]:
    """Return what the harness saw, by group."""
    text = gzip.decompress((recording.folder / "recorded.json.gz").read_bytes())
    groups: Mapping[str, Mapping[str, Any]] = json.loads(text)["groups"]
    return groups


class ImportedRecording(NamedTuple):
    """A recording's logs as a trace in ``folder``. ``rows``: with ``ms``, the time since 1970."""

    recording: Recording
    source: str
    folder: Path
    done: Imported
    rows: Sequence[Row]

    def of(self, group: str, *events: str) -> Iterator[Row]:
        """The rows of the group, or those of some events."""
        return (row for row in self.rows if row["group"] == group and (row["event"] in events or not events))

    def bounds(self, row: Row) -> tuple[int, int]:
        """The earliest and the latest time of the row in milliseconds since 1970: equal if it is exact."""
        earliest = self._ms(row, "earliest_us")
        return earliest, max(earliest, self._ms(row, "latest_us"))

    def _ms(self, row: Row, bound: str) -> int:
        return (self.done.began_us + row.get(bound, row["time_us"])) // 1000


def imported(recording: Recording, source: str, out: Path) -> ImportedRecording:
    done = import_logs(find_logs(recording.logs(source)), out, Options())
    rows = [{**row, "ms": (done.began_us + row["time_us"]) // 1000} for row in read_rows(out)]
    return ImportedRecording(recording, source, out, done, rows)


class Traces:
    """The traces of all recordings, each imported once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.of = cache(self._import)

    def _import(self, recording: Recording, source: str) -> ImportedRecording:
        return imported(recording, source, self._folder / f"{recording.name}-{source}")
