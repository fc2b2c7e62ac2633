"""`groupstorm serve`: a broker that real clients connect to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from groupstorm.cli.printing import print_line
from groupstorm.problems import InputError
from groupstorm.trace.topic import read_topic_address

if TYPE_CHECKING:
    from groupstorm.broker.broker import Broker
    from groupstorm.broker.changes import Change
    from groupstorm.broker.security.listener import ListenerSecurity
    from groupstorm.protocol.endpoints import Endpoint


LAST_PORT = 65_535
DEFAULT_HOST, DEFAULT_PORT = "127.0.0.1", 9092
_LISTEN = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^:/\[\]\s]+):(?P<port>[0-9]{1,5})")


def serve(
    host: str | None = None,
    port: int | None = None,
    listen: str | None = None,
    topic: list[str] | None = None,
    setting: list[str] | None = None,
    trace: Path | None = None,
    trace_to: str | None = None,
    data: Path | None = None,
    accept_loss: bool = False,
    brokers: int = 1,
    as_version: str = "4.x",
    control: int | None = None,
    tls_cert: Path | None = None,
    tls_key: Path | None = None,
    tls_client_ca: Path | None = None,
    sasl_users: Path | None = None,
    insecure: bool = False,
) -> None:
    """Serve Kafka's protocol over TCP until SIGINT, SIGTERM or SIGHUP.

    The first line of standard output is `listening on HOST:PORT`; the log goes to standard error. SIGUSR1
    moves every group's coordinator to the next broker. Beyond the loopback interface the broker listens with
    TLS or --insecure only. With --control a second line says `control on http://...`; GET / lists its
    methods.
    """
    from groupstorm.broker import service
    from groupstorm.broker.assembly import make_broker
    from groupstorm.broker.security.listener import secure
    from groupstorm.testing.control import control_beside
    from groupstorm.trace.log import configure

    if accept_loss and data is None:
        raise InputError("--accept-loss: needs --data, the folder whose losses are accepted")
    listener = ListenerOptions(host, port, listen, tls_cert, tls_key, tls_client_ca, sasl_users, insecure)
    endpoint, address_option, security = read_listener(listener, brokers)
    settings, topics = _settings(setting or []), _topics(topic or [])

    def make(journal: Iterable[Change], now_ms: int) -> Broker:
        broker = make_broker(settings, topics, brokers, as_version, journal, now_ms)
        secure(broker.state, security)
        return broker

    configure()
    topic_of_trace = None if trace_to is None else read_topic_address("--trace-to", trace_to)
    options = service.ServeOptions(
        endpoint.host, endpoint.port, address_option, trace, data, accept_loss, topic_of_trace, security
    )
    companion: service.Companion = (
        nullcontext if control is None else control_beside(control, _print_control_url)
    )
    service.serve(make, options, _print_addresses, companion)


def _print_addresses(endpoints: Sequence[Endpoint]) -> None:
    for endpoint in endpoints:
        host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
        print_line(f"listening on {host}:{endpoint.port}", flush=True)


def _print_control_url(url: str) -> None:
    print_line(f"control on {url}", flush=True)


def _topics(texts: list[str]) -> dict[str, int]:
    topics: dict[str, int] = {}
    for text in texts:
        name, colon, partitions = text.rpartition(":")
        if not (colon and name and partitions.isascii() and partitions.isdigit()):
            raise InputError(f"--topic {text}: expected NAME:PARTITIONS, for example orders:6")
        if name in topics:
            raise InputError(f"--topic {text}: {name} was named before")
        if len(partitions) > 9:
            raise InputError(f"--topic {text}: expected at most 10000 partitions")
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


class ListenerOptions(NamedTuple):
    """The options as the user gave them; None: the user did not."""

    host: str | None
    port: int | None
    listen: str | None
    tls_cert: Path | None
    tls_key: Path | None
    tls_client_ca: Path | None
    sasl_users: Path | None
    insecure: bool


def read_listener(given: ListenerOptions, brokers: int) -> tuple[Endpoint, str, ListenerSecurity]:
    """The address, the option that names it, and what clients have to prove.

    Raises InputError for options that contradict each other, and for an address that everybody could reach.
    """
    from groupstorm.broker.security.listener import check_exposure
    from groupstorm.protocol.endpoints import Endpoint

    security = _security(given)
    host, port, option = _address(given)
    if not 0 <= port <= LAST_PORT or (port and port + brokers - 1 > LAST_PORT):
        raise InputError(f"{option}: expected a port from 0 to {LAST_PORT}, for every broker")
    if not given.insecure:
        check_exposure(option, host, security)
    return Endpoint(host, port), option, security


def _address(given: ListenerOptions) -> tuple[str, int, str]:
    """Host, port, and the options by which the user has named them."""
    if given.listen is None:
        host = DEFAULT_HOST if given.host is None else given.host
        port = DEFAULT_PORT if given.port is None else given.port
        return host, port, f"--host {host} --port {port}"
    if given.host is not None or given.port is not None:
        raise InputError(
            f"--listen {given.listen}: says what --host and --port say, expected one or the other"
        )
    match = _LISTEN.fullmatch(given.listen)
    if match is None:
        raise InputError(f"--listen {given.listen}: expected HOST:PORT, for example 127.0.0.1:9092")
    return match["host"].strip("[]"), int(match["port"]), f"--listen {given.listen}"


def _security(given: ListenerOptions) -> ListenerSecurity:
    from groupstorm.broker.security.listener import ListenerSecurity, tls_context
    from groupstorm.broker.security.users import read_users

    if given.tls_cert is None:
        for name, path in (("--tls-key", given.tls_key), ("--tls-client-ca", given.tls_client_ca)):
            if path is not None:
                raise InputError(f"{name} {path}: expected --tls-cert beside it, without it there is no TLS")
    users = None if given.sasl_users is None else read_users(given.sasl_users)
    tls = given.tls_cert and tls_context(given.tls_cert, given.tls_key, given.tls_client_ca)
    return ListenerSecurity(tls or None, users)
