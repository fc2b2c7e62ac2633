"""The suite as tables: `python -m tests.conformance.table` runs it and writes them to `docs/fidelity.md`.

Run it in a quiet moment: the times are measured. It takes about six minutes with the emulator and the jvm;
what cannot be had here is left out, and the page says so. `--from FILE` writes from an earlier run's results.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import NamedTuple
from xml.etree import ElementTree

from tests.conformance import tool
from tests.conformance.backends import KINDS
from tests.conformance.members import LIBRARIES
from tests.conformance.raw.cases import CASES, ROOMS
from tests.conformance.raw.running import tolerated_ms

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "fidelity.md"
BEGIN, END = "<!-- generated: python -m tests.conformance.table -->", "<!-- end of what is generated -->"

#: The files of tests of clients by the kind of group that they are about.
CLIENT_TESTS = {"classic": "test_clients", "consumer": "test_consumer_clients"}
#: The column of tests whose group has members of several libraries.
SEVERAL = "several libraries"
_PARAMETERS = re.compile(r"(?P<test>\w+)(\[(?P<parameters>.*)\])?")
#: Of a broker that was not there.
NOT_RUN = "not run"
_PASSED, _FAILED, _SKIPPED = "passed", "FAILED", "skipped"


class Result(NamedTuple):
    """One test of one run. ``kind``: of the broker; ``rest``: its other parameters."""

    file: str
    test: str
    kind: str
    rest: str
    outcome: str
    properties: Mapping[str, str]


def run_suite(results: Path) -> None:
    """All of it, on every kind of broker that is there."""
    page = Path(__file__).with_name("test_fidelity_page.py")  # it is about what this run makes
    options = ["-q", "-n0", "-m", "", "-o", "junit_family=xunit1"]
    options += [f"--ignore={page}", f"--junitxml={results.resolve()}"]
    command = [sys.executable, "-m", "pytest", str(Path(__file__).parent), *options]
    subprocess.run(command, cwd=ROOT, check=False)


def read_results(file: Path) -> list[Result]:
    """Read the results that pytest has written."""
    found = []
    for case in ElementTree.parse(file).iter("testcase"):
        name = _PARAMETERS.fullmatch(case.get("name", ""))
        assert name is not None
        kind, rest = kind_and_rest(name["parameters"] or "")
        states = {child.tag for child in case}
        outcome = _FAILED if states & {"failure", "error"} else _SKIPPED if "skipped" in states else _PASSED
        said = {one.get("name", ""): one.get("value", "") for one in case.iter("property")}
        file_name = case.get("classname", "").rpartition(".")[2]
        found.append(Result(file_name, name["test"], kind, rest, outcome, said))
    return found


def kind_and_rest(parameters: str) -> tuple[str, str]:
    """The kind of broker of a test's parameters, and the others."""
    kind = next((kind for kind in KINDS if re.match(rf"{kind}(-|$)", parameters)), "")
    return kind, parameters.removeprefix(kind).removeprefix("-")


def generated(results: Sequence[Result]) -> str:
    """The part of the page that is made from results."""
    kinds = [kind for kind in KINDS if any(one.kind == kind and one.outcome != _SKIPPED for one in results)]
    absent = [kind for kind in KINDS if kind not in kinds]
    parts = [
        f"Run on {', '.join(kinds)}. Not there: {', '.join(absent) or 'none'}.",
        "## Answers\n\n" + _answers(results, kinds),
        "## Times\n\n" + _times(results, kinds),
        "## Clients\n\n" + _clients(results, kinds),
        "## kafka-consumer-groups\n\n" + _tool(results, kinds),
    ]
    return "\n\n".join(parts)


def rooms_by_group() -> Mapping[str, Sequence[ModuleType]]:
    """The groups of cases by the kind of group that they are about."""
    found: dict[str, list[ModuleType]] = {"classic": [], "consumer": [], "share": [], "streams": []}
    for room in ROOMS:
        word = name_of(room).partition(" ")[0]
        found[word if word in found else "classic"].append(room)
    return found


def name_of(room: ModuleType) -> str:
    return room.__name__.rpartition(".")[2].replace("_", " ")


