"""The members of the group and their parked requests, by the coordinator's rows, and the living processes."""

from __future__ import annotations

from groupstorm.storms.checks.commits import Appends, UnwrittenChanges, WrittenMembers
from groupstorm.storms.checks.verdicts import MEMBERS_LIVE, PARKED, SILENCE, Verdicts, listed
from groupstorm.storms.scenario.steps import COORDINATOR_FAILOVER
from groupstorm.trace.events import coordinator as coordinator_events
from groupstorm.trace.events import member as events
from groupstorm.trace.events import scenario as scenario_events
from groupstorm.trace.events.group_states import Cause, GroupState


class RequestChecks:
    """Follows the parked requests: member id -> name of the member.

    When a phase ends, the coordinator answers the requests that it parked in it before it changes the group's
    state once more.
    """

    def __init__(self, verdicts: Verdicts) -> None:
        self._verdicts = verdicts
        self._joins: dict[str, str] = {}
        self._syncs: dict[str, str] = {}
        #: Parked in a phase that has ended.
        self._due_joins: dict[str, str] = {}
        self._due_syncs: dict[str, str] = {}

    def is_parked(self, member_id: str) -> bool:
        return member_id in self._joins or member_id in self._syncs

    def join_parked(self, _now_us: int, event: coordinator_events.JoinParked) -> None:
        """A member that joins again replaces its older JoinGroup, as in Kafka: that one has no response."""
        self._joins[event.member_id] = event.member

    def join_answered(self, _now_us: int, event: coordinator_events.JoinAnswered) -> None:
        member_id = event.member_id or self._parked_id_of(event.member)
        self._joins.pop(member_id, None)
        if self._due_joins:
            self._due_joins.pop(member_id, None)

    def _parked_id_of(self, name: str) -> str:
        """A group that could not be written is gone: the response to a join of it has no member id."""
        return next((member_id for member_id, member in self._joins.items() if member == name), "")

    def sync_parked(self, _now_us: int, event: coordinator_events.SyncParked) -> None:
        self._syncs[event.member_id] = event.member

    def sync_answered(self, _now_us: int, event: coordinator_events.SyncAnswered) -> None:
        self._syncs.pop(event.member_id, None)
        if self._due_syncs:
            self._due_syncs.pop(event.member_id, None)

    def removed(self, _now_us: int, event: coordinator_events.MemberRemoved) -> None:
        """Kafka does not answer the SyncGroup of a member that it removes."""
        self._syncs.pop(event.member_id, None)
        self._due_syncs.pop(event.member_id, None)

    def state_changed(self, _now_us: int, event: coordinator_events.GroupStateChanged) -> None:
        self._check_due()
        if event.previous_state == GroupState.PREPARING_REBALANCE:
            self._due_joins = dict(self._joins)
        elif event.previous_state == GroupState.COMPLETING_REBALANCE:
            self._due_syncs = dict(self._syncs)

    def finish(self) -> None:
        """Check the end: only a phase that still lasts may hold requests back."""
        self._check_due()

    def _check_due(self) -> None:
        for api, due in (("JoinGroup", self._due_joins), ("SyncGroup", self._due_syncs)):
            if due:
                names = listed(sorted(set(due.values())))
                self._verdicts.violated(PARKED, f"the coordinator never answered the {api} of {names}")


class _Process:
    """One process: the id that it believes to have, and since when it is silent."""

    __slots__ = ("member_id", "silent_since_us")

    def __init__(self) -> None:
        self.member_id = ""
        self.silent_since_us: int | None = None


