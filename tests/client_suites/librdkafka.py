"""librdkafka's own tests (`tests/` of its source), fetched as a source package with apt-get.

The tests that its `test.c` marks TEST_F_LOCAL need no broker; they are left out. A test's scenario says
how the broker is set (`tests/scenarios/*.json` of the source).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from groupstorm.clients.brokers.contract import RunningBroker
from groupstorm.storms.live.real_clients.libraries import built_once
from tests.client_libraries.secured import Access
from tests.client_suites.access import Security
from tests.client_suites.kafka_tools import write_kafka_tools
from tests.client_suites.librdkafka_access import options_of, variables_of
from tests.client_suites.suite import Command, Outcome, SuiteTest, Verdict, carry_out, need
from tests.conformance.programs.building import ProgramUnavailable

PACKAGE = "librdkafka"
#: What the tests believe to talk to: the newest Kafka that librdkafka 2.0 was released for.
KAFKA_VERSION = "3.4.0"
#: The tests expect a machine of their own.
TIMEOUT_MULTIPLIER = 3

_DEFAULT_SCENARIO = "default"
_COMMON = {
    "num.partitions": "4",
    "default.replication.factor": "3",
    "group.initial.rebalance.delay.ms": "100",  # as of trivup, which starts librdkafka's brokers
}
_SCENARIOS = {
    _DEFAULT_SCENARIO: {**_COMMON, "auto.create.topics.enable": "true"},
    "noautocreate": {**_COMMON, "auto.create.topics.enable": "false"},
}
#: Tests that make ACLs, and what they expect where there is none.
_WANT_AUTHORIZER = frozenset(
    {"0081_admin", "0109_auto_create_topics", "0115_producer_auth", "0119_consumer_auth"}
)
_AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
#: Of the brokers of tests whose clients have certificates or users. 0135 could have SCRAM as well, but
#: Kafka 4 refuses the SCRAM of librdkafka before 2.6.1, whose last message has the client's nonce twice.
_SECURITY = {"0097_ssl_verify": Security("SSL"), "0135_sasl_credentials": Security("SASL_PLAINTEXT", "PLAIN")}
_TEST = re.compile(r"_TEST\(\s*(?P<name>\d{4}_\w+),(?P<rest>.*?)(?=_TEST\(|\{NULL\}\})", re.DOTALL)
_SCENARIO = re.compile(r'\.scenario\s*=\s*"(?P<first>\w+)')
_NEEDS_NO_BROKER = ("TEST_F_LOCAL", "TEST_F_MANUAL")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_VERDICTS = {"PASSED": Verdict.PASSED, "FAILED": Verdict.FAILED, "SKIPPED": Verdict.SKIPPED}


class Librdkafka:
    """``source``: a source tree to test instead of the one that apt-get has; it is built in place."""

    def __init__(self, source: Path | None, scratch: Path) -> None:
        """Raises ProgramUnavailable."""
        if source is None:
            place = built_once(f"client-suite-{PACKAGE}", b"", _fetch_and_build)
            source = _only_folder(place)
        else:
            _build(source.resolve())
        self._tests_folder = source.resolve() / "tests"
        self._kafka_path = write_kafka_tools(scratch.resolve() / "kafka")
        self.title = source.name
        self._scenarios: dict[str, str] = {}
        self.tests = tuple(self._declared())

    def _declared(self) -> Iterator[SuiteTest]:
        for name, scenario in scenarios_of_tests((self._tests_folder / "test.c").read_text("utf-8")).items():
            self._scenarios[name] = scenario
            yield SuiteTest(name, settings_of(name, scenario), _SECURITY.get(name, Security()))

    def command(self, test: SuiteTest, broker: RunningBroker, access: Access, folder: Path) -> Command:
        configuration = folder / f"{test.name}.conf"
        options = {
            "bootstrap.servers": broker.address,
            **options_of(access),
            "test.topic.random": "true",
            "test.timeout.multiplier": str(TIMEOUT_MULTIPLIER),
        }
        configuration.write_text("".join(f"{name}={value}\n" for name, value in options.items()), "utf-8")
        libraries = os.pathsep.join(str(self._tests_folder.parent / one) for one in ("src", "src-cpp"))
        environment = {
            "RDKAFKA_TEST_CONF": str(configuration.resolve()),
            "LD_LIBRARY_PATH": libraries,
            "TEST_KAFKA_VERSION": KAFKA_VERSION,
            "TESTS": test.name[:4],
            "KAFKA_PATH": str(self._kafka_path),
            "BROKERS": broker.address,
            **variables_of(access, folder.resolve() / f"{test.name}-certificates"),
        }
        scenario = self._scenarios[test.name]
        return Command(["./test-runner", "-L", "-p1", "-s", scenario], environment, self._tests_folder)

    def outcome(self, test: SuiteTest, output: str) -> Outcome | None:
        said = _COLOUR.sub("", output)
        ended = re.search(
            rf"^\| +{test.name} +\| +(?P<verdict>[A-Z]+) \| +(?P<seconds>[\d.]+)s \|(?P<reason>.*)",
            said,
            re.MULTILINE,
        )
        if ended is not None and ended["verdict"] in _VERDICTS:
            verdict = _VERDICTS[ended["verdict"]]
            return Outcome(test.name, verdict, float(ended["seconds"]), ended["reason"].strip())
        return _aborted(test.name, said)


def _aborted(name: str, said: str) -> Outcome | None:
    """Most failed tests end their process before it prints the table of results."""
    failed = re.search(
        rf'### Test "{name}\b.*" failed at (?P<place>\S+) at .*###\n(?P<reason>.*)', said, re.MULTILINE
    )
    if failed is None:
        return None
    seconds = max(map(float, re.findall(rf"^\[{name} */ *([\d.]+)s\]", said, re.MULTILINE)), default=0.0)
    return Outcome(name, Verdict.FAILED, seconds, f"{failed['place']} {failed['reason']}")


def settings_of(name: str, scenario: str) -> dict[str, str]:
    """The brokers' settings for a test."""
    return _SCENARIOS[scenario] | (_AUTHORIZER if name in _WANT_AUTHORIZER else {})


def scenarios_of_tests(test_c: str) -> dict[str, str]:
    """The tests of `test.c` that use a broker, each with its first scenario."""
    table = test_c[test_c.index("struct test tests[]") :]
    found = {}
    for test in _TEST.finditer(table):
        if any(flag in test["rest"] for flag in _NEEDS_NO_BROKER):
            continue
        scenario = _SCENARIO.search(test["rest"])
        found[test["name"]] = _DEFAULT_SCENARIO if scenario is None else scenario["first"]
    return found


def _fetch_and_build(folder: Path) -> None:
    need("dpkg-source", "Debian: apt install dpkg-dev")
    apt_get = need("apt-get", "or pass an unpacked source of librdkafka with --source")
    try:
        carry_out([apt_get, "source", PACKAGE], folder)
    except ProgramUnavailable as unavailable:
        raise ProgramUnavailable(
            f"{unavailable} (apt needs a deb-src line, or pass an unpacked source with --source)"
        ) from unavailable
    _build(_only_folder(folder))


def _build(source: Path) -> None:
    make = need("make", "Debian: apt install build-essential zlib1g-dev libssl-dev")
    if not (source / "Makefile.config").exists():
        carry_out(["./configure"], source)
    carry_out([make, "-j2", "libs"], source)
    carry_out([make, "-C", "tests", "build"], source)


def _only_folder(place: Path) -> Path:
    (source,) = (one for one in place.iterdir() if one.is_dir())
    return source
