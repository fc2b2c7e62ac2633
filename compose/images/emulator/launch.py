#!/usr/bin/env python3
"""The emulator in a container, with the settings of Kafka's properties file.

If `listeners` has no host, the emulator listens on every address of the container. Whether others reach it
depends on the ports that the user publishes.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from groupstorm.broker import service
from groupstorm.broker.assembly import make_broker
from groupstorm.broker.broker import Broker
from groupstorm.broker.changes import Change
from groupstorm.broker.config import SETTINGS
from groupstorm.problems import InputError
from groupstorm.protocol.endpoints import Endpoint
from groupstorm.trace.log import configure

PROPERTIES = Path("/etc/kafka/kafka.properties")

_ESCAPED = re.compile(r"\\(.)")

EVERYWHERE = "0.0.0.0"

#: The line by which KafkaContainer knows that Kafka answers.
STARTED = "Kafka Server started"


def main(properties: Path = PROPERTIES) -> None:
    """Serves until SIGINT or SIGTERM."""
    serve_options, options, left_out = understood(read(properties.read_text("utf-8")))
    if left_out:
        print(f"options of Kafka's that mean nothing here: {', '.join(left_out)}", flush=True)

    def make(journal: Iterable[Change], now_ms: int) -> Broker:
        return make_broker(options, {}, journal=journal, now_ms=now_ms)

    configure()
    try:
        service.serve(make, serve_options, say_ready)
    except InputError as problem:
        sys.exit(f"groupstorm: {problem}")


def read(text: str) -> dict[str, str]:
    """Properties as `configure` writes them."""
    pairs = (line.partition("=") for line in text.splitlines())
    return {name: _ESCAPED.sub(_unescaped, value) for name, _, value in pairs}


def _unescaped(match: re.Match[str]) -> str:
    return "\n" if match[1] == "n" else match[1]


def understood(settings: Mapping[str, str]) -> tuple[service.ServeOptions, dict[str, str], list[str]]:
    """The options of `groupstorm.broker.service`, the settings that the emulator takes, and the names of the
    others. The emulator listens where the first of Kafka's listeners does, which is the clients'."""
    listeners = settings.get("listeners", "PLAINTEXT://:9092")
    listener, host, port = _first(listeners)
    options = {name: value for name, value in settings.items() if name in SETTINGS}
    if advertised := options.get("advertised.listeners"):
        options["advertised.listeners"] = _address(advertised, listener)
    left_out = sorted(settings.keys() - options.keys() - {"listeners"})
    return service.ServeOptions(host or EVERYWHERE, port, f"listeners={listeners}"), options, left_out


def _first(listeners: str) -> tuple[str, str, int]:
    """Name, host and port of the first listener."""
    name, _, address = listeners.split(",", maxsplit=1)[0].strip().partition("://")
    host, _, port = address.rpartition(":")
    return name, host.strip("[]"), int(port)


def _address(listeners: str, name: str) -> str:
    """HOST:PORT of the listener of that name, or of the only one."""
    addresses = dict(one.strip().partition("://")[::2] for one in listeners.split(","))
    return addresses.get(name) or next(iter(addresses.values()))


def say_ready(endpoints: Sequence[Endpoint]) -> None:
    print(f"[groupstorm {endpoints[0].host}:{endpoints[0].port}] {STARTED}", flush=True)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
