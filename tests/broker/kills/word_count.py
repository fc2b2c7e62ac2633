"""A word count of Kafka Streams (``group.protocol=streams``) over many lives of one broker.

The instance lives through all kills: its tasks, its state and its transactions go on at each next broker.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic

from groupstorm.clients.brokers.jvm import held_ports
from tests.broker.kills.served import BACKOFF_MS, served
from tests.broker.test_serve import DEADLINE_S
from tests.client_libraries.producers import produce_with_confluent
from tests.conformance.applications import RUNNING, Instance, stopping
from tests.conformance.reading import newest_values
from tests.waiting import wait_until

_LINES, _COUNTS = "lines", "counts"
_OPTIONS = {
    "processing.guarantee": "exactly_once_v2",
    "producer.transaction.timeout.ms": "10000",
    "reconnect.backoff.max.ms": "100",
}
_LIVES_S = (0.5, 3.0)


def kill_repeatedly(folder: Path, count: int, seed: int) -> int:
    """Kill the broker ``count`` times under the instance. Returns how many words were counted; raises
    AssertionError if a word was counted more or less often than it was written, and ProgramUnavailable."""
    draw, words = random.Random(seed), Counter[str]()
    settings = ("group.streams.initial.rebalance.delay.ms=0", f"log.cleaner.backoff.ms={BACKOFF_MS}")
    arguments = [f"--set={one}" for one in settings]
    with held_ports(1) as (port,):
        address, data, running = f"127.0.0.1:{port}", folder / "data", list[Instance]()
        with served(data, *arguments, port=port):
            admin = AdminClient({"bootstrap.servers": address})
            for created in admin.create_topics([NewTopic(_LINES, 2, 1), NewTopic(_COUNTS, 1, 1)]).values():
                created.result(DEADLINE_S)
        with stopping(running):
            for life in range(count):
                with served(data, *arguments, port=port) as broker:
                    if not running:
                        running.append(
                            Instance(address, "count", (_LINES, _COUNTS), folder / "state", _OPTIONS)
                        )
                        wait_until(lambda: running[0].state == RUNNING, "it runs")
                    lines = [(number % 2, f"life {life} line {number}") for number in range(20)]
                    produce_with_confluent(address, lines, _LINES)
                    words.update(word for _, line in lines for word in line.split(" "))
                    time.sleep(draw.uniform(*_LIVES_S))
                    running[0].check()
                    assert "Traceback" not in broker.log(), broker.log()
            wanted = {word: str(number) for word, number in words.items()}
            with served(data, *arguments, port=port):
                wait_until(lambda: newest_values(address, _COUNTS) == wanted, "every word is counted")
                running.pop().kill()  # a broker is forked, and keeps its standard input open
    return words.total()
