"""`docs/fidelity.md` tells of the suite as it is, and the tables say what the results say."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance import table, tool
from tests.conformance.raw.cases import CASES, joins
from tests.conformance.raw.normal import missing
from tests.conformance.table import PAGE, Result


def test_the_page_lists_the_cases_of_the_suite() -> None:
    page = PAGE.read_text("utf-8")
    assert table.list_of_cases() in page, "run: python -m tests.conformance.table"


@pytest.mark.parametrize("what", [timed.what for case in CASES for timed in case.times])
def test_the_page_has_every_time(what: str) -> None:
    assert f"| {what} |" in PAGE.read_text("utf-8"), "run: python -m tests.conformance.table"


def test_names_are_unique() -> None:
    names = [case.name for case in CASES]
    assert len(names) == len(set(names))
    times = [timed.what for case in CASES for timed in case.times]
    assert len(times) == len(set(times))


def _result(test: str, kind: str, rest: str, outcome: str = "passed", **properties: str) -> Result:
    file = "test_clients" if test.startswith("test_a") and test != "test_answers" else "test_raw"
    return Result(file, test, kind, rest, outcome, 1.25, properties)


def test_tables_of_results() -> None:
    case = next(case for case in CASES if case.times)
    what = case.times[0].what
    rolling = table.ROLLING_RESTART.rpartition("::")[2]
    results = [
        *(_result("test_answers", "emulator", one.name, answers="3") for one in CASES),
        *(_result("test_answers", "jvm", one.name, answers="3") for one in CASES[1:]),
        _result("test_answers", "jvm", CASES[0].name, "FAILED", answers="3"),
        _result("test_answers", "container", CASES[0].name, "skipped"),
        Result("test_raw", "test_times", "emulator", case.name, "passed", 0.0, {what: "1010.0"}),
        Result("test_raw", "test_times", "jvm", case.name, "passed", 0.0, {what: "1000.0"}),
        Result(
            "test_real_kafka",
            rolling,
            "",
            "",
            "passed",
            9.0,
            {"kept": "30"},
        ),
        _result("test_a_group_resumes", "jvm", "franz-go"),
        _result("test_a_group_resumes", "jvm", "aiokafka", "FAILED"),
    ]
    text = table.generated(results)
    assert "Run on emulator, jvm. Not there: container, address." in text
    rooms = len(joins.CASES)
    assert (
        f"| joins | {rooms} of {rooms} cases, {3 * rooms} answers equal"
        f" | {rooms - 1} of {rooms} cases, {3 * rooms} answers equal |"
    ) in text
    assert f"| {what} | {case.times[0].expected_ms} | 1010 | 1000 | 1.010 |" in text
    assert "| kept | 30 |" in text
    assert "| a group resumes | jvm | FAILED |" in text


def test_results_are_read_from_what_pytest_writes(tmp_path: Path) -> None:
    file = tmp_path / "results.xml"
    file.write_text(
        """<testsuites><testsuite>
        <testcase classname="tests.conformance.test_clients" name="test_a[jvm-franz-go]" time="2.5">
          <properties><property name="what" value="7" /></properties></testcase>
        <testcase classname="x.test_raw" name="test_b[emulator-c]" time="0"><failure /></testcase>
        <testcase classname="x.test_raw" name="test_b[jvm]" time="0"><skipped /></testcase>
        <testcase classname="x.test_raw" name="test_c" time="0"></testcase>
        </testsuite></testsuites>""",
        "utf-8",
    )
    assert table.read_results(file) == [
        Result("test_clients", "test_a", "jvm", "franz-go", "passed", 2.5, {"what": "7"}),
        Result("test_raw", "test_b", "emulator", "c", "FAILED", 0.0, {}),
        Result("test_raw", "test_b", "jvm", "", "skipped", 0.0, {}),
        Result("test_raw", "test_c", "", "", "passed", 0.0, {}),
    ]


def test_what_was_generated_is_replaced_and_the_rest_stays(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{table.BEGIN}\nold\n{table.END}\nafter\n", "utf-8")
    table.write_page("new", page)
    assert page.read_text("utf-8") == f"before\n{table.BEGIN}\n\nnew\n\n{table.END}\nafter\n"


@pytest.mark.parametrize(
    ("expected", "found", "problem"),
    [
        ({"a": 1}, {"a": 1, "b": 2}, ""),
        ({"a": 1}, {"a": 2}, "a is 2, expected 1"),
        ({"a": 1}, {}, "answer has no a"),
        ({"a": [{}, {}]}, {"a": [{"b": 1}, {"b": 2}]}, ""),
        ({"a": [{}]}, {"a": []}, "a is [], expected [{}]"),
        ({"a": [{"b": 1}]}, {"a": [{"b": 3}]}, "a[0].b is 3, expected 1"),
    ],
)
def test_what_an_answer_lacks(expected: object, found: object, problem: str) -> None:
    assert missing(expected, found) == problem


def test_outputs_of_the_tool_are_kept_as_text() -> None:
    said = tool.read()
    assert [one.command for one in said] == [*tool.WITH_MEMBERS, *tool.WITHOUT_MEMBERS]
    assert all(one.lines for one in said)
