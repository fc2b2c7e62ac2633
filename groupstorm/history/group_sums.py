"""The running sums of one group, and when it is there and has members."""

from __future__ import annotations

from groupstorm.history.causes import Origins
from groupstorm.history.gaps import OwnershipListener
from groupstorm.history.ownership import Ownership
from groupstorm.history.rounds import Progress, Rounds
from groupstorm.history.settling import Moves, Settling
from groupstorm.history.shares import ShareFigures
from groupstorm.history.tasks import TaskFigures
from groupstorm.history.unknown import Unknown
from groupstorm.trace.events.member import MemberFailed
from groupstorm.trace.events.scenario import InvariantChecked, RequestsCounted


class Existence:
    """Follows a group's deletions and creations and, of an imported trace, when it has no members.

    A storm and a broker have no rows of the second kind: there a group without members is un-owned.
    """

    def __init__(self, ownership: Ownership) -> None:
        self._ownership = ownership
        self._exists = self._has_members = True
        self._gone_us = 0
        #: Times without members that are over.
        self._absences: list[tuple[int, int]] = []

    def deleted(self, now_us: int, _event: object) -> None:
        """The group was deleted, or its coordinator has ended."""
        self._exists = False
        self._ownership.group_deleted(now_us)

    def created(self, now_us: int, _event: object) -> None:
        self._exists = True
        if self._has_members:
            self._ownership.group_created(now_us)

    def members_gone(self, now_us: int, _event: object) -> None:
        """Nobody is in the group from now on."""
        if self._has_members:
            self._has_members, self._gone_us = False, now_us
            self._ownership.group_deleted(now_us)

    def members_back(self, now_us: int, _event: object) -> None:
        if self._has_members:
            return
        self._has_members = True
        self._absences.append((self._gone_us, now_us))
        if self._exists:
            self._ownership.group_created(now_us)

    def begin_window(self, from_us: int) -> None:
        """Time without members counts from ``from_us`` on."""
        self._absences, self._gone_us = [], from_us

    def without_members(self, end_us: int) -> list[tuple[int, int]]:
        """The times in which the group had no members, if the trace ends at ``end_us``."""
        last = [] if self._has_members or self._gone_us >= end_us else [(self._gone_us, end_us)]
        return [*self._absences, *last]


class GroupSums:
    """The parts that add up, each for some figures. All calls come in the order of time."""

    def __init__(self, listener: OwnershipListener | None = None) -> None:
        self.rounds = Rounds()
        self.settling = Settling()
        self.ownership = Ownership(listener)
        self.existence = Existence(self.ownership)
        self.moves = Moves()
        self.origins = Origins()
        self.progress = Progress()
        self.tasks = TaskFigures()
        self.shares = ShareFigures(self.ownership)
        self.unknown = Unknown()
        #: False: the rows of the coordinator alone say who owns what.
        self.has_member_rows = True
        self.requests: list[tuple[str, str | None, int]] = []
        self.invariants: dict[str, str] = {}
        #: The errors that ended consumers: of the whole trace, as `requests` are.
        self.failed: dict[str, int] = {}
        self.poll_timeouts = 0
        self.changes = 0
        self.rounds_after_changes = 0
        #: The first change after the group had settled once: the lag has to recover from it.
        self.first_change_us: int | None = None

    def group_changed(self, now_us: int, _event: object) -> None:
        """The group has to settle again."""
        if self.settling.has_settled and self.first_change_us is None:
            self.first_change_us = now_us
            if self.ownership.lag is not None:
                self.ownership.lag.mark(now_us)

    def requests_counted(self, _now_us: int, event: RequestsCounted) -> None:
        self.requests.append((event.api, event.error, event.count))

    def member_failed(self, _now_us: int, event: MemberFailed) -> None:
        self.failed[event.error] = self.failed.get(event.error, 0) + 1

    def invariant_checked(self, _now_us: int, event: InvariantChecked) -> None:
        self.invariants[event.cause] = event.detail

    def instant_over(self) -> None:
        """All rows of one instant have been taken: the group may be at a settled point."""
        point = self.settling.instant_over(self.ownership.owns)
        if point is None:
            return
        self.changes += point.changes
        self.rounds_after_changes += point.rounds
        ownership = self.ownership
        self.moves.settled(point.live, ownership.touched, ownership.model)
        ownership.touched.clear()

    def begin_window(self, from_us: int) -> None:
        """Forget events before ``from_us``; of times that last until then count the rest."""
        self.instant_over()
        self.requests.clear()
        self.invariants.clear()
        self.changes = self.rounds_after_changes = self.poll_timeouts = 0
        self.first_change_us = None
        self.rounds.begin_window()
        self.origins.begin_window()
        self.progress.begin_window()
        self.settling.begin_window()
        self.moves.begin_window()
        self.ownership.begin_window(from_us)
        self.existence.begin_window(from_us)
        self.tasks.begin_window(from_us)
        self.shares.begin_window(from_us)
        self.unknown.begin_window()
