#!/usr/bin/env python3
"""The emulator as Kafka's properties say, in a container.

Without a host in `listeners` that is every address of the container: who reaches it from outside is decided
by whoever publishes its port.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from groupstorm.coordinator import config as groups
from groupstorm.coordinator.server import config as broker
from groupstorm.coordinator.server import logs, service
from groupstorm.coordinator.server.assembly import make_broker
from groupstorm.coordinator.server.broker import Broker
from groupstorm.coordinator.server.changes import Change
from groupstorm.problems import InputError

PROPERTIES = Path("/etc/kafka/kafka.properties")

_ESCAPED = re.compile(r"\\(.)")

EVERYWHERE = "0.0.0.0"

#: The line by which KafkaContainer knows that Kafka answers.
STARTED = "Kafka Server started"


def main(properties: Path = PROPERTIES) -> None:
    """Serves until SIGINT or SIGTERM."""
    place, options, left_out = understood(read(properties.read_text("utf-8")))
    if left_out:
        print(f"options of Kafka's that mean nothing here: {', '.join(left_out)}", flush=True)

    def make(journal: Sequence[Change], now_ms: int) -> Broker:
        return make_broker(options, {}, journal=journal, now_ms=now_ms)

    logs.configure()
    try:
        service.serve(make, place, say_ready)
    except InputError as problem:
        sys.exit(f"groupstorm: {problem}")


def read(text: str) -> dict[str, str]:
    """Properties as `configure` writes them."""
    pairs = (line.partition("=") for line in text.splitlines())
    return {name: _ESCAPED.sub(_unescaped, value) for name, _, value in pairs}


def _unescaped(match: re.Match[str]) -> str:
    return "\n" if match[1] == "n" else match[1]


def understood(settings: Mapping[str, str]) -> tuple[service.Place, dict[str, str], list[str]]:
    """Where to listen, the options that the emulator has, and the names of those that it has not.

    Of Kafka's several listeners it has the first, which is the clients'.
    """
    listeners = settings.get("listeners", "PLAINTEXT://:9092")
    name, host, port = _first(listeners)
    known = groups.OPTIONS.keys() | broker.OPTIONS.keys()
    options = {option: value for option, value in settings.items() if option in known}
    if advertised := options.get("advertised.listeners"):
        options["advertised.listeners"] = _address(advertised, name)
    left_out = sorted(settings.keys() - known - {"listeners"})
    return service.Place(host or EVERYWHERE, port, f"listeners={listeners}"), options, left_out


def _first(listeners: str) -> tuple[str, str, int]:
    """Its name, host and port."""
    name, _, address = listeners.split(",", maxsplit=1)[0].strip().partition("://")
    host, _, port = address.rpartition(":")
    return name, host.strip("[]"), int(port)


def _address(listeners: str, name: str) -> str:
    """HOST:PORT of the listener of that name, or of the only one."""
    addresses = dict(one.strip().partition("://")[::2] for one in listeners.split(","))
    return addresses.get(name) or next(iter(addresses.values()))


def say_ready(endpoints: Sequence[broker.Endpoint]) -> None:
    print(f"[groupstorm {endpoints[0].host}:{endpoints[0].port}] {STARTED}", flush=True)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
