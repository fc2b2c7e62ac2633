"""Runs tests of a suite on a broker, each by itself and with a limit of time."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path

from groupstorm.clients.brokers import BrokerKind
from groupstorm.clients.brokers.contract import RunningBroker
from tests.client_libraries.secured import Access
from tests.client_suites.access import Security, access_by
from tests.client_suites.brokers import broker_of_suite, can_be_secured
from tests.client_suites.suite import Outcome, Suite, SuiteTest, Verdict


async def run_tests(
    suite: Suite,
    tests: Sequence[SuiteTest],
    kind: BrokerKind,
    brokers: int,
    limit_s: float,
    folder: Path,
    report: Callable[[Outcome], None],
) -> tuple[str, list[Outcome]]:
    """The broker's name, and how each test ended on it, in the order of the tests.

    Tests with the same settings and security share a broker. If the broker cannot be secured, all tests get
    it in plain text. ``folder`` receives what each test has printed.

    Raises BrokerUnavailable and ProgramUnavailable.
    """
    ended: dict[str, Outcome] = {}
    name = kind.name
    for _, same in groupby(sorted(tests, key=_demands), _demands):
        together = list(same)
        security = together[0].security if can_be_secured(kind) else Security()
        access = access_by(security, folder / "certificates")
        async with broker_of_suite(kind, together[0].settings, access, brokers, folder) as broker:
            name = broker.name
            for test in together:
                ended[test.name] = await run_test(suite, test, broker, access, limit_s, folder)
                report(ended[test.name])
    return name, [ended[test.name] for test in tests]


def _demands(test: SuiteTest) -> tuple[Security, list[tuple[str, str]]]:
    return test.security, sorted(test.settings.items())


async def run_test(
    suite: Suite, test: SuiteTest, broker: RunningBroker, access: Access, limit_s: float, folder: Path
) -> Outcome:
    """Run one test in processes of its own; they are killed if it takes longer than ``limit_s``."""
    command = suite.command(test, broker, access, folder)
    log = folder / f"{test.name}.log"
    began_s = time.monotonic()
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            *command.arguments,
            cwd=command.folder,
            env=os.environ | command.environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
    is_late = False
    try:
        async with asyncio.timeout(limit_s):
            await process.wait()
    except TimeoutError:
        is_late = True
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    took_s = time.monotonic() - began_s
    if is_late:
        return Outcome(test.name, Verdict.TIMED_OUT, took_s, f"no end within {limit_s:g} s")
    said = log.read_text("utf-8", errors="replace")
    return suite.outcome(test, said) or Outcome(test.name, Verdict.NO_RESULT, took_s, _end(said))


def _end(said: str) -> str:
    return (said.strip().splitlines() or ["it printed nothing"])[-1]
