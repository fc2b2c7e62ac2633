"""Watches groups of a running cluster until the time is over or the user ends it."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from groupstorm.clients.wire.cluster import ClusterClient
from groupstorm.clients.wire.connection import ConnectionLost
from groupstorm.clients.wire.security import PLAINTEXT, ClientSecurity
from groupstorm.held_signals import heeded_stop_signals
from groupstorm.imports.capture.captured import (
    TOPIC,
    CapturedAnswers,
    CapturedRecords,
    GroupPoll,
    NotReadable,
    OffsetsTail,
    partitions_of_topic,
)
from groupstorm.imports.source import LogSource, topic_id
from groupstorm.javahash import partition_for
from groupstorm.problems import InputError
from groupstorm.protocol.endpoints import Endpoint

_CLIENT_ID: Final = "groupstorm-capture"
_REQUEST_TIMEOUT_MS: Final = 30_000
#: After a fetch that failed.
_PAUSE_S: Final = 1.0
_SAME_SIGNAL_S: Final = 1.0


class Watch(NamedTuple):
    """The groups to watch, for how long, and how often to ask."""

    bootstrap: Sequence[Endpoint]
    groups: Sequence[str]
    for_s: float
    every_s: float
    security: ClientSecurity = PLAINTEXT


@dataclass(slots=True)
class Progress:
    """Told to the user while the capture runs."""

    polls: int = 0
    records: int = 0
    #: Why the records of the offsets topic are not read, if they are not.
    without_records: str = ""
    told: Callable[[Progress], None] = field(default=lambda _: None)


def capture(watch: Watch, progress: Progress) -> list[LogSource]:
    """Watch the cluster and return what it said, as sources of an import.

    Raises InputError if the cluster cannot be reached at the beginning, or refuses to describe a group.
    """
    return asyncio.run(captured(watch, progress))


async def captured(watch: Watch, progress: Progress) -> list[LogSource]:
    """`capture` on the running event loop."""
    cluster = ClusterClient(
        watch.bootstrap, _CLIENT_ID, _REQUEST_TIMEOUT_MS, watch.security, may_create_topics=False
    )
    first = watch.bootstrap[0]
    answers = CapturedAnswers(f"{first} poll", 0)
    sources: list[LogSource] = [answers]
    ended = asyncio.Event()
    try:
        with _ended_by_signals(ended):
            tails = await _open_tails(cluster, watch.groups, sources, progress)
            polls = {group: GroupPoll(cluster, group) for group in watch.groups}
            polling = _Polling(polls, answers, progress)
            await polling.once(is_first=True)
            reading = [asyncio.ensure_future(_follow(tail, progress)) for tail in tails]
            await polling.until(ended, watch, bool(tails))
            for task in reading:
                task.cancel()
            for result in await asyncio.gather(*reading, return_exceptions=True):
                if isinstance(result, Exception):  # no CancelledError: the task itself has failed
                    raise result
            for source in sources:
                if isinstance(source, CapturedRecords):
                    source.finish()
                    await _name_topics(cluster, source)
    except ConnectionLost as lost:
        raise InputError(str(lost)) from lost
    finally:
        cluster.close()
    return sources


async def _name_topics(cluster: ClusterClient, source: CapturedRecords) -> None:
    """Ask the cluster for the names of the topics whose ids the records have. Without an answer ids stay."""
    ids = {text: found for text in source.assigned_topics if (found := topic_id(text)) is not None}
    unknown = {found: text for text, found in ids.items() if text not in source.topic_names}
    if not unknown:
        return
    try:
        await cluster.refresh((), [*unknown])
    except ConnectionLost:
        return
    names = cluster.topic_names
    source.topic_names |= {text: names[found] for found, text in unknown.items() if found in names}


async def _open_tails(
    cluster: ClusterClient, groups: Sequence[str], sources: list[LogSource], progress: Progress
) -> list[OffsetsTail]:
    tails: list[OffsetsTail] = []
    try:
        count = await partitions_of_topic(cluster)
        for number in sorted({partition_for(group, count) for group in groups}):
            source = CapturedRecords(f"{TOPIC}-{number}", len(sources))
            tail = OffsetsTail(cluster, number, source)
            await tail.open()
            sources.append(source)
            tails.append(tail)
    except NotReadable as why:
        progress.without_records = str(why)
    return tails


async def _follow(tail: OffsetsTail, progress: Progress) -> None:
    """Read on until the task is cancelled, or the cluster forbids it."""
    while True:
        try:
            progress.records += await tail.read()
        except ConnectionLost:
            await asyncio.sleep(_PAUSE_S)
        except NotReadable as why:
            progress.without_records = str(why)
            return


class _Polling(NamedTuple):
    polls: Mapping[str, GroupPoll]
    answers: CapturedAnswers
    progress: Progress

    async def until(self, ended: asyncio.Event, watch: Watch, tails_read: bool) -> None:
        """Poll until the time is over, or the user ends it; the last poll is at the end.

        While records are read, a description says nothing that they do not say more exactly.
        """
        end_s = time.monotonic() + watch.for_s
        while not ended.is_set() and (left_s := end_s - time.monotonic()) > 0:
            try:
                async with asyncio.timeout(min(watch.every_s, left_s)):
                    await ended.wait()
            except TimeoutError:
                pass
            await self.once(describes=not tails_read or bool(self.progress.without_records))

    async def once(self, describes: bool = True, is_first: bool = False) -> None:
        for group, poll in self.polls.items():
            try:
                async with asyncio.timeout(_REQUEST_TIMEOUT_MS / 1000):
                    if describes:
                        self.answers.add(_now_us(), group, await poll.ask())
                    self.answers.add_log_ends(_now_us(), group, await poll.log_ends())
            except (ConnectionLost, TimeoutError) as late:
                why = str(late) or "no answer in time"
                if is_first:
                    raise InputError(why) from late
                self.answers.no_answer(why)
                continue
            self.progress.polls += 1
        self.progress.told(self.progress)


def _now_us() -> int:
    return time.time_ns() // 1000


@contextmanager
def _ended_by_signals(ended: asyncio.Event) -> Iterator[None]:
    """The first stop signal ends the capture, which keeps what it has; the next ends the command, but for one
    within a second: `timeout` passes each on twice."""
    loop = asyncio.get_running_loop()
    before = {number: signal.getsignal(number) for number in heeded_stop_signals()}

    def end() -> None:
        ended.set()
        loop.call_later(_SAME_SIGNAL_S, restore)

    def restore() -> None:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, handler)

    for number in before:
        loop.add_signal_handler(number, end)
    try:
        yield
    finally:
        restore()
