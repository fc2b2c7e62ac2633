"""Kafka's own commands for groups on every broker: they print what they print on Kafka."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.client_libraries.conftest import checked
from tests.conformance import share_tool, streams_tool, tool
from tests.conformance.backends import Backend
from tests.conformance.conftest import RecordProperty
from tests.needs import needed

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("protocol", list(tool.FILES))
def test_what_kafka_consumer_groups_prints(
    backend: Backend, protocol: str, record_property: RecordProperty
) -> None:
    _check(lambda: tool.run(backend, protocol), tool.FILES[protocol], record_property)


def test_what_kafka_share_groups_prints(shares: Backend, record_property: RecordProperty) -> None:
    _check(lambda: share_tool.run(shares), share_tool.FILE, record_property)


def test_what_kafka_streams_groups_prints(streams: Backend, record_property: RecordProperty) -> None:
    _check(lambda: streams_tool.run(streams), streams_tool.FILE, record_property)


def _check(run: Callable[[], Sequence[tool.Said]], recorded: Path, record_property: RecordProperty) -> None:
    checked("confluent-kafka")
    with needed():
        said = run()
    record_property("said", json.dumps(said))
    for one, kafkas in zip(said, tool.read_file(recorded), strict=True):
        assert one == kafkas
