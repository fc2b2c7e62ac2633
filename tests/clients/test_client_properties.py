"""The file of --command-config: read as java.util.Properties, or refused."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from groupstorm.clients.wire.security import PLAINTEXT, ClientSecurity, read_client_properties
from groupstorm.problems import InputError
from tests.certificates import make_certificates

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


def read(folder: Path, *lines: str) -> ClientSecurity:
    path = folder / "client.properties"
    path.write_text("\n".join(lines), "utf-8")
    return read_client_properties(path)


def test_an_empty_file_means_plaintext(tmp_path: Path) -> None:
    assert read(tmp_path, "# a comment", "", "bootstrap.servers=kafka:9092") == PLAINTEXT


@pytest.mark.parametrize(
    "jaas",
    [
        f"sasl.jaas.config = {PLAIN} username=alice  password=secret;",
        f'sasl.jaas.config: {PLAIN} \\\n    username="alice" \\\n    password="secret";',
        f'  sasl.jaas.config {PLAIN} password="gr\\u00f6\\u00dfe" username="alice";',
    ],
)
def test_names_and_passwords(tmp_path: Path, jaas: str) -> None:
    security = read(tmp_path, "security.protocol=SASL_PLAINTEXT", "sasl.mechanism=PLAIN", jaas)
    assert (security.tls, security.sasl_mechanism, security.username) == (None, "PLAIN", "alice")
    assert security.password in ("secret", "größe")


def test_a_quote_in_a_password_is_escaped_twice(tmp_path: Path) -> None:
    """Java's properties unescape a backslash first, then JAAS does."""
    jaas = f'sasl.jaas.config={PLAIN} username="alice" password="a\\\\"b\\\\\\\\c";'
    security = read(tmp_path, "security.protocol=SASL_PLAINTEXT", "sasl.mechanism=PLAIN", jaas)
    assert security.password == 'a"b\\c'


def test_tls_with_an_authority_and_a_certificate(tmp_path: Path) -> None:
    files = make_certificates(tmp_path)
    both = tmp_path / "both.pem"
    both.write_bytes(files.client.read_bytes() + files.client_key.read_bytes())
    security = read(
        tmp_path,
        "security.protocol=ssl",
        "ssl.truststore.type=PEM",
        f"ssl.truststore.location={files.authority}",
        "ssl.keystore.type=PEM",
        f"ssl.keystore.location={both}",
    )
    assert security.tls is not None
    assert security.tls.check_hostname
    assert security.tls.verify_mode is ssl.CERT_REQUIRED
    assert len(security.tls.get_ca_certs()) == 1
    lax = read(tmp_path, "security.protocol=SSL", "ssl.endpoint.identification.algorithm=")
    assert lax.tls is not None
    assert not lax.tls.check_hostname


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["security.protocol=TLS"], "security.protocol: 'TLS', expected one of PLAINTEXT, SSL"),
        (["security.protocol=SASL_SSL"], "sasl.mechanism: '', expected one of PLAIN"),
        (["sasl.kerberos.service.name=kafka"], "sasl.kerberos.service.name: not known here"),
        (["ssl.truststore.password=secret"], "ssl.truststore.password: not known here"),
        (["security.protocol=SSL", "ssl.truststore.location=a.jks"], "ssl.truststore.type: expected PEM"),
        (["security.protocol=SSL", "ssl.truststore.type=PEM", "ssl.truststore.location=/none.pem"],
         "ssl.truststore.location: /none.pem"),
        (["security.protocol=SSL", "ssl.keystore.type=PEM", "ssl.keystore.location=/none.pem"],
         "ssl.keystore.location: /none.pem"),
        (["security.protocol=SASL_PLAINTEXT", "sasl.mechanism=PLAIN",
          f'sasl.jaas.config={PLAIN} password="secret";'], "sasl.jaas.config: expected"),
    ],
)  # fmt: skip
def test_a_refused_setting_is_named_and_no_password_shown(
    tmp_path: Path, lines: list[str], expected: str
) -> None:
    with pytest.raises(InputError) as refused:
        read(tmp_path, *lines)
    assert expected in str(refused.value)
    assert "secret" not in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read_client_properties(tmp_path / "none")
