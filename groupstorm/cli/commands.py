"""The commands: a table of their names. A module is imported when its command is run.

The table ``options.tsv`` describes their arguments and options. A command's function has plain types.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any, get_origin, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from groupstorm import __version__, tables
from groupstorm.cli.printing import as_invoked
from groupstorm.problems import ExitCode

#: Command -> the first paragraph of its help, which its docstring repeats: `groupstorm --help` imports none.
COMMANDS = {
    "list": "List the presets: name, question, variants.",
    "find": "Find presets, settings, steps, patterns and commands by a word: hpa, gc, skew, canary.",
    "run": (
        "Storm a group and print what it cost: in virtual time, or with --on in real time against a broker."
    ),
    "compare": "Run the variants of a scenario and print what the difference is, and which variant is best.",
    "sweep": "Run a scenario with every combination of some settings, on all cores, and print one table.",
    "whatif": "Run the hours of a trace again: first as they were, then under other settings, side by side.",
    "advise": (
        "Name the smallest change of settings that meets a goal: what it buys and costs, and what to paste."
    ),
    "rollout": (
        "Say what the next rollout of a consumer costs, from its Kubernetes manifests, and what would cost "
        "less."
    ),
    "diff": "Compare two finished runs: settings that differ, figures that differ, and which run is better.",
    "analyze": "Compute figures and tables from traces, and compare with figures.json, if there is one.",
    "report": (
        "Write one HTML file that shows a run, a comparison, a sweep or an import, and needs no network."
    ),
    "explain": "Say why a group rebalanced: named patterns, who caused them, what they cost, what to turn.",
    "replay": "Run a run again from its scenario.yaml and check that every event comes out the same.",
    "trace": (
        "Print a trace as a readable story: who joined, who left, why it rebalanced, what changed hands."
    ),
    "import": "Make a trace from the logs of Kafka brokers and clients, and from __consumer_offsets.",
    "capture": "Watch consumer groups of a running cluster, and write a trace as import does.",
    "watch": "Watch a trace that is being written: figures of the last minutes, group by group.",
    "assign": "Answer cases: what would this assignor give to these members?",
    "chaos": "Put a service of your own, in any language, through a scenario: has it lost a record?",
    "check-assignor": "Play random histories of a group with an assignor and hold it to its promises.",
    "serve": "Serve Kafka's protocol over TCP until SIGINT, SIGTERM or SIGHUP.",
    "script": "Run scenarios against the coordinator, as Kafka to the letter: JSON lines in, JSON lines out.",
}
#: The parts of `groupstorm --help`.
_PANELS = {
    "Storms: what would happen": ("list", "find", "run", "compare", "sweep", "rollout"),
    "A group of yours: what happened, what would help": (
        "import", "capture", "watch", "explain", "whatif", "advise",
    ),
    "Traces and results": ("trace", "analyze", "report", "diff", "replay"),
    "Tests of clients, services and assignors": ("serve", "chaos", "assign", "check-assignor", "script"),
}  # fmt: skip
#: The commands whose names are not those of their modules and functions -> their modules and functions.
_PLACES = {
    "capture": ("import_logs", "capture"),
    "find": ("presets", "find"),
    "import": ("import_logs", "import_"),
    "list": ("presets", "list_presets"),
    "replay": ("run", "replay"),
}


def place_of(name: str) -> tuple[str, str]:
    """The module in this room that has the command, and its function there."""
    word = name.replace("-", "_")
    return _PLACES.get(name, (word, word))


def load_command(name: str) -> Any:
    """The command of that name, options and all."""
    module, function_name = place_of(name)
    gc.disable()  # modules live to the end: to look for garbage among them takes a tenth of the start
    try:
        function = getattr(import_module(f"groupstorm.cli.{module}"), function_name)
    finally:
        gc.enable()
    return as_command(name, function)


def as_command(name: str, function: Callable[..., None]) -> Any:
    """The command that Typer makes of a function. Its help names other commands as the user calls them."""
    _describe_options(name, function)
    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    alone.command(name, cls=_Command)(function)
    made: Any = typer.main.get_command(alone)
    for described in (made, *made.params):  # a [default: ...] is no tag of rich's markup, which Typer reads
        described.help = described.help and re.sub(r"\[(?=[a-z])", r"\\[", as_invoked(described.help))
    return made


def _describe_options(name: str, function: Callable[..., None]) -> None:
    """Annotate the parameters with their rows of the table; annotated ones stay as they are.

    Parameters that several commands have in the same way have one row, which names no command.
    """
    described = {
        parameter: row
        for command, parameter, *row in tables.rows("groupstorm.cli", "options")
        if command in (name, "*")  # the rows of single commands stand behind
    }
    hints = get_type_hints(function, include_extras=True)
    for parameter, kind in hints.items():
        if parameter != "return" and get_origin(kind) is not Annotated:
            hints[parameter] = Annotated[kind, _described(*described[parameter])]
    function.__annotations__ = hints


def _described(option: str, metavar: str, limits: str, default: str, text: str) -> Any:
    """The argument or option that Typer makes of a row."""
    shown: dict[str, Any] = {"metavar": metavar or None, "show_default": default or True, "help": text}
    if limits:
        least, _, most = limits.partition("..")
        shown |= {"min": int(least), "max": int(most) if most else None}
    return typer.Option(*option.split(), **shown) if option else typer.Argument(**shown)


class _Command(TyperCommand):
    """Names `--set` where a setting of scenarios is given as an option, or behind another one."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        known = {name for one in self.params for name in (*one.opts, *one.secondary_opts)}
        for arg in args if "--set" in known else ():
            name, _, value = arg.partition("=")
            setting = _setting_like(name) if name.startswith("--") and name not in known else None
            if setting is not None:
                raise typer.BadParameter(f"{name}: a setting is given as --set {setting}={value or 'VALUE'}.")
        for option, arg in zip(args, args[2:], strict=False):
            if option == "--set" and re.match(r"[a-z][\w.]*=", arg):
                raise typer.BadParameter(f"{arg}: each setting has a --set of its own: --set {arg}.")
        return super().parse_args(ctx, args)


def _setting_like(option: str) -> str | None:
    """The setting that is spelled like this option: --session-timeout-ms is session.timeout.ms."""
    from groupstorm.storms.scenario.setting_names import SETTINGS

    spelled = re.sub("[._-]", "", option.lower())
    return next((row.name for row in SETTINGS if re.sub("[._-]", "", row.name.lower()) == spelled), None)


class LazyGroup(TyperGroup):
    """Knows the commands by name and summary, and imports the one that is run."""

    def __init__(self, **attributes: Any) -> None:
        attributes["commands"] = {
            name: TyperCommand(name, help=COMMANDS[name], rich_help_panel=panel)
            for panel, names in _PANELS.items()
            for name in names
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
