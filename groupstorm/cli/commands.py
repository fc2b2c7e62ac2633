"""The commands: a table of their modules, each imported when its command is run."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from groupstorm import __version__
from groupstorm.cli.invocation import as_invoked
from groupstorm.problems import ExitCode


class Command(NamedTuple):
    """A function of a module of this room, and the first paragraph of its help.

    The paragraph stands here as well, so that `groupstorm --help` imports none of the modules.
    """

    module: str
    function: str
    summary: str


COMMANDS = {
    "list": Command("presets", "list_presets", "List the presets: name, question, variants."),
    "run": Command(
        "run",
        "run",
        "Storm a group and print what it cost: in virtual time, or with --on in real time against a broker.",
    ),
    "compare": Command(
        "compare",
        "compare",
        "Run the variants of a scenario and print what the difference is, and which variant is best.",
    ),
    "sweep": Command(
        "sweep",
        "sweep",
        "Run a scenario with every combination of some settings, on all cores, and print one table.",
    ),
    "whatif": Command(
        "whatif",
        "whatif",
        "Run the hours of a trace again: first as they were, then under other settings, side by side.",
    ),
    "advise": Command(
        "advise",
        "advise",
        "Name the smallest change of settings that meets a goal: what it buys and costs, and what to paste.",
    ),
    "rollout": Command(
        "rollout",
        "rollout",
        "Say what the next rollout of a consumer costs, from its Kubernetes manifests.",
    ),
    "diff": Command(
        "diff",
        "diff",
        "Compare two finished runs: settings that differ, figures that differ, and which run is better.",
    ),
    "analyze": Command(
        "analyze",
        "analyze",
        "Compute figures and tables from traces, and compare with figures.json, if there is one.",
    ),
    "report": Command(
        "report",
        "report",
        "Write one HTML file that shows a run, a comparison, a sweep or an import, and needs no network.",
    ),
    "explain": Command(
        "explain",
        "explain",
        "Say why a group rebalanced: named patterns, who caused them, what they cost, what to turn.",
    ),
    "replay": Command(
        "replay",
        "replay",
        "Run a run again from its scenario.yaml and check that every event comes out the same.",
    ),
    "trace": Command(
        "trace",
        "trace",
        "Print a trace as a readable story: who joined, who left, why it rebalanced, what changed hands.",
    ),
    "import": Command(
        "import_logs",
        "import_",
        "Make a trace from the logs of Kafka brokers and clients, and from __consumer_offsets.",
    ),
    "capture": Command(
        "capture", "capture", "Watch consumer groups of a running cluster, and write a trace as import does."
    ),
    "watch": Command(
        "watch",
        "watch",
        "Watch a trace that is being written: figures of the last minutes, group by group.",
    ),
    "assign": Command("assign", "assign", "Answer cases: what would this assignor give to these members?"),
    "chaos": Command(
        "chaos",
        "chaos",
        "Put a service of your own, in any language, through a scenario: has it lost a record?",
    ),
    "check-assignor": Command(
        "check_assignor",
        "check_assignor",
        "Play random histories of a group with an assignor and hold it to its promises.",
    ),
    "serve": Command("serve", "serve", "Serve Kafka's protocol over TCP until SIGINT, SIGTERM or SIGHUP."),
    "script": Command(
        "script",
        "script",
        "Run scenarios against the coordinator, as Kafka 4.3.1 to the letter: JSON lines in, JSON lines out.",
    ),
}


def load_command(name: str) -> Any:
    """The command of that name, options and all."""
    command = COMMANDS[name]
    return as_command(name, getattr(import_module(f"groupstorm.cli.{command.module}"), command.function))


def as_command(name: str, function: Callable[..., None]) -> Any:
    """The command that Typer makes of a function. Its help names other commands as the user calls them."""
    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    alone.command(name)(function)
    made: Any = typer.main.get_command(alone)
    for described in (made, *made.params):
        described.help = described.help and as_invoked(described.help)
    return made


class LazyGroup(TyperGroup):
    """Knows the commands by name and summary, and imports the one that is run."""

    def __init__(self, **attributes: Any) -> None:
        attributes["commands"] = {
            name: TyperCommand(name, help=command.summary) for name, command in COMMANDS.items()
        }
        super().__init__(**attributes)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, outline, rest = super().resolve_command(ctx, args)
        return name, outline and load_command(str(name)), rest


def _exit_codes() -> str:
    return f"Exit codes: {'; '.join(f'{int(code)} {code.meaning}' for code in ExitCode)}."


app = typer.Typer(
    name="groupstorm",
    cls=LazyGroup,
    help="Kafka's group coordinator, emulated faithfully in protocol and in time.",
    epilog=_exit_codes(),
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
