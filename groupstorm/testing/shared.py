"""Real brokers that the tests of a run share: to start one takes seconds, for every test anew."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack

from groupstorm.broker.embedded import LoopThread
from groupstorm.clients.brokers import BrokerKind, open_broker
from groupstorm.clients.brokers.contract import BrokerUnavailable, RunningBroker

#: So many run at once: a test that needs other settings ends the one that was asked for least lately.
BROKERS_MAX = 2

_Key = tuple[str, str | None, tuple[tuple[str, str], ...]]


class SharedBrokers:
    """One broker per kind and settings, started when a test first asks for it; `stop` ends them all."""

    def __init__(self) -> None:
        self._thread = LoopThread("shared-brokers")
        self._running: dict[_Key, tuple[RunningBroker, AsyncExitStack]] = {}
        self._missing: dict[_Key, str] = {}

    def get(self, kind: BrokerKind, settings: Mapping[str, str]) -> RunningBroker:
        """Raises BrokerUnavailable, each time anew, without a second attempt, and InputError."""
        key = (kind.name, kind.image, tuple(sorted(settings.items())))
        if key in self._missing:
            raise BrokerUnavailable(self._missing[key])
        if not self._thread.is_running:
            self._thread.start()
        found = self._running.pop(key, None) or self._start(key, kind, settings)
        self._running[key] = found
        while len(self._running) > BROKERS_MAX:
            self._end(next(iter(self._running)))
        return found[0]

    def _start(
        self, key: _Key, kind: BrokerKind, settings: Mapping[str, str]
    ) -> tuple[RunningBroker, AsyncExitStack]:
        opened = AsyncExitStack()
        opening = open_broker(kind, settings, lambda _events: None)
        try:
            return self._thread.run(opened.enter_async_context(opening)), opened
        except BrokerUnavailable as problem:
            self._missing[key] = str(problem)
            raise

    def _end(self, key: _Key) -> None:
        _, opened = self._running.pop(key)
        self._thread.run(opened.aclose())

    def stop(self) -> None:
        """End all of them."""
        if not self._thread.is_running:
            return
        try:
            while self._running:
                self._end(next(iter(self._running)))
        finally:
            self._thread.stop()
