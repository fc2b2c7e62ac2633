"""franz-go's own tests (`pkg/kgo` of github.com/twmb/franz-go), fetched through Go's module proxy.

A test belongs to the suite's tests here if its body calls one of the helpers that connect to KGO_SEEDS. The
others test the client without a broker.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from groupstorm.clients.brokers.contract import RunningBroker
from groupstorm.storms.live.real_clients.libraries import built_once
from tests.client_libraries.secured import Access
from tests.client_suites.access import Security
from tests.client_suites.suite import Command, Outcome, SuiteTest, Verdict, carry_out
from tests.conformance.programs.building import go

MODULE = "github.com/twmb/franz-go"
VERSION = "v1.22.3"
#: Of the transactional and group chains; the suite's default is 500,000.
RECORDS = 20_000

#: Groups form at once, as on the brokers of franz-go's continuous integration.
SETTINGS = {"group.initial.rebalance.delay.ms": "0"}

#: Of the brokers of tests whose clients authenticate. The others connect in plain text.
_SCRAM = Security("SASL_PLAINTEXT", "SCRAM-SHA-256")
_SECURITY = {"TestSCRAMAuth": _SCRAM, "TestSCRAMAuthBadCredentials": _SCRAM}

#: Of the topics of tests: the suite's default.
_REPLICAS = 3
_PACKAGE = "./pkg/kgo"
_TEST = re.compile(r"^func (?P<name>Test\w+)\(.*?^}", re.MULTILINE | re.DOTALL)
_CONNECTS = re.compile(
    r"\b(newTestClient|testClientOpts|getSeedBrokers|tmpTopic\w*|tmpNamedTopic\w*|tmpGroup|adm|internalTopic"
    r"|scramSeeds|oauthSeeds)\b"
)
_VERDICTS = {"PASS": Verdict.PASSED, "FAIL": Verdict.FAILED, "SKIP": Verdict.SKIPPED}
_SAID = re.compile(r"^ +\w+_test\.go:\d+: (?P<reason>.*)", re.MULTILINE)
_KEPT_TOPIC = "FAILED TESTING"


class FranzGo:
    """``source``: a checkout to test instead of the version that the proxy has; built into ``scratch``."""

    def __init__(self, source: Path | None, scratch: Path) -> None:
        """Raises ProgramUnavailable."""
        self._source = _download(scratch) if source is None else source
        self.title = f"franz-go {VERSION if source is None else source}"
        if source is None:
            program = built_once("client-suite-franz-go", VERSION.encode(), self._build)
        else:
            program = scratch
            self._build(scratch)
        self._program = program / "kgo.test"
        self.tests = tuple(self._tests())

    def _build(self, folder: Path) -> None:
        carry_out([go(), "test", "-c", "-o", str(folder / "kgo.test"), _PACKAGE], self._source)

    def _tests(self) -> Iterator[SuiteTest]:
        for file in sorted((self._source / _PACKAGE).glob("*_test.go")):
            for name in names_of_tests_with_a_broker(file.read_text("utf-8")):
                yield SuiteTest(name, SETTINGS, _SECURITY.get(name, Security()))

    def command(self, test: SuiteTest, broker: RunningBroker, access: Access, folder: Path) -> Command:
        environment = {
            "KGO_SEEDS": broker.address,
            "KGO_TEST_RF": str(min(_REPLICAS, len(broker.bootstrap))),
            "KGO_TEST_RECORDS": str(RECORDS),
            "KGO_LOG_LEVEL": "info",
            **scram_variables(broker, access),
        }
        arguments = [str(self._program), "-test.run", f"^{test.name}$", "-test.v", "-test.timeout", "0"]
        return Command(arguments, environment, folder)

    def outcome(self, test: SuiteTest, output: str) -> Outcome | None:
        ended = re.search(
            rf"^--- (?P<verdict>PASS|FAIL|SKIP): {test.name} \((?P<seconds>[\d.]+)s\)", output, re.MULTILINE
        )
        if ended is None:
            return None
        verdict = _VERDICTS[ended["verdict"]]
        said = [one["reason"] for one in _SAID.finditer(output) if not one["reason"].startswith(_KEPT_TOPIC)]
        reason = said[0] if said and verdict is not Verdict.PASSED else ""
        return Outcome(test.name, verdict, float(ended["seconds"]), reason)


def scram_variables(broker: RunningBroker, access: Access) -> Mapping[str, str]:
    """The tests with SCRAM have seeds of their own, and are skipped without."""
    if not access.mechanism.startswith("SCRAM"):
        return {}
    bits = access.mechanism.rpartition("-")[2]
    return {
        "KGO_TEST_SCRAM_SEEDS": broker.address,
        "KGO_TEST_SCRAM": f"{access.username}:{access.password}:{bits}",
    }


def names_of_tests_with_a_broker(source: str) -> Sequence[str]:
    """The names of the test functions of a Go file that call one of the helpers that connect."""
    return [test["name"] for test in _TEST.finditer(source) if _CONNECTS.search(test[0])]


def _download(scratch: Path) -> Path:
    """The module in Go's own cache."""
    answer = carry_out([go(), "mod", "download", "-json", f"{MODULE}@{VERSION}"], scratch)
    return Path(json.loads(answer)["Dir"])
