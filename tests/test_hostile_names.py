"""Names that clients, logs and files choose do nothing on a terminal, and break no table, picture or page.

Every command is run on files whose names hold a terminal's escape sequences, line ends, marks of direction
and markup, in each column of a trace that can hold a name. `CASES` has at least one case for each command.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import pytest
import typer

from groupstorm.cli.commands import app
from groupstorm.visible import visible, visible_csv, visible_json, visible_markdown, visible_word, visible_xml
from tests.broker import wire
from tests.broker.test_serve import serving
from tests.broker.wire import framed, request
from tests.command import COMMAND, ROOT, environment_of_command, groupstorm
from tests.forked import run_module
from tests.processes import killed_after, outcome_of, run_process
from tests.report.page.test_report_command import content_of, shown

#: Half a surrogate pair can stand in JSON, and a file's name that is no UTF-8 has some.
EVIL = "\x1b[31m\x1b]0;t\x07\r\n\t\x7f\x9b2J\u202e\u2028[red]x[/red][link=http://x]|`<b>&\"'"
EVIL_OF_JSON = f"{EVIL}\ud800"
#: The columns of a trace that hold names.
NAMED = ("group", "member", "member_id", "previous_member_id", "instance", "leader")
CONTROLS = re.compile(
    r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)

SCENARIO = {
    "name": "n",
    "question": f"Is it {EVIL}?",
    "settings": {"members": 2, "partitions": 2, "warm_up_ms": 5000, "record_rate": 0},
    "variants": {"a": {}, "b": {"session.timeout.ms": 10000}},
    "steps": [{"at_ms": 0, "do": "start"}],
}
LOG = [
    "Dynamic member with unknown member id joins group {g} in Empty state. Created a new member id {m}-1 and "
    "request the member to rejoin with this id.",
    "Preparing to rebalance group {g} in state PreparingRebalance with old generation 0 "
    "(__consumer_offsets-1) (reason: Adding new member {m}-1 with group instance id None; "
    "client reason: {m})",
    "Stabilized group {g} generation 1 (__consumer_offsets-1) with 1 members",
    "Group {g} does what {m} does not know",
]
#: A name in a log cannot hold a line end.
LOGGED = EVIL.replace("\r\n", "")
#: A run goes by the name of its folder.
FOLDER = EVIL.replace("/", "")
#: Folder of a trace -> the storm that it is made of.
RUNS = {
    "trace": "rolling-deploy --variant static --set members=3 --set partitions=4",
    "share": "share-deploy --variant implicit --set members=2 --set partitions=2",
    "streams": "stateful-warmup --variant streams --set members=3 --set partitions=4",
}
#: Output of a tool that cannot be read.
SHARE_TABLE = f"GROUP TOPIC PARTITION LEADER-EPOCH START-OFFSET LAG\ng{LOGGED} t{LOGGED} 0 0 10 5\n"
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": f"web{EVIL}"},
    "spec": {
        "replicas": 2,
        "template": {
            "spec": {"containers": [{"name": "c", "env": [{"name": "KAFKA_GROUP_ID", "value": EVIL}]}]}
        },
    },
}


class Case(NamedTuple):
    """The words behind ``python -m module``. ``code``: how the command ends. ``is_slow``: it takes more than
    a second."""

    words: Sequence[str]
    code: int = 0
    is_slow: bool = False
    module: str = "groupstorm"

    @property
    def name(self) -> str:
        return " ".join(visible(word)[:30] for word in self.words)


def cases(*lines: str, slow: bool = False, module: str = "groupstorm") -> list[Case]:
    return [Case(line.split(), is_slow=slow, module=module) for line in lines]


def refusing(*words: str, module: str = "groupstorm") -> list[Case]:
    return [Case(words, code=2, module=module)]


CASES: dict[str, list[Case]] = {
    "list": cases("list", "list --json", slow=True),
    "find": [*cases("find session"), Case(("find", EVIL), code=1)],
    "run": [
        *cases("run scenario.yaml --out r1", "run scenario.yaml --log --json --out r2", slow=True),
        *refusing("run", "scenario.yaml", "--variant", EVIL),
        *refusing("run", EVIL),
        *refusing("run", "bad.yaml"),
        *refusing("run", "scenario.yaml", f"--{EVIL}"),
    ],
    "compare": [
        *cases("compare scenario.yaml --out c1", slow=True),
        *cases(
            "compare scenario.yaml --out c2 --markdown", "compare scenario.yaml --csv --out c3", slow=True
        ),
    ],
    "sweep": cases("sweep scenario.yaml --over members=2,3 --out s1", slow=True),
    "whatif": [*refusing("whatif", "trace", "--out", "w"), *refusing("whatif", EVIL)],
    "advise": refusing("advise", "trace", "--out", "w"),
    "rollout": refusing("rollout", "deployment.json"),
    "diff": refusing("diff", "trace", EVIL),
    "analyze": cases(
        *("analyze trace", "analyze trace --csv", "analyze trace --markdown", "analyze trace --json"),
        *("analyze share", "analyze share --markdown", "analyze share --csv", "analyze streams"),
    ),
    "report": [
        *cases("report trace -o r.html", "report trace --markdown"),
        *cases("report trace --svg", "report trace -o r.md"),
        *cases("report share -o share.html", "report streams --svg", "report streams -o streams.html"),
        Case(("report", "trace", FOLDER, "-o", "bars.html")),
    ],
    "explain": cases(
        *("explain trace", "explain trace --all", "explain trace --json"),
        *("explain share", "explain streams --all"),
    ),
    "replay": refusing("replay", EVIL),
    "trace": [
        *cases("trace trace", "trace trace --all", "trace trace --timeline"),
        *cases("trace trace --perfetto perfetto.json", "trace share --all", "trace streams --all"),
        *refusing("trace", "trace", "--group", EVIL),
        *refusing("trace", "trace", "--member", EVIL),
    ],
    "import": [
        *cases("import server.log --unknown --out i1"),
        *refusing("import", "server.log", "--time-zone", EVIL, "--out", "i2"),
        *refusing("import", "share.txt", "--out", "i3"),
    ],
    "capture": refusing("capture", f"{LOGGED}:9092", "--group", EVIL, "--out", "o"),
    "watch": [
        *cases("watch trace --once --checkpoint p1", "watch trace --once --json --checkpoint p2", slow=True),
        *refusing("watch", "trace", "--alert", EVIL),
    ],
    "assign": cases("assign cases.jsonl"),
    "chaos": refusing("chaos", "scenario.yaml", "--service", f"no-such{EVIL}"),
    "check-assignor": refusing("check-assignor", EVIL),
    "serve": refusing("serve", "--topic", EVIL),
    "script": refusing("script", EVIL),
    "./dev assignor-history": refusing(EVIL, module="tools.historical_assignors"),
    "./dev fuzz": refusing("--set", f"{EVIL}=1", module="tools.fuzz"),
    "./dev print-log": cases("trace --as broker-log", "trace --as java-log", module="tools.log_printing"),
}


def test_every_command_has_a_case() -> None:
    commands: Any = typer.main.get_command(app)
    missing = set(commands.commands) - set(CASES)
    assert not missing, f"add a case with hostile names to CASES of tests/test_hostile_names.py: {missing}"


def hostile(name: str) -> str:
    return name[:1] + EVIL_OF_JSON + name[1:]


def hostile_row(row: dict[str, Any]) -> dict[str, Any]:
    for column in NAMED:
        if row.get(column):
            row[column] = hostile(row[column])
    for column in ("topics", "partitions", "revoking"):
        if row.get(column):
            row[column] = [*map(hostile, row[column])]
    return row


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which the commands run."""
    folder = tmp_path_factory.mktemp("hostile")
    for name, words in RUNS.items():
        made = groupstorm("run", *words.split(), "--out", f"run-{name}", cwd=folder)
        assert made.returncode == 0, made.stderr
        rows = map(json.loads, (folder / f"run-{name}" / "trace.jsonl").read_text().splitlines())
        (folder / name).mkdir()
        (folder / name / "trace.jsonl").write_text(
            "".join(f"{json.dumps(hostile_row(row))}\n" for row in rows)
        )
    shutil.copytree(folder / "trace", folder / FOLDER)
    (folder / "scenario.yaml").write_text(json.dumps(SCENARIO))
    (folder / "bad.yaml").write_text(json.dumps({**SCENARIO, "settings": {f"members{EVIL}": 1}}))
    (folder / "deployment.json").write_text(json.dumps(DEPLOYMENT))
    lines = [
        f"[2026-01-31 12:00:0{second},000] INFO [GroupCoordinator 1]: {text} "
        "(kafka.coordinator.group.GroupCoordinator)\n"
        for second, text in enumerate(one.format(g=f"g{LOGGED}", m=f"m{LOGGED}") for one in LOG)
    ]
    (folder / "server.log").write_text("".join(lines), newline="")
    (folder / "share.txt").write_text(SHARE_TABLE, newline="")
    case = {"id": 1, "assignor": "range", "topics": {f"t{EVIL}": {"partitions": 2}}, "members": [f"m{EVIL}"]}
    member = {"id": f"m{EVIL}", "topics": [f"t{EVIL}"]}
    (folder / "cases.jsonl").write_text(f"{json.dumps({**case, 'members': [member]})}\n")
    return folder


