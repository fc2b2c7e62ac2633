"""What a real client's members send while they come, stay, leave, die and come again: kept as JSON lines.

The first line of a recording says of what it is, each other one is a request, or what was done to a process.
"""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from groupstorm.coordinator.server.embedded import EmbeddedBroker
from tests.profiles.clients import Client, Place
from tests.profiles.wiretap import Json, listen

GROUP, TOPIC, PARTITIONS = "storm", "topic-0", 4
GOLDEN = Path(__file__).parent / "golden"
BROKER = {"group.initial.rebalance.delay.ms": "0"}
COOPERATIVE = "cooperative-sticky"


class Deed(NamedTuple):
    """``what`` (start, stop, kill) is done to ``who`` after ``after_s`` of quiet."""

    after_s: float
    what: str
    who: str


#: One joins alone; a second one joins, leaves, joins again, is killed, and is started anew before its
#: session is over.
EVERYTHING: Sequence[Deed] = (
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
BRIEFLY: Sequence[Deed] = (
    Deed(0, "start", "first"),
    Deed(11, "start", "second"),
    Deed(11, "stop", "second"),
    Deed(8, "stop", "first"),
    Deed(3, "", ""),
)


class Session(NamedTuple):
    """What is recorded: a profile's client with one assignor; ``assignor``: "" is its default."""

    profile: str
    assignor: str
    deeds: Sequence[Deed]

    @property
    def name(self) -> str:
        return f"{self.profile}.{self.assignor}" if self.assignor else self.profile


SESSIONS: Mapping[str, Session] = {
    session.name: session
    for session in (
        *(Session(name, "", EVERYTHING) for name in ("java", "librdkafka", "kafka-python")),
        *(Session(name, "", EVERYTHING) for name in ("aiokafka", "franz-go")),
        *(Session(name, COOPERATIVE, BRIEFLY) for name in ("java", "librdkafka", "kafka-python")),
    )
}


class Recording(NamedTuple):
    client: str
    rows: list[dict[str, Json]]


def record(client: Client, session: Session) -> Recording:
    """Takes as long as the deeds."""
    rows: list[dict[str, Json]] = []
    processes: dict[str, subprocess.Popen[bytes]] = {}
    quiet = subprocess.DEVNULL
    with EmbeddedBroker(BROKER, {TOPIC: PARTITIONS}) as broker, _ending(processes):
        started_s = time.monotonic()

        def note(who: str, row: dict[str, Json]) -> None:
            rows.append({"ms": round((time.monotonic() - started_s) * 1000), "who": who, **row})

        broker.call(lambda: listen(broker.broker, note))
        for deed in session.deeds:
            time.sleep(deed.after_s)
            if deed.what:
                note(deed.who, {"do": deed.what})
            if deed.what == "start":
                place = Place(broker.address, GROUP, TOPIC, deed.who, session.assignor)
                command = client.command(place)
                processes[deed.who] = subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet)
            elif deed.what:
                number = signal.SIGTERM if deed.what == "stop" else signal.SIGKILL
                processes[deed.who].send_signal(number)
    return Recording(client.version, sorted(rows, key=lambda row: int(row["ms"])))


@contextmanager
def _ending(processes: dict[str, subprocess.Popen[bytes]]) -> Iterator[None]:
    try:
        yield
    finally:
        for process in processes.values():
            process.kill()
            process.wait()


def write(name: str, recording: Recording) -> None:
    head = {"client": recording.client, "broker": BROKER, "partitions": PARTITIONS}
    lines = [json.dumps(row, separators=(",", ":"), ensure_ascii=False) for row in (head, *recording.rows)]
    (GOLDEN / f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def read(name: str) -> Recording:
    head, *rows = map(json.loads, (GOLDEN / f"{name}.jsonl").read_text("utf-8").splitlines())
    return Recording(head["client"], rows)
