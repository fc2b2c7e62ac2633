"""Imports at the start of a command: the table of commands, and then only what that command needs."""

from __future__ import annotations

import inspect
import json
import sys
from importlib import import_module
from pathlib import Path

import pytest

from groupstorm.cli.commands import COMMANDS, load_command, place_of
from groupstorm.clients.brokers import KINDS
from tests.command import environment_of_command, groupstorm
from tests.processes import run_process
from tests.soaking import one_in

#: Packages that take time to import, or that are optional.
HEAVY = {
    *("aiokafka", "asyncio", "crc32c", "hypothesis", "kio", "multiprocessing", "numpy", "pandas", "pyarrow"),
    *("pydantic", "pyspark", "re2", "structlog", "uvloop"),
}
#: Rooms that look at traces; a run prints its figures with some tables of `report` alone.
READERS = {*("groupstorm.explain", "groupstorm.library", "groupstorm.pipeline", "groupstorm.whatif")}
#: What storms of other kinds need: Kafka Streams, the consumer protocol, real brokers.
OTHER_STORMS = {
    *("groupstorm.storms.streams.application", "groupstorm.storms.world.consumer_group.process"),
    *("groupstorm.storms.live.play", "groupstorm.broker"),
}


def imported_by(*arguments: str, folder: Path) -> set[str]:
    """The modules that are loaded when the command has ended."""
    code = (
        "import atexit, sys; sys.argv[0] = 'groupstorm'; "
        "atexit.register(lambda: print('\\n'.join(sys.modules), file=sys.stderr)); "
        "from groupstorm.cli.app import main; main()"
    )
    answer = run_process(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment_of_command(),
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    return set(answer.stderr.split())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "without"),
    [
        (["--version"], {*HEAVY, "rich", "yaml", "groupstorm.storms", "groupstorm.coordinator"}),
        (["--help"], {*HEAVY, "yaml", "groupstorm.storms", "groupstorm.coordinator"}),
        (["list"],
         {*HEAVY, *READERS, *("rich", "groupstorm.report", "groupstorm.assignors", "groupstorm.coordinator"),
          *("groupstorm.storms.scenario.files", "groupstorm.storms.scenario.settings")}),
        (["run", "--help"], {*HEAVY, *READERS, *OTHER_STORMS}),
        (["run", "cold-start", "--set", "members=2", "--set", "record_rate=10"],
         {*HEAVY, *READERS, *OTHER_STORMS, "rich", "importlib.metadata"}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)  # fmt: skip
def test_a_command_imports_what_it_needs(arguments: list[str], without: set[str], tmp_path: Path) -> None:
    imported = imported_by(*arguments, folder=tmp_path)
    assert "groupstorm.cli.app" in imported
    assert imported & without == set()


def test_the_handler_of_signals_is_there_before_anything_that_takes_time() -> None:
    """Ctrl-C before that ends in a traceback."""
    assert imported_by_code("import groupstorm.cli.app") & {*HEAVY, "json", "pathlib", "shlex"} == set()


def test_the_package_alone_imports_none_of_its_rooms() -> None:
    """`import groupstorm` in a user's program or test; each function loads what it needs."""
    imported = imported_by_code("import groupstorm; dir(groupstorm)")
    ours = {name for name in imported if name.startswith("groupstorm")}
    assert ours == {"groupstorm", "groupstorm.version"}
    assert imported & {*HEAVY, "rich", "yaml"} == set()


@pytest.mark.slow
def test_a_storm_from_python_imports_no_data_frames() -> None:
    storm = "groupstorm.run('cold-start', settings={'members': 2, 'record_rate': 10})"
    imported = imported_by_code(f"import groupstorm; print(len([*{storm}.rows]))")
    assert "groupstorm.library" in imported
    assert imported & HEAVY == set()


def imported_by_code(code: str) -> set[str]:
    """The modules that are loaded at the end."""
    answer = run_process(
        [sys.executable, "-c", f"{code}; import sys; print('\\n'.join(sys.modules), file=sys.stderr)"],
        capture_output=True,
        text=True,
        check=True,
        env=environment_of_command(),
    )
    return set(answer.stderr.split())


@pytest.mark.parametrize("name", COMMANDS)
def test_the_table_says_what_the_commands_help_says(name: str) -> None:
    """The table repeats the first paragraph, so that `groupstorm --help` need not import the modules."""
    module_name, function = place_of(name)
    module = import_module(f"groupstorm.cli.{module_name}")
    first = (inspect.getdoc(getattr(module, function)) or "").partition("\n\n")[0]
    assert " ".join(first.split()) == COMMANDS[name]
    assert load_command(name).name == name


def test_every_module_with_a_command_is_in_the_table() -> None:
    folder = Path(inspect.getfile(load_command)).parent
    found = {
        path.stem for path in folder.glob("*.py") if path.read_text("utf-8").startswith('"""`groupstorm ')
    }
    assert {place_of(name)[0] for name in COMMANDS} == found


def test_the_help_names_every_command_and_every_exit_code(tmp_path: Path) -> None:
    helped = groupstorm("--help", cwd=tmp_path, COLUMNS="300").stdout
    assert all(f" {name} " in helped for name in COMMANDS)
    assert all(f" {code} " in helped for code in (0, 1, 2, 3, 130, 141, 143))


def test_the_help_of_a_command_says_the_default_of_every_option(tmp_path: Path) -> None:
    helped = groupstorm("run", "--help", cwd=tmp_path, COLUMNS="300").stdout
    assert "Which variant. [default: the first]" in helped
    assert "in processes of their own. [default: our own members over TCP]" in helped


def test_the_help_names_every_kind_of_broker() -> None:
    """The text is written out there: to import it would be to import the broker."""
    (option,) = (option for option in load_command("run").params if "--on" in option.opts)
    assert KINDS in option.help


@pytest.mark.parametrize(
    ("words", "completed"),
    one_in(
        3,
        [
            ("groupstorm compare rolling", ["rolling-deploy"]),
            ("groupstorm co", ["compare"]),
            ("groupstorm compare --seed", ["--seed", "--seeds"]),
        ],
    ),
)
def test_a_shell_completes_commands_options_and_presets(
    tmp_path: Path, words: str, completed: list[str]
) -> None:
    asked = groupstorm(
        cwd=tmp_path,
        _GROUPSTORM_COMPLETE="complete_bash",
        COMP_WORDS=words,
        COMP_CWORD=str(len(words.split()) - 1),
    )
    assert asked.stdout.split() == completed


def test_find_names_what_has_the_words_and_how_to_use_it(tmp_path: Path) -> None:
    found = groupstorm("find", "canary", cwd=tmp_path).stdout
    assert found.startswith("step canary\n")
    assert "do: canary" in found
    both = groupstorm("find", "--json", "record", "skew", cwd=tmp_path).stdout
    assert [entry["name"] for entry in json.loads(both)] == ["record_skew"]
    nothing = groupstorm("find", "perestroika", cwd=tmp_path)
    assert nothing.returncode == 1
    assert "nothing has perestroika" in nothing.stderr
    in_a_checkout = groupstorm("find", "kafka-12464", cwd=tmp_path, GROUPSTORM_COMMAND="./dev run").stdout
    assert "    ./dev run compare kafka-12464\n" in in_a_checkout
