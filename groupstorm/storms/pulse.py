"""What a process sends at fixed intervals: its heartbeats, its background commits.

Analytic by default (see `contacts.py`): a request is made real when it can make a difference.
In exact mode every one is real. Both give the same trace.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from groupstorm.assignors.contract import COOPERATIVE
from groupstorm.assignors.userdata import TopicPartition
from groupstorm.coordinator.errors import NO_ERROR, REBALANCE_IN_PROGRESS, Error
from groupstorm.coordinator.messages import HeartbeatResponse, OffsetCommitResponse
from groupstorm.coordinator.sessions import IN_TOUCH
from groupstorm.storms.answers import first_error
from groupstorm.storms.contacts import ContactStream

if TYPE_CHECKING:
    from groupstorm.storms.consumer import VirtualConsumer
    from groupstorm.storms.world import World


HEARTBEAT = "Heartbeat"
OFFSET_COMMIT = "OffsetCommit"


class Pulse:
    """The heartbeat stream and the commit stream of one process."""

    __slots__ = (
        "_commits",
        "_consumer",
        "_ended_commits",
        "_heartbeats",
        "_held_since_us",
        "_in_touch",
        "_last_commits",
        "_last_heartbeat_us",
        "_last_heartbeats",
        "_world",
    )

    def __init__(self, world: World, consumer: VirtualConsumer) -> None:
        self._world = world
        self._consumer = consumer
        self._heartbeats: ContactStream | None = None
        self._commits: ContactStream | None = None
        self._ended_commits: ContactStream | None = None
        self._held_since_us: int | None = None
        self._last_heartbeat_us: int | None = None
        self._in_touch = False  # the coordinator counts on the heartbeats to go on
        #: The streams that ended last of those of which a request has arrived.
        self._last_heartbeats: ContactStream | None = None
        self._last_commits: ContactStream | None = None

    # -- when they run ---------------------------------------------------------------------------

    def follow(self) -> None:
        """The membership's state may have changed: heartbeats run in CompletingRebalance and Stable."""
        membership = self._consumer.membership
        wanted = membership.state in membership.heartbeats_in
        stream = self._heartbeats
        if stream is not None:
            if wanted and stream.generation is membership.generation:
                return  # a process that cannot be reached has no stream
            self._end_heartbeats()
        if wanted and self._consumer.reachable():
            now_us = self._world.clock.now_us
            interval_us = self._consumer.config.heartbeat_interval_ms * 1000
            first_us = self._first_heartbeat_us(now_us, interval_us)
            self._heartbeats = self._open(HEARTBEAT, first_us - interval_us, interval_us)
            self._held_since_us = None

    def _first_heartbeat_us(self, now_us: int, interval_us: int) -> int:
        membership, profile = self._consumer.membership, self._consumer.config.profile
        if self._held_since_us is not None and profile.heartbeats_while_syncing:
            # An overdue heartbeat leaves as soon as the assignor has let go of the client's lock.
            return max(self._held_since_us + interval_us, now_us)
        cooperative = membership.rebalance_protocol is COOPERATIVE
        return profile.first_heartbeat_us(now_us, interval_us, self._last_heartbeat_us, cooperative)

    def hold(self, duration_us: int) -> None:
        """The assignor runs: no heartbeats for ``duration_us``."""
        self._end_heartbeats()
        self._held_since_us = self._world.clock.now_us if duration_us else None

    def start_commits(self) -> None:
        if not self._consumer.membership.owned:
            return  # who owns nothing has nothing to commit, and sends nothing
        consumer = self._consumer
        if consumer.config.enable_auto_commit and self._commits is None and consumer.reachable():
            interval_us = consumer.config.auto_commit_interval_ms * 1000
            self._commits = self._open(OFFSET_COMMIT, self._world.clock.now_us, interval_us)

    def stop_commits(self) -> None:
        """No more background commits; the last that arrived counts until a later one supersedes it."""
        stream, self._commits = self._commits, None
        if stream is not None:
            self._end(stream)
            self._ended_commits = stream

    def settle_commits(self) -> None:
        """Before positions change hands or stand still: let the commits that have arrived count."""
        for stream in (self._ended_commits, self._commits):
            if stream is not None:
                self._flush(stream)
        self._ended_commits = None

    def commits_superseded(self) -> None:
        """A later commit of everything has been accepted."""
        self._ended_commits = None

    def stop(self) -> None:
        """The process stands still or is gone; what it has sent still arrives."""
        self.stop_commits()
        self._end_heartbeats()

    def cut(self) -> None:
        """The connection is lost, with everything that is under way."""
        now_us = self._world.clock.now_us
        for stream in (self._heartbeats, self._commits):
            if stream is not None:
                stream.cut_us = now_us
        self.stop()
        self.settle_commits()

    def restart(self) -> None:
        """After a pause or a lost connection: a first heartbeat at once, for real; much may have changed."""
        consumer = self._consumer
        if consumer.membership.heartbeating and consumer.reachable() and self._heartbeats is None:
            now_us = self._world.clock.now_us
            interval_us = consumer.config.heartbeat_interval_ms * 1000
            self._heartbeats = self._open(HEARTBEAT, now_us - interval_us, interval_us)
            self._make_real(self._heartbeats, 1)
        if consumer.settled:
            self.start_commits()
            if self._commits is not None:
                self._make_real(self._commits, 1)

    # -- what the coordinator wants to know ------------------------------------------------------

    def last_contact_ms(self, deadline_ms: int, session_timeout_ms: int) -> int | None:
        """When a request last arrived before ``deadline_ms``; None if none did.

        IN_TOUCH while heartbeats flow; the time of sending where they are too far apart for that.
        """
        by_us = deadline_ms * 1000 - 1
        stream = self._heartbeats
        if stream is not None and stream.cut_us is None:
            k = stream.last_sent(by_us - stream.latency_most_us)
            sent_ms = stream.sent_us(k) // 1000
            if k and sent_ms > deadline_ms - session_timeout_ms:
                apart_us = stream.interval_us + stream.latency_most_us
                self._in_touch = apart_us < session_timeout_ms * 1000
                return IN_TOUCH if self._in_touch else sent_ms
        last_us = self._last_arrival_us(by_us)
        return None if last_us is None else last_us // 1000

    def silent_since_us(self) -> int | None:
        """When the last request arrived; None while heartbeats flow, or if there was none."""
        return None if self._heartbeats is not None else self._last_arrival_us(self._world.clock.now_us)

    def _last_arrival_us(self, by_us: int) -> int | None:
        ended = [
            s.arrival_us(s.arrived) for s in (self._last_heartbeats, self._last_commits) if s is not None
        ]
        running = [(s, s.last_arrived(by_us)) for s in (self._heartbeats, self._commits) if s is not None]
        return max([*ended, *(s.arrival_us(k) for s, k in running if k)], default=None)

    def wake(self, generation_over: bool) -> None:
        """The group has changed: from now on an answer may say so.

        A commit is refused only when the member's generation is over: while the group prepares
        a rebalance it is still accepted.
        """
        now_us = self._world.clock.now_us
        if self._heartbeats is not None:
            self._make_real(self._heartbeats, self._heartbeats.first_arriving(now_us))
        if not generation_over:
            return
        self.settle_commits()
        if self._commits is not None:
            self._make_real(self._commits, self._commits.first_arriving(now_us))

    # -- streams ---------------------------------------------------------------------------------

    def _open(self, api: str, start_us: int, interval_us: int) -> ContactStream:
        world, consumer = self._world, self._consumer
        generation = consumer.membership.generation
        world.consumers_by_id[generation.member_id] = consumer
        stream = ContactStream(
            api, start_us, interval_us, generation, consumer.connection, world.latency.largest_us
        )
        if world.exact:
            world.clock.at(stream.sent_us(1), self._tick, stream, 1)
        elif not world.is_current(generation):
            self._make_real(stream, 1)  # the group has moved on before the member could know
        return stream

    def _end_heartbeats(self) -> None:
        stream, self._heartbeats = self._heartbeats, None
        if stream is not None and (last := self._end(stream)):
            self._last_heartbeat_us = stream.sent_us(last)

    def _end(self, stream: ContactStream) -> int:
        """No more of these; returns the last one that was sent (0: none)."""
        world = self._world
        now_us = world.clock.now_us
        stream.end_us = now_us
        arrived = last = stream.last_sent(now_us)
        if stream.cut_us is not None:
            arrived = stream.last_arrived(now_us)
        elif last and stream.arrives_after(last, now_us):
            self._make_real(stream, last)  # it is under way
            arrived = last - 1
        if arrived:
            stream.arrived = arrived
            if stream.api == OFFSET_COMMIT:
                self._last_commits = stream
            else:
                self._last_heartbeats = stream
                if self._in_touch:
                    self._in_touch = False
                    world.out_of_touch(stream.generation.member_id, stream.arrival_us(arrived))
            if not world.exact:
                # Those that arrived were fine, or they would have been made real.
                world.count((stream.api, None), stream.computed(arrived))
        return last

    def _flush(self, stream: ContactStream) -> None:
        """Let the commits that arrived by now count; in exact mode they have."""
        if self._world.exact:
            return
        k = stream.last_arrived(self._world.clock.now_us)
        if k > stream.flushed and k not in stream.real:
            stream.flushed = k
            self._world.commit(self._consumer.work.positions(stream.sent_us(k)))

    def _make_real(self, stream: ContactStream, k: int) -> None:
        if not self._world.exact and k not in stream.real:
            stream.real += (k,)
            clock = self._world.clock
            clock.at(max(stream.arrival_us(k), clock.now_us), self._arrive, stream, k)

    def _tick(self, stream: ContactStream, k: int) -> None:
        """Exact mode: the k-th request leaves."""
        if stream.is_sent(k):
            self._world.clock.at(stream.arrival_us(k), self._arrive, stream, k)
            self._world.clock.at(stream.sent_us(k + 1), self._tick, stream, k + 1)

    def _arrive(self, stream: ContactStream, k: int) -> None:
        if not stream.is_sent(k) or (stream.cut_us is not None and stream.arrival_us(k) > stream.cut_us):
            stream.forget(k)
            return
        if stream.api == HEARTBEAT:
            self._heartbeat_arrives(stream, k)
        else:
            self._commit_arrives(stream, k)

    def _heartbeat_arrives(self, stream: ContactStream, k: int) -> None:
        error = self._world.heartbeat(self._consumer.config, stream.generation)
        if error is not None:
            self._heartbeat_heard(stream, k, error)
        else:
            request = self._consumer.membership.heartbeat(stream.generation)
            self._world.ask(request, partial(self._heartbeat_answered, stream, k))

    def _heartbeat_answered(self, stream: ContactStream, k: int, response: HeartbeatResponse) -> None:
        self._heartbeat_heard(stream, k, response.error)

    def _heartbeat_heard(self, stream: ContactStream, k: int, error: Error) -> None:
        """The coordinator has answered."""
        if error is NO_ERROR or error is REBALANCE_IN_PROGRESS:
            self._in_touch = False  # it has started the session again
        self._answer(stream, k, error)

    def _commit_arrives(self, stream: ContactStream, k: int) -> None:
        positions = self._consumer.work.positions(stream.sent_us(k))
        if positions:
            request = self._consumer.offset_commit(positions, stream.generation)
            self._world.ask(request, partial(self._commit_answered, stream, k, positions))

    def _commit_answered(
        self,
        stream: ContactStream,
        k: int,
        positions: Mapping[TopicPartition, int],
        response: OffsetCommitResponse,
    ) -> None:
        error = first_error(response)
        if error is NO_ERROR:
            self._world.commit(positions)
        self._answer(stream, k, error)

    def _answer(self, stream: ContactStream, k: int, error: Error) -> None:
        if error is NO_ERROR:
            return  # the member goes on as before
        latency_us = stream.connection.heartbeat_answer_latency_us(stream.sent_us(k))
        self._world.clock.after(latency_us, self._answered, stream, error)
        if not self._world.exact and k + 1 not in stream.real:
            stream.real += (k + 1,)
            clock = self._world.clock
            clock.at(max(stream.sent_us(k + 1), clock.now_us), self._leaves, stream, k + 1)

    def _leaves(self, stream: ContactStream, k: int) -> None:
        """The request behind one whose answer was an error: mostly its stream has ended by now."""
        if stream.is_sent(k):
            clock = self._world.clock
            clock.at(max(stream.arrival_us(k), clock.now_us), self._arrive, stream, k)
        else:
            stream.forget(k)

    def _answered(self, stream: ContactStream, error: Error) -> None:
        consumer = self._consumer
        if not consumer.reachable() or stream.epoch != consumer.connection.epoch:
            return
        if stream.api == HEARTBEAT:
            consumer.membership.heartbeat_answered(error, stream.generation)
        else:
            consumer.membership.commit_answered(error, stream.generation)
        self.follow()
        consumer.nudge()
