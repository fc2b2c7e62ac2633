"""A client library's own test suite, described so that its tests can be run on a broker."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple, Protocol

from groupstorm.clients.brokers.contract import RunningBroker
from tests.client_libraries.secured import Access
from tests.client_suites.access import Security
from tests.conformance.programs.building import ProgramUnavailable
from tests.processes import run_process


class Verdict(StrEnum):
    PASSED = "passed"
    FAILED = "FAILED"
    SKIPPED = "skipped"
    TIMED_OUT = "TIMED OUT"
    NO_RESULT = "NO RESULT"
    """The process ended before it had said how the test ended."""


class SuiteTest(NamedTuple):
    """One test. ``settings`` and ``security``: of the brokers that it is written for, by Kafka's names."""

    name: str
    settings: Mapping[str, str]
    security: Security = Security()


class Outcome(NamedTuple):
    """The end of a test. ``reason``: what the suite says of a test that has failed or was skipped."""

    name: str
    verdict: Verdict
    seconds: float
    reason: str = ""


class Command(NamedTuple):
    """The process that runs one test."""

    arguments: Sequence[str]
    environment: Mapping[str, str]
    folder: Path


class Suite(Protocol):
    """A suite that is built."""

    @property
    def title(self) -> str:
        """The library and its version."""

    @property
    def tests(self) -> Sequence[SuiteTest]:
        """The tests that use a broker, in the suite's order."""

    def command(self, test: SuiteTest, broker: RunningBroker, access: Access, folder: Path) -> Command:
        """The command that runs this test alone, its clients configured by ``access``.

        ``folder`` receives the files that the command needs.
        """

    def outcome(self, test: SuiteTest, output: str) -> Outcome | None:
        """Read what the command has printed; None: it does not say how the test ended."""


def need(program: str, install: str) -> str:
    """The path of a program. Raises ProgramUnavailable if it is not installed."""
    found = shutil.which(program)
    if found is None:
        raise ProgramUnavailable(f"{program} is needed: install it ({install})")
    return found


def carry_out(command: Sequence[str], folder: Path) -> str:
    """Run one step of fetching or building with little priority, and return what it printed.

    Raises ProgramUnavailable with the last line of the step's errors.
    """
    answer = run_process(
        ["nice", "-n", "10", *command],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        deadline_s=3600,
    )
    if answer.returncode != 0:
        said = (answer.stderr or answer.stdout).strip().splitlines() or ["it said nothing"]
        raise ProgramUnavailable(f"{' '.join(command)}: {said[-1]}")
    return answer.stdout
