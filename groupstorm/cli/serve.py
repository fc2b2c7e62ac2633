"""`groupstorm serve`: the emulator as a broker that real clients connect to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from groupstorm.problems import InputError

if TYPE_CHECKING:
    from groupstorm.coordinator.server.config import Endpoint

LAST_PORT = 65_535


def serve(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0: a free one.")] = 9092,
    topic: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME:PARTITIONS", help="A topic that is there from the start (repeatable)."),
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KAFKA.OPTION=VALUE", help="A setting by Kafka's name (repeatable)."),
    ] = None,
    trace: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write what the groups do into files of this folder.")
    ] = None,
) -> None:
    """Serve Kafka's protocol over TCP until SIGINT or SIGTERM.

    The first line of standard output is `listening on HOST:PORT`; the log goes to standard error.
    """
    from groupstorm.coordinator.server import logs, service
    from groupstorm.coordinator.server.assembly import make_broker

    if not 0 <= port <= LAST_PORT:
        raise InputError(f"--port {port}: expected a number from 0 to {LAST_PORT}")
    broker = make_broker(_settings(setting or []), _topics(topic or []))
    logs.configure()
    service.serve(broker, host, port, trace, _say_ready)


def _say_ready(endpoint: Endpoint) -> None:
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    typer.echo(f"listening on {host}:{endpoint.port}")


def _topics(texts: list[str]) -> dict[str, int]:
    topics: dict[str, int] = {}
    for text in texts:
        name, colon, partitions = text.rpartition(":")
        if not (colon and name and partitions.isascii() and partitions.isdigit()):
            raise InputError(f"--topic {text}: expected NAME:PARTITIONS, for example orders:6")
        if name in topics:
            raise InputError(f"--topic {text}: {name} was named before")
        if len(partitions) > 9:
            raise InputError(f"--topic {text}: that many partitions do not fit in here")
        topics[name] = int(partitions)
    return topics


def _settings(texts: list[str]) -> dict[str, str]:
    settings: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (equals and name.strip()):
            raise InputError(f"--set {text}: expected KAFKA.OPTION=VALUE, for example num.partitions=6")
        settings[name.strip()] = value.strip()
    return settings
