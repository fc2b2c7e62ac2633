"""Records the logs of Kafka's brokers and of real clients, with what the harness saw, into logs/real:

    python -m tests.imports.record [VERSION...] [--clients NAME...] [--out FOLDER]
    python -m tests.imports.record --connect
    python -m tests.imports.record --streams

The second one records two workers of Kafka Connect into logs/connect, the third one two instances of Kafka
Streams in a streams group into logs/streams; each takes about two minutes.

Kafka runs from its jars of Maven Central, on the loopback interface. A recording takes about three minutes.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import time
from pathlib import Path

from groupstorm.clients.brokers.contract import BrokerUnavailable
from groupstorm.problems import InputError
from tests.imports.recording.connect import record_connect
from tests.imports.recording.members import RecordingFailed
from tests.imports.recording.recording import record
from tests.imports.recording.releases import CLIENTS, VERSIONS, recordable
from tests.imports.recording.streams import record_streams
from tests.needs import Missing

REAL = Path(__file__).parent / "logs" / "real"
CONNECT = Path(__file__).parent / "logs" / "connect"
STREAMS = Path(__file__).parent / "logs" / "streams"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("versions", metavar="VERSION", nargs="*", help=f"default: {' '.join(VERSIONS)}")
    parser.add_argument("--clients", metavar="NAME", nargs="+", choices=sorted(CLIENTS), help="default: all")
    parser.add_argument("--out", type=Path, default=REAL)
    parser.add_argument("--connect", action="store_true", help="Kafka Connect, and nothing else")
    parser.add_argument("--streams", action="store_true", help="a streams group, and nothing else")
    chosen = parser.parse_args()
    os.environ["TZ"] = "UTC"  # all logs are in one time zone, which they do not name
    time.tzset()
    if chosen.connect:
        asyncio.run(record_connect(CONNECT))
        return
    if chosen.streams:
        asyncio.run(record_streams(STREAMS))
        return
    failed = 0
    for release in chosen.versions or VERSIONS:
        for clients in recordable(release):
            if chosen.clients and clients.name not in chosen.clients:
                continue
            began_s = time.monotonic()
            try:
                asyncio.run(record(release, clients, chosen.out / f"kafka-{release}-{clients.name}"))
                said = "recorded"
            except (Missing, BrokerUnavailable, InputError, RecordingFailed) as problem:
                failed += 1
                said = str(problem)
            print(f"{release} {clients.name}: {said} ({time.monotonic() - began_s:.0f} s)", flush=True)
    raise SystemExit(1 if failed else 0)


if __name__ == "__main__":
    main()
