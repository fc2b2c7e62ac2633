"""The cause that began a time without an owner: a deployment, or a crash.

`docs/figures.md` has the rules ("What began a time without an owner"). They read rows of the members, of the
scenario and of the coordinator's membership; whatever is neither planned nor a crash is `Origin.OTHER`.
"""

from __future__ import annotations

from collections import Counter
from enum import StrEnum

from groupstorm.trace.events import coordinator as events
from groupstorm.trace.events import member as member_events
from groupstorm.trace.events.group_states import Cause
from groupstorm.trace.events.scenario import StepTaken


class Origin(StrEnum):
    DEPLOY = "deploy"
    CRASH = "crash"
    OTHER = "other"


#: `step_taken` without a member: a deployment begins, and replaces members one after the other.
DEPLOYMENTS = frozenset(
    {"rolling-restart", "rolling-upgrade", "canary", "recreate", "blue-green", "drain-node"}
)
#: The end of the detail of a row that says that a deployment pauses.
PAUSE = "; pause"
#: `step_taken` without a member: it is over, one way or the other.
DEPLOYMENT_ENDS = frozenset({"rollout-complete", "rollout-stuck"})
#: `step_taken` without a member: members or partitions are added, or topics deleted.
GROWTH = frozenset({"start", "add", "scale-up", "add-partitions", "create-topic", "delete-topic"})
#: `step_taken` with a member: the process was asked to stop.
ASKED_TO_STOP = "SIGTERM"
#: Begins the detail of one with a member whose work on a record has ended its process.
OF_A_RECORD = "of a record"
#: `partitions_revoked` with this cause: the consumer closes.
CLOSE = "close"
#: Causes of `member_removed` that come from the member; the others come from the coordinator's own life.
_OF_MEMBERS = frozenset(
    {
        Cause.LEFT,
        Cause.SESSION_EXPIRED,
        Cause.REBALANCE_TIMEOUT,
        Cause.SYNC_TIMEOUT,
        Cause.NEW_MEMBER_TIMEOUT,
    }
)