class MembershipChecks:
    """Follows the members of the group and the processes that live.

    ``silence_us``: how long a member may be silent at most, the latency of its last request included; None
    if nobody checks. ``members`` is shared with the other checks: the ids that are in the group. ``appends``:
    how the coordinator's writes end.
    """

    def __init__(
        self,
        verdicts: Verdicts,
        members: set[str],
        requests: RequestChecks,
        silence_us: int | None,
        appends: Appends,
    ) -> None:
        self._verdicts = verdicts
        self._members = members
        self._requests = requests
        self._silence_us = silence_us
        self._living: dict[str, _Process] = {}
        #: The names and ids of the crashed that are still in the group, and since when they are silent.
        self._crashed: dict[str, tuple[str, int]] = {}
        self._appends = appends
        self.log = WrittenMembers(members, appends)
        self._unwritten = UnwrittenChanges(members, appends)
        #: The members that the next coordinator will load.
        self._loaded: frozenset[str] = frozenset()
        #: When the coordinator last answered a member that is silent.
        self._answered_us: dict[str, int] = {}
        #: Members whose removal could not be written: no session of theirs ends until they are heard again.
        self._sessionless: set[str] = set()
        #: Whether there is no coordinator: then nobody removes a member.
        self._down = False
        #: When a round last closed.
        self._closed_us = 0

    # -- what the coordinator says ---------------------------------------------------------------

    def added(self, time_us: int, event: coordinator_events.MemberAdded) -> None:
        self._members.add(event.member_id)
        self._unwritten.changed(time_us, event.member_id, joined=True)

    def replaced(self, time_us: int, event: coordinator_events.MemberReplaced) -> None:
        self._members.discard(event.previous_member_id)
        self._members.add(event.member_id)
        self._unwritten.changed(time_us, event.previous_member_id, joined=False)
        self._unwritten.changed(time_us, event.member_id, joined=True)
        self.log.replaced(event)
        self._crashed.pop(event.previous_member_id, None)

    def removed(self, time_us: int, event: coordinator_events.MemberRemoved) -> None:
        member_id = event.member_id
        crashed = self._crashed.pop(member_id, None)
        if crashed is not None:
            self._check_silence(time_us, *crashed, member_id)
        self._members.discard(member_id)
        self._unwritten.changed(time_us, member_id, joined=False)

    def group_deleted(self, time_us: int, event: coordinator_events.GroupDeleted) -> None:
        """The group has no members; a coordinator that loads it has those of its last record."""
        self._members.clear()
        self._unwritten.forget()
        if event.cause == "unloaded":
            loaded = self._loaded if self._down else self.log.at(time_us)
            self._members.update(loaded)
            self.log.loads(loaded)

    def state_changed(self, time_us: int, event: coordinator_events.GroupStateChanged) -> None:
        """A round that closes begins the sessions of all its members, also of static ones that did not join
        (GroupMetadataManager.completeClassicGroupJoin)."""
        self.log.state_changed(time_us, event)
        if event.state == GroupState.COMPLETING_REBALANCE:
            self._closed_us = time_us

    def created(self, time_us: int, event: coordinator_events.GroupCreated) -> None:
        """A coordinator that loads a group begins the sessions of its members."""
        self._down = False
        self.log.created(time_us, event)
        if event.cause == "loaded":
            self._sessionless.clear()
            self._answered_us.update(dict.fromkeys(self._members, time_us))

    def converted(self, time_us: int, event: coordinator_events.GroupConverted) -> None:
        """A group that becomes one of the other kind begins the sessions of its members
        (GroupMetadataManager.convertToClassicGroup, convertToConsumerGroup)."""
        if event.cause == Cause.UPGRADED:
            self._unwritten.forget()
        else:
            self.log.consumer_group_written(time_us)  # an upgrade has more rows
        self._answered_us.update(dict.fromkeys(self._members, time_us))

    def answered(
        self, time_us: int, event: coordinator_events.JoinAnswered | coordinator_events.SyncAnswered
    ) -> None:
        """A response to a JoinGroup or SyncGroup: the member's session begins again."""
        self._answered_us[event.member_id] = time_us

    def consumer_group_written(self, time_us: int) -> None:
        """A consumer group has changed its epoch, or one of its members."""
        self.log.consumer_group_written(time_us)
        self._unwritten.written(time_us)

    def reconciled(self, time_us: int, event: coordinator_events.MemberReconciled) -> None:
        """A heartbeat of the member has brought it further: its session begins again."""
        self.consumer_group_written(time_us)
        self._answered_us[event.member_id] = self.log.busy_until_us(time_us)

    def consumer_group_reverted(self, time_us: int) -> None:
        """A write of a consumer group has failed: who joined or left in it is back or out."""
        self._sessionless |= self._unwritten.append_failed(time_us)

    def step_taken(self, time_us: int, event: scenario_events.StepTaken) -> None:
        """The coordinator dies; the rows of its successor begin when it has loaded the group."""
        self._appends.step_taken(time_us, event)
        if event.cause == COORDINATOR_FAILOVER and not self._down:
            self._down = True
            self._loaded = self.log.at(time_us)

    # -- what processes say ----------------------------------------------------------------------

    def started(self, _now_us: int, event: events.MemberStarted) -> None:
        self._living[event.member] = _Process()

    def completed(self, _now_us: int, event: events.PartitionsAssigned) -> None:
        """The member has completed a generation under this id."""
        self._living[event.member].member_id = event.member_id

    def paused(self, time_us: int, event: events.MemberPaused) -> None:
        """The coordinator may read the requests of the process only when the response to its last one has
        left, which waits for the writes under way."""
        if event.cause == "pause":
            self._living[event.member].silent_since_us = self.log.busy_until_us(time_us)

    def resumed(self, time_us: int, event: events.MemberResumed) -> None:
        process = self._living[event.member]
        since_us, process.silent_since_us = process.silent_since_us, None
        if since_us is not None:
            self._check_silence(time_us, event.member, since_us, event.member_id)
        self._sessionless.discard(event.member_id)

    def crashed(self, time_us: int, event: events.MemberCrashed) -> None:
        process = self._living.pop(event.member)
        if event.member_id in self._members:
            since_us = process.silent_since_us
            if since_us is None:
                since_us = self.log.busy_until_us(time_us)
            self._crashed[event.member_id] = (event.member, since_us)

    def ended(self, _now_us: int, event: events.MemberClosed | events.MemberFailed) -> None:
        self._living.pop(event.member, None)

    # -- the end ---------------------------------------------------------------------------------

    def finish(self, time_us: int, settled: bool) -> None:
        """Check the silent; and, if the group is said to have settled, that its members are the living."""
        for member_id, (name, since_us) in self._crashed.items():
            self._check_silence(time_us, name, since_us, member_id)
        if not settled:
            return
        members = self._members
        outside = sorted(name for name, own in self._living.items() if own.member_id not in members)
        if outside:
            self._verdicts.violated(
                MEMBERS_LIVE, f"{listed(outside)} runs at the end, but is not in the group"
            )
        dead = sorted(members - {own.member_id for own in self._living.values()})
        if dead:
            self._verdicts.violated(
                MEMBERS_LIVE, f"{listed(dead)} is in the group at the end, but no process has this id"
            )

    # -- parts -----------------------------------------------------------------------------------

    def _check_silence(self, now_us: int, name: str, since_us: int, member_id: str) -> None:
        """A member that was silent for longer than its session is out of the group, unless the coordinator
        held its request back: then its session begins with the response."""
        if (
            self._silence_us is None
            or self._down
            or member_id not in self._members
            or member_id in self._sessionless
            or self._requests.is_parked(member_id)
        ):
            return
        silent_us = now_us - max(since_us, self._answered_us.get(member_id, 0), self._closed_us)
        if silent_us > self._silence_us:
            self._verdicts.violated(
                SILENCE,
                f"{name} was silent for {silent_us / 1_000_000:g} s and still in the group: "
                f"session.timeout.ms and the way of a request are {self._silence_us / 1_000_000:g} s",
            )
