"""The command that runs client libraries' own test suites, and a few quick tests of franz-go's."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from groupstorm.clients.brokers.contract import RunningBroker
from groupstorm.problems import InputError
from tests.client_libraries.secured import Access
from tests.client_suites.__main__ import chosen, main
from tests.client_suites.franz_go import FranzGo, names_of_tests_with_a_broker
from tests.client_suites.librdkafka import Librdkafka, scenarios_of_tests, settings_of
from tests.client_suites.running import run_test
from tests.client_suites.suite import Command, Outcome, SuiteTest, Verdict
from tests.client_suites.table import counts, has_failures, reasons, table
from tests.conformance.programs.building import go
from tests.needs import needed

#: Each takes a second or two.
QUICK = [
    "TestPing",
    "TestConsumeRegex",
    "Test848RegexBrokerResolves",
    "TestGroupSimple",
    "TestShareGroupOffsetsAdmin",
    "TestIssue769",
    "TestSCRAMAuth",
    "TestSCRAMAuthBadCredentials",
]

BROKER = RunningBroker("a broker", ())
PLAIN_TEXT = Access("PLAINTEXT")


class Shell:
    """A suite of shell commands that print how they have ended."""

    title = "shell 1"
    tests = (SuiteTest("TestA", {}), SuiteTest("TestAB", {}), SuiteTest("TestC", {}))

    def __init__(self, script: str = "") -> None:
        self.script = script

    def command(self, test: SuiteTest, broker: RunningBroker, access: Access, folder: Path) -> Command:
        return Command(["sh", "-c", self.script], {}, folder)

    def outcome(self, test: SuiteTest, output: str) -> Outcome | None:
        return Outcome(test.name, Verdict.PASSED, 1.5) if "passed" in output else None


def franz_go_says(output: str) -> Outcome | None:
    return FranzGo.outcome(FranzGo.__new__(FranzGo), SuiteTest("TestA", {}), dedent(output))


def librdkafka_says(output: str) -> Outcome | None:
    return Librdkafka.outcome(Librdkafka.__new__(Librdkafka), SuiteTest("0045_a", {}), dedent(output))


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("--- PASS: TestA (1.25s)\nPASS\n", (Verdict.PASSED, 1.25, "")),
        ("    a_test.go:7: no share groups\n--- SKIP: TestA (0.00s)\n",
         (Verdict.SKIPPED, 0.0, "no share groups")),
        ("    a_test.go:9: FAILED TESTING -- NOT DELETING TOPIC x\n"
         "    a_test.go:8: got 1\n"
         "--- FAIL: TestA (2.00s)\n", (Verdict.FAILED, 2.0, "got 1")),
    ],
)  # fmt: skip
def test_outcomes_of_go(output: str, expected: tuple[Verdict, float, str]) -> None:
    assert franz_go_says(output) == Outcome("TestA", *expected)


def test_another_test_of_go_or_a_panic_is_no_outcome() -> None:
    assert franz_go_says("--- PASS: TestAB (1.25s)\npanic: deadlock\n") is None


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("\x1b[32m| 0045_a      |     PASSED |   1.250s |\x1b[0m\n| 0045_a_b |     FAILED |   2.0s | no\n",
         (Verdict.PASSED, 1.25, "")),
        ("| 0045_a  |    SKIPPED |   0.000s | no SASL\n", (Verdict.SKIPPED, 0.0, "no SASL")),
        ("[0045_a      / 12.500s] TEST FAILURE\n"
         '### Test "0045_a (sub:1)" failed at test.c:9:f() at Tue: ###\n'
         "late\n", (Verdict.FAILED, 12.5, "test.c:9:f() late")),
    ],
)  # fmt: skip
def test_outcomes_of_librdkafka(output: str, expected: tuple[Verdict, float, str]) -> None:
    assert librdkafka_says(output) == Outcome("0045_a", *expected)


def test_another_test_of_librdkafka_is_no_outcome() -> None:
    assert librdkafka_says('### Test "0045_a_b" failed at test.c:9:f() at Tue: ###\nlate\n') is None


def test_go_tests_that_connect_are_those_that_call_a_helper() -> None:
    source = (
        "func TestA(t *testing.T) {\n\tcl, _ := newTestClient()\n}\n\n"
        "func TestB(t *testing.T) {\n\tnewTestClientX()\n}\n\n"
        "func TestC(t *testing.T) {\n\ttopic, cleanup := tmpTopicPartitions(t, 1)\n}\n"
    )
    assert names_of_tests_with_a_broker(source) == ["TestA", "TestC"]


def test_librdkafka_tests_that_need_a_broker_and_their_scenarios() -> None:
    source = """\
    struct test tests[] = {
        _TEST(0001_a, 0),
        _TEST(0002_local, TEST_F_LOCAL),
        _TEST(0003_b, 0, TEST_BRKVER(0, 9, 0, 0),
              .scenario = "noautocreate"),
        _TEST(0004_c, 0, .scenario = "default,ak23"),
        _TEST(8000_idle, TEST_F_MANUAL),
        {NULL}};
    """
    expected = {"0001_a": "default", "0003_b": "noautocreate", "0004_c": "default"}
    assert scenarios_of_tests(dedent(source)) == expected


def test_librdkafka_tests_that_make_acls_have_an_authorizer() -> None:
    with_acls, without = (settings_of(name, "default") for name in ("0115_producer_auth", "0018_cgrp_term"))
    assert with_acls["authorizer.class.name"].endswith("StandardAuthorizer")
    assert "authorizer.class.name" not in without
    assert without.items() < with_acls.items()


def test_tests_are_chosen_by_the_beginnings_of_their_names() -> None:
    assert [test.name for test in chosen(Shell(), ["TestA"])] == ["TestA", "TestAB"]
    assert len(chosen(Shell(), [])) == 3
    with pytest.raises(InputError, match=r"TEST: 'TestX': shell 1 has no test whose name begins so"):
        chosen(Shell(), ["TestA", "TestX"])


async def test_a_test_that_takes_too_long_is_killed(tmp_path: Path) -> None:
    outcome = await run_test(Shell("sleep 60"), Shell.tests[0], BROKER, PLAIN_TEXT, 0.2, tmp_path)
    assert (outcome.verdict, outcome.reason) == (Verdict.TIMED_OUT, "no end within 0.2 s")


@pytest.mark.parametrize(
    ("script", "verdict", "reason"),
    [
        ("echo passed", Verdict.PASSED, ""),
        ("echo started; echo oh no; exit 3", Verdict.NO_RESULT, "oh no"),
        ("exit 3", Verdict.NO_RESULT, "it printed nothing"),
    ],
)
async def test_what_a_test_prints_decides(script: str, verdict: Verdict, reason: str, tmp_path: Path) -> None:
    outcome = await run_test(Shell(script), Shell.tests[0], BROKER, PLAIN_TEXT, 20, tmp_path)
    assert (outcome.verdict, outcome.reason) == (verdict, reason)


def test_tables_of_two_brokers() -> None:
    columns = {
        "Kafka": [Outcome("a", Verdict.PASSED, 1), Outcome("b", Verdict.SKIPPED, 0, "no TLS")],
        "serve": [Outcome("a", Verdict.FAILED, 2.04, "late"), Outcome("b", Verdict.SKIPPED, 0, "no TLS")],
    }
    assert list(table(columns)) == [
        "| test | Kafka | serve |",
        "|---|---|---|",
        "| a | passed 1.0 s | FAILED 2.0 s |",
        "| b | skipped 0.0 s | skipped 0.0 s |",
    ]
    assert list(counts(columns)) == ["Kafka: 1 passed, 1 skipped", "serve: 1 FAILED, 1 skipped"]
    assert list(reasons(columns)) == [
        "a on serve: FAILED: late",
        "b on Kafka: skipped: no TLS",
        "b on serve: skipped: no TLS",
    ]
    assert has_failures(columns)
    assert not has_failures({"Kafka": columns["Kafka"]})


@pytest.mark.slow
def test_quick_tests_of_franz_go_pass_on_serve(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with needed():
        go()
    code = main(["franz-go", *QUICK, "--output", str(tmp_path / "output")])
    printed = capsys.readouterr().out
    assert code == 0, printed
    passed = [line for line in printed.splitlines() if line.startswith("| ") and " passed " in line]
    assert len(passed) >= len(QUICK), printed
