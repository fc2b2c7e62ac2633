"""The requests of a real client's members while they join, stay, leave, die and restart, as JSON lines.

The first line of a recording names the client; each other line is a request, or an action on a process.
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

from groupstorm.broker.embedded import EmbeddedBroker
from tests.client_profiles.clients import Client, ConsumerTarget
from tests.client_profiles.wiretap import Json, record_requests

GROUP, TOPIC, PARTITIONS = "storm", "topic-0", 4
GOLDEN = Path(__file__).parent / "golden"
BROKER = {"group.initial.rebalance.delay.ms": "0"}
COOPERATIVE = "cooperative-sticky"


class Action(NamedTuple):
    """Do ``kind`` (start, stop, kill) to ``member`` after ``after_s`` of waiting."""

    after_s: float
    kind: str
    member: str


#: One member joins alone; a second one joins, leaves, joins again, is killed, and is started anew before
#: its session expires.
FULL_SESSION: Sequence[Action] = (
    Action(0, "start", "first"),
    Action(11, "start", "second"),
    Action(11, "stop", "second"),
    Action(8, "start", "second"),
    Action(8, "kill", "second"),
    Action(2, "start", "second"),
    Action(58, "stop", "second"),
    Action(6, "stop", "first"),
    Action(3, "", ""),
)
SHORT_SESSION: Sequence[Action] = (
    Action(0, "start", "first"),
    Action(11, "start", "second"),
    Action(11, "stop", "second"),
    Action(8, "stop", "first"),
    Action(3, "", ""),
)


class Session(NamedTuple):
    """The subject of a recording: a profile's client with one assignor, or of one group protocol.

    ``assignor`` and ``protocol``: "" is the library's default. ``broker``: its options.
    """

    profile: str
    assignor: str
    actions: Sequence[Action]
    protocol: str = ""
    broker: Mapping[str, str] = BROKER

    @property
    def name(self) -> str:
        return ".".join(filter(None, (self.profile, self.assignor, self.protocol)))


SESSIONS: Mapping[str, Session] = {
    session.name: session
    for session in (
        *(Session(name, "", FULL_SESSION) for name in ("java", "librdkafka", "kafka-python")),
        *(Session(name, "", FULL_SESSION) for name in ("aiokafka", "franz-go")),
        *(Session(name, COOPERATIVE, SHORT_SESSION) for name in ("java", "librdkafka", "kafka-python")),
    )
}

#: A member that joins alone shares with a second one, which leaves, joins again, and is killed. Then the
#: first one stands still until its session has expired.
GROUP_SESSION: Sequence[Action] = (
    Action(0, "start", "first"),
    Action(9, "start", "second"),
    Action(8, "stop", "second"),
    Action(6, "start", "second"),
    Action(7, "kill", "second"),
    Action(14, "pause", "first"),
    Action(11, "resume", "first"),
    Action(10, "stop", "first"),
    Action(4, "", ""),
)
#: The sessions of the consumer protocol (KIP-848).
GROUP_BROKER = {
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.heartbeat.interval.ms": "2000",
    "group.consumer.min.heartbeat.interval.ms": "2000",
    "group.consumer.session.timeout.ms": "8000",
    "group.consumer.min.session.timeout.ms": "8000",
}
GROUP_SESSIONS: Mapping[str, Session] = {
    session.name: session
    for session in (Session(name, "", GROUP_SESSION, "consumer", GROUP_BROKER) for name in ("librdkafka",))
}
_SIGNALS = {"stop": signal.SIGTERM, "kill": signal.SIGKILL, "pause": signal.SIGSTOP, "resume": signal.SIGCONT}


class Recording(NamedTuple):
    client: str
    rows: list[dict[str, Json]]


def record(client: Client, session: Session) -> Recording:
    """Record a session; takes as long as its actions."""
    rows: list[dict[str, Json]] = []
    processes: dict[str, subprocess.Popen[bytes]] = {}
    quiet = subprocess.DEVNULL
    with EmbeddedBroker(session.broker, {TOPIC: PARTITIONS}) as broker, _ending(processes):
        started_s = time.monotonic()

        def note(who: str, row: dict[str, Json]) -> None:
            rows.append({"ms": round((time.monotonic() - started_s) * 1000), "who": who, **row})

        broker.call(lambda: record_requests(broker.broker, note))
        for action in session.actions:
            time.sleep(action.after_s)
            if action.kind:
                note(action.member, {"do": action.kind})
            if action.kind == "start":
                choice = (session.assignor, session.protocol)
                target = ConsumerTarget(broker.address, GROUP, TOPIC, action.member, *choice)
                command = client.command(target)
                processes[action.member] = subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet)
            elif action.kind:
                processes[action.member].send_signal(_SIGNALS[action.kind])
    return Recording(client.version, sorted(rows, key=lambda row: int(row["ms"])))


@contextmanager
def _ending(processes: dict[str, subprocess.Popen[bytes]]) -> Iterator[None]:
    try:
        yield
    finally:
        for process in processes.values():
            process.kill()
            process.wait()


def write(session: Session, recording: Recording) -> None:
    head = {"client": recording.client, "broker": session.broker, "partitions": PARTITIONS}
    lines = [json.dumps(row, separators=(",", ":"), ensure_ascii=False) for row in (head, *recording.rows)]
    (GOLDEN / f"{session.name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def read(name: str) -> Recording:
    head, *rows = map(json.loads, (GOLDEN / f"{name}.jsonl").read_text("utf-8").splitlines())
    return Recording(head["client"], rows)
