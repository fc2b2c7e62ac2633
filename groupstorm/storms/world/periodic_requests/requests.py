"""The heartbeats and the background commits of one process.

By default they are computed, and a request is made real when it can make a difference. In exact mode every
request is real. Both modes give the same trace.
"""

from __future__ import annotations

from groupstorm.assignors.contract import COOPERATIVE
from groupstorm.coordinator.simulated import IN_TOUCH
from groupstorm.storms.record_positions import Records
from groupstorm.storms.world.connection import Network
from groupstorm.storms.world.instants import ORDER_BITS, moment_of
from groupstorm.storms.world.periodic_requests.lateness import ProcessTimer
from groupstorm.storms.world.periodic_requests.real_requests import RealRequests
from groupstorm.storms.world.periodic_requests.schedule import HEARTBEAT, OFFSET_COMMIT, RequestSchedule
from groupstorm.storms.world.periodic_requests.sender import Sender
from groupstorm.storms.world.periodic_requests.sessions import SessionArbiter


class PeriodicRequests:
    """The present series of heartbeats and of background commits, and what earlier series left behind.

    ``exact``: every request is real (the oracle).
    """

    __slots__ = (
        "_broker",
        "_clock",
        "_commits",
        "_config",
        "_connection",
        "_ended_commits",
        "_exact",
        "_heartbeats",
        "_held_since_us",
        "_last_commits",
        "_last_heartbeat_us",
        "_last_heartbeats",
        "_latency_most_us",
        "_membership",
        "_real_requests",
        "_records",
        "_sender",
        "_sessions",
        "_timer",
        "_timers",
        "_work",
        "session_timeout_ms",
    )

    def __init__(
        self,
        network: Network,
        records: Records,
        sessions: SessionArbiter,
        timer: ProcessTimer,
        exact: bool,
        sender: Sender,
    ) -> None:
        self._clock = network.clock
        self._broker = network.broker
        self._latency_most_us = network.latency.largest_us
        self._records = records
        self._sessions = sessions
        self._timer = timer
        self._exact = exact
        self._sender = sender
        self._config = sender.config
        self._timers = sender.timers
        self._membership = sender.membership
        self._connection = sender.connection
        self._work = sender.work
        self.session_timeout_ms = sender.config.session_timeout_ms
        self._real_requests = RealRequests(network, records, exact, sender, self.follow_membership)
        self._heartbeats: RequestSchedule | None = None
        self._commits: RequestSchedule | None = None
        #: A series that has ended and whose last commit may still have to count.
        self._ended_commits: RequestSchedule | None = None
        self._held_since_us: int | None = None
        self._last_heartbeat_us: int | None = None
        #: The last series of which a request had arrived when it ended.
        self._last_heartbeats: RequestSchedule | None = None
        self._last_commits: RequestSchedule | None = None

    # -- when they run ---------------------------------------------------------------------------

    def follow_membership(self) -> None:
        """The membership's state may have changed: heartbeats run in CompletingRebalance and Stable."""
        membership = self._membership
        wanted = membership.heartbeating
        heartbeats = self._heartbeats
        if heartbeats is not None:
            if wanted and heartbeats.generation is membership.generation:
                return  # a process that cannot be reached has no series
            self._end_heartbeats()
        if wanted and self._sender.reachable():
            now_us = self._clock.now_us
            interval_us = self._timers.us(self._config.heartbeat_interval_ms)
            first_us = self._first_heartbeat_us(now_us, interval_us)
            self._heartbeats = self._open(HEARTBEAT, first_us - interval_us, interval_us)
            self._held_since_us = None

    def _first_heartbeat_us(self, now_us: int, interval_us: int) -> int:
        membership, profile = self._membership, self._config.profile
        if self._held_since_us is not None and profile.heartbeats_while_syncing:
            # An overdue heartbeat leaves as soon as the assignor has released the client's lock.
            return max(self._held_since_us + interval_us, now_us)
        cooperative = membership.rebalance_protocol is COOPERATIVE
        return profile.first_heartbeat_us(now_us, interval_us, self._last_heartbeat_us, cooperative)

    def follow_work(self) -> None:
        """The application has other partitions, or other records arrive: how long it works may change."""
        heartbeats, config = self._heartbeats, self._config
        if heartbeats is not None and config.profile.heartbeats_wait_in_steps:
            share, batch_us = self._sender.work_share()
            heartbeats.works(
                self._clock.now_us, share, min(batch_us, self._timers.us(config.retry_backoff_ms))
            )

    def hold_heartbeats(self, duration_us: int) -> None:
        """The assignor runs and holds the client's lock: no heartbeats for ``duration_us``."""
        self._end_heartbeats()
        self._held_since_us = self._clock.now_us if duration_us else None

    def start_commits(self) -> None:
        if not self._membership.owned:
            return  # a member that owns nothing has nothing to commit, and sends nothing
        if self._config.enable_auto_commit and self._commits is None and self._sender.reachable():
            self.settle_commits()  # a commit of the new series may become real, and must not come first
            interval_us = self._timers.us(self._config.auto_commit_interval_ms)
            self._commits = self._open(OFFSET_COMMIT, self._clock.now_us, interval_us)

    def first_positions_known(self) -> None:
        """The process had no position until now: background commits before had nothing to commit."""
        if self._commits is not None:
            self._commits.empty = self._commits.last_sent(self._clock.now_us - 1)

    def stop_commits(self) -> None:
        """No more background commits; the last that arrived counts until a later one supersedes it."""
        if not self._work.partitions:
            self.first_positions_known()  # there never was one: no commit of the series had anything to say
        commits, self._commits = self._commits, None
        if commits is not None:
            self._end(commits)
            self._ended_commits = commits
            k = commits.last_arrived(self._arrived_us(commits))
            if not self._exact and k > commits.settled and k not in commits.real:
                commits.positions = self._work.loop.polled_positions(commits.sent_us(k))

    def settle_commits(self) -> None:
        """Let the commits that have arrived count: positions are about to change hands or stand still."""
        for commits in (self._ended_commits, self._commits):
            if commits is not None:
                self._settle(commits)
        self._ended_commits = None

    def _arrived_us(self, schedule: RequestSchedule) -> int:
        """The last instant at which requests of the series have arrived: now, or a microsecond before."""
        return self._clock.passed_us(schedule.order)

    def commits_superseded(self) -> None:
        """A later commit of everything has been accepted: those that have arrived by now count no more."""
        self._ended_commits = None
        commits = self._commits
        if commits is not None:
            commits.settled = max(commits.settled, commits.last_arrived(self._arrived_us(commits)))

    def stop(self) -> None:
        """The process stands still or is gone; requests that it has sent still arrive."""
        self.stop_commits()
        self._end_heartbeats()

    def finish(self) -> None:
        """The run is over: what waits for a write is not answered any more."""
        answered_us = self._broker.answered_until_us
        for schedule in (self._heartbeats, self._commits):
            if schedule is not None and not self._exact:
                arrived, answered = map(schedule.last_arrived, (self._clock.now_us, answered_us))
                waiting = schedule.computed(arrived) - schedule.computed(answered)
                self._broker.count((schedule.api, None), -waiting)
        self.stop()

    def cut_off(self) -> None:
        """The connection is lost, with all requests and responses under way."""
        self._real_requests.lost = self._clock.moment
        for schedule in (self._heartbeats, self._commits):
            if schedule is not None:
                schedule.cut_us = self._arrived_us(schedule)
        self.stop()
        self.settle_commits()

    def restart(self) -> None:
        """After a pause or a lost connection: send a heartbeat at once."""
        if self._membership.heartbeating and self._sender.reachable() and self._heartbeats is None:
            now_us = self._clock.now_us
            interval_us = self._timers.us(self._config.heartbeat_interval_ms)
            self._heartbeats = self._open(HEARTBEAT, now_us - interval_us, interval_us)
        self.restart_commits()

    def restart_commits(self) -> None:
        """A member that has joined goes on with background commits, the first of them a real one."""
        if self._sender.settled:
            self.follow_work()
            former = self._commits  # it has gone on if only the responses were lost
            self.start_commits()
            if self._commits is not None and self._commits is not former:
                self._real_requests.make_real(self._commits, 1)

    def next_heartbeat_us(self) -> int:
        """When the next heartbeat leaves; now if none is due."""
        now_us, heartbeats = self._clock.now_us, self._heartbeats
        return now_us if heartbeats is None else heartbeats.next_sent_us(now_us)

    # -- what the coordinator asks ---------------------------------------------------------------

    def last_contact_ms(self, deadline_ms: int) -> int | None:
        """When a request last arrived before ``deadline_ms``; None if none did.

        IN_TOUCH while heartbeats flow; the time of sending if they are too far apart for that.
        """
        by_us = deadline_ms * 1000
        heartbeats = self._heartbeats
        if heartbeats is not None:
            k = heartbeats.last_sent(by_us - heartbeats.latency_most_us)
            sent_ms = heartbeats.sent_us(k) // 1000
            if k and not heartbeats.refused and sent_ms > deadline_ms - self.session_timeout_ms:
                apart_us = heartbeats.most_apart_us()
                self._real_requests.in_touch = apart_us < self.session_timeout_ms * 1000
                return IN_TOUCH if self._real_requests.in_touch else sent_ms
        last = self._last_arrival(by_us)
        return None if last is None else (last >> ORDER_BITS) // 1000

    def silent_since(self) -> int | None:
        """The moment at which the last request arrived; None while accepted heartbeats flow, or if there was
        none."""
        flow = self._heartbeats is not None and not self._heartbeats.refused
        return None if flow else self._last_arrival(self._clock.now_us)

    def _last_arrival(self, by_us: int) -> int | None:
        ended = [
            moment_of(s.arrival_us(k), s.order)
            for s in (self._last_heartbeats, self._last_commits)
            if s is not None and (k := s.accepted(s.arrived))
        ]
        commits = self._commits if self._work.partitions else None  # without positions it says nothing
        running = [
            (s, s.accepted(s.last_arrived(by_us))) for s in (self._heartbeats, commits) if s is not None
        ]
        return max([*ended, *(moment_of(s.arrival_us(k), s.order) for s, k in running if k)], default=None)

    @property
    def alive(self) -> bool:
        """Whether the process that sends them is."""
        return self._sender.alive

    def make_next_real(self, generation_over: bool) -> None:
        """The group has changed: the next request to arrive becomes real, as its response may say so.

        A commit is refused only when the member's generation is over: while the group prepares a rebalance
        the coordinator still accepts it.
        """
        if self._heartbeats is not None:
            self._make_next_arrival_real(self._heartbeats)
        if not generation_over:
            return
        self.settle_commits()
        self._make_next_commit_real()

    def epoch_changes(self) -> None:
        """The coordinator has brought this member of a consumer group to another epoch, which the member
        learns with the response: commits under way carry the epoch before."""
        self.settle_commits()
        self._make_next_commit_real()

    def _make_next_commit_real(self) -> None:
        if self._commits is not None:
            self._make_next_arrival_real(self._commits)

    def _make_next_arrival_real(self, schedule: RequestSchedule) -> None:
        self._real_requests.make_real(schedule, schedule.first_arriving(self._arrived_us(schedule) + 1))

    def epoch_changed(self) -> None:
        """The member has learned its epoch: commits carry it from now on."""
        if self._commits is not None and self._commits.generation.id != self._membership.generation.id:
            self._commits.carry(self._membership.generation, self._clock.now_us)

    def write_holds_responses(self) -> None:
        """A write has begun that takes long or fails: responses wait for it, and may say that it failed."""
        self.make_next_real(generation_over=True)

    # -- a series begins and ends ----------------------------------------------------------------

    def _open(self, api: str, start_us: int, interval_us: int) -> RequestSchedule:
        generation = self._membership.generation
        self._sessions.by_member_id[generation.member_id] = self
        schedule = RequestSchedule(
            api,
            start_us,
            interval_us,
            generation,
            self._connection,
            self._latency_most_us,
            self._timer.series(start_us + interval_us) if api == HEARTBEAT else None,
        )
        if self._exact:
            self._real_requests.simulate_each(schedule)
        elif not self._broker.is_current(generation):
            self._real_requests.make_real(schedule, 1)  # the group has moved on before the member could know
        elif self._broker.is_writing:
            self._real_requests.make_real(schedule, 1)  # its response may wait for the write
        return schedule

    def _end_heartbeats(self) -> None:
        heartbeats, self._heartbeats = self._heartbeats, None
        if heartbeats is not None and (last := self._end(heartbeats)):
            self._last_heartbeat_us = heartbeats.sent_us(last)

    def _end(self, schedule: RequestSchedule) -> int:
        """End a series; returns the last request that was sent (0: none)."""
        now_us = self._clock.now_us
        schedule.end_us = self._clock.passed_us(schedule.leaves_order)
        arrived = last = schedule.last_sent(now_us)
        if schedule.cut_us is not None:
            arrived = schedule.last_arrived(now_us)
        elif last and schedule.arrives_after(last, self._arrived_us(schedule)):
            self._real_requests.make_real(schedule, last)  # it is under way
            arrived = last - 1
            if schedule.api == OFFSET_COMMIT:
                schedule.under_way = self._work.loop.polled_positions(schedule.sent_us(last))
        if arrived > schedule.empty:
            schedule.arrived = arrived
            if schedule.api == OFFSET_COMMIT:
                self._last_commits = schedule
            else:
                self._last_heartbeats = schedule
                if self._real_requests.in_touch:
                    self._real_requests.in_touch = False
                    self._broker.out_of_touch(schedule.generation.member_id, schedule.arrival_us(arrived))
            if not self._exact:
                # Those that arrived were answered without an error, or they would have been made real.
                self._broker.count((schedule.api, None), schedule.computed(arrived))
        return last

    def _settle(self, commits: RequestSchedule) -> None:
        """Let the commits that arrived by now count; in exact mode they have."""
        if self._exact:
            return
        k = commits.last_arrived(self._arrived_us(commits))
        if 0 < commits.refused <= k:
            return  # what came before has counted
        if k > commits.settled and k not in commits.real:
            commits.settled = k
            self._records.commit(commits.positions or self._work.loop.polled_positions(commits.sent_us(k)))
