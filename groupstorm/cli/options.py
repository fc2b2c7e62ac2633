"""Options that several commands share, and how they are read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from groupstorm.clients.brokers import KINDS, BrokerKind, read_kind
from groupstorm.problems import InputError
from groupstorm.storms.scenario import MAX_SEED

ScenarioArgument = Annotated[
    str,
    typer.Argument(
        metavar="PRESET|FILE", help="A preset (`groupstorm list`) or a scenario file (.yaml, .toml)."
    ),
]
SeedOption = Annotated[
    int | None,
    typer.Option(
        "--seed", min=0, max=MAX_SEED, help="The same seed gives the same trace, to the byte. [default: 0]"
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="NAME=VALUE", help="Change a setting (`groupstorm list --settings`). Repeatable."
    ),
]
OutOption = Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Where the files go.")]
FormatOption = Annotated[str, typer.Option("--format", help="jsonl or parquet.")]
ExactOption = Annotated[
    bool, typer.Option("--exact", help="Simulate heartbeats one by one: slower, the same trace.")
]
JsonOption = Annotated[
    bool, typer.Option("--json", help="One JSON object on standard output instead of tables.")
]

OnOption = Annotated[
    str | None,
    typer.Option(
        "--on",
        metavar="BROKER",
        help=f"In real time, over TCP, against a broker: {KINDS}. [default: in virtual time]",
    ),
]
AllowWritesOption = Annotated[
    bool,
    typer.Option(
        "--allow-writes",
        help="With --on HOST:PORT: topics and a group may be made there, and are taken away again.",
    ),
]

ClientConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--client-config",
        metavar="FILE",
        help="With --on HOST:PORT: TLS and SASL, as Kafka's tools take them with --command-config.",
    ),
]


def overrides(written: Sequence[str] | None) -> dict[str, Any]:
    """What --set says, values read as YAML. Raises InputError."""
    values: dict[str, Any] = {}
    for item in written or ():
        name, equals, value = item.partition("=")
        if not equals or not name.strip():
            raise InputError(f"--set {item!r}: expected NAME=VALUE")
        try:
            values[name.strip()] = yaml.safe_load(value)
        except yaml.YAMLError as error:
            raise InputError(f"--set {name}: {value!r}: {' '.join(str(error).split())}") from error
    return values


def seed_range(first: int, count: int) -> str:
    """How the seeds of a run are named in its folder: 7, or 7-to-16."""
    return str(first) if count == 1 else f"{first}-to-{first + count - 1}"


def broker_kind(
    on: str | None, allow_writes: bool, exact: bool, client_config: Path | None
) -> BrokerKind | None:
    """What --on asks for; None without it. Raises InputError."""
    if on is None:
        if allow_writes:
            raise InputError("--allow-writes: means something only with --on HOST:PORT")
        if client_config is not None:
            raise InputError("--client-config: means something only with --on HOST:PORT")
        return None
    try:
        kind = read_kind(on)
    except InputError as problem:
        raise InputError(f"--on {problem}") from problem
    if exact:
        raise InputError("--exact: means something only in virtual time, not with --on")
    if kind.bootstrap and not allow_writes:
        raise InputError(
            f"--on {on}: topics and a group will be made there, under a prefix of their own, and taken away"
            " again: say --allow-writes"
        )
    if client_config is None:
        return kind
    if not kind.bootstrap:
        raise InputError(f"--client-config: means something only with --on HOST:PORT, not with --on {on}")
    from groupstorm.clients.wire.client_properties import read_client_properties

    return kind._replace(security=read_client_properties(client_config))
