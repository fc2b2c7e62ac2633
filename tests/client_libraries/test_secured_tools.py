"""Kafka's own tool over TLS and SASL, configured as its documentation says."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.certificates import Certificates, make_certificates
from tests.client_libraries.conftest import checked
from tests.client_libraries.members import GROUP, TOPIC
from tests.client_libraries.secured import Access, round_trip
from tests.client_libraries.test_secured_clients import access_by, listening
from tests.conformance.programs.building import kafka_java
from tests.needs import needed
from tests.processes import run_process

pytestmark = pytest.mark.slow

TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
DEADLINE_S = 120


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


def properties(access: Access) -> str:
    lines = [f"security.protocol={access.protocol}"]
    if access.certificates is not None:
        lines += ["ssl.truststore.type=PEM", f"ssl.truststore.location={access.certificates.authority}"]
    if access.mechanism:
        module = PLAIN_MODULE if access.mechanism == "PLAIN" else SCRAM_MODULE
        who = f'username="{access.username}" password="{escaped_for_java(access.password)}"'
        lines += [f"sasl.mechanism={access.mechanism}", f"sasl.jaas.config={module} required {who};"]
    return "\n".join(lines)


def escaped_for_java(text: str) -> str:
    """Properties files write characters beyond Latin-1 as escaped numbers."""
    return "".join(sign if sign.isascii() else f"\\u{ord(sign):04x}" for sign in text)


def run_tool(
    address: str, folder: Path, access: Access, tool: str, *arguments: str
) -> subprocess.CompletedProcess[str]:
    """Run one of Kafka's commands with a client's configuration."""
    with needed():
        command = [*kafka_java().command(tool), "--bootstrap-server", address]
    configuration = folder / "client.properties"
    configuration.write_text(properties(access))
    return run_process(
        [*command, "--command-config", str(configuration), *arguments],
        capture_output=True,
        text=True,
        deadline_s=DEADLINE_S,
        check=False,
    )


@pytest.mark.parametrize(
    ("protocol", "mechanism"),
    [("SSL", ""), ("SASL_PLAINTEXT", "PLAIN"), ("SASL_SSL", "SCRAM-SHA-512"), ("SASL_SSL", "SCRAM-SHA-256")],
)
def test_kafka_consumer_groups_describes_a_group(
    tmp_path: Path, certificates: Certificates, protocol: str, mechanism: str
) -> None:
    access = access_by(protocol, mechanism, certificates)
    with listening(access) as broker:
        round_trip(checked("confluent-kafka"), broker.address, access)
        answer = run_tool(broker.address, tmp_path, access, TOOL, "--describe", "--group", GROUP)
        assert answer.returncode == 0, answer.stderr
        rows = [line.split() for line in answer.stdout.splitlines() if line.startswith(GROUP)]
        assert [row[:6] for row in rows] == [[GROUP, TOPIC, "0", "1", "1", "0"]]
        assert broker.closed == [], "nothing was refused"


def test_kafka_consumer_groups_says_that_a_password_is_wrong(
    tmp_path: Path, certificates: Certificates
) -> None:
    access = access_by("SASL_SSL", "SCRAM-SHA-512", certificates)
    with listening(access) as broker:
        answer = run_tool(broker.address, tmp_path, access._replace(password="wrong"), TOOL, "--list")
    expected = "Authentication failed during authentication due to invalid credentials with SASL mechanism"
    assert f"{expected} SCRAM-SHA-512" in answer.stdout + answer.stderr
