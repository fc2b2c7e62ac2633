"""`groupstorm run --on HOST:PORT` where the broker demands TLS and a password."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from groupstorm.broker.embedded import EmbeddedBroker
from groupstorm.broker.security.listener import ListenerSecurity, tls_context
from groupstorm.broker.security.users import Users
from tests.certificates import make_certificates
from tests.command import groupstorm

SCENARIO = """
name: two-members
settings: {members: 2, partitions: 4, tail_ms: 100, record_rate: 0, group.initial.rebalance.delay.ms: 0}
steps: [{at_ms: 0, do: start}]
"""
HURRIED = "settle_timeout_ms: 2000, if_never_settled: report"


@pytest.mark.slow
def test_members_come_in_with_the_file_that_kafkas_tools_take(tmp_path: Path) -> None:
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(SCENARIO)
    files = make_certificates(tmp_path)
    config = tmp_path / "client.properties"
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    lines = ["security.protocol=SASL_SSL", "ssl.truststore.type=PEM", "sasl.mechanism=SCRAM-SHA-512"]
    lines += [f"ssl.truststore.location={files.authority}"]
    lines += [f'sasl.jaas.config={module} required username="alice" password="secret";']
    config.write_text("\n".join(lines))
    security = ListenerSecurity(tls_context(files.server, files.server_key), Users({"alice": "secret"}))
    options = {"group.initial.rebalance.delay.ms": "0"}
    with EmbeddedBroker(options, security=security) as broker:
        where = ["--on", broker.address, "--allow-writes", "--out", "x", "--json"]
        command = ["run", str(scenario), *where, "--client-config", str(config)]
        answer = groupstorm(*command, cwd=tmp_path)
        assert answer.returncode == 0, answer.stderr
        assert json.loads(answer.stdout)["generations"] >= 1
        assert broker.closed == []
        left = broker.call(lambda: list(broker.broker.snapshot()))
        assert not [change for change in left if "storm" in repr(change)], "everything was taken away again"
        scenario.write_text(
            SCENARIO.replace("record_rate: 0", "record_rate: 0, assign_ms: 60000, " + HURRIED)
        )
        stuck = [
            "compare",
            str(scenario),
            *where[:3],
            "--out",
            "y",
            "--client-config",
            str(config),
            "--no-remedies",
        ]
        failed = groupstorm(*stuck, cwd=tmp_path)
        scenario.write_text(SCENARIO)
        wrong = config.read_text().replace("secret", "wrong")
        config.write_text(wrong)
        refused = groupstorm(*command, cwd=tmp_path)
    assert failed.returncode == 1, failed.stderr
    again = f"--on {broker.address} --allow-writes --client-config {config}"
    assert [line for line in failed.stderr.splitlines() if line.startswith("  again:")][-1].endswith(again)
    assert refused.returncode == 2
    assert "invalid credentials with SASL mechanism SCRAM-SHA-512" in refused.stderr
    assert refused.stderr.count("\n") == 1


def test_the_file_goes_with_an_address_alone(tmp_path: Path) -> None:
    for options in (["--client-config", "f"], ["--on", "emulator", "--client-config", "f"]):
        answer = groupstorm("run", "cold-start", *options, cwd=tmp_path)
        assert answer.returncode == 2
        assert "--client-config: means something only with --on HOST:PORT" in answer.stderr
