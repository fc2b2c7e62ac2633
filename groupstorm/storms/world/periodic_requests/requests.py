"""The heartbeats and the commits of one process: when they run, rest and wake.

The package has the rules. In exact mode no request rests; both modes give the same trace.
"""

from __future__ import annotations

from collections.abc import Mapping

from groupstorm.assignors.contract import COOPERATIVE
from groupstorm.assignors.userdata import TopicPartition
from groupstorm.coordinator.errors import Error
from groupstorm.storms.scenario.setting_names import BATCH, NEVER, RECORD
from groupstorm.storms.world.clock import Kind
from groupstorm.storms.world.connection import Network
from groupstorm.storms.world.periodic_requests.schedule import ProcessTimer, RequestSchedule
from groupstorm.storms.world.periodic_requests.series import (
    BackgroundCommits,
    Heartbeats,
    RestingMembers,
    Sender,
    SentSeries,
)


class PeriodicRequests:
    """The present series of heartbeats and of background commits.

    ``heartbeats``: the present series of heartbeats; None if there is none. ``exact``: no request is computed
    (the oracle).
    """

    def __init__(
        self, network: Network, resting: RestingMembers, timer: ProcessTimer, exact: bool, sender: Sender
    ) -> None:
        config = sender.config
        self._network = network
        self._resting = resting
        self._timer = timer
        self._sender = sender
        self._membership = sender.membership
        steps_ms = config.retry_backoff_ms if config.profile.heartbeats_wait_in_steps else 0
        apart_us = sender.client_clock.timer_us(config.heartbeat_interval_ms + steps_ms) + timer.most_us
        may_end = apart_us + network.latency.largest_us >= config.session_timeout_ms * 1000
        #: If a session may end between two heartbeats, both are sent.
        self._exact = exact or may_end
        self.heartbeats: Heartbeats | None = None
        self._commits: BackgroundCommits | HandCommits | None = None
        #: The positions up to which commits by hand are counted.
        self._counted: dict[TopicPartition, int] = {}
        self._held_since_us: int | None = None
        self._last_heartbeat_us: int | None = None

    # -- when they run ---------------------------------------------------------------------------

    def follow_membership(self) -> None:
        """The membership's state may have changed: heartbeats run in CompletingRebalance and Stable."""
        membership, heartbeats = self._membership, self.heartbeats
        if heartbeats is not None:
            if membership.heartbeating and heartbeats.generation is membership.generation:
                self.rest()
                return  # a process that cannot be reached has no series
            self._end_heartbeats()
        if membership.heartbeating and self._sender.reachable():
            self._begin_heartbeats(self._first_heartbeat_us())
            self._held_since_us = None

    def _first_heartbeat_us(self) -> int:
        profile, now_us = self._sender.config.profile, self._network.clock.now_us
        if self._held_since_us is not None and profile.heartbeats_while_syncing:
            # An overdue heartbeat leaves as soon as the assignor has released the client's lock.
            return max(self._held_since_us + self._interval_us, now_us)
        cooperative = self._membership.rebalance_protocol is COOPERATIVE
        return profile.first_heartbeat_us(now_us, self._interval_us, self._last_heartbeat_us, cooperative)

    @property
    def _interval_us(self) -> int:
        return self._sender.client_clock.timer_us(self._sender.config.heartbeat_interval_ms)

    def follow_work(self) -> None:
        """The application has other partitions, or other records arrive: how long it works may change."""
        heartbeats, sender = self.heartbeats, self._sender
        lateness = None if heartbeats is None else heartbeats.schedule.lateness
        if heartbeats is None or lateness is None or not sender.config.profile.heartbeats_wait_in_steps:
            return
        share, batch_us = sender.work_share()
        step_us = sender.client_clock.timer_us(sender.config.retry_backoff_ms)
        work = share, min(batch_us, step_us) if share else 0
        if lateness.work != work:
            after_k = heartbeats.schedule.last_sent(self._network.clock.now_us, heartbeats.sent) + 1
            lateness.works(after_k, *work)
            self.rest()

    def hold_heartbeats(self, duration_us: int) -> None:
        """The assignor runs and holds the client's lock: no heartbeats for ``duration_us``."""
        self._end_heartbeats()
        self._held_since_us = self._network.clock.now_us if duration_us else None

    def start_commits(self) -> None:
        sender = self._sender
        if not self._membership.owned:
            return  # a member that owns nothing has nothing to commit, and sends nothing
        if self._commits is not None or not sender.reachable():
            return
        if sender.commits in (BATCH, RECORD):
            if self._network.broker.has_member(self._membership.generation):
                self._commits = HandCommits(self._network, sender, self._counted)
                self._resting.by_hand[self._membership.generation.member_id] = self.stop_commits
        elif sender.commits != NEVER:
            now_us = self._network.clock.now_us
            interval_us = sender.client_clock.timer_us(sender.config.auto_commit_interval_ms)
            schedule = RequestSchedule(Kind.COMMIT_ARRIVES, now_us, interval_us, sender.connection)
            resting = self._resting.commits
            self._commits = series = BackgroundCommits(
                self._network, sender, schedule, resting, self._answered
            )
            self._begin(series)

    def stop_commits(self) -> None:
        """No more commits; what is under way still arrives."""
        commits, self._commits = self._commits, None
        if commits is not None:
            commits.end()
            self._resting.by_hand.pop(commits.generation.member_id, None)

    def settle_commits(self) -> None:
        """Let the computed commits that have arrived count: somebody looks at the offsets, or positions are
        about to change hands or to stand still."""
        if self._commits is not None:
            self._commits.wake()

    def begun(self, positions: Mapping[TopicPartition, int]) -> None:
        """The process begins to process these partitions there."""
        self._counted.update(positions)
        self.rest()

    def stop(self) -> None:
        """The process stands still or is gone; requests that it has sent still arrive."""
        self.stop_commits()
        self._end_heartbeats()

    def restart(self) -> None:
        """After a pause or a lost connection: send a heartbeat at once."""
        if self._membership.heartbeating and self._sender.reachable() and self.heartbeats is None:
            self._begin_heartbeats(self._network.clock.now_us)
        self.restart_commits()

    def restart_commits(self) -> None:
        """A member that has joined goes on with background commits."""
        if self._sender.settled:
            self.follow_work()
            self.start_commits()

    def next_heartbeat_us(self) -> int:
        """When the next heartbeat leaves; now if none is due."""
        now_us, heartbeats = self._network.clock.now_us, self.heartbeats
        if heartbeats is None:
            return now_us
        heartbeats.wake()
        return max(now_us, heartbeats.schedule.sent_us(heartbeats.sent + 1))

    def _begin_heartbeats(self, first_us: int) -> None:
        kind, interval_us = Kind.HEARTBEAT_ARRIVES, self._interval_us
        start_us, timer = first_us - interval_us, self._timer.series(first_us)
        schedule = RequestSchedule(kind, start_us, interval_us, self._sender.connection, timer)
        resting = self._resting.heartbeats
        self.heartbeats = Heartbeats(self._network, self._sender, schedule, resting, self._answered)
        self._begin(self.heartbeats)

    def _begin(self, series: SentSeries) -> None:
        self.rest()
        if not series.is_resting:
            series.send_next()

    def _end_heartbeats(self) -> None:
        heartbeats, self.heartbeats = self.heartbeats, None
        if heartbeats is not None:
            if self._commits is not None:
                self._commits.wake()
            heartbeats.end()
            if heartbeats.sent:
                self._last_heartbeat_us = heartbeats.sent_us

    def _answered(self, error: Error | None) -> None:
        """A request was accepted (None), or the member has received an error."""
        if error is None:
            self.rest()
        else:
            self.follow_membership()
            self._sender.nudge()

    # -- they rest and wake ----------------------------------------------------------------------

    def rest(self) -> None:
        """Compute the requests from now on if nothing disturbs them."""
        commits = self._commits
        if (
            not self._exact
            and self._heartbeats_rest()
            and isinstance(commits, BackgroundCommits)
            and not commits.is_resting
            and self._sender.work.partitions  # else it has no positions to commit yet
        ):
            commits.rest()

    def _heartbeats_rest(self) -> bool:
        """Whether heartbeats are computed from now on."""
        heartbeats = self.heartbeats
        if heartbeats is None or heartbeats.is_resting:
            return heartbeats is not None
        next_us = heartbeats.schedule.sent_us(heartbeats.sent + 1) + self._network.latency.largest_us
        if not self._sender.connection.passes or not self._network.broker.is_calm(
            heartbeats.generation, next_us
        ):
            return False
        heartbeats.rest()
        return True

    def wake_heartbeats(self) -> None:
        """Send heartbeats from now on."""
        if self.heartbeats is not None:
            self.heartbeats.wake()


