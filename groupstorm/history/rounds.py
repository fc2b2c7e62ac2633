"""Rebalances: how many, how long each took from PreparingRebalance to its last SyncGroup answer, and how many
the group came out of without having got anywhere."""

from __future__ import annotations

from typing import Final

from groupstorm.history.records import NANO
from groupstorm.trace.events import coordinator as events
from groupstorm.trace.events.group_states import GroupState
from groupstorm.trace.rows import TracedEvent

#: A consumer or streams group becomes Stable from these, and need not between two rebalances.
_OF_EPOCHS: Final = frozenset({GroupState.EMPTY, "Assigning", "Reconciling"})


def is_rebalance(event: TracedEvent) -> bool:
    """Whether the row is a rebalance: a classic group has a new generation, or a consumer or streams group a
    target assignment in which members have other partitions or tasks."""
    if isinstance(event, events.TargetAssigned):
        return event.count != 0
    if not isinstance(event, events.GroupStateChanged):
        return False
    return event.state == GroupState.STABLE and event.previous_state not in _OF_EPOCHS


class Rounds:
    """Follows the group's state through its generations.

    A generation's latency ends with the last *first* answer that a member got in it: a static member
    that comes back later gets its old assignment from a Stable group (KIP-345), and a repeated SyncGroup
    is answered again; neither prolongs the round.
    """

    def __init__(self) -> None:
        self.generations = 0
        self.latencies = 0
        self.latency_sum_us = 0
        self.latency_max_us: int | None = None
        self._prepared_us: int | None = None
        self._generation: int | None = None
        self._target_epoch = -1
        self._reached_stable = False
        self._last_answer_us: int | None = None
        self._answered: set[str] = set()

    def target_assigned(self, _now_us: int, event: events.TargetAssigned) -> None:
        """An epoch that the coordinator could not write comes again, with its targets."""
        if is_rebalance(event) and event.generation != self._target_epoch:
            self.generations += 1
            self._target_epoch = event.generation

    def state_changed(self, now_us: int, event: events.GroupStateChanged) -> None:
        self.generations += is_rebalance(event)
        if event.state == GroupState.EMPTY:
            self._target_epoch = -1
        if event.state == GroupState.STABLE:
            self._reached_stable = True
        elif event.state == GroupState.PREPARING_REBALANCE:
            self._close()
            self._prepared_us, self._generation = now_us, None
        elif event.state == GroupState.COMPLETING_REBALANCE:
            self._generation = event.generation
            self._answered.clear()

    def member_replaced(self, _now_us: int, event: events.MemberReplaced) -> None:
        """A static member's new id: its answer belongs to no round but one that is being prepared."""
        if self._generation is not None:
            self._answered.add(event.member_id)

    def sync_answered(self, now_us: int, event: events.SyncAnswered) -> None:
        _, _, member_id, generation, error, _ = event
        if error is not None or generation is None:
            return
        if generation == self._generation and member_id not in self._answered:
            self._answered.add(member_id)
            self._last_answer_us = now_us

    def begin_window(self) -> None:
        """The generations so far count no more, nor does the latency of the round that is open."""
        self.generations = self.latencies = self.latency_sum_us = 0
        self.latency_max_us = self._prepared_us = None

    def finish(self) -> None:
        """The trace ends."""
        self._close()

    def _close(self) -> None:
        """No more answers count for the generation at hand."""
        if self._reached_stable and self._prepared_us is not None and self._last_answer_us is not None:
            latency_us = self._last_answer_us - self._prepared_us
            self.latencies += 1
            self.latency_sum_us += latency_us
            self.latency_max_us = max(latency_us, self.latency_max_us or 0)
        self._reached_stable = False
        self._last_answer_us = None


class Progress:
    """Follows generations from their Stable to the next one, or to the end of the trace.

    All amounts are in billionths of a record, over all partitions: how far they were processed, and how
    much waits.
    """

    def __init__(self) -> None:
        self.without_max = 0
        self._without = 0
        self._furthest = 0
        self._open = False
        self._generation: int | None = None

    def stable(self, generation: int | None, processed: int, waiting: int) -> None:
        """A generation is complete: the one before is over. An epoch may be so again, if a write failed."""
        if generation is not None and generation == self._generation:
            return
        self._over(processed, waiting)
        self._open, self._generation = True, generation

    def emptied(self) -> None:
        """The group may be deleted now, and begin with the same numbers again."""
        self._generation = None

    def finish(self, processed: int, waiting: int) -> None:
        """The trace ends."""
        self._over(processed, waiting)

    def begin_window(self) -> None:
        """Generations so far count no more, nor does the one that is open."""
        self.without_max = self._without = 0
        self._open = False

    def _over(self, processed: int, waiting: int) -> None:
        if not self._open or processed >= self._furthest + NANO or waiting < NANO:
            self._without = 0
        else:
            self._without += 1
            self.without_max = max(self.without_max, self._without)
        self._furthest = max(self._furthest, processed)