def seen(text: str) -> list[str]:
    """The lines that would do something on a terminal."""
    return [line for line in text.split("\n") if CONTROLS.search(line)]


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=case.name, marks=[pytest.mark.slow] if case.is_slow else [])
        for of_command in CASES.values()
        for case in of_command
    ],
)
def test_names_do_nothing_where_they_are_printed(files: Path, case: Case) -> None:
    result = run_module(case.module, case.words, files)
    assert result.returncode == case.code, result.stderr
    assert seen(result.stdout) == []
    assert seen(result.stderr) == []
    if "--json" in case.words:
        assert [json.loads(line) for line in result.stdout.splitlines()]
    if "--csv" in case.words:
        widths = {len(row) for row in csv.reader(io.StringIO(result.stdout))}
        assert len(widths) == 1
    if "--markdown" in case.words:
        check_tables(result.stdout)
    if "--svg" in case.words:
        ElementTree.fromstring(result.stdout)
    if "-o" in case.words:
        check_page(files / case.words[-1])
    if "--perfetto" in case.words:
        events = json.loads((files / case.words[-1]).read_text())["traceEvents"]
        assert any(EVIL_OF_JSON in str(one["args"].get("name")) for one in events if "args" in one)
    if case.code == 2 and case.words[-1] != f"--{EVIL}":  # Typer draws a box around that one
        assert len(result.stderr.splitlines()) == 1


