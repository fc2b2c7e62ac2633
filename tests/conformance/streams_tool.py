"""kafka-streams-groups, Kafka's own command, on one group: what it prints in each step of the group's life.

`python -m tests.conformance.streams_tool` runs it on Kafka and writes the file that all brokers are held
against.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from groupstorm.clients.brokers import JVM
from tests.client_libraries.producers import produce_with_confluent
from tests.conformance.applications import RUNNING, Instance, stopping
from tests.conformance.backends import STREAMS, Backend
from tests.conformance.programs.building import kafka_commands
from tests.conformance.reading import newest_values
from tests.conformance.tool import OFFSETS, Said, commands_of, has_no_lag, recorded, tools, write_file
from tests.waiting import wait_until

#: Kafka 4.4.0: each command after a `$`, then what it prints.
FILE = Path(__file__).with_name("streams-groups.kafka-4.4.0.txt")
MAIN = "org.apache.kafka.tools.streams.StreamsGroupCommand"
STATE = "--describe --group GROUP --state"
_LINES = [(number % 2, "to be or not to be") for number in range(12)]


def run(backend: Backend) -> list[Said]:
    """All commands on a group of two instances. Raises ProgramUnavailable."""
    with_members, without_members = commands_of(FILE)
    topics = backend.topic(2, "lines"), backend.topic(1, "counts")
    group = backend.group("count")
    names = {group: "GROUP", topics[0]: "TOPIC"}
    commands = kafka_commands(STREAMS.version)
    with tempfile.TemporaryDirectory() as folder, tools(backend, names, commands) as say:
        two: list[Instance] = []
        with stopping(two):
            for number in range(2):
                # of one name, since chance decides which of them gets which tasks
                options = {"client.id": "i"}
                two.append(Instance(backend.address, group, topics, Path(folder, str(number)), options))
                wait_until(lambda: two[-1].state == RUNNING, "it runs")
            produce_with_confluent(backend.address, _LINES, topics[0])
            wait_until(lambda: newest_values(backend.address, topics[1]).get("be") == "24", "all are counted")
            # the counts can be read before their input is committed, and while tasks still move
            wait_until(lambda: has_no_lag(say(MAIN, OFFSETS)), "all that was counted is committed")
            wait_until(lambda: " Stable" in " ".join(say(MAIN, STATE).lines), "nothing moves any more")
            said = [say(MAIN, command) for command in with_members]
        return said + [say(MAIN, command) for command in without_members]


def main() -> int:
    return recorded(lambda backends: write_file(run(backends.get(JVM, STREAMS)), FILE))


if __name__ == "__main__":
    sys.exit(main())