class HandCommits:
    """The commits of one process by hand (commitSync) while it polls, after each batch or after each record.

    They are computed, also in exact mode: everything that an application has finished is committed as long as
    the coordinator accepts its commits. Each takes a round trip, which is part of the time that records take
    (`RecordTimes`). What a poll() that matters finds finished is committed by a request, as the client
    commits before it joins, and on close.
    """

    def __init__(self, network: Network, sender: Sender, counted: dict[TopicPartition, int]) -> None:
        """The application commits from now on. ``counted``: the positions up to which commits are counted."""
        self._clock, self._broker = network.clock, network.broker
        self._work = sender.work
        self._by_record = sender.commits == RECORD
        self.generation = sender.membership.generation
        self._counted = counted
        #: The number of looks at the logs that are counted.
        self._looks = self._work.loop.looks(self._clock.now_us)

    def end(self) -> None:
        """The application polls no more, or the coordinator refuses its commits from now on."""
        self.wake()

    def wake(self) -> None:
        """Let all commits until now count."""
        now_us, loop = self._clock.now_us, self._work.loop
        positions = loop.positions(now_us) if self._by_record else loop.finished_positions(now_us)
        looks = loop.looks(now_us)
        self._broker.count(("OffsetCommit", None), self._commits(positions, looks - self._looks))
        self._looks = looks
        self._counted.update(positions)
        self._work.records.commit(positions)

    def _commits(self, positions: dict[TopicPartition, int], looks: int) -> int:
        """Count the commits that bring the group's offsets to these positions, in so many looks at the logs.

        A batch has at least one record, and at most as many as a poll() returns.
        """
        counted = self._counted
        records = sum([max(0, offset - counted.get(one, offset)) for one, offset in positions.items()])
        if self._by_record:
            return records
        return max(min(looks, records), -(-records // self._work.loop.poll_records))