def _answers(results: Sequence[Result], kinds: Sequence[str]) -> str:
    by_case = {(one.rest, one.kind): one for one in results if one.test == "test_answers"}
    rows = []
    for kind_of_group, rooms in rooms_by_group().items():
        cases = [case.name for room in rooms for case in room.CASES]
        cells = {}
        for kind in kinds:
            found = [by_case[name, kind] for name in cases if (name, kind) in by_case]
            equal = sum(one.outcome == _PASSED for one in found)
            answers = sum(int(one.properties.get("answers", 0)) for one in found)
            cells[kind] = f"{equal} of {len(cases)} ({answers})" if found else NOT_RUN
        rows.append([kind_of_group, ", ".join(name_of(room) for room in rooms), _merged(cells)])
    told = "Cases whose answers are all equal to Kafka's, and the number of those answers."
    return f"{told}\n\n" + _table(["groups", "cases", f"equal on {', '.join(kinds)}"], rows)


def _times(results: Sequence[Result], kinds: Sequence[str]) -> str:
    measured: dict[tuple[str, str], float] = {
        (one.kind, what): float(ms)
        for one in results
        if one.test == "test_times"
        for what, ms in one.properties.items()
    }
    timed = [timed for case in CASES for timed in case.times]
    rows = []
    for kind in kinds:
        found = [(measured[kind, one.what], one) for one in timed if (kind, one.what) in measured]
        if found:
            ms, one = max(
                found, key=lambda pair: abs(pair[0] - pair[1].expected_ms) / tolerated_ms(pair[1].expected_ms)
            )
            cells = (f"{ms:.0f}", str(one.expected_ms), f"{tolerated_ms(one.expected_ms):.0f}")
            rows.append([kind, f"{len(found)} of {len(timed)}", one.what, *cells])
    told = "How many times were measured, and the one that comes nearest to its tolerance, in milliseconds."
    return f"{told}\n\n" + _table(["broker", "times", "nearest", "measured", "rule", "tolerance"], rows)


def _clients(results: Sequence[Result], kinds: Sequence[str]) -> str:
    columns = [*LIBRARIES, SEVERAL]
    rows = []
    for groups, file in CLIENT_TESTS.items():
        found: dict[str, dict[str, list[bool]]] = defaultdict(lambda: defaultdict(list))
        for one in results:
            if one.file == file and one.kind in kinds:
                found[client_column(one.rest)][one.kind].append(one.outcome == _PASSED)
        cells = [
            _merged({kind: f"{sum(passed)} of {len(passed)}" for kind, passed in found[column].items()})
            for column in columns
        ]
        rows.append([groups, *cells])
    told = f"Tests passed on {', '.join(kinds)}, of those whose features the library has."
    return f"{told}\n\n" + _table(["groups", *columns], rows)


def client_column(rest: str) -> str:
    """The column of a test of clients, by its parameters behind the kind of broker."""
    return rest if rest in LIBRARIES else SEVERAL


def _merged(cells: Mapping[str, str]) -> str:
    """The word of all brokers, or that of each by its name."""
    if len(set(cells.values())) > 1:
        return ", ".join(f"{cell} on {kind}" for kind, cell in cells.items())
    return "".join(set(cells.values()))


def _tool(results: Sequence[Result], kinds: Sequence[str]) -> str:
    rows = [[protocol, _merged(_tool_of(results, protocol))] for protocol in tool.FILES]
    told = "Outputs of the command that are equal to Kafka's."
    return f"{told}\n\n" + _table(["group", f"equal on {', '.join(kinds)}"], rows)


def _tool_of(results: Sequence[Result], protocol: str) -> dict[str, str]:
    """The number of equal outputs on each broker on which the command was called."""
    kafkas = tool.read(protocol)
    counts = {}
    for one in results:
        if "said" in one.properties and one.rest == protocol:
            said = [tool.Said(command, tuple(lines)) for command, lines in json.loads(one.properties["said"])]
            equal = sum(ours == kafkas_own for ours, kafkas_own in zip(said, kafkas, strict=False))
            counts[one.kind] = f"{equal} of {len(kafkas)}"
    return counts


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    rule = ["---"] * len(header)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [header, rule, *rows])


def write_page(text: str, page: Path = PAGE) -> None:
    """Replace what was generated before; the rest of the page stays."""
    before, _, rest = page.read_text("utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}", "utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.table", description=__doc__)
    parser.add_argument("--from", dest="results", type=Path, help="results of an earlier run (JUnit XML)")
    parser.add_argument("--keep", type=Path, help="where to keep the results of this run")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        file = options.results or options.keep or Path(folder, "results.xml")
        if options.results is None:
            run_suite(file)
        results = read_results(file)
    write_page(generated(results))
    failed = [one for one in results if one.outcome == _FAILED]
    for one in failed:
        print(f"{one.test}[{one.kind}-{one.rest}] failed", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
