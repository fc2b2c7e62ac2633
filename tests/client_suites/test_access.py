"""A suite's brokers demand TLS or SASL, and its clients are given what they need for it."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from groupstorm.cli.serve import ListenerOptions, read_listener
from groupstorm.clients.brokers import BrokerKind, read_kind
from groupstorm.clients.brokers.contract import RunningBroker
from groupstorm.protocol.endpoints import Endpoint
from tests.client_libraries.secured import Access
from tests.client_suites import running
from tests.client_suites.access import PASSWORD, USER, Security, access_by
from tests.client_suites.brokers import listener_options
from tests.client_suites.librdkafka_access import options_of, variables_of
from tests.client_suites.running import run_tests
from tests.client_suites.suite import Command, Outcome, SuiteTest, Verdict

SASL = Security("SASL_PLAINTEXT", "SCRAM-SHA-256")
ALL = [Security(), SASL, Security("SSL"), Security("SASL_SSL", "PLAIN")]
BROKER = RunningBroker("a broker", [Endpoint("127.0.0.1", 9092)])


class Secured:
    """A suite of two tests in plain text and one with SASL between them."""

    title = "secured 1"
    tests = (SuiteTest("TestA", {}), SuiteTest("TestB", {}, SASL), SuiteTest("TestC", {}))

    def __init__(self) -> None:
        self.given: dict[str, Access] = {}

    def command(self, test: SuiteTest, broker: RunningBroker, access: Access, folder: Path) -> Command:
        self.given[test.name] = access
        return Command(["true"], {}, folder)

    def outcome(self, test: SuiteTest, output: str) -> Outcome | None:
        return Outcome(test.name, Verdict.PASSED, 0.0)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Access]:
    """The demands of the brokers in the order of their starts; none starts."""
    found: list[Access] = []

    @asynccontextmanager
    async def start(
        kind: BrokerKind, settings: Mapping[str, str], access: Access, brokers: int, folder: Path
    ) -> AsyncIterator[RunningBroker]:
        found.append(access)
        yield RunningBroker(kind.name, BROKER.bootstrap)

    monkeypatch.setattr(running, "broker_of_suite", start)
    return found


async def run_secured(kind: str, folder: Path) -> Secured:
    suite = Secured()
    _, outcomes = await run_tests(suite, suite.tests, read_kind(kind), 1, 20, folder, lambda _outcome: None)
    assert [one.name for one in outcomes] == [test.name for test in suite.tests]
    return suite


@pytest.mark.parametrize("kind", ["emulator", "jvm"])
async def test_tests_share_a_broker_only_if_they_demand_the_same(
    kind: str, started: list[Access], tmp_path: Path
) -> None:
    suite = await run_secured(kind, tmp_path)
    assert sorted(access.protocol for access in started) == ["PLAINTEXT", "SASL_PLAINTEXT"]
    protocols = {name: access.protocol for name, access in suite.given.items()}
    assert protocols == {"TestA": "PLAINTEXT", "TestB": "SASL_PLAINTEXT", "TestC": "PLAINTEXT"}


@pytest.mark.parametrize("kind", ["127.0.0.1:9092", "container"])
async def test_brokers_that_cannot_be_secured_stay_in_plain_text(
    kind: str, started: list[Access], tmp_path: Path
) -> None:
    suite = await run_secured(kind, tmp_path)
    assert {access.protocol for access in started} == {"PLAINTEXT"}
    assert suite.given["TestB"] == Access("PLAINTEXT")


@pytest.mark.parametrize("security", ALL)
def test_serve_demands_what_the_clients_have(security: Security, tmp_path: Path) -> None:
    access = access_by(security, tmp_path / "certificates")
    options = listener_options(access, tmp_path)
    given = dict(zip(options[::2], map(Path, options[1::2]), strict=True))
    cert, key, authority, users = (
        given.pop(name, None) for name in ("--tls-cert", "--tls-key", "--tls-client-ca", "--sasl-users")
    )
    assert not given
    _, _, listener = read_listener(ListenerOptions(None, 0, None, cert, key, authority, users, False), 1)
    assert listener.protocol == security.protocol
    assert listener.tls is None or listener.tls.verify_mode is ssl.CERT_REQUIRED
    assert listener.users is None or listener.users.has(USER, PASSWORD)


def test_librdkafka_is_given_the_user_of_sasl(tmp_path: Path) -> None:
    assert options_of(access_by(Security("SASL_PLAINTEXT", "PLAIN"), tmp_path)) == {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": USER,
        "sasl.password": PASSWORD,
    }
    assert variables_of(Access("PLAINTEXT"), tmp_path) == {}


def test_librdkafka_is_given_its_certificates_in_all_encodings(tmp_path: Path) -> None:
    access = access_by(Security("SSL"), tmp_path / "certificates")
    assert access.certificates is not None
    options = options_of(access)
    own = ssl.create_default_context(cafile=options["ssl.ca.location"])
    own.load_cert_chain(options["ssl.certificate.location"], options["ssl.key.location"])
    variables = variables_of(access, tmp_path / "encoded")
    assert variables["SSL_password"] == options["ssl.key.password"]

    from cryptography.hazmat.primitives.serialization import pkcs12

    def der_of(pem: Path) -> bytes:
        return ssl.PEM_cert_to_DER_cert(pem.read_text("ascii"))

    authority, client = der_of(access.certificates.authority), der_of(access.certificates.client)
    assert Path(variables["SSL_ca_der"]).read_bytes() == authority
    assert Path(variables["SSL_pub_der"]).read_bytes() == client
    store = pkcs12.load_pkcs12(Path(variables["SSL_pkcs"]).read_bytes(), variables["SSL_password"].encode())
    assert store.key is not None
    with_another = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    with_another.load_verify_locations(variables["SSL_all_cas_pem"])
    authorities = with_another.get_ca_certs(binary_form=True)
    assert len(authorities) == 2
    assert authority in authorities
    assert len(store.additional_certs) == 2
