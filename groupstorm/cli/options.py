"""Options that several commands share, and how they are read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from groupstorm.problems import InputError
from groupstorm.storms.scenario.preset_files import preset_names
from groupstorm.yaml_documents import parse_yaml

if TYPE_CHECKING:
    from groupstorm.clients.brokers import BrokerKind
    from groupstorm.storms.live.real_clients.libraries import Library


def _presets(incomplete: str) -> list[str]:
    """The presets that a shell completes."""
    return [name for name in preset_names() if name.startswith(incomplete)]


ScenarioArgument = Annotated[
    str,
    typer.Argument(
        metavar="PRESET|FILE",
        help="A preset (`groupstorm list`) or a scenario file (.yaml, .toml).",
        autocompletion=_presets,
    ),
]


def overrides(written: Sequence[str] | None, option: str = "--set") -> dict[str, Any]:
    """The settings of ``option``, their values read as YAML. Raises InputError."""
    values: dict[str, Any] = {}
    for item in written or ():
        name, equals, value = item.partition("=")
        if not equals or not name.strip():
            raise InputError(f"{option} {item!r}: expected NAME=VALUE")
        values[name.strip()] = parse_yaml(value, f"{option} {name}: {value!r}")
    return values


def clients_of(name: str | None, on: str | None, changed: dict[str, Any]) -> Library | None:
    """The library that --with names; None without it. Members have its profile, unless --set names another.

    Raises InputError.
    """
    if name is None:
        return None
    if on is None:
        raise InputError("--with: means something only with --on")
    from groupstorm.storms.live.real_clients.libraries import library

    found = library(name)
    found.check_installed()
    changed.setdefault("client_profile", [found.profile])
    return found


def seed_range(first: int, count: int) -> str:
    """The seeds in the name of a folder: 7, or 7-to-16."""
    return str(first) if count == 1 else f"{first}-to-{first + count - 1}"


def broker_kind(
    on: str | None, allow_writes: bool, exact: bool, client_config: Path | None
) -> BrokerKind | None:
    """The broker that --on asks for; None without it. Raises InputError."""
    if on is None:
        if allow_writes:
            raise InputError("--allow-writes: means something only with --on HOST:PORT")
        if client_config is not None:
            raise InputError("--client-config: means something only with --on HOST:PORT")
        return None
    from groupstorm.clients.brokers import read_kind

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
    from groupstorm.clients.wire.security import read_client_properties

    return kind._replace(security=read_client_properties(client_config))


def broker_options(
    on: str, allow_writes: bool, client_config: Path | None, with_library: str | None
) -> list[str]:
    """The words of a command line that ask for the same broker and the same clients again."""
    options = ["--on", on, *(["--allow-writes"] if allow_writes else [])]
    options += [] if with_library is None else ["--with", with_library]
    return options if client_config is None else [*options, "--client-config", str(client_config)]
