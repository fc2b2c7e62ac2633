"""Kafka's own kafka-streams-groups on every broker: it prints what it prints on Kafka 4.4.0."""

from __future__ import annotations

import pytest

from tests.client_libraries.conftest import checked
from tests.conformance import streams_tool
from tests.conformance.backends import Backend
from tests.conformance.programs.building import ProgramUnavailable
from tests.conformance.tool import read_file

pytestmark = pytest.mark.slow


def test_what_kafka_streams_groups_prints(streams: Backend) -> None:
    checked("confluent-kafka")
    try:
        said = streams_tool.run(streams)
    except ProgramUnavailable as unavailable:
        pytest.skip(str(unavailable))
    for one, kafkas in zip(said, read_file(streams_tool.FILE), strict=True):
        assert one == kafkas
