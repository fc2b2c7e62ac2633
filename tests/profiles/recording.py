"""What a real client's members send while they come, stay, leave, die and come again: kept as JSON lines.

The first line of a recording says of what it is, each further one is a request, or what was done to a process.
"""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from groupstorm.coordinator.server.embedded import EmbeddedBroker
from tests.profiles.clients import Client
from tests.profiles.wiretap import Json, listen

GROUP, TOPIC, PARTITIONS = "storm", "topic-0", 4
GOLDEN = Path(__file__).parent / "golden"
BROKER = {"group.initial.rebalance.delay.ms": "0"}


class Deed(NamedTuple):
    """``what`` (start, stop, kill) is done to ``who`` after ``after_s`` of quiet."""

    after_s: float
    what: str
    who: str


#: Joins alone; a second one joins, leaves, joins again, is killed, and is started anew before its session
#: is over; a third one leaves last.
DEEDS: Sequence[Deed] = (
    Deed(0, "start", "first"),
    Deed(11, "start", "second"),
    Deed(11, "stop", "second"),
    Deed(8, "start", "second"),
    Deed(8, "kill", "second"),
    Deed(2, "start", "second"),
    Deed(58, "stop", "second"),
    Deed(6, "stop", "first"),
    Deed(3, "", ""),
)


class Recording(NamedTuple):
    client: str
    rows: list[dict[str, Json]]

    def of(self, who: str) -> list[dict[str, Json]]:
        return [row for row in self.rows if row["who"] == who]


def record(client: Client, deeds: Sequence[Deed] = DEEDS) -> Recording:
    """Takes as long as the deeds."""
    rows: list[dict[str, Json]] = []
    processes: dict[str, subprocess.Popen[bytes]] = {}
    with EmbeddedBroker(BROKER, {TOPIC: PARTITIONS}) as broker, _ending(processes):
        started_s = time.monotonic()

        def note(who: str, row: dict[str, Json]) -> None:
            rows.append({"ms": round((time.monotonic() - started_s) * 1000), "who": who, **row})

        broker.call(lambda: listen(broker.broker, note))
        for deed in deeds:
            time.sleep(deed.after_s)
            if deed.what:
                note(deed.who, {"do": deed.what})
            if deed.what == "start":
                command = client.command(broker.address, GROUP, TOPIC, deed.who)
                processes[deed.who] = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
                )
            elif deed.what:
                number = signal.SIGTERM if deed.what == "stop" else signal.SIGKILL
                processes[deed.who].send_signal(number)
    return Recording(client.version, sorted(rows, key=lambda row: row["ms"]))


@contextmanager
def _ending(processes: dict[str, subprocess.Popen[bytes]]) -> Iterator[None]:
    try:
        yield
    finally:
        for process in processes.values():
            process.kill()
            process.wait()


def write(profile: str, recording: Recording) -> None:
    head = {"client": recording.client, "broker": BROKER, "partitions": PARTITIONS}
    lines = [json.dumps(row, separators=(",", ":"), ensure_ascii=False) for row in (head, *recording.rows)]
    (GOLDEN / f"{profile}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def read(profile: str) -> Recording:
    head, *rows = map(json.loads, (GOLDEN / f"{profile}.jsonl").read_text("utf-8").splitlines())
    return Recording(head["client"], rows)
