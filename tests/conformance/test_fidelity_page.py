"""Every name and count of `docs/fidelity.md` is that of the suite, and its tables show the results of a run.

Measured times and seconds are the run's own: only their rules and tolerances are checked.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter

import pytest

from groupstorm.verdicts.comparison import TOLERATED_MS, TOLERATED_SHARE
from tests.command import ROOT
from tests.conformance import table, tool
from tests.conformance.backends import QUICK
from tests.conformance.members import LIBRARIES
from tests.conformance.raw import recorded
from tests.conformance.raw.cases import CASES
from tests.conformance.raw.playing import Measured
from tests.conformance.raw.running import is_within, tolerated_ms
from tests.conformance.table import PAGE

RUN_IT = "run: python -m tests.conformance.table"


def _rows(section: str) -> list[list[str]]:
    """The cells of the tables under a heading, without headers and rules."""
    text = PAGE.read_text("utf-8").partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    rules = {number for number, row in enumerate(rows) if set(row[0]) == {"-"}}
    return [row for number, row in enumerate(rows) if not {number, number + 1} & rules]


def test_the_page_has_the_cases_and_answers_of_every_group_of_cases() -> None:
    kafkas = recorded.read()
    wanted = []
    for kind, rooms in table.rooms_by_group().items():
        cases = [case.name for room in rooms for case in room.CASES]
        answers = sum(len(kafkas[name]) for name in cases)
        names = ", ".join(map(table.name_of, rooms))
        wanted.append((kind, names, f"{len(cases)} of {len(cases)} ({answers})"))
    rows = _rows("Answers")
    assert [tuple(row[:2]) for row in rows] == [one[:2] for one in wanted], RUN_IT
    for (_, _, cell), (kind, _, counted) in zip(rows, wanted, strict=True):
        said = {re.sub(r" on \w+$", "", one) for one in cell.split(", ")}
        assert said - {table.NOT_RUN} == {counted}, kind


def test_the_page_counts_every_time_and_the_worst_is_within_its_tolerance() -> None:
    times = {timed.what: timed.expected_ms for case in CASES for timed in case.times}
    rows = _rows("Times")
    assert rows
    for _kind, count, what, ms, rule, tolerance in rows:
        assert count == f"{len(times)} of {len(times)}"
        assert (int(rule), tolerance) == (times[what], f"{tolerated_ms(times[what]):.0f}")
        assert is_within(Measured(what, times[what], float(ms)))


@pytest.mark.slow
def test_the_page_counts_the_tests_of_each_library() -> None:
    files = [f"tests/conformance/{file}.py" for file in table.CLIENT_TESTS.values()]
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-n0", "-m", "", *files]
    collected = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    counts: Counter[tuple[str, str]] = Counter()
    for file, parameters in re.findall(r"^\S+/(\w+)\.py::\w+\[(.*)\]$", collected, re.MULTILINE):
        kind, rest = table.kind_and_rest(parameters)
        counts[file, table.client_column(rest)] += kind == "emulator"
    columns = [*LIBRARIES, table.SEVERAL]
    wanted = [
        [groups, *(f"{count} of {count}" if (count := counts[file, column]) else "" for column in columns)]
        for groups, file in table.CLIENT_TESTS.items()
    ]
    assert _rows("Clients") == wanted, RUN_IT
    assert f"| groups | {' | '.join(columns)} |" in PAGE.read_text("utf-8")


def test_the_page_counts_the_outputs_of_the_tool() -> None:
    counted = {protocol: len(tool.read(protocol)) for protocol in tool.FILES}
    wanted = [[protocol, f"{count} of {count}"] for protocol, count in counted.items()]
    assert _rows("kafka-consumer-groups") == wanted


def test_the_page_names_the_settings_that_a_broker_needs() -> None:
    (row,) = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| `address`")]
    for name, value in QUICK.settings.items():
        assert f"`{name}={value}`" in row


def test_the_page_names_the_tolerance() -> None:
    assert f"the larger of {TOLERATED_SHARE:.0%} and {TOLERATED_MS:.0f} ms".replace("%", " %") in " ".join(
        PAGE.read_text("utf-8").split()
    )


def test_names_are_unique() -> None:
    names = [case.name for case in CASES]
    assert len(names) == len(set(names))
    times = [timed.what for case in CASES for timed in case.times]
    assert len(times) == len(set(times))
