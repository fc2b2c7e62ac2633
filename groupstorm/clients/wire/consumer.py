"""One consumer process over TCP: its life, from the first poll() to close() or a crash.

A `MembershipDriver` carries out what the member of either group protocol asks for.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.operations import Disconnected
from groupstorm.clients.profiles import GroupProtocol
from groupstorm.clients.wire.classic_driver import ClassicDriver
from groupstorm.clients.wire.cluster import ClusterClient
from groupstorm.clients.wire.coordinator_link import CoordinatorLink, RequestObserver
from groupstorm.clients.wire.group_driver import GroupDriver
from groupstorm.clients.wire.membership_driver import MembershipDriver
from groupstorm.clients.wire.offsets import CommittedOffsets
from groupstorm.clients.wire.parts import (
    ApplicationBehaviour,
    ApplicationPolling,
    ConsumerParts,
    EventEmitter,
    MemberStatus,
    OnEvent,
    PollThrew,
)
from groupstorm.clients.wire.positions import Positions
from groupstorm.clients.wire.security import PLAINTEXT, ClientSecurity
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import Request, Response
from groupstorm.protocol.endpoints import Endpoint
from groupstorm.trace.events import member as events

_DRIVERS: Mapping[GroupProtocol, Callable[[ConsumerParts], MembershipDriver]] = {
    GroupProtocol.CLASSIC: ClassicDriver,
    GroupProtocol.CONSUMER: GroupDriver,
}


def monotonic_us() -> int:
    return time.monotonic_ns() // 1000


class WireConsumer:
    """One incarnation of a consumer process: `run` runs it, `close` or `crash` ends it.

    The caller reports when the application polls (``polling``) and what it has processed
    (``positions.processed``): the consumer does not fetch records. All methods belong to the event loop of
    `run`. ``clock`` returns the microseconds of the events; ``observer`` gets the member's requests and the
    coordinator's responses.
    """

    def __init__(
        self,
        config: ConsumerConfig,
        bootstrap: Sequence[Endpoint],
        on_event: OnEvent,
        *,
        application: ApplicationBehaviour | None = None,
        clock: Callable[[], int] = monotonic_us,
        observer: RequestObserver | None = None,
        security: ClientSecurity = PLAINTEXT,
    ) -> None:
        self.config = config
        self.cluster = ClusterClient(bootstrap, config.client_id, config.request_timeout_ms, security)
        application = application or ApplicationBehaviour()
        self.positions = Positions(application.catch_up)
        running = asyncio.Event()
        running.set()
        self._leave_group: bool | None = None
        link = CoordinatorLink(self.cluster, config.group_id, config.retry_backoff_ms, running, observer)
        self._parts = ConsumerParts(
            config,
            application,
            clock,
            EventEmitter(clock, on_event),
            self.cluster,
            link,
            self.positions,
            running,
            asyncio.Event(),
            self._spawn,
        )
        self._driver = _DRIVERS[config.group_protocol](self._parts)
        self._background: set[asyncio.Task[None]] = set()
        self._group: asyncio.TaskGroup | None = None
        self._life: asyncio.Task[Any] | None = None
        self._threw: str | None = None
        self._crashed = False

    @property
    def membership(self) -> MemberStatus:
        return self._driver.membership

    @property
    def polling(self) -> ApplicationPolling:
        return self._driver.polling

    # -- life ------------------------------------------------------------------------------------

    async def run(self) -> None:
        """From the first poll() to the end: a fatal error, `close` or `crash`.

        If cancelled, it closes its sockets and sends nothing. Raises InputError if the broker is too old.
        """
        config = self.config
        self._life = asyncio.current_task()
        self._parts.emitter.emit(
            events.MemberStarted(config.group_id, config.client_id, config.group_instance_id, config.topics)
        )
        try:
            async with asyncio.TaskGroup() as self._group:
                _ = self._spawn(self._driver.watch.run())
                await self._live()
                for task in self._background:
                    task.cancel()
        except asyncio.CancelledError:
            if not self._crashed or self._life is None:
                raise
            self._life.uncancel()
        except BaseExceptionGroup as problems:
            raise problems.exceptions[0] from None  # the exception that ended one task
        finally:
            await self._parts.link.close()
            self.cluster.close()

    def close(self, leave_group: bool | None = None) -> None:
        """The application calls close(): `run` returns when the consumer is closed.

        ``leave_group`` replaces `ConsumerConfig.leave_group_on_close` if it is given.
        """
        self._leave_group = leave_group
        self._parts.closing.set()

    def crash(self) -> None:
        """SIGKILL: the consumer sends and receives nothing more."""
        if self._crashed or self._life is None or self._life.done():
            return
        owned = self.membership.owned
        offsets = self.positions.offsets_of(owned)
        who, names = self._parts.who(self.membership.generation), tuple(map(str, owned))
        self._parts.emitter.emit(events.MemberCrashed(*who, names, *offsets))
        self._crashed = True
        self._parts.emitter.end()
        self._parts.link.drop()
        self.cluster.close()
        self._life.cancel()

    @property
    def failure(self) -> str | None:
        """The fatal error, by Kafka's name, or the exception that poll() throws; None while it runs."""
        return self.membership.failure or self._threw

    @property
    def closing(self) -> bool:
        """close() has been called, or a fatal error closes it."""
        return self._parts.closing.is_set()

    @property
    def without_offset(self) -> tuple[TopicPartition, ...]:
        """The partitions without committed offset, if auto.offset.reset is none."""
        return self._driver.offsets.without_offset

    async def commit(self, offsets: CommittedOffsets) -> Error | Disconnected:
        """Commit these, as commitSync() does. Returns the first error of the response."""
        error = await self._parts.link.find()
        if error is not Error.NONE:
            return error
        response = await self._driver.commits.commit(offsets)
        self._driver.changed()
        return response

    async def ask_coordinator(self, request: Request) -> Response | Disconnected | Error:
        """Send a request that is not the membership's; `Error` if the group has no coordinator."""
        error = await self._parts.link.find()
        if error is not Error.NONE:
            return error
        return await self._parts.link.ask(request, self.config.request_timeout_ms)

    def refresh_topics(self) -> None:
        """The topic metadata has turned out to be old: fetch it anew."""
        self._driver.watch.refresh_soon()

    def pause(self) -> None:
        """SIGSTOP: the consumer sends and receives nothing until `resume`."""
        self._parts.running.clear()

    def resume(self) -> None:
        self._parts.running.set()

    def cut_off(self) -> None:
        """The network to the brokers is down until `reconnect`; the process goes on."""
        self.cluster.reachable = False
        self.cluster.close()
        self._driver.coordinator_moved()

    def reconnect(self) -> None:
        self.cluster.reachable = True

    async def _live(self) -> None:
        polling = self._spawn(self._poll())
        closing = self._spawn(self._until_closing())
        await asyncio.wait({polling, closing}, return_when=asyncio.FIRST_COMPLETED)
        polls = not polling.done()
        polling.cancel()
        await asyncio.wait({polling})
        if self._threw is not None:
            group, client, member_id, _ = self._parts.who(self.membership.generation)
            self._parts.emitter.emit(events.MemberFailed(group, client, member_id, self._threw))
        if polls or self._threw is not None:
            self._parts.closing.set()
            await self._leave()

    async def _leave(self) -> None:
        try:
            async with asyncio.timeout(self._parts.application.close_timeout_ms / 1000):
                await self._driver.leave(self._leave_group)
        except TimeoutError:
            await self._driver.abandon()

    async def _until_closing(self) -> None:
        await self._parts.closing.wait()

    async def _poll(self) -> None:
        try:
            await self._driver.run()
        except PollThrew as threw:
            self._threw = threw.error

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        assert self._group is not None
        task = self._group.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return task
