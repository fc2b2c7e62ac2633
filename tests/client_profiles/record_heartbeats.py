"""Record when members of the real libraries send heartbeats, on real Kafka: half an hour or more.

python -m tests.client_profiles.record_heartbeats [--rounds 3] [--quiet-s 630] [--raw FILE] [LIBRARY...]

Each library has three groups of four members. One has nothing to do. Another works 40 ms on each of ten
records a second and member, the third 400 ms on one record a second; records come at random. A member joins
each group when it has been quiet for a while and leaves soon after: that ends a round. All requests pass a
proxy (`heartbeat_proxy`), which notes them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from groupstorm.clients.brokers.jvm import jvm
from tests.client_profiles.clients import CONSUMERS, Client, ConsumerTarget
from tests.client_profiles.heartbeat_proxy import HeartbeatProxy, Passed
from tests.client_profiles.heartbeat_timing import of_rows, write
from tests.needs import Missing

MEMBERS = 4
PARTITIONS = 8


class Work(NamedTuple):
    """The work of a kind of group. ``ms``: the handler's time for a record."""

    records_per_s: int
    ms: int


#: Groups are called LIBRARY.KIND; the topic of a kind has its name.
KINDS = {"idle": Work(0, 0), "short": Work(40, 40), "long": Work(4, 400)}
#: After the start of the members, and after the joining member has been started, before it leaves.
SETTLING_S = 30.0
JOINING_S = 20.0
#: A JVM's exit code after SIGTERM.
_JAVA_AFTER_SIGTERM = 128 + signal.SIGTERM


class Recorder:
    """The processes of one recording, and what has passed the proxy."""

    def __init__(self, clients: dict[str, Client], raw: Path | None) -> None:
        self.rows: list[Passed] = []
        self._clients = clients
        self._raw = raw.open("w", encoding="utf-8") if raw else None
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def note(self, passed: Passed) -> None:
        self.rows.append(passed)
        if self._raw is not None:
            self._raw.write(json.dumps(passed) + "\n")
            self._raw.flush()

    def start(self, bootstrap: str, member: int) -> None:
        """Start this member of every group."""
        for library, client in self._clients.items():
            for kind, work in KINDS.items():
                group = f"{library}.{kind}"
                client_id = f"{group}.{member}"
                command = client.command(ConsumerTarget(bootstrap, group, kind, client_id))
                self._processes[client_id] = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    env=os.environ | {"WORK_MS": str(work.ms)},
                )

    def stop(self, member: int) -> None:
        for client_id, process in self._processes.items():
            if client_id.endswith(f".{member}"):
                process.terminate()

    def end(self) -> None:
        for process in self._processes.values():
            process.kill()
            process.wait()

    @property
    def dead(self) -> list[str]:
        """Return the processes that ended though nobody asked them to."""
        ends = (None, 0, -signal.SIGTERM, _JAVA_AFTER_SIGTERM)
        return [name for name, process in self._processes.items() if process.poll() not in ends]


async def record(recorder: Recorder, rounds: int, quiet_s: float) -> None:
    async with jvm({"num.partitions": str(PARTITIONS)}) as broker:
        proxy = HeartbeatProxy(broker.bootstrap, recorder.note)
        await proxy.start()
        direct, address = map(str, (*broker.bootstrap, *proxy.bootstrap))
        await asyncio.to_thread(_create_topics, direct)
        producing = asyncio.ensure_future(asyncio.to_thread(_produce, direct, ended := []))
        try:
            for member in range(MEMBERS):
                recorder.start(address, member)
            await asyncio.sleep(SETTLING_S)
            for number in range(rounds):
                await asyncio.sleep(quiet_s)
                recorder.start(address, MEMBERS)
                await asyncio.sleep(JOINING_S)
                recorder.stop(MEMBERS)
                print(f"round {number}: {len(recorder.rows)} rows, load {os.getloadavg()}", flush=True)
            await asyncio.sleep(JOINING_S)
            print("ended with an error:", recorder.dead, flush=True)
        finally:
            recorder.end()
            ended.append(True)
            await producing
            await proxy.stop()


def _create_topics(bootstrap: str) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    topics = [NewTopic(kind, num_partitions=PARTITIONS) for kind in KINDS]
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for created in admin.create_topics(topics).values():
        created.result(timeout=30)


def _produce(bootstrap: str, ended: list[bool]) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap})
    draws = random.Random(0)
    rate = sum(work.records_per_s for work in KINDS.values())
    while not ended:
        time.sleep(draws.expovariate(rate))
        kind = draws.choices(list(KINDS), [work.records_per_s for work in KINDS.values()])[0]
        producer.produce(kind, b"record", partition=draws.randrange(PARTITIONS))
        producer.poll(0)
    producer.flush(10)


def find(libraries: Iterable[str]) -> dict[str, Client]:
    clients = {}
    for library in libraries:
        try:
            clients[library] = CONSUMERS[library]()
        except Missing as missing:
            print(f"{library}: not recorded: {missing}", file=sys.stderr)
    return clients


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quiet-s", type=float, default=630)
    parser.add_argument("--raw", type=Path, help="also write every row there, as it passes")
    parser.add_argument("--circumstances", default="", help="what to note: the machine, its load")
    parser.add_argument("libraries", nargs="*", default=list(CONSUMERS))
    chosen = parser.parse_args()
    clients = find(chosen.libraries)
    recorder = Recorder(clients, chosen.raw)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    asyncio.run(record(recorder, chosen.rounds, chosen.quiet_s))
    for library, client in clients.items():
        rows = [row for row in recorder.rows if row.client_id.startswith(f"{library}.")]
        write(library, of_rows(client.version, chosen.circumstances, rows))


if __name__ == "__main__":
    main()
