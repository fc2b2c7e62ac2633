"""Who a client is to the authorizer: its user of SASL, the subject of its certificate, or nobody."""

from __future__ import annotations

import datetime
import ssl
from pathlib import Path
from typing import Any

import pytest

from groupstorm.broker.embedded import EmbeddedBroker
from groupstorm.broker.security.connection import subject_of
from groupstorm.broker.security.listener import ListenerSecurity
from groupstorm.clients.brokers.jvm import MINIMUM_JAVA
from groupstorm.coordinator.errors import Error
from groupstorm.javaruntime import runtimes
from tests.broker import wire
from tests.broker.security.test_listeners import SASL, address, log_in, with_tls
from tests.broker.wire import RawClient
from tests.certificates import Certificates
from tests.processes import run_process

AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


def may_describe(security: ListenerSecurity, super_user: str, client: Any) -> bool:
    """Whether a client that ``client`` connects is this super user."""
    options = {"authorizer.class.name": AUTHORIZER, "super.users": super_user}
    with EmbeddedBroker(options, security=security) as broker, client(broker) as connected:
        answer = connected.ask(wire.DESCRIBE_CLUSTER, 0, include_cluster_authorized_operations=True)
    assert answer.error_code == Error.NONE
    return answer.cluster_authorized_operations != 0


def alice(broker: EmbeddedBroker) -> RawClient:
    client = RawClient(address(broker))
    assert log_in(client) == Error.NONE
    return client


def test_a_user_of_sasl() -> None:
    assert may_describe(SASL, "User:alice", alice)
    assert not may_describe(SASL, "User:ANONYMOUS", alice)


def test_the_subject_of_a_certificate(certificates: Certificates) -> None:
    def with_certificate(broker: EmbeddedBroker) -> RawClient:
        return RawClient(address(broker), certificates.client_context(with_certificate=True))

    first, end, _ = certificates.client.read_text().partition("-----END CERTIFICATE-----")
    subject = subject_of(ssl.PEM_cert_to_DER_cert(first + end))
    demanding = with_tls(certificates, demands=True)
    assert may_describe(demanding, f"User:{subject}", with_certificate)
    assert not may_describe(demanding, "User:ANONYMOUS", with_certificate)


def test_tls_without_a_certificate_of_the_client_is_nobody(certificates: Certificates) -> None:
    def without(broker: EmbeddedBroker) -> RawClient:
        return RawClient(address(broker), certificates.client_context())

    assert may_describe(with_tls(certificates), "User:ANONYMOUS", without)


#: Attributes of a subject, with + before those that share a name with the one before -> Java's name.
SUBJECTS: dict[tuple[str, ...], str] = {
    ("C=DE", "O=Example", "CN=alice"): "CN=alice,O=Example,C=DE",
    ("CN=a, b",): "CN=a\\, b",
    ("CN= x ",): "CN=\\ x\\ ",
    ("CN=#x",): "CN=\\#x",
    ('CN=a+b"c\\d<e>f;g=h',): 'CN=a\\+b\\"c\\\\d\\<e\\>f\\;g\\=h',
    ("CN=zoë π",): "CN=zoë π",
    ("O=x", "+OU=y", "CN=z"): "CN=z,O=x+OU=y",
    ("EMAIL=a@b",): "1.2.840.113549.1.9.1=#1603614062",
    (
        "SERIAL=7",
        "UID=u",
        "DC=com",
        "STREET=s",
        "L=l",
        "ST=st",
    ): "ST=st,L=l,STREET=s,DC=com,UID=u,2.5.4.5=#130137",
}


def certificate_of(attributes: tuple[str, ...]) -> bytes:
    """A certificate (DER) with this subject."""
    x509: Any = pytest.importorskip("cryptography.x509", reason="makes certificates: pip install trustme")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    kinds = x509.NameOID
    oids = {
        "C": kinds.COUNTRY_NAME,
        "O": kinds.ORGANIZATION_NAME,
        "CN": kinds.COMMON_NAME,
        "OU": kinds.ORGANIZATIONAL_UNIT_NAME,
        "EMAIL": kinds.EMAIL_ADDRESS,
        "SERIAL": kinds.SERIAL_NUMBER,
        "UID": kinds.USER_ID,
        "DC": kinds.DOMAIN_COMPONENT,
        "STREET": kinds.STREET_ADDRESS,
        "L": kinds.LOCALITY_NAME,
    }
    oids["ST"] = kinds.STATE_OR_PROVINCE_NAME
    names: list[list[Any]] = []
    for attribute in attributes:
        kind, _, value = attribute.partition("=")
        if not kind.startswith("+"):
            names.append([])
        names[-1].append(x509.NameAttribute(oids[kind.removeprefix("+")], value))
    subject = x509.Name([x509.RelativeDistinguishedName(one) for one in names])
    key = ec.generate_private_key(ec.SECP256R1())
    builder = x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
    since = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
    builder = builder.not_valid_before(since).not_valid_after(since + datetime.timedelta(days=9))
    certificate = builder.sign(key, hashes.SHA256())
    return bytes(certificate.public_bytes(serialization.Encoding.DER))


@pytest.mark.parametrize("attributes", SUBJECTS)
def test_subjects_are_named_as_in_java(attributes: tuple[str, ...]) -> None:
    assert subject_of(certificate_of(attributes)) == SUBJECTS[attributes]


@pytest.mark.slow
def test_java_names_the_subjects_so() -> None:
    java = next(
        (one.java for one in runtimes(MINIMUM_JAVA, []) if (one.home / "bin" / "javac").exists()), None
    )
    if java is None:
        pytest.skip(f"needs a JDK {MINIMUM_JAVA} or newer (Debian: apt install openjdk-17-jdk-headless)")
    certificates = "".join(f"{certificate_of(attributes).hex()}\n" for attributes in SUBJECTS)
    program = Path(__file__).with_name("Subjects.java")
    done = run_process(
        [str(java), str(program)], input=certificates, capture_output=True, encoding="utf-8", check=True
    )
    assert done.stdout.splitlines() == list(SUBJECTS.values())
