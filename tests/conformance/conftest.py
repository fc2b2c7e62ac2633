"""The brokers of a run, as fixtures: tests that use one run on every kind, the real ones marked slow.

On Kafka itself `./dev test` runs every case of raw requests and a sample of the client libraries; `./dev soak
conformance` runs the other libraries there, and Kafka's own tool, whose output is recorded.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

from groupstorm.clients.brokers import CONTAINER, EMULATOR, JVM
from tests.conformance.backends import (
    ADDRESS,
    ADDRESS_VARIABLE,
    KINDS,
    QUICK,
    SHARES,
    STREAMS,
    Backend,
    Backends,
)
from tests.conformance.members import CONFLUENT, OURS

#: pytest's `record_property`: a name and a value for the table (`tests.conformance.table`).
RecordProperty = Callable[[str, object], None]

EVERY_KIND = [
    pytest.param(kind, marks=() if kind == EMULATOR else pytest.mark.slow, id=kind)
    for kind in KINDS
    if kind != ADDRESS or ADDRESS_VARIABLE in os.environ
]

#: Parameters of tests, and those of their values that `./dev test` has on Kafka itself.
_ON_KAFKA: dict[str, frozenset[str]] = {
    "library": frozenset({OURS, CONFLUENT}),
    "cooperative_library": frozenset({OURS, CONFLUENT}),
    "names": frozenset(),
    "protocol": frozenset(),
    "read": frozenset({"aiokafka"}),
}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave to `./dev soak` what is no part of the sample on Kafka."""
    for item in items:
        params = (
            item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
        )
        if params.get("kind") in (JVM, CONTAINER):
            values = {name: getattr(value, "__name__", str(value)) for name, value in params.items()}
            if any(values[name] not in sample for name, sample in _ON_KAFKA.items() if name in values):
                item.add_marker(pytest.mark.soak)


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
    return backends.needed(kind, QUICK)


@pytest.fixture(scope="session")
def streams(backends: Backends, kind: str) -> Backend:
    """A broker whose streams groups form at once."""
    return backends.needed(kind, STREAMS)


@pytest.fixture(scope="session")
def shares(backends: Backends, kind: str) -> Backend:
    """A broker whose share groups form at once."""
    return backends.needed(kind, SHARES)
