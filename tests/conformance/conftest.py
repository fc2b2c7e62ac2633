"""The brokers of a run, as fixtures: tests that use one run on every kind, the real ones marked slow."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

from groupstorm.clients.brokers import EMULATOR
from groupstorm.clients.brokers.contract import BrokerUnavailable
from tests.conformance.backends import ADDRESS, ADDRESS_VARIABLE, KINDS, QUICK, Backend, Backends

#: pytest's `record_property`: a name and a value for the table (`tests.conformance.table`).
RecordProperty = Callable[[str, object], None]

EVERY_KIND = [
    pytest.param(kind, marks=() if kind == EMULATOR else pytest.mark.slow, id=kind)
    for kind in KINDS
    if kind != ADDRESS or ADDRESS_VARIABLE in os.environ
]


@pytest.fixture(scope="session")
def backends() -> Iterator[Backends]:
    """All brokers of the run, started when they are first needed."""
    running = Backends()
    yield running
    running.close()


@pytest.fixture(scope="session", params=EVERY_KIND)
def kind(request: pytest.FixtureRequest) -> str:
    """Each kind of broker in turn."""
    name: str = request.param
    return name


@pytest.fixture(scope="session")
def backend(backends: Backends, kind: str) -> Backend:
    """A broker whose groups form at once."""
    try:
        return backends.get(kind, QUICK)
    except BrokerUnavailable as unavailable:
        pytest.skip(str(unavailable))
