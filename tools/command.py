"""A tool as a command: options, signals, standard output and exit codes as `groupstorm` has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from groupstorm.cli.app import run_as_command
from groupstorm.cli.commands import as_command


def run_tool(name: str, function: Callable[..., None]) -> NoReturn:
    """Run ``function`` as ``./dev name``, with the options of this process's command line."""
    run_as_command(lambda: as_command(name, function)(prog_name=f"./dev {name}"))
