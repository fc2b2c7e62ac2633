"""`python -m tests.client_suites`: run a client library's own tests on `groupstorm serve` and on Kafka.

The sources come from the library's package (Go's module proxy, apt-get) and stay in the user's cache. Tests
make and delete topics and groups: give them no broker that others use.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from groupstorm.clients.brokers import EMULATOR, KINDS, BrokerKind, read_kind
from groupstorm.clients.brokers.contract import BrokerUnavailable
from groupstorm.problems import InputError
from groupstorm.stoppable import run_stoppable
from tests.client_suites.franz_go import FranzGo
from tests.client_suites.librdkafka import Librdkafka
from tests.client_suites.running import run_tests
from tests.client_suites.suite import Outcome, Suite, SuiteTest
from tests.client_suites.table import counts, has_failures, reasons, table
from tests.conformance.programs.building import ProgramUnavailable

SUITES: dict[str, Callable[[Path | None, Path], Suite]] = {"franz-go": FranzGo, "librdkafka": Librdkafka}
LIMIT_S = 300.0
#: Many tests make topics with three replicas.
BROKERS = 3


def main(arguments: Sequence[str] | None = None) -> int:
    """0: every test has passed or was skipped. 1: one has not. 2: something is missing. 130: interrupted."""
    options = _parser().parse_intermixed_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # brokers and tests end with this process
    output = options.output or Path(tempfile.mkdtemp(prefix="client-suite-"))
    output.mkdir(parents=True, exist_ok=True)
    try:
        kinds = [read_kind(text) for text in options.on or [EMULATOR]]
        suite = SUITES[options.suite](options.source, output)
        columns = _run(suite, chosen(suite, options.tests), kinds, options.brokers, options.limit, output)
    except (InputError, ProgramUnavailable, BrokerUnavailable) as problem:
        print(problem, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    print(f"\n{suite.title}\n", *table(columns), "", *reasons(columns), "", *counts(columns), sep="\n")
    print(f"what the tests have printed: {output}")
    return 1 if has_failures(columns) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.client_suites", description=__doc__)
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument(
        "tests", nargs="*", metavar="TEST", help="the beginning of a name; default: all that use a broker"
    )
    parser.add_argument(
        "--on", action="append", metavar="BROKER", help=f"{KINDS}; repeatable; default: {EMULATOR}"
    )
    parser.add_argument(
        "--brokers",
        type=int,
        default=BROKERS,
        help=f"how many the emulator and the jvm have; default: {BROKERS}",
    )
    parser.add_argument("--limit", type=float, default=LIMIT_S, metavar="S", help="seconds of one test")
    parser.add_argument("--source", type=Path, metavar="DIR", help="an unpacked source of the library")
    parser.add_argument("--output", type=Path, metavar="DIR", help="where the output of the tests goes")
    return parser


def chosen(suite: Suite, beginnings: Sequence[str]) -> list[SuiteTest]:
    """The tests whose names begin so; all if there is no beginning. Raises InputError for an unknown one."""
    for beginning in beginnings:
        if not any(test.name.startswith(beginning) for test in suite.tests):
            raise InputError(f"TEST: {beginning!r}: {suite.title} has no test whose name begins so")
    return [test for test in suite.tests if not beginnings or test.name.startswith(tuple(beginnings))]


def _run(
    suite: Suite,
    tests: Sequence[SuiteTest],
    kinds: Sequence[BrokerKind],
    brokers: int,
    limit_s: float,
    output: Path,
) -> dict[str, list[Outcome]]:
    columns: dict[str, list[Outcome]] = {}
    for number, kind in enumerate(kinds):
        folder = output / f"{number}-{kind.name.replace(':', '-')}"
        folder.mkdir(exist_ok=True)

        def report(outcome: Outcome, on: str = kind.name) -> None:
            print(f"{on}: {outcome.name}: {outcome.verdict} {outcome.seconds:.1f} s", flush=True)

        async def run(kind: BrokerKind = kind, folder: Path = folder) -> None:
            name, outcomes = await run_tests(suite, tests, kind, brokers, limit_s, folder, report)
            columns[name] = outcomes

        run_stoppable(run)
    return columns


if __name__ == "__main__":
    sys.exit(main())