def check_tables(text: str) -> None:
    """Each row has the cells of its head, and pictures in the text are XML."""
    tables = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    for table in tables:
        assert len({len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) for line in table.splitlines()}) == 1, table
    for picture in re.findall(r"<svg.*?</svg>", text, re.DOTALL):
        ElementTree.fromstring(picture)


def check_page(file: Path) -> None:
    """No name has become an element of a page of HTML, in its data neither."""
    text = file.read_text()
    assert seen(text) == []
    if text.startswith("<!doctype html>"):
        (run, *_) = content_of(file)["runs"]
        assert any("<b>" in name for name in run["members"])
        assert {"b", "i"}.isdisjoint(element.tag for element in shown(file).iter())
        assert "<b>" not in text
        assert text.count("<script") == text.count("</script>") == 2
    else:
        check_tables(text)


def test_commands_print_through_one_module() -> None:
    """`groupstorm.cli.printing` makes names visible; a command that prints by itself would forget it."""
    own = {"printing.py", "app.py"}
    found = [
        f"{file.relative_to(ROOT)}:{number}: {line.strip()}"
        for file in sorted([*(ROOT / "groupstorm" / "cli").glob("*.py"), *(ROOT / "tools").rglob("*.py")])
        if file.name not in own
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if re.search(r"(?<![\w.])print\((?!\))|\becho\((?!f\"groupstorm )", line)
    ]
    assert found == [], "print with a function of groupstorm.cli.printing"


def test_names_show_what_they_are(files: Path) -> None:
    """The story has each name in one line, escaped as Python does, and JSON has the true name."""
    story = groupstorm("trace", "trace", "--all", cwd=files).stdout
    assert visible(hostile("member-0")) in story
    found = json.loads(groupstorm("explain", "trace", "--json", cwd=files).stdout)
    assert found["groups"][0]["group"] == hostile("storm")


