"""Kafka's own tool over TLS and SASL, configured as its documentation says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.certificates import Certificates, make_certificates
from tests.client_libraries.conftest import checked
from tests.client_libraries.members import GROUP, TOPIC
from tests.client_libraries.secured import CLIENTS, Access
from tests.client_libraries.test_secured_clients import PASSWORD, USER, access_by, listening
from tests.conformance.programs.building import ProgramUnavailable, kafka_java
from tests.processes import run_process

pytestmark = pytest.mark.slow

TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
DEADLINE_S = 120


@pytest.fixture(scope="module")
def tool() -> list[str]:
    """kafka-consumer-groups, up to its arguments."""
    try:
        return kafka_java().command(TOOL)
    except ProgramUnavailable as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


def properties(access: Access, password: str) -> str:
    lines = [f"security.protocol={access.protocol}"]
    if access.certificates is not None:
        lines += ["ssl.truststore.type=PEM", f"ssl.truststore.location={access.certificates.authority}"]
    if access.mechanism:
        module = PLAIN_MODULE if access.mechanism == "PLAIN" else SCRAM_MODULE
        lines += [
            f"sasl.mechanism={access.mechanism}",
            f'sasl.jaas.config={module} required username="{USER}" password="{escaped_for_java(password)}";',
        ]
    return "\n".join(lines)


def escaped_for_java(text: str) -> str:
    """Properties files write characters beyond Latin-1 as escaped numbers."""
    return "".join(sign if sign.isascii() else f"\\u{ord(sign):04x}" for sign in text)


@pytest.mark.parametrize(
    ("protocol", "mechanism"),
    [("SSL", ""), ("SASL_PLAINTEXT", "PLAIN"), ("SASL_SSL", "SCRAM-SHA-512"), ("SASL_SSL", "SCRAM-SHA-256")],
)
def test_kafka_consumer_groups_describes_a_group(
    tool: list[str], tmp_path: Path, certificates: Certificates, protocol: str, mechanism: str
) -> None:
    access = access_by(protocol, mechanism, certificates)
    configuration = tmp_path / "client.properties"
    configuration.write_text(properties(access, PASSWORD))
    with listening(access) as broker:
        CLIENTS[checked("confluent-kafka")](broker.address, access)
        command = [*tool, "--bootstrap-server", broker.address, "--command-config", str(configuration)]
        answer = run_process(
            [*command, "--describe", "--group", GROUP],
            capture_output=True,
            text=True,
            deadline_s=DEADLINE_S,
            check=False,
        )
        assert answer.returncode == 0, answer.stderr
        rows = [line.split() for line in answer.stdout.splitlines() if line.startswith(GROUP)]
        assert [row[:6] for row in rows] == [[GROUP, TOPIC, "0", "1", "1", "0"]]
        assert broker.closed == [], "nothing was refused"


def test_kafka_consumer_groups_says_that_a_password_is_wrong(
    tool: list[str], tmp_path: Path, certificates: Certificates
) -> None:
    access = access_by("SASL_SSL", "SCRAM-SHA-512", certificates)
    configuration = tmp_path / "client.properties"
    configuration.write_text(properties(access, "wrong"))
    with listening(access) as broker:
        command = [*tool, "--bootstrap-server", broker.address, "--command-config", str(configuration)]
        answer = run_process(
            [*command, "--list"], capture_output=True, text=True, deadline_s=DEADLINE_S, check=False
        )
    expected = "Authentication failed during authentication due to invalid credentials with SASL mechanism"
    assert f"{expected} SCRAM-SHA-512" in answer.stdout + answer.stderr
