"""`python -m tests.broker.authorization [NAME...]`: record what Kafka answers to the probes, and decides."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from groupstorm.clients.brokers.jars import KAFKA_VERSION
from groupstorm.clients.brokers.jvm import jvm
from tests.broker.authorization import acls, administration, inspection, share, streams
from tests.broker.authorization.brokers import KAFKA_SETTINGS, Kafka, prepare
from tests.broker.authorization.decisions import record
from tests.broker.authorization.playing import Heard, Probe, play
from tests.broker.authorization.probes import PROBES

GOLDEN = Path(__file__).parent / "golden"
DECISIONS = "decisions"
#: File -> its probes.
RECORDED: dict[str, Sequence[Probe]] = {
    "rights": (*PROBES, *administration.RIGHTS_PROBES, *inspection.PROBES),
    "acls": acls.PROBES,
    "administration": administration.PROBES,
    "streams": streams.PROBES,
    "share": share.PROBES,
}
#: The release that has answered them, if it is another one than the JVM's default.
_RELEASES = dict.fromkeys(("rights", "streams", "share"), "4.4.0")


async def heard_from_kafka(name: str) -> list[Heard]:
    """Start a broker, play the probes of a file, and end it."""
    probes = RECORDED[name]
    async with jvm(KAFKA_SETTINGS, _release(name)) as running:
        kafka = Kafka(running.bootstrap[0])

        def play_all() -> list[Heard]:
            prepare(kafka, kafka.topic_ids)
            return list(play(kafka, probes, kafka.topic_ids))

        try:
            return await asyncio.to_thread(play_all)
        finally:
            kafka.close()


def as_lines(heard: Sequence[Heard]) -> str:
    return "".join(json.dumps(one, separators=(",", ":")) + "\n" for one in heard)


def _release(name: str) -> str:
    return _RELEASES.get(name, KAFKA_VERSION)


def golden(name: str) -> Path:
    return GOLDEN / f"{name}.kafka-{_release(name)}.jsonl"


def main() -> int:
    for name in sys.argv[1:] or (DECISIONS, *RECORDED):
        if name == DECISIONS:
            record(GOLDEN / f"{DECISIONS}.kafka-4.3.1.txt")
            continue
        golden(name).write_text(as_lines(asyncio.run(heard_from_kafka(name))), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
