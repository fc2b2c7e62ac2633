"""The benchmarks of brokers measure what they say, where there is no Kafka as well."""

from __future__ import annotations

import sys
from collections.abc import Mapping

import pytest

from benchmarks import server, settling
from benchmarks.brokers import EMULATOR, KAFKA, brokers
from groupstorm.clients.brokers.contract import BrokerContext, BrokerUnavailable

WITHOUT_JAVA = "no java was found"


def no_kafka(options: Mapping[str, str]) -> BrokerContext:
    raise BrokerUnavailable(WITHOUT_JAVA)


def printed(
    benchmark: object, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *options: str
) -> list[list[str]]:
    """The words of each line of a benchmark that knows two brokers."""
    known = {KAFKA: no_kafka, EMULATOR: brokers()[EMULATOR]}
    monkeypatch.setattr(benchmark, "brokers", lambda: known)
    monkeypatch.setattr(sys, "argv", ["benchmark", *options])
    benchmark.main()  # type: ignore[attr-defined]  # a module
    return [line.split() for line in capsys.readouterr().out.splitlines()]


@pytest.mark.slow
def test_heartbeats(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    options = ("--members", "3", "--window", "2", "--seconds", "0.3")
    _, kafka, (name, per_second, microseconds) = printed(server, capsys, monkeypatch, *options)
    assert " ".join(kafka).endswith(WITHOUT_JAVA)
    assert name == EMULATOR
    assert float(per_second.replace(",", "")) > 0
    assert float(microseconds) >= 0


@pytest.mark.slow
def test_settling(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("confluent_kafka", reason="pip install 'groupstorm[kafka]'")
    monkeypatch.setattr(settling, "WARM_UP_CONSUMERS", 2)
    options = ("--consumers", "2", "--delays", "50", "--appends", "0", "5", "--repeats", "1")
    kafka, _, *rows = printed(settling, capsys, monkeypatch, *options)
    assert " ".join(kafka).endswith(WITHOUT_JAVA)
    assert [row[:3] for row in rows] == [["eager", "50", "2"], ["cooperative", "50", "2"]]
    for row in rows:
        assert 0.05 < float(row[3]) < 60
        assert float(row[-1]) > 0
