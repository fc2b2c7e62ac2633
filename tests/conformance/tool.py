"""kafka-consumer-groups, Kafka's own command, on one group: what it prints in each step of the group's life.

`python -m tests.conformance.tool` runs the commands of the recorded files on Kafka, and writes those anew.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from groupstorm.clients.brokers import JVM
from groupstorm.clients.brokers.contract import BrokerUnavailable
from tests.client_libraries.groups import ALL_PARTITIONS, is_shared_out, records, stopping
from tests.client_libraries.members import CLASSIC, CONSUMER, ConfluentMember, Member
from tests.client_libraries.producers import produce_with_confluent
from tests.conformance.backends import QUICK, Backend, Backends
from tests.conformance.programs.building import Java, ProgramUnavailable, kafka_commands
from tests.processes import next_line
from tests.waiting import wait_until

#: Kafka 4.3.1, by the protocol of the group's members: each command after a `$`, then what it prints.
FILES = {
    CLASSIC: Path(__file__).with_name("consumer-groups.kafka-4.3.1.txt"),
    CONSUMER: Path(__file__).with_name("consumer-groups-new-protocol.kafka-4.3.1.txt"),
}
MAIN = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
OFFSETS = "--describe --group GROUP"
#: The last of the commands while members are there, which it is too early for.
DELETE = "--delete --group GROUP"
TIMEOUT_S = 60
#: The line of `Commands.java` behind what a command has printed.
_END = "--- end of output ---\n"

#: What librdkafka draws in the new protocol, behind the topic or the group.
_MEMBER_ID = re.compile(r"(?<= )[A-Za-z0-9+/_-]{22}(?= )")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_STACK = re.compile(r"\s+at |Caused by: |java\.\S+Exception: ")
_HOST = re.compile(r"/[0-9a-f][0-9a-f.:]+")
_ADDRESS = re.compile(r"[\w.\[\]:]+:\d+ +\(\d+\)")


class Said(NamedTuple):
    """One command and the lines that it printed, without what differs from run to run."""

    command: str
    lines: tuple[str, ...]


def run(backend: Backend, protocol: str) -> list[Said]:
    """All commands on a group of two confluent-kafka consumers of a protocol. Raises ProgramUnavailable."""
    with_members, without_members = commands_of(FILES[protocol])
    topic, group = backend.topic(len(ALL_PARTITIONS)), backend.group("billing")
    names = {group: "GROUP", topic: "TOPIC"}
    produce_with_confluent(backend.address, records(0, 60), topic)
    two: list[Member] = [
        ConfluentMember(backend.address, topics=(topic,), group=group, protocol=protocol) for _ in range(2)
    ]
    with tools(backend, names, kafka_commands()) as say:
        with stopping(two) as members:
            wait_until(lambda: is_shared_out(members), "three partitions each")
            wait_until(lambda: sum(len(member.values) for member in members) >= 60, "all records read")
            wait_until(lambda: has_no_lag(say(MAIN, OFFSETS)), "all that was read is committed")
            said = [say(MAIN, command) for command in with_members]
        return said + [say(MAIN, command) for command in without_members]


def has_no_lag(offsets: Said) -> bool:
    """Whether the group has committed the end of each partition, as the command says."""
    header, *rows = (line.split() for line in offsets.lines)
    column = next((at for at, name in enumerate(header) if name in ("LAG", "OFFSET-LAG")), None)
    return column is not None and [row[column] for row in rows] == ["0"] * len(rows)


@contextmanager
def tools(backend: Backend, names: Mapping[str, str], commands: Java) -> Iterator[Callable[[str, str], Said]]:
    """Give a function that returns what a command of Kafka's prints, by its main class and words. All run in
    one JVM, which takes longer to start than most of them. ``names``: a name on this broker -> how the
    commands have it.
    """
    command = commands.command("Commands")
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as running:
        yield partial(_say, running, backend, names)


def _say(
    running: subprocess.Popen[str], backend: Backend, names: Mapping[str, str], main: str, command: str
) -> Said:
    words = command
    for real, shown in names.items():
        words = words.replace(shown, real)
    assert running.stdin is not None
    running.stdin.write("\t".join([main, "--bootstrap-server", backend.address, *words.split()]) + "\n")
    running.stdin.flush()
    lines = []
    while (line := next_line(running, TIMEOUT_S)) != _END:
        lines.append(line.rstrip("\n"))
    if command.startswith("--list"):
        group = next(iter(names))
        lines = [line for line in lines if group in line or line.startswith("GROUP ")]
    return Said(command, _comparable(lines, names))


def _comparable(lines: Sequence[str], names: Mapping[str, str]) -> tuple[str, ...]:
    """Rows of a table come in the order of a hash table, its columns are as wide as their content."""
    cleaned = []
    for line in lines:
        if _STACK.match(line):
            continue
        for real, shown in names.items():
            line = line.replace(real, shown)  # noqa: PLW2901
        line = _UUID.sub("UUID", line)  # noqa: PLW2901
        line = _MEMBER_ID.sub("MEMBER-ID", line)  # noqa: PLW2901
        line = _ADDRESS.sub("HOST:PORT (1)", line)  # noqa: PLW2901
        line = _HOST.sub("/HOST", line)  # noqa: PLW2901
        cleaned.append(" ".join(line.split()))
    shown_lines = [line for line in cleaned if line]
    header = next((at for at, line in enumerate(shown_lines) if line.isupper()), 0)
    return (*shown_lines[: header + 1], *sorted(shown_lines[header + 1 :]))


def read(protocol: str) -> list[Said]:
    """The recorded answers of Kafka 4.3.1."""
    return read_file(FILES[protocol])


def read_file(path: Path) -> list[Said]:
    """The commands of a recorded file and their lines."""
    said = []
    for block in path.read_text("utf-8").split("$ ")[1:]:
        command, *lines = block.rstrip("\n").split("\n")
        said.append(Said(command, tuple(lines)))
    return said


def commands_of(path: Path) -> tuple[list[str], list[str]]:
    """The commands of a recorded file: while members are there, and after they have left."""
    commands = [one.command for one in read_file(path)]
    end = commands.index(DELETE) + 1
    return commands[:end], commands[end:]


def write(said: Sequence[Said], protocol: str) -> None:
    write_file(said, FILES[protocol])


def write_file(said: Sequence[Said], path: Path) -> None:
    text = "".join("\n".join([f"$ {one.command}", *one.lines]) + "\n" for one in said)
    path.write_text(text, "utf-8")


def recorded(record: Callable[[Backends], None]) -> int:
    """Record files from Kafka. Returns the exit code: 2 without Kafka, or without its commands."""
    backends = Backends()
    try:
        record(backends)
    except (BrokerUnavailable, ProgramUnavailable) as unavailable:
        print(unavailable, file=sys.stderr)
        return 2
    finally:
        backends.close()
    return 0


def main() -> int:
    def record(backends: Backends) -> None:
        for protocol in FILES:
            write(run(backends.get(JVM, QUICK), protocol), protocol)

    return recorded(record)


if __name__ == "__main__":
    sys.exit(main())
