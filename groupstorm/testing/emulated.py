"""The emulated broker of a test: `groupstorm.broker`."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from groupstorm.broker.assembly import BROKERS_MAX
from groupstorm.broker.broker_journal import trace_in_folder, traced
from groupstorm.broker.config import NEWEST, RELEASES
from groupstorm.broker.embedded import BrokerThread, EmbeddedBroker, LoopThread
from groupstorm.broker.security.listener import PLAINTEXT, ListenerSecurity, tls_context
from groupstorm.broker.security.users import Users, is_name, is_password
from groupstorm.clients.consumer.records import ConsumerRecord
from groupstorm.coordinator.errors import Refused
from groupstorm.problems import InputError, OutputError
from groupstorm.testing.arguments import (
    Setting,
    Topics,
    as_settings,
    as_topics,
    listed,
    number,
    one_of,
    optional_path,
    text,
)
from groupstorm.testing.broker import BrokerUnderTest
from groupstorm.testing.control import ControlServer
from groupstorm.testing.faults import FaultControl
from groupstorm.testing.groups import GroupUnderTest, GroupView, LockedRecords, Progress, Wanted
from groupstorm.testing.server_control import ServerControl, TimedEvent
from groupstorm.testing.waiting import WaitFuture

_LAST_PORT = 65_535

_T = TypeVar("_T")


class EmulatedBroker(BrokerUnderTest):
    """Listens on the loopback interface as long as the context lasts, on a thread of its own."""

    name = "the emulator"

    def __init__(
        self,
        topics: Topics | None = None,
        settings: Mapping[str, Setting] | None = None,
        *,
        brokers: int = 1,
        as_version: str = NEWEST,
        port: int = 0,
        trace: str | os.PathLike[str] | None = None,
        control: bool | int = False,
        security: ListenerSecurity | None = None,
    ) -> None:
        """See `groupstorm.broker`."""
        super().__init__()
        options = as_settings(settings)
        wanted = as_topics(topics, options)
        number("brokers", brokers, 1, BROKERS_MAX)
        one_of("as_version", as_version, tuple(RELEASES))
        number("port", port, 0, _LAST_PORT)
        self._control_port = 0 if isinstance(control, bool) else number("control", control, 0, _LAST_PORT)
        folder = optional_path("trace", trace)
        self._trace = None if folder is None else trace_in_folder(folder, f"trace: {folder}", _ignore)
        self._embedded = EmbeddedBroker(
            options, wanted, brokers, as_version, port, _security(security), self._thread()
        )
        self._control = ServerControl(self._embedded.server)
        if self._trace is not None:
            write, of_broker = self._trace.add, self._embedded.broker
            self._embedded.server.add_observer(lambda us, events: write(us, [*traced(of_broker, events)]))
        self._http = None if control is False else ControlServer(self._control)
        self._control_url: str | None = None

    def _thread(self) -> BrokerThread:
        """Make the thread on which the broker runs."""
        return LoopThread("embedded-broker")

    def start(self) -> None:
        """Raises InputError if the port cannot be listened on, and for a broker that has run before."""
        if self._embedded.server.endpoints:
            raise InputError(f"{self.name}: a broker runs once: make another one")
        try:
            self._embedded.__enter__()
        except OSError as problem:
            raise _port_taken("port", self._embedded.port, problem) from problem
        if self._http is None:
            return
        try:
            self._control_url = self._embedded.run(self._http.start(self._control_port))
        except OSError as problem:
            self.stop()
            raise _port_taken("control", self._control_port, problem) from problem

    def stop(self) -> None:
        if not self._embedded.is_running:  # stopped by the test itself
            return
        if self._http is not None:
            self._embedded.run(self._http.stop())
        self._embedded.__exit__(None, None, None)
        if self._trace is not None:
            self._trace.close()
            try:
                self._trace.check()
            except OutputError as problem:
                warnings.warn(str(problem), RuntimeWarning, stacklevel=2)

    @property
    def bootstrap_servers(self) -> str:
        if not self._embedded.server.endpoints:
            self._check_running()
        return ",".join(map(str, self._embedded.server.endpoints))

    @property
    def control_url(self) -> str | None:
        return self._control_url

    def create_topic(self, name: str, partitions: int = 1) -> str:
        text("name", name)
        number("partitions", partitions, 1)
        state = self._embedded.broker.state
        replicas = min(state.config.default_replication_factor, len(state.cluster.nodes))
        try:
            self._embedded.call(lambda: state.create_topic(name, partitions, replicas))
        except Refused as problem:
            raise InputError(str(problem)) from problem
        return name

    def topic(self, name: str) -> str:
        return text("name", name)

    def _partitions(self, topic: str) -> int:
        topics = self._embedded.broker.state.topics
        found = self._call(lambda: topics.get(topic))
        if found is None:
            there = listed(self._call(lambda: [one.name for one in topics]))
            raise InputError(f"topic: {topic!r}: there is no such topic; there are: {there}")
        return len(found.partitions)

    def _append(self, topic: str, partition: int, batch: bytes) -> int:
        return self._call(lambda: self._control.append(topic, partition, batch))

    def _read(self, topic: str, partition: int, committed_only: bool) -> Sequence[ConsumerRecord]:
        return self._call(lambda: self._control.records(topic, partition, committed_only))

    def group(self, name: str) -> GroupUnderTest:
        return _EmulatedGroup(text("name", name), self._embedded, self._control)

    @property
    def events(self) -> Sequence[TimedEvent]:
        return self._embedded.call(lambda: tuple(self._control.events))

    @property
    def trace(self) -> Sequence[dict[str, Any]]:
        return self._embedded.call(self._control.trace)

    @property
    def started_us(self) -> int:
        """When the clock of `events` began, on that of `time.monotonic_ns`, in microseconds."""
        return self._embedded.server.started_us

    def is_transactional(self, group: str) -> bool:
        """Whether offsets of the group were sent in transactions, committed or not."""
        return self._embedded.call(lambda: group in self._control.transactional)

    def _on_faults(self, act: Callable[[FaultControl], _T]) -> _T:
        return self._embedded.call(lambda: act(self._control))

    def move_coordinator(self, group: str, broker: int | None = None) -> None:
        self._call(lambda: self._control.move_coordinator(group, broker))

    def expire_member(self, group: str, member: str) -> None:
        self._call(lambda: self._control.expire_member(group, member))

    def in_flight(self, group: str) -> Mapping[str, tuple[LockedRecords, ...]]:
        return self._call(lambda: self._control.in_flight(group))

    def _call(self, act: Callable[[], _T]) -> _T:
        """Act on the running broker. Raises InputError if it does not run."""
        self._check_running()
        return self._embedded.call(act)

    def _check_running(self) -> None:
        if not self._embedded.is_running:
            raise InputError(f"{self.name}: use it inside `with` or `async with`")


def _security(value: object) -> ListenerSecurity:
    if value is None:
        return PLAINTEXT
    if not isinstance(value, ListenerSecurity):
        kind = type(value).__name__  # the value may hold passwords
        raise InputError(f"security: {kind}: expected what groupstorm.testing.secured(...) gives")
    return value


def _ignore(_sentence: str) -> None:
    """`EmulatedBroker.stop` warns if the trace is incomplete."""


def _port_taken(argument: str, port: int, problem: OSError) -> InputError:
    return InputError(f"{argument}: {port}: cannot listen there: {problem.strerror or problem}")


class _EmulatedGroup(GroupUnderTest):
    def __init__(self, group_id: str, embedded: EmbeddedBroker, control: ServerControl) -> None:
        super().__init__(group_id)
        self._embedded = embedded
        self._control = control

    def view(self) -> GroupView:
        return self._embedded.call(lambda: self._control.view(self.id))

    def configure(self, settings: Mapping[str, Setting]) -> None:
        given = as_settings(settings)
        self._embedded.call(lambda: self._control.configure_group(self.id, given))

    def _topic(self, name: str) -> str:
        return name

    def _progress(self, topics: Sequence[str] | None) -> Progress:
        return self._embedded.call(lambda: self._control.progress(self.id))

    def _waiting_caught_up(self, topics: Sequence[str]) -> WaitFuture:
        return self._begin(lambda: self._control.wait_caught_up(self.id, topics))

    def _waiting(self, wanted: Wanted) -> WaitFuture:
        return self._begin(lambda: self._control.wait_for(self.id, wanted))

    def _begin(self, wait: Callable[[], WaitFuture]) -> WaitFuture:
        if not self._embedded.is_running:
            raise InputError(f"group {self.id}: its broker does not run: wait inside `with` or `async with`")
        return self._embedded.call(wait)

    def _last_events(self) -> Sequence[str]:
        return self._embedded.call(lambda: self._control.last_events(self.id))


def secured(
    *,
    tls_cert: str | os.PathLike[str] | None = None,
    tls_key: str | os.PathLike[str] | None = None,
    tls_client_ca: str | os.PathLike[str] | None = None,
    sasl_users: Mapping[str, str] | None = None,
) -> ListenerSecurity:
    """For `groupstorm.broker(security=...)`.

    ``tls_cert``, ``tls_key``: PEM, in one file or in two; clients must use TLS. ``tls_client_ca``: clients
    must also show a certificate that one of these has signed. ``sasl_users``: name -> password; clients must
    authenticate (PLAIN, SCRAM-SHA-256, SCRAM-SHA-512). Raises InputError.
    """
    certificate = optional_path("tls_cert", tls_cert)
    key, client_ca = optional_path("tls_key", tls_key), optional_path("tls_client_ca", tls_client_ca)
    if certificate is None and sasl_users is None and not key and not client_ca:
        raise InputError("secured: expected tls_cert, sasl_users, or both")
    if certificate is None and (key or client_ca):
        raise InputError(
            f"{'tls_key' if key else 'tls_client_ca'}: {key or client_ca}: expected tls_cert beside it"
        )
    tls = None if certificate is None else tls_context(certificate, key, client_ca)
    return ListenerSecurity(tls, None if sasl_users is None else _users(sasl_users))


def _users(passwords: object) -> Users:
    if not isinstance(passwords, Mapping) or not passwords:
        raise InputError("sasl_users: expected {'alice': 'her password'}")
    for name, password in passwords.items():
        if not isinstance(name, str) or not is_name(name):
            raise InputError(f"sasl_users: {name!r}: expected a name in printable ASCII")
        if not isinstance(password, str) or not is_password(password):
            raise InputError(f"sasl_users: {name}: expected a password, a text that is not empty")
    return Users(passwords)
