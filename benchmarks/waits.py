"""The time that one client's request makes another client wait: `groupstorm serve`, one request after the
other.

    python -m benchmarks.waits [--turns] [--data] [--only WORD] [--repeat 3] [--tree DIR]

Beside the request another client asks for ApiVersions every few milliseconds. The longest of its waits is the
row; of several runs, each with a broker of its own, the smallest counts, since the machine may be busy.

With ``--turns`` there are no sockets, and the longest time of CPU counts for which the broker serves nobody
else: a figure that does not depend on what else the machine does. Only what is above 100 ms is measured
again.
"""

from __future__ import annotations

import argparse
import gc
import os
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from benchmarks.dear_requests import CASES
from benchmarks.dear_requests.frames import API_VERSIONS, HOST, LONGEST_S, Client, frame
from groupstorm.broker.assembly import make_broker
from groupstorm.broker.requests import BrokerEffects, Peer
from groupstorm.broker.service import CYCLES
from groupstorm.protocol.endpoints import Endpoint

_PEER = Peer("/127.0.0.1", Endpoint(HOST, 9092))
_EVERY_S = 0.003
#: A turn may take so long; one that seems longer is measured again.
LIMIT_MS = 100.0
_SERVE = "from groupstorm.cli.app import main; main()"


class Measured(NamedTuple):
    wait_ms: float
    request_s: float
    ended_s: float


@contextmanager
def broker(
    options: Iterable[str], data: bool, tree: str | None
) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    settings = [part for option in options for part in ("--set", option)]
    environment = dict(os.environ) if tree is None else {**os.environ, "PYTHONPATH": tree}
    with tempfile.TemporaryDirectory() as folder:
        kept = ["--data", folder] if data else []
        process = subprocess.Popen(
            [sys.executable, "-c", _SERVE, "serve", "--port", "0", *settings, *kept],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            cwd=tree,
        )
        try:
            assert process.stdout is not None
            yield int(process.stdout.readline().rpartition(b":")[2]), process
        finally:
            process.kill()
            process.wait()


def measure(name: str, data: bool, tree: str | None) -> Measured:
    prepare, options = CASES[name]
    with broker(options, data, tree) as (port, process):
        hostile = Client(port)
        requests = list(prepare(hostile))
        worst, over = [0.0], threading.Event()

        def ask_regularly() -> None:
            client, asked = Client(port), frame(API_VERSIONS, 0)
            while not over.is_set():
                begin_s = time.monotonic()
                client.send(asked)
                worst[0] = max(worst[0], time.monotonic() - begin_s)
                time.sleep(_EVERY_S)

        victim = threading.Thread(target=ask_regularly)
        victim.start()
        time.sleep(0.3)  # the schemas of the first requests are imported
        worst[0] = 0.0
        begin_s = time.monotonic()
        for request in requests:
            try:
                hostile.send(request)
            except TimeoutError:
                break
        request_s = time.monotonic() - begin_s
        time.sleep(0.2)
        over.set()
        victim.join()
        begin_s = time.monotonic()
        process.terminate()
        process.wait(LONGEST_S)
        return Measured(worst[0] * 1000, request_s, time.monotonic() - begin_s)


class WithoutSockets(Client):
    """A broker in this process."""

    def __init__(self, options: Iterable[str]) -> None:
        self._now_ms = time.time_ns() // 1_000_000
        settings = dict(option.split("=", 1) for option in options)
        self._broker = make_broker(settings, {}, now_ms=self._now_ms)
        self._connection = 0
        self.turns_s: list[float] = []

    def send(self, payload: bytes) -> bytes:
        """Carry out the requests, and all that is left behind the last answer."""
        at, answer = 0, b""
        while at < len(payload):
            (length,) = struct.unpack_from(">i", payload, at)
            frame_of_one, at = payload[at + 4 : at + 4 + length], at + 4 + length
            self._connection += 1
            answer = self._turn(self._broker.receive, self._connection, _PEER, frame_of_one, self._now_ms)
            while self._broker.next_deadline() == self._now_ms or not answer:
                due_ms = self._broker.next_deadline()
                if due_ms is None or due_ms > self._now_ms + 1_000:
                    break
                self._now_ms = max(self._now_ms, due_ms)
                answer = self._turn(self._broker.fire, self._now_ms) or answer
        return answer[4:]

    def leave_waiting(self, payload: bytes) -> None:
        _ = self.send(payload)

    def _turn(self, step: Callable[..., BrokerEffects], *arguments: Any) -> bytes:
        begin_s = time.thread_time()
        effects = step(*arguments)
        self.turns_s.append(time.thread_time() - begin_s)
        mine = [one.payload for one in effects.outputs if one.connection == self._connection]
        return mine[0] or b"" if mine else b""


def measure_turns(name: str) -> tuple[float, int, float]:
    """The longest turn in milliseconds, their number, and all of them in seconds."""
    prepare, options = CASES[name]
    client = WithoutSockets(options)
    requests = list(prepare(client))
    client.turns_s.clear()
    for request in requests:
        client.send(request)
    return max(client.turns_s) * 1000, len(client.turns_s), sum(client.turns_s)


def print_turns(names: Iterable[str], repeat: int) -> None:
    gc.set_threshold(*CYCLES)  # as `groupstorm serve` does
    print("| request | longest turn, ms of CPU | turns | all, s of CPU |")
    print("|---|---:|---:|---:|")
    for name in names:
        runs = [measure_turns(name)]
        while min(runs)[0] > LIMIT_MS and len(runs) < repeat:
            runs.append(measure_turns(name))
        longest_ms, turns, all_s = min(runs)
        print(f"| {name} | {longest_ms:,.0f} | {turns:,} | {all_s:.1f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", action="store_true", help="the broker keeps everything in a folder")
    parser.add_argument("--only", default="", help="the rows whose names contain this word")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--tree", help="measure the sources of this folder")
    parser.add_argument("--turns", action="store_true", help="without sockets, in CPU time")
    given = parser.parse_args()
    names = [name for name in CASES if given.only in name]
    if given.turns:
        print_turns(names, given.repeat)
        return
    print("| request | longest wait of another client, ms | request, s | SIGTERM, s |")
    print("|---|---:|---:|---:|")
    for name in names:
        runs = [measure(name, given.data, given.tree) for _ in range(given.repeat)]
        wait_ms, request_s, ended_s = (min(values) for values in zip(*runs, strict=True))
        print(f"| {name} | {wait_ms:,.0f} | {request_s:.1f} | {ended_s:.1f} |", flush=True)


if __name__ == "__main__":
    main()
