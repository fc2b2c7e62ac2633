"""kafka-share-groups, Kafka's own command, on one group: what it prints in each step of the group's life.

`python -m tests.conformance.share_tool` runs it on Kafka and writes the file that all brokers are held
against.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from groupstorm.clients.brokers import JVM
from tests.client_libraries.groups import stopping
from tests.client_libraries.producers import produce_with_confluent
from tests.conformance.backends import SHARES, Backend
from tests.conformance.programs.building import kafka_commands
from tests.conformance.share_members import Java44ShareMember, values
from tests.conformance.tool import Said, commands_of, recorded, tools, write_file
from tests.waiting import wait_until

#: Kafka 4.4.0: each command after a `$`, then what it prints.
FILE = Path(__file__).with_name("share-groups.kafka-4.4.0.txt")
MAIN = "org.apache.kafka.tools.consumer.group.ShareGroupCommand"
#: The epoch of the group, twice, in front of the number of its members.
_STABLE = re.compile(r" Stable (\d+) \1 2$")
#: Of the first command, by which the group begins with the first records.
_CONFIGS = "org.apache.kafka.tools.ConfigCommand"


def run(backend: Backend) -> list[Said]:
    """All commands on a group of two members. Raises ProgramUnavailable."""
    (first, *with_members), without_members = commands_of(FILE)
    topic, group = backend.topic(2), backend.group("sharing")
    names = {group: "GROUP", topic: "TOPIC"}
    with tools(backend, names, kafka_commands(SHARES.version)) as say:
        ask = partial(say, MAIN)
        said = [say(_CONFIGS, first)]
        produce_with_confluent(backend.address, [(number % 2, "accept") for number in range(12)], topic)
        two = [Java44ShareMember(backend.address, topic, group) for _ in range(2)]
        with stopping(two) as members:
            wait_until(lambda: len(values(members)) >= 12, "all records are read")
            # A member's row shows the partitions of its last heartbeat, not those of the target assignment.
            rows = "--describe --group GROUP --members"
            wait_until(
                lambda: sum(" 1 TOPIC:" in row for row in ask(rows).lines) == 2,
                "each member has learned which partition is its own",
            )
            said += _with_named_epoch([ask(command) for command in with_members])
        return said + [ask(command) for command in without_members]


def _with_named_epoch(said: Sequence[Said]) -> list[Said]:
    """With a word for the epoch of the group and its members: the number depends on how far apart the members
    have started."""
    [epoch] = {match[1] for one in said for line in one.lines if (match := _STABLE.search(line))}
    return [
        one._replace(
            lines=tuple(
                line.replace(f"Stable {epoch} {epoch} ", "Stable EPOCH EPOCH ").replace(
                    f" {epoch} TOPIC:", " EPOCH TOPIC:"
                )
                for line in one.lines
            )
        )
        if "--verbose" in one.command
        else one
        for one in said
    ]


def main() -> int:
    return recorded(lambda backends: write_file(run(backends.get(JVM, SHARES)), FILE))


if __name__ == "__main__":
    sys.exit(main())
