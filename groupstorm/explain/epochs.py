"""The rebalances of a consumer group (KIP-848) or streams group: group epochs, and the targets that follow.

Its members reconcile on their own: the group need not come to rest between two changes, and a broker of Kafka
4 does not log that it has. So a rebalance is what one target assignment answers: the group epochs that were
bumped before it, and what members do with it until the next bump.
"""

from __future__ import annotations

from typing import Final

from groupstorm.explain.history import History
from groupstorm.history.gaps import ClosedGap
from groupstorm.history.rebalances import REPLACED, Change, ChangeKind, Rebalance, Round, Row
from groupstorm.trace.events.group_states import Cause, GroupState

#: A coordinator bumps the epoch with the change that it answers. Its log may have the lines so far apart.
BUMPED_AFTER_US: Final = 1_000_000
#: And so far apart those about a member's new subscription.
UPDATED_BEFORE_US: Final = 10_000
#: Rows in which a member comes closer to its target.
_STEPS: Final = frozenset(
    {"member_reconciled", "partitions_assigned", "partitions_revoked", "partitions_lost", "target_assigned"}
)
#: States of a group whose epoch was bumped: a log may begin, or the group be described, after that.
_UNDER_WAY: Final = frozenset({"Assigning", "Reconciling"})
#: The last member has left, or the group is a classic one now.
_ENDS: Final = frozenset({GroupState.EMPTY, GroupState.PREPARING_REBALANCE})


class Epochs:
    """Takes the rows of one group, in their order, and adds to the history's rebalances.

    ``is_counting``: the group has epochs, so that its rebalances are counted here.
    """

    def __init__(self, history: History) -> None:
        self.is_counting = False
        self._history = history
        self._round: Round | None = None
        #: Whether targets were computed for the last rebalance: the next bump begins another one.
        self._has_target = False
        #: Whether any row says a target: a broker's log at INFO, or a part of it, may have the epochs alone.
        self._says_targets = False
        #: The last row of the round in which a member came closer to its target.
        self._step: Row | None = None
        self._is_over = False
        #: Whether the coordinator may have gone back since the last bump: a member that tries again bumps
        #: the same epoch.
        self._is_undone = False
        #: Whether rows say when the group is Stable again. A share group is so from its first member on.
        self._says_stable = False
        #: Changes of membership that no bump has answered yet, and the last member that changed otherwise.
        self._changes: list[Change] = []
        self._updated: tuple[Row, str] | None = None

    def add(self, row: Row, member: str) -> None:
        """Take the next row; ``member``: its member's name, "" without one."""
        event = row["event"]
        if event == "group_epoch_bumped":
            self.is_counting = True
            self._begin(row)
        elif event == "group_state_changed":
            self._state_changed(row)
        elif event == "append_failed":
            self._is_undone = True
        elif event == "member_updated":
            self._updated = row, member
        elif event in _STEPS and not self._is_over and row.get("cause") != "close":
            self._step = row
            if event == "target_assigned":
                self._has_target = self._says_targets = True

    def changed(self, change: Change) -> None:
        """A member came or went. A static member that is back under a new id changes no epoch."""
        if change.cause == REPLACED:
            self._is_over = True  # what it takes back belongs to no target that is new
            return
        now = self._round
        if now is None or now.begun_us != change.time_us or self._has_target:
            self._changes.append(change)
            return
        self._history.rebalances[-1].changes.append(change)  # its row comes after that of the bump
        if not now.member:
            now.cause, now.member = change.cause, change.member

    def rebalance_of(self, gap: ClosedGap) -> Rebalance | None:
        """The rebalance that ended a time without an owner; None if no epoch was bumped for it.

        It is the one that answers the old owner's end, else the one under way when the owner gave the
        partition up, else the next one.
        """
        found: list[Rebalance] = []
        for one in reversed(self._history.rebalances):
            ended_us = one.ended_us
            if ended_us is None and self._is_over and self._step is not None:
                ended_us = int(self._step["time_us"])
            if ended_us is not None and ended_us < gap.from_us:
                break
            if one.begun_us <= gap.to_us:
                found.append(one)
        found.reverse()
        for one in found:
            if any(
                change.kind is ChangeKind.WENT and change.member == gap.old_owner for change in one.changes
            ):
                return one
        before = [one for one in found if one.begun_us <= gap.from_us]
        return before[-1] if before else next(iter(found), None)

    def finish(self) -> None:
        """No more rows come. A round that is under way has ended as far as the rows tell it."""
        if self._round is not None and not self._says_stable:
            has_epochs_alone = self._step is None and not self._says_targets
            self._round.ended = self._round.begun if has_epochs_alone else self._step

    def _begin(self, row: Row) -> None:
        history = self._history
        history.is_consumer_group = True
        changes = [one for one in self._changes if row["time_us"] - one.time_us <= BUMPED_AFTER_US]
        self._changes = []
        if history.is_empty and not changes:
            return
        cause, member = self._cause(row, changes)
        if self._is_undone and history.rebalances:
            last = history.rebalances[-1].rounds[-1]
            if (last.begun.get("generation"), last.cause, last.member) == (row["generation"], cause, member):
                self._round, last.ended, self._is_over = last, None, False
                return
        was_open = self._round is not None
        if self._round is not None:
            if not (self._says_targets or self._says_stable or self._step is not None):
                was_open = row["time_us"] - self._round.begun_us <= BUMPED_AFTER_US
            if self._says_stable or self._step is None:
                self._end(row if was_open else self._round.begun)
            else:
                self._end(self._step)
        continues = was_open and bool(history.rebalances) and not self._has_target
        self._round, self._step = Round(row, cause, member), None
        self._has_target = self._is_over = self._is_undone = False
        history.begin_round(self._round, changes, continues)
        if history.is_empty:
            self._end(row)  # the last member has left: nobody is there to reconcile

    def _cause(self, row: Row, changes: list[Change]) -> tuple[str, str]:
        if changes:
            return changes[-1].cause, changes[-1].member
        if self._updated is not None and row["time_us"] - self._updated[0]["time_us"] <= UPDATED_BEFORE_US:
            return Cause.MEMBER_UPDATED, self._updated[1]
        return row.get("cause", Cause.HEARTBEAT), ""

    def _state_changed(self, row: Row) -> None:
        state = row["state"]
        self._says_stable |= state == GroupState.STABLE and row.get("previous_state") != GroupState.EMPTY
        if self._round is None:
            if state in _UNDER_WAY and not self.is_counting:
                self._begin(row)
            return
        self._round.members = row.get("count", self._round.members)
        if state == GroupState.STABLE or (self._says_stable and state in _ENDS):
            self._end(row)
        elif state in _ENDS:
            self._end(self._step or row)

    def _end(self, row: Row) -> None:
        if self._round is not None:
            self._round.ended = row
        self._round = None
