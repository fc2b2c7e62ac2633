"""The command of a service, and what it is told: where the brokers are, which group, which topics."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from groupstorm.problems import InputError

#: The variables of the environment, each with the placeholder of its lower-case name in the command.
PREFIX: Final = "GROUPSTORM_"
_PLACEHOLDER: Final = re.compile(r"\{([a-z_]+)\}")


class Surroundings(NamedTuple):
    """The facts that every instance is told. ``topics`` and ``output_topic``: their names on this broker."""

    bootstrap_servers: str
    group_id: str
    topics: tuple[str, ...]
    output_topic: str


class Instance(NamedTuple):
    """The facts for one instance: its place, its client.id, its group.instance.id ("": a dynamic member)."""

    place: int
    client_id: str
    instance_id: str


def told(surroundings: Surroundings, instance: Instance) -> Mapping[str, str]:
    """The values by the names of their placeholders."""
    return {
        "bootstrap_servers": surroundings.bootstrap_servers,
        "group_id": surroundings.group_id,
        "topics": ",".join(surroundings.topics),
        "output_topic": surroundings.output_topic,
        "instance": str(instance.place),
        "client_id": instance.client_id,
        "instance_id": instance.instance_id,
    }


NAMES: Final = tuple(told(Surroundings("", "", (), ""), Instance(0, "", "")))


class ServiceCommand:
    """A command as a shell would split it; no shell runs it."""

    def __init__(self, written: str) -> None:
        """Raises InputError for quotes that do not close, an unknown placeholder, and a program that this
        machine does not have."""
        try:
            self._words = shlex.split(written)
        except ValueError as problem:
            raise InputError(f"--service {written!r}: {str(problem).lower()}") from problem
        if not self._words:
            raise InputError("--service: expected a command, as 'python my_service.py'")
        for word in self._words:
            for name in _PLACEHOLDER.findall(word):
                if name not in NAMES:
                    known = ", ".join(f"{{{one}}}" for one in NAMES)
                    raise InputError(f"--service: {{{name}}}: no such placeholder: expected {known}")
        if "{" not in self._words[0] and shutil.which(self._words[0]) is None:
            raise InputError(f"--service: {self._words[0]}: there is no such program")

    def words(self, values: Mapping[str, str]) -> list[str]:
        """The command of one instance."""
        return [_PLACEHOLDER.sub(lambda found: values[found[1]], word) for word in self._words]

    @staticmethod
    def environment(values: Mapping[str, str]) -> dict[str, str]:
        """The environment of one instance: ours, and what it is told."""
        return {**os.environ, **{PREFIX + name.upper(): value for name, value in values.items()}}


class Service(NamedTuple):
    """``reads_lines``: the service says on standard output what it has processed; ``logs``: the folder for
    what its instances write."""

    command: ServiceCommand
    surroundings: Surroundings
    reads_lines: bool
    logs: Path
