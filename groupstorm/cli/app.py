"""The `groupstorm` command: one module per subcommand, registered here."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from groupstorm import __version__
from groupstorm.cli import (
    analyze,
    assign,
    assignor_history,
    check_assignor,
    compare,
    presets,
    replay,
    run,
    script,
    serve,
    trace,
)
from groupstorm.problems import CheckFailed, InputError

app = typer.Typer(
    name="groupstorm",
    help="Kafka's group coordinator, emulated faithfully in protocol and in time.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"groupstorm {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    pass


app.command("list")(presets.list_presets)
app.command("run")(run.run)
app.command("compare")(compare.compare)
app.command("analyze")(analyze.analyze)
app.command("replay")(replay.replay)
app.command("trace")(trace.trace)
app.command("assign")(assign.assign)
app.command("check-assignor")(check_assignor.check_assignor)
app.command("assignor-history")(assignor_history.assignor_history)
app.command("serve")(serve.serve)
app.command("script")(script.script)


def main() -> None:
    """Run the command; turn the two kinds of expected errors into one line and an exit code."""
    try:
        app()
    except InputError as problem:
        print(f"groupstorm: {problem}", file=sys.stderr)
        sys.exit(2)
    except CheckFailed as problem:
        print(f"groupstorm: {problem}", file=sys.stderr)
        sys.exit(1)
