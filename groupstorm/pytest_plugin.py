"""pytest plugin: the fixture `kafka_broker`, its marker `groupstorm`, and the option `--kafka`.

It is loaded in every project that has groupstorm installed, so it imports nothing until a test asks for the
fixture, and it steps back where the project has an option `--kafka` of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from groupstorm.testing import Broker

_MARKER = (
    "groupstorm(topics={name: partitions}, settings={kafka.option: value}, brokers=1, as_version='4.x',"
    " trace=DIR, control=False, faults=False): the broker of the fixture `kafka_broker`; faults=True skips"
    " the test on a real broker"
)
_SHORT = "--kafka"
_OPTION = "--groupstorm-kafka"
_ALLOW_WRITES = "--kafka-allow-writes"
_EMULATOR = "emulator"


@pytest.hookimpl(hookwrapper=True)
def pytest_load_initial_conftests(parser: pytest.Parser) -> Iterator[None]:
    """Options are added when the project's own are there: those have the right to a name."""
    yield
    group = parser.getgroup("groupstorm")
    names = [name for name in (_SHORT, _OPTION) if _is_free(parser, name)]
    if names:
        group.addoption(
            *names,
            dest="groupstorm_kafka",
            metavar="emulator|jvm|container|HOST:PORT",
            default=None,
            help="the broker of the fixture kafka_broker (default: emulator)",
        )
    if _is_free(parser, _ALLOW_WRITES):
        group.addoption(
            _ALLOW_WRITES,
            dest="groupstorm_allow_writes",
            action="store_true",
            help=f"with {_SHORT} HOST:PORT: topics and groups may be made there, and are taken away again",
        )


def _is_free(parser: pytest.Parser, name: str) -> bool:
    _, unknown = parser.parse_known_and_unknown_args([f"{name}=x"])
    return bool(unknown)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _MARKER)
    kind = config.getoption("groupstorm_kafka", None)
    if kind is not None:
        _check(kind, allow_writes=_allow_writes(config))


def pytest_report_header(config: pytest.Config) -> str | None:
    """Nothing is said in a run that asks for nothing."""
    kind = config.getoption("groupstorm_kafka", None)
    return None if kind is None else f"kafka: {kind}"


@pytest.fixture
def kafka_broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """A broker of this test's own: emulated, or what --kafka says. For sync and async tests alike."""
    from groupstorm.clients.brokers.contract import BrokerUnavailable
    from groupstorm.clients.wire.connection import ConnectionLost
    from groupstorm.problems import InputError
    from groupstorm.testing.chosen import chosen_broker

    kind = request.config.getoption("groupstorm_kafka", None) or _EMULATOR
    said = _said(request.node)
    needs_faults = bool(said.pop("faults", False))
    broker: Broker | None = None
    missing = wrong = ""
    try:
        broker = chosen_broker(
            kind, said, allow_writes=_allow_writes(request.config), needs_faults=needs_faults
        )
        broker.start()
    except BrokerUnavailable as problem:
        missing = str(problem)
    except (InputError, ConnectionLost) as problem:
        wrong = f"kafka_broker: {problem}"
    if missing:
        pytest.skip(missing)
    if wrong or broker is None:
        pytest.fail(wrong, pytrace=False)
    try:
        yield broker
    finally:
        broker.stop()


def _said(node: pytest.Item) -> dict[str, Any]:
    """What the markers say, the nearest one last."""
    said: dict[str, Any] = {}
    for marker in reversed(list(node.iter_markers("groupstorm"))):
        if marker.args:
            pytest.fail(f"@pytest.mark.groupstorm takes arguments by name only: {_MARKER}", pytrace=False)
        said |= marker.kwargs
    return said


def _allow_writes(config: pytest.Config) -> bool:
    return bool(config.getoption("groupstorm_allow_writes", False))


def _check(kind: str, *, allow_writes: bool) -> None:
    """Before the first test: is it a broker, and may it be written to?"""
    from groupstorm.clients.brokers import read_kind
    from groupstorm.problems import InputError

    try:
        found = read_kind(kind)
    except InputError as problem:
        raise pytest.UsageError(f"{_SHORT} {problem}") from None
    if found.bootstrap and not allow_writes:
        raise pytest.UsageError(
            f"{_SHORT} {kind}: topics and groups will be made there, under a prefix of their own, and taken"
            f" away again: say {_ALLOW_WRITES}"
        )