class Origins:
    """Takes rows in their order; ``origin`` is that of the rebalances from now on.

    ``deploys`` counts deployments: those that a step announces, and the instants at which members stop that
    no announced deployment stops. ``crashes`` counts the instants at which members break off unasked.
    """

    def __init__(self) -> None:
        self.origin = Origin.OTHER
        self.deploys = 0
        #: Whether work on a record has ended processes.
        self.killed = False
        #: Instant -> who breaks off then.
        self._crashes: dict[int, set[str]] = {}
        #: Members that have left, with no row that says that they were asked to, and when: in an import the
        #: coordinator's log may be ahead of the member's.
        self._left: dict[str, int] = {}
        self._is_imported = False
        #: Deployments that a step has announced and that are not over, by the kind of the step.
        self._announced: Counter[str] = Counter()
        self._deploy_us = -1
        #: Processes that were asked to stop, or close, and have not started again.
        self._stopping: set[str] = set()
        #: Member -> the cause by which its last process ended.
        self._ended: dict[str, Origin] = {}
        #: Member -> its ids, in the order in which it got them.
        self._ids: dict[str, dict[str, None]] = {}
        #: Member ids whose processes have ended, and how: the coordinator may learn of it later.
        self._ended_ids: dict[str, Origin] = {}

    @property
    def crashes(self) -> int:
        return sum(map(bool, self._crashes.values()))

    def begin_window(self) -> None:
        """Deployments and crashes so far count no more."""
        self.deploys = 0
        self._crashes.clear()

    def imported(self, _now_us: int, _event: object) -> None:
        """No row says that members are added, nor by which deployment one stops."""
        self._is_imported = True

    def step_taken(self, now_us: int, event: StepTaken) -> None:
        if event.member is not None:
            self.killed |= event.detail.startswith(OF_A_RECORD)
            if event.detail == ASKED_TO_STOP:
                self._stop(event.member, now_us, event.cause)
        elif event.cause in DEPLOYMENTS:
            self.origin = Origin.DEPLOY
            if not event.detail.endswith(PAUSE):
                self._announced[event.cause] += 1
                self.deploys += 1
        elif event.cause in DEPLOYMENT_ENDS:
            self._over(event.detail.partition(":")[0])
        elif event.cause in GROWTH:
            self.origin = Origin.OTHER

    def _over(self, do: str) -> None:
        self._announced[do] -= 1
        if self._announced[do] <= 0:
            del self._announced[do]

    def partitions_changed(self, _now_us: int, _event: object) -> None:
        """Partitions were created or deleted."""
        self.origin = Origin.OTHER

    def member_started(self, _now_us: int, event: member_events.MemberStarted) -> None:
        """A process under this name; what becomes of the ids of its predecessor, is known."""
        origin = self._ended.get(event.member)
        if origin is not None:
            for member_id in self._ids.pop(event.member, ()):
                self._ended_ids.setdefault(member_id, origin)
        self._stopping.discard(process_of(event.member))

    def member_added(self, _now_us: int, event: events.MemberAdded) -> None:
        """A process that takes the place of one that ended belongs to that end. In an import a process of a
        new name takes the place of the last one that ended and has no successor."""
        self._ids.setdefault(event.member, {})[event.member_id] = None
        if self._is_imported:
            before = event.member if event.member in self._ended else next(reversed(self._ended), "")
            self.origin = self._ended.pop(before, Origin.OTHER)
        else:
            self.origin = self._ended.pop(event.member, self.origin)

    def member_replaced(self, _now_us: int, event: events.MemberReplaced) -> None:
        self._ids.setdefault(event.member, {})[event.member_id] = None

    def member_removed(self, now_us: int, event: events.MemberRemoved) -> None:
        if event.cause not in _OF_MEMBERS:
            self.origin = self._ended_ids[event.member_id] = Origin.OTHER
        elif event.member_id in self._ended_ids:
            self.origin = self._ended_ids[event.member_id]
        else:
            self._break_off(event.member, event.member_id, now_us)
            if event.cause == Cause.LEFT:
                self._left[event.member_id] = now_us

    def closed(
        self, now_us: int, event: member_events.MemberClosed | member_events.PartitionsRevoked
    ) -> None:
        """The member was asked to stop, also if its coordinator's row comes first. A storm has steps."""
        if isinstance(event, member_events.MemberClosed) and not self._is_imported:
            if process_of(event.member) in self._stopping:  # it may own nothing, and leave without a word
                self._ended_ids.setdefault(event.member_id, Origin.DEPLOY)
            return
        left_us = self._left.pop(event.member_id, None)
        if left_us is not None:
            self._crashes.get(left_us, set()).discard(event.member_id)
            self._ended_ids[event.member_id] = Origin.DEPLOY
        self._stop(event.member, now_us, None)

    def revoked(self, now_us: int, event: member_events.PartitionsRevoked) -> Origin:
        """The origin of the gaps that this row begins; so do the other methods return it."""
        if event.cause != CLOSE:
            return self.origin
        self.closed(now_us, event)
        return Origin.DEPLOY

    def broke_off(
        self,
        now_us: int,
        event: member_events.MemberCrashed | member_events.MemberFailed | member_events.PartitionsLost,
    ) -> Origin:
        member_id = event.member_id or next(reversed(self._ids.get(event.member, {})), "")
        if member_id in self._ended_ids:
            return self._ended_ids[member_id]
        return self._break_off(event.member, member_id, now_us)

    def _break_off(self, member: str, member_id: str, now_us: int) -> Origin:
        if process_of(member) in self._stopping:
            self._ended.setdefault(member, Origin.DEPLOY)
            self.origin = Origin.DEPLOY
            return Origin.DEPLOY
        self._crashes.setdefault(now_us, set()).add(member_id or member)
        if member_id:
            self._ended_ids[member_id] = Origin.CRASH
        self._ended[member] = self.origin = Origin.CRASH
        return Origin.CRASH

    def _stop(self, member: str, now_us: int, step: str | None) -> None:
        process = process_of(member)
        if process in self._stopping:
            if process != member:
                self._ended.setdefault(member, Origin.DEPLOY)
            return
        self._stopping.add(process)
        self._ended[member] = self.origin = Origin.DEPLOY
        if step not in self._announced and now_us != self._deploy_us:
            self._deploy_us = now_us
            self.deploys += 1


def process_of(member: str) -> str:
    """The process of a member: steps stop processes of Kafka Streams, and their threads are members."""
    return member.partition("-StreamThread-")[0]
