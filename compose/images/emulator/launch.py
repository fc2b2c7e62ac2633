#!/usr/bin/env python3
"""The emulator as Kafka's properties say, in a container: on every address that the container has.

What reaches it from outside is decided by whoever publishes the container's port.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from groupstorm.coordinator import config as groups
from groupstorm.coordinator.server import config as broker
from groupstorm.coordinator.server import logs, service
from groupstorm.coordinator.server.assembly import make_broker

PROPERTIES = Path("/etc/kafka/kafka.properties")

#: The line by which KafkaContainer knows that Kafka answers.
STARTED = "Kafka Server started"


def main(properties: Path = PROPERTIES) -> None:
    """Serves until SIGINT or SIGTERM."""
    settings = read(properties.read_text("utf-8"))
    place, options, left_out = understood(settings)
    if left_out:
        print(f"options of Kafka's that mean nothing here: {', '.join(left_out)}", flush=True)
    logs.configure()
    service.serve(
        lambda journal, now_ms: make_broker(options, {}, journal=journal, now_ms=now_ms), place, say_ready
    )


def read(text: str) -> dict[str, str]:
    """Properties as `configure` writes them."""
    pairs = (line.partition("=") for line in text.splitlines())
    return {name: value.replace("\\n", "\n").replace("\\\\", "\\") for name, _, value in pairs}


def understood(settings: Mapping[str, str]) -> tuple[service.Place, dict[str, str], list[str]]:
    """Where to listen, the options that the emulator has, and the names of those that it has not.

    Of Kafka's several listeners it has the first, which is the clients'.
    """
    name, port = _first(settings.get("listeners", "PLAINTEXT://0.0.0.0:9092"))
    known = groups.OPTIONS.keys() | broker.OPTIONS.keys()
    options = {option: value for option, value in settings.items() if option in known}
    if advertised := options.get("advertised.listeners"):
        options["advertised.listeners"] = _address(advertised, name)
    left_out = sorted(settings.keys() - known - {"listeners"})
    return service.Place("0.0.0.0", port), options, left_out


def _first(listeners: str) -> tuple[str, int]:
    name, _, address = listeners.split(",", maxsplit=1)[0].strip().partition("://")
    return name, int(address.rpartition(":")[2])


def _address(listeners: str, name: str) -> str:
    """HOST:PORT of the listener of that name, or of the only one."""
    addresses = dict(one.strip().partition("://")[::2] for one in listeners.split(","))
    return addresses.get(name) or next(iter(addresses.values()))


def say_ready(endpoints: Sequence[broker.Endpoint]) -> None:
    print(f"[groupstorm {endpoints[0].host}:{endpoints[0].port}] {STARTED}", flush=True)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
