"""pytest plugin: the fixtures `kafka_broker` and `world`, their marker `groupstorm`, the option `--kafka`.

pytest loads the plugin in every project that has groupstorm installed. The plugin therefore imports nothing
until a test asks for the fixture, and leaves out the option `--kafka` if the project has one of its own.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from groupstorm.simulation import World
    from groupstorm.testing import Broker
    from groupstorm.testing.real import SharedBrokers

_MARKER = (
    "groupstorm(topics={name: partitions}, settings={kafka.option: value}, brokers=1, as_version='4.x',"
    " trace=DIR, control=False, security=None, faults=False, emulated=False, shared=True): the broker of the"
    " fixture `kafka_broker`; faults=True puts a proxy in front of a real broker, emulated=True skips the"
    " test on a real broker, shared=False starts one for this test. time='virtual', schedules=N, seed=S,"
    " failures=[...], within_s=S, limit_s=S, replay='...': an async test with the argument `world` runs in"
    " virtual time (groupstorm.simulation.simulate)"
)
_VIRTUAL = "virtual"
_SHORT = "--kafka"
_OPTION = "--groupstorm-kafka"
_ALLOW_WRITES = "--kafka-allow-writes"
_CLIENT_CONFIG = "--kafka-client-config"
_SCHEDULES = "--schedules"
_EMULATOR = "emulator"


@pytest.hookimpl(hookwrapper=True)
def pytest_load_initial_conftests(parser: pytest.Parser) -> Iterator[None]:
    """Add the options after the project's own, which take precedence."""
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
    if _is_free(parser, _CLIENT_CONFIG):
        group.addoption(
            _CLIENT_CONFIG,
            dest="groupstorm_client_config",
            metavar="FILE",
            type=Path,
            default=None,
            help=f"with {_SHORT} HOST:PORT: TLS and SASL, as Kafka's tools take them with --command-config",
        )
    if _is_free(parser, _SCHEDULES):
        group.addoption(
            _SCHEDULES,
            dest="groupstorm_schedules",
            metavar="N",
            type=int,
            default=None,
            help='tests with groupstorm(time="virtual") run under N schedules, whatever their marker says',
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
    """Name the broker if the run has chosen one."""
    kind = config.getoption("groupstorm_kafka", None)
    return None if kind is None else f"kafka: {kind}"


@pytest.fixture(scope="session")
def _groupstorm_shared_brokers() -> Iterator[SharedBrokers]:
    """Real brokers for all tests of the run; none is started before a test asks for it."""
    from groupstorm.testing.real import SharedBrokers

    shared = SharedBrokers()
    try:
        yield shared
    finally:
        shared.stop()


@pytest.fixture
def kafka_broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """A broker for this test: emulated, or the kind that --kafka names. For sync and async tests."""
    from groupstorm.clients.brokers.contract import BrokerUnavailable
    from groupstorm.clients.wire.connection import ConnectionLost
    from groupstorm.problems import InputError
    from groupstorm.testing.arguments import flag
    from groupstorm.testing.chosen import chosen_broker

    kind = request.config.getoption("groupstorm_kafka", None) or _EMULATOR
    arguments = _arguments(request.node)
    broker: Broker | None = None
    missing = wrong = ""
    try:
        broker = chosen_broker(
            kind,
            arguments,
            allow_writes=_allow_writes(request.config),
            client_config=request.config.getoption("groupstorm_client_config", None),
            faults=flag("faults", arguments.pop("faults", False)),
            emulated=flag("emulated", arguments.pop("emulated", False)),
            shared=request.getfixturevalue("_groupstorm_shared_brokers")
            if flag("shared", arguments.pop("shared", True))
            else None,
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


@pytest.fixture
def world(request: pytest.FixtureRequest) -> World | None:
    """The world of a test with @pytest.mark.groupstorm(time="virtual"): one per schedule, made when the test
    runs."""
    if not _is_virtual(request.node):
        pytest.fail('world: mark the test with @pytest.mark.groupstorm(time="virtual")', pytrace=False)
    return None


def _is_virtual(node: pytest.Item) -> bool:
    time = _arguments(node).get("time")
    if time not in (None, _VIRTUAL):
        pytest.fail(f"groupstorm: time={time!r}: expected {_VIRTUAL!r}", pytrace=False)
    return time == _VIRTUAL


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is marked with time="virtual" under its schedules, on an event loop of our own."""
    if pyfuncitem.get_closest_marker("groupstorm") is None or not _is_virtual(pyfuncitem):
        return None
    from groupstorm.problems import InputError
    from groupstorm.simulation import simulate

    # pytest-asyncio has put a function that is not async in the place of the test's
    test = getattr(pyfuncitem.instance or pyfuncitem.module, pyfuncitem.originalname)
    names = pyfuncitem._fixtureinfo.argnames
    if not inspect.iscoroutinefunction(test) or "world" not in names:
        pytest.fail(
            'groupstorm: time="virtual": expected an async test with the argument world', pytrace=False
        )
    others = {name: pyfuncitem.funcargs[name] for name in names if name != "world"}
    options = {name: value for name, value in _arguments(pyfuncitem).items() if name != "time"}
    if (schedules := pyfuncitem.config.getoption("groupstorm_schedules", None)) is not None:
        options["schedules"] = schedules
    known = [*inspect.signature(simulate).parameters][1:]
    for unknown in options.keys() - known:
        there = ", ".join(known)
        pytest.fail(f'groupstorm: time="virtual": no argument {unknown}; there are {there}', pytrace=False)
    wrong = ""
    try:
        simulate(lambda made: test(world=made, **others), **options)
    except InputError as problem:
        wrong = str(problem)
    if wrong:
        pytest.fail(f"groupstorm: {wrong}", pytrace=False)
    return True


def _arguments(node: pytest.Item) -> dict[str, Any]:
    """The arguments of the markers; for each the nearest marker counts."""
    arguments: dict[str, Any] = {}
    for marker in reversed(list(node.iter_markers("groupstorm"))):
        if marker.args:
            pytest.fail(f"@pytest.mark.groupstorm takes arguments by name only: {_MARKER}", pytrace=False)
        arguments |= marker.kwargs
    return arguments


def _allow_writes(config: pytest.Config) -> bool:
    return bool(config.getoption("groupstorm_allow_writes", False))


def _check(kind: str, *, allow_writes: bool) -> None:
    """Raise UsageError, before the first test, for an unknown broker or one that may not be written to."""
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