@pytest.mark.slow
def test_the_log_of_serve() -> None:
    """A client's group, client.id and instance reach the log of a broker that serves it."""
    with serving("--set", "group.initial.rebalance.delay.ms=0") as (process, address):
        with wire.RawClient(address) as client:
            protocol = {"name": "range", "metadata": b""}
            values = {
                "group_id": f"g{EVIL}",
                "session_timeout": wire.milliseconds(10_000),
                "rebalance_timeout": wire.milliseconds(10_000),
                "member_id": "",
                "group_instance_id": f"i{EVIL}",
                "protocol_type": "consumer",
                "protocols": (protocol,),
            }
            client.send(framed(request(wire.JOIN_GROUP, 5, 1, f"c{EVIL}", **values)))
            assert client.answer(wire.JOIN_GROUP, 5).error_code == 0
        process.send_signal(signal.SIGTERM)
        _, log = outcome_of(process, 60)
    assert seen(log) == []
    assert f"group={f'g{EVIL}'!r}" in log


@pytest.mark.slow
@pytest.mark.parametrize("words", [("explain", "trace"), ("trace", "trace"), ("analyze", "trace")])
def test_a_terminal_gets_our_styles_and_none_of_a_name(files: Path, words: Sequence[str]) -> None:
    ours, terminal = os.openpty()
    process = subprocess.Popen(
        [*COMMAND, *words], cwd=files, env=environment_of_command(), stdout=terminal, stderr=terminal
    )
    os.close(terminal)
    written = b""
    with suppress(OSError), killed_after(process), open(ours, "rb", buffering=0) as reader:  # EIO: the end
        while more := reader.read(65_536):
            written += more
    process.wait()
    text = re.sub(r"\x1b\[[0-9;]*m|\r\n", "", written.decode())
    assert seen(text.replace("\r", "")) == []
    assert "\x1b[31m\x1b]" not in written.decode()
    assert re.search(r"\x1b\[31m\W*0;t", written.decode()) is None
    assert "[red]" in text


HIDDEN = [
    *(chr(code) for code in (*range(0x20), *range(0x7F, 0xA1))),
    *"\u202e\u2066\u200b\ufeff\u2028\ud800\ufffe",
]


@pytest.mark.parametrize("sign", HIDDEN, ids=ascii)
def test_each_hidden_character_is_shown_and_no_two_names_look_equal(sign: str) -> None:
    names = [f"a{sign}b", ascii(f"a{sign}b")[1:-1], f"a\\{sign}b", "ab", "a b", "a\\b", "a\\\\b"]
    shown = [*map(visible, names)]
    assert len(set(shown)) == len(names)
    assert all(one.isprintable() for one in shown)
    assert json.loads(visible_json(names[0])) == names[0]
    assert ElementTree.fromstring(f"<a>{visible_xml(names[0])}</a>").text == shown[0]


@pytest.mark.parametrize("name", ["ü", "日本　語", "👩‍👩‍👧 ☂️", "می‌خواهم", "हिन्दी", r"C:\data", r"\d+"])
def test_names_of_any_script_stay(name: str) -> None:
    assert visible(name) == name
    assert visible_word(name).strip("'") == name
    assert json.loads(visible_json(name)) == name


def test_a_long_name_is_shown_by_its_ends() -> None:
    shown = {visible("a" * 40_000 + middle + "a" * 40_000) for middle in "xyz"}
    assert len(shown) == 3
    assert all(len(one) < 300 and "80,001 characters" in one for one in shown)


def test_a_shell_reads_a_printed_word_back() -> None:
    for word in (f"{EVIL}\\x41", "it's\x1b", "\udc80\udcff"):
        printed = run_process(
            ["bash", "-c", f"printf %s {visible_word(word)}"], stdout=subprocess.PIPE
        ).stdout
        assert printed.decode("utf-8", "surrogateescape") == word


def test_a_spreadsheet_computes_no_name() -> None:
    for formula in ("=1+1", "+x", "-x", "@x"):
        assert visible_csv(formula) == f"'{formula}"
    for number in ("-5", "-1.5e-7", -5):
        assert visible_csv(number) == number


@pytest.mark.slow
def test_a_question_that_yaml_folds_is_one_line(files: Path) -> None:
    """A line end within prose is a blank; within a name it is shown."""
    (files / "folded.yaml").write_text(json.dumps(SCENARIO | {"question": "Is it\nfolded?\n"}))
    command = ("compare", "folded.yaml", "--out", "folded")
    assert groupstorm(*command, cwd=files).stdout.startswith("Is it folded?\n")


def test_markdown_has_no_markup_of_names() -> None:
    assert visible_markdown("a|b`c`<i>[x](y)_z_ u_v\\|") == r"a\|b\`c\`\<i\>\[x\](y)\_z\_ u_v\\\|"
