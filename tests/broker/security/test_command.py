"""`groupstorm serve` with TLS and SASL: its options, its refusals, and the addresses on which it listens."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from groupstorm.broker.security.listener import PLAINTEXT, check_exposure, is_loopback
from groupstorm.coordinator.errors import Error
from groupstorm.problems import InputError
from tests.broker import wire
from tests.broker.security.test_listeners import log_in
from tests.broker.test_serve import DEADLINE_S, refusal, serving
from tests.broker.wire import RawClient
from tests.certificates import Certificates
from tests.processes import next_line, outcome_of


@pytest.fixture
def users(tmp_path: Path) -> Path:
    path = tmp_path / "users"
    path.write_text("alice=secret\n")
    return path


@pytest.mark.slow
def test_a_broker_with_tls_and_users(certificates: Certificates, users: Path) -> None:
    """With uvloop if it is installed."""
    options = ("--tls-cert", str(certificates.server), "--tls-key", str(certificates.server_key))
    with serving(*options, "--sasl-users", str(users), "--topic", "orders:2") as (process, address):
        with RawClient(address, certificates.client_context()) as client:
            assert log_in(client) is Error.NONE
            assert [one.name for one in client.ask(wire.METADATA, 1, topics=None).topics] == ["orders"]
        with RawClient(address) as stranger:
            stranger.send(wire.framed(wire.request(wire.API_VERSIONS, 0)))
            assert stranger.is_closed_by_server()
        with RawClient(address, certificates.client_context()) as client:
            assert log_in(client, "wrong") is Error.SASL_AUTHENTICATION_FAILED
        process.send_signal(signal.SIGTERM)
        _, log = outcome_of(process, DEADLINE_S)
        assert process.returncode == 0
    assert "no TLS" in log
    assert "Invalid username or password" in log
    assert "wrong" not in log.replace("wrong version number", "")
    assert "Traceback" not in log


@pytest.mark.slow
def test_certificate_and_key_in_one_file(certificates: Certificates, tmp_path: Path) -> None:
    both = tmp_path / "both.pem"
    both.write_bytes(certificates.server.read_bytes() + certificates.server_key.read_bytes())
    with (
        serving("--tls-cert", str(both)) as (_, address),
        RawClient(address, certificates.client_context()) as client,
    ):
        assert client.ask(wire.API_VERSIONS, 0).error_code == Error.NONE


@pytest.mark.slow
@pytest.mark.parametrize("listen", ["127.0.0.2:0", "[::1]:0"])
def test_other_addresses_of_the_loopback_interface(listen: str) -> None:
    command = [sys.executable, "-m", "groupstorm", "serve", "--listen", listen]
    path = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}
    with subprocess.Popen(command, text=True, env=path, stdout=subprocess.PIPE) as process:
        try:
            first = next_line(process)
            host, _, port = first.removeprefix("listening on ").rpartition(":")
            assert host == listen.removesuffix(":0")
            with RawClient((host.strip("[]"), int(port))) as client:
                (told,) = client.ask(wire.METADATA, 1, topics=()).brokers
                assert told.host == host.strip("[]")
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--host", "0.0.0.0"), "--host 0.0.0.0 --port 9092: 0.0.0.0 can be reached from other machines"),
        (("--host", ""), "every address can be reached from other machines"),
        (("--listen", "0.0.0.0:9092"), "--listen 0.0.0.0:9092: 0.0.0.0 can be reached"),
        (("--listen", "192.0.2.1:0"), "give --tls-cert and --tls-key, or --insecure"),
        (("--listen", "no.such.host.invalid:0"), "can be reached from other machines"),
        (("--listen", "192.0.2.1:0", "--insecure"), "--listen 192.0.2.1:0: cannot listen there"),
        (("--listen", "9092"), "--listen 9092: expected HOST:PORT, for example"),
        (("--listen", "::1:9092"), "--listen ::1:9092: expected HOST:PORT"),
        (("--listen", "127.0.0.1:70000"), "--listen 127.0.0.1:70000: expected a port from 0 to 65535"),
        (("--listen", "127.0.0.1:0", "--port", "1"), "says what --host and --port say"),
        (("--tls-key", "key.pem"), "--tls-key key.pem: expected --tls-cert beside it"),
        (("--tls-client-ca", "ca.pem"), "--tls-client-ca ca.pem: expected --tls-cert beside it"),
        (("--tls-cert", "none.pem"), "--tls-cert none.pem: cannot be read: No such file"),
        (("--sasl-users", "none"), "--sasl-users none: cannot be read: No such file"),
        (
            ("--port", "0", "--set", "advertised.listeners=SSL://kafka:9092"),
            "advertised.listeners=SSL://...: PLAINTEXT is spoken here",
        ),
    ],
)
def test_options_that_are_refused(arguments: tuple[str, ...], expected: str) -> None:
    assert expected in refusal(*arguments)


def test_certificates_that_are_none(certificates: Certificates, tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("no certificate")

    def refused(certificate: Path, key: Path, *more: str) -> str:
        return refusal("--tls-cert", str(certificate), "--tls-key", str(key), *more)

    expected = "expected a certificate and the key that belongs to it, in PEM"
    assert expected in refused(text, certificates.server_key)
    assert expected in refused(certificates.server, text)
    assert expected in refused(certificates.server, certificates.client_key)
    authority = refused(certificates.server, certificates.server_key, "--tls-client-ca", str(text))
    assert f"--tls-client-ca {text}: expected certificates in PEM" in authority


def test_a_key_with_a_password_is_refused_and_nobody_is_asked(
    certificates: Certificates, tmp_path: Path
) -> None:
    serialization = pytest.importorskip(
        "cryptography.hazmat.primitives.serialization", reason="comes with trustme"
    )
    key = serialization.load_pem_private_key(certificates.server_key.read_bytes(), None)
    locked = tmp_path / "locked.pem"
    pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    locked.write_bytes(key.private_bytes(pem, pkcs8, serialization.BestAvailableEncryption(b"secret")))
    arguments = ("--tls-cert", str(certificates.server), "--tls-key", str(locked))
    assert "the key has a password, expected one without" in refusal(*arguments)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "localhost", "::1"])
def test_addresses_of_this_machine(host: str) -> None:
    assert is_loopback(host)
    check_exposure("--host", host, PLAINTEXT)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "192.0.2.1", "2001:db8::1", "10.0.0.1"])
def test_addresses_of_other_machines(host: str) -> None:
    assert not is_loopback(host)
    with pytest.raises(InputError, match="--insecure"):
        check_exposure("--host", host, PLAINTEXT)


def test_tls_lets_others_in(certificates: Certificates) -> None:
    from groupstorm.broker.security.listener import ListenerSecurity, tls_context

    check_exposure(
        "--host", "0.0.0.0", ListenerSecurity(tls_context(certificates.server, certificates.server_key))
    )
