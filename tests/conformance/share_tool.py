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
from tests.conformance.tool import Said, recorded, tools, write_file
from tests.waiting import wait_until

#: Kafka 4.4.0: each command after a `$`, then what it prints.
FILE = Path(__file__).with_name("share-groups.kafka-4.4.0.txt")
MAIN = "org.apache.kafka.tools.consumer.group.ShareGroupCommand"
#: The epoch of the group, twice, in front of the number of its members.
_STABLE = re.compile(r" Stable (\d+) \1 2$")
_CONFIGS = "org.apache.kafka.tools.ConfigCommand"
_FROM_THE_FIRST = (
    "--alter --entity-type groups --entity-name GROUP --add-config share.auto.offset.reset=earliest"
)

WITH_MEMBERS: Sequence[str] = (
    "--list",
    "--list --state",
    "--list --state stable",
    "--list --state empty",
    "--describe --group GROUP --members",
    "--describe --group GROUP --members --verbose",
    "--describe --group GROUP --state",
    "--describe --group GROUP --state --verbose",
    "--reset-offsets --group GROUP --topic TOPIC --to-earliest --execute",
    "--delete-offsets --group GROUP --topic TOPIC",
    "--delete --group GROUP",
)
WITHOUT_MEMBERS: Sequence[str] = (
    "--describe --group GROUP --state",
    "--describe --group GROUP --members",
    "--reset-offsets --group GROUP --topic TOPIC --to-earliest --dry-run",
    "--reset-offsets --group GROUP --topic TOPIC --to-latest --execute",
    "--describe --group GROUP",
    "--describe --group GROUP --offsets --verbose",
    "--reset-offsets --group GROUP --topic TOPIC:1 --to-earliest --execute",
    "--reset-offsets --group GROUP --topic TOPIC:0 --to-datetime 2100-01-01T00:00:00.000 --execute",
    "--describe --group GROUP --offsets",
    "--delete-offsets --group GROUP --topic TOPIC",
    "--delete-offsets --group GROUP --topic TOPIC",
    "--describe --group GROUP --offsets",
    "--delete --group GROUP",
    "--describe --group GROUP",
    "--delete --group GROUP",
    "--list --state",
)


def run(backend: Backend) -> list[Said]:
    """All commands on a group of two members. Raises ProgramUnavailable."""
    topic, group = backend.topic(2), backend.group("sharing")
    names = {group: "GROUP", topic: "TOPIC"}
    with tools(backend, names, kafka_commands(SHARES.version)) as say:
        ask = partial(say, MAIN)
        said = [say(_CONFIGS, _FROM_THE_FIRST)]
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
            said += _with_named_epoch([ask(command) for command in WITH_MEMBERS])
        return said + [ask(command) for command in WITHOUT_MEMBERS]


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
