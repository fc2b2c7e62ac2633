"""`groupstorm serve`: the emulator as a broker that real clients connect to."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from groupstorm.cli.serve_options import DEFAULT_HOST, DEFAULT_PORT, LAST_PORT, Wanted, read_place
from groupstorm.problems import InputError

if TYPE_CHECKING:
    from groupstorm.coordinator.server.broker import Broker
    from groupstorm.coordinator.server.changes import Change
    from groupstorm.coordinator.server.config import Endpoint


def serve(
    host: Annotated[
        str | None, typer.Option(help=f"Address to listen on; without it {DEFAULT_HOST}.")
    ] = None,
    port: Annotated[
        int | None, typer.Option(help=f"Port to listen on; without it {DEFAULT_PORT}, 0: a free one.")
    ] = None,
    listen: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Both in one, instead of --host and --port.")
    ] = None,
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
    data: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Keep topics, groups and offsets in this folder over a restart."),
    ] = None,
    brokers: Annotated[
        int, typer.Option(help="So many brokers, each with a port of its own, from --port on.")
    ] = 1,
    as_version: Annotated[
        str, typer.Option(metavar="2.8|3.9|4.x", help="Advertise no higher versions than this Kafka's.")
    ] = "4.x",
    control: Annotated[
        int | None,
        typer.Option(
            metavar="PORT",
            min=0,
            max=LAST_PORT,
            help="Take orders over HTTP on 127.0.0.1: faults, pauses, members that expire; 0: a free port.",
        ),
    ] = None,
    tls_cert: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="TLS with this certificate (PEM, the chain behind it)."),
    ] = None,
    tls_key: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Its key (PEM, no password), unless --tls-cert holds it as well."),
    ] = None,
    tls_client_ca: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Clients must show a certificate that one of these has signed."),
    ] = None,
    sasl_users: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="SASL (PLAIN, SCRAM-SHA-256, SCRAM-SHA-512) with the users of this file, "
            "NAME=PASSWORD on each line.",
        ),
    ] = None,
    insecure: Annotated[
        bool,
        typer.Option("--insecure", help="Listen beyond the loopback interface though there is no TLS."),
    ] = False,
) -> None:
    """Serve Kafka's protocol over TCP until SIGINT or SIGTERM.

    The first line of standard output is `listening on HOST:PORT`; the log goes to standard error. SIGUSR1
    moves every group's coordinator to the next broker. Listening on anything but the loopback interface takes
    TLS, or --insecure. With --control a second line says `control on http://...`: GET / lists what it takes.
    """
    from groupstorm.coordinator.server import logs, service
    from groupstorm.coordinator.server.assembly import make_broker
    from groupstorm.coordinator.server.security.listener import check_advertised
    from groupstorm.testing.control import control_beside

    wanted = Wanted(host, port, listen, tls_cert, tls_key, tls_client_ca, sasl_users, insecure)
    endpoint, option, security = read_place(wanted, brokers)
    settings, topics = _settings(setting or []), _topics(topic or [])

    def make(journal: Sequence[Change], now_ms: int) -> Broker:
        broker = make_broker(settings, topics, brokers, as_version, journal, now_ms)
        check_advertised(broker.state.config, security)
        return broker

    logs.configure()
    place = service.Place(endpoint.host, endpoint.port, option, trace, data, security)
    companion: service.Companion = nullcontext if control is None else control_beside(control, _say_control)
    service.serve(make, place, _say_ready, companion)


def _say_ready(endpoints: Sequence[Endpoint]) -> None:
    for endpoint in endpoints:
        host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
        typer.echo(f"listening on {host}:{endpoint.port}")


def _say_control(url: str) -> None:
    typer.echo(f"control on {url}")


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
