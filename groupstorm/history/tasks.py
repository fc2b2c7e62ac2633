"""The tasks of a Kafka Streams application: downtime, restoration, traffic between racks, balance."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from groupstorm.history.gaps import percentile
from groupstorm.trace.events import imported as imported_events
from groupstorm.trace.events import scenario as world_events
from groupstorm.trace.events import streams as events

#: Follow-up rebalances that look whether state has caught up: Kafka's, and those of KIP-441's draft.
PROBING = frozenset({"probing", "watching"})
STABLE = "stable"
#: Restorations that begin with nothing.
NOTHING = "nothing"
ACTIVE = "active"


class TaskTotals(NamedTuple):
    """Sums over one group's trace; None if the trace has no tasks or nothing to sum over.

    Downtime, restored bytes and tasks from scratch count from the first instant at which all tasks ran;
    the imbalances are those at the end. ``traffic_price`` is in millionths of a dollar times bytes of a
    gigabyte.
    """

    task_down_us: int | None = None
    task_down_max_us: int | None = None
    task_down_p50_us: int | None = None
    probing_rebalances: int | None = None
    converged_us: int | None = None
    restored_bytes: int | None = None
    standby_restored_bytes: int | None = None
    tasks_from_scratch: int | None = None
    #: Downtime in which a task was restored from the beginning of its changelog.
    from_scratch_down_us: int = 0
    task_imbalance: int | None = None
    subtopology_imbalance: int | None = None
    cross_rack_bytes: int | None = None
    cross_rack_price: int | None = None


#: The totals of a group that is no Kafka Streams application.
NO_TASKS = TaskTotals()


def subtopology(task: str) -> str:
    """Return the subtopology in a task's name: ``0`` of ``0_1``."""
    return task.rpartition("_")[0]


class TaskFigures:
    """Takes the rows about tasks. Rows about a task that no `tasks_created` named are left out."""

    def __init__(self) -> None:
        self._down_since_us: dict[str, int | None] = {}
        #: Task -> the threads that run it, in the order in which they began, each with its instance.
        self._runners: dict[str, dict[str, str]] = {}
        self._up = 0
        self._complete_us: int | None = None
        self._gaps_us = array("q")
        self._live: dict[str, None] = {}
        self._probing = 0
        self._placed: tuple[int, str] | None = None
        self._restored = 0
        self._standby_restored = 0
        self._from_scratch = self._from_scratch_down_us = 0
        #: Tasks that are restored from the beginning of their changelog.
        self._cold: dict[str, None] = {}
        self._crossing: list[tuple[int, int]] = []

    @property
    def handlers(self) -> Mapping[type, Callable[[int, Any], None]]:
        return {
            world_events.TasksCreated: self._created,
            world_events.TrafficCounted: self._traffic,
            events.InstanceStarted: self._started,
            events.InstanceGone: self._gone,
            events.TaskRunning: self._running,
            events.TaskSuspended: self._suspended,
            events.TaskRestoring: self._restoring,
            events.TaskRestored: self._restored_active,
            events.StandbyCaughtUp: self._caught_up,
            events.TaskClosed: self._closed,
            events.TasksPlaced: self._tasks_placed,
            events.FollowUpDue: self._follow_up,
        }

    def begin_window(self, from_us: int) -> None:
        """Drop all sums so far; a task that is down counts as down from ``from_us`` on."""
        self._gaps_us = array("q")
        for task, since_us in self._down_since_us.items():
            if since_us is not None:
                self._down_since_us[task] = max(since_us, from_us)
        self._probing = self._restored = self._standby_restored = 0
        self._from_scratch = self._from_scratch_down_us = 0
        self._crossing.clear()

    def members_gone(self, now_us: int, _event: imported_events.MembersGone) -> None:
        """Nobody is there to run a task: it is not down until members are back."""
        for task, since_us in self._down_since_us.items():
            self._gap(since_us, now_us)
            self._down_since_us[task] = None

    def members_back(self, now_us: int, _event: imported_events.MembersBack) -> None:
        if self._complete_us is not None:
            self._down_since_us |= {task: now_us for task, runners in self._runners.items() if not runners}

    def totals(self, end_us: int, first_change_us: int | None) -> TaskTotals:
        """``first_change_us``: from when on the time until a stable assignment counts."""
        prices = sum(read * price for read, price in self._crossing)
        crossing = sum(read for read, _ in self._crossing) if self._crossing else None
        if not self._runners:
            return TaskTotals(cross_rack_bytes=crossing, cross_rack_price=prices if self._crossing else None)
        complete = self._complete_us is not None
        for since_us in self._down_since_us.values():
            self._gap(since_us, end_us)
        gaps = sorted(self._gaps_us)
        return TaskTotals(
            task_down_us=sum(gaps) if complete else None,
            task_down_max_us=(gaps[-1] if gaps else 0) if complete else None,
            task_down_p50_us=percentile(gaps, 50) if complete else None,
            probing_rebalances=self._probing,
            converged_us=self._converged_us(first_change_us),
            restored_bytes=self._restored if complete else None,
            standby_restored_bytes=self._standby_restored if complete else None,
            tasks_from_scratch=self._from_scratch if complete else None,
            from_scratch_down_us=self._from_scratch_down_us
            + sum(
                end_us - since_us
                for task, since_us in self._down_since_us.items()
                if since_us is not None and task in self._cold
            ),
            task_imbalance=self._imbalance(""),
            subtopology_imbalance=self._subtopology_imbalance(),
            cross_rack_bytes=crossing,
            cross_rack_price=prices if self._crossing else None,
        )

    def _converged_us(self, first_change_us: int | None) -> int | None:
        if first_change_us is None or self._placed is None:
            return None
        placed_us, cause = self._placed
        return placed_us - first_change_us if cause == STABLE and placed_us >= first_change_us else None

    def _subtopology_imbalance(self) -> int | None:
        groups = {subtopology(task) for task in self._runners}
        return max((value for group in groups if (value := self._imbalance(group)) is not None), default=None)

    def _imbalance(self, group: str) -> int | None:
        """Between two live instances, of one sub-topology or, for "", of all."""
        if not self._live:
            return None
        counts = Counter(
            [*runners.values()][-1]
            for task, runners in self._runners.items()
            if runners and (not group or subtopology(task) == group)
        )
        held = [counts[process] for process in self._live]
        return max(held) - min(held)

    # -- rows ------------------------------------------------------------------------------------

    def _created(self, _now_us: int, event: world_events.TasksCreated) -> None:
        for task in event.tasks:
            self._runners.setdefault(task, {})
            self._down_since_us.setdefault(task, None)

    def _traffic(self, _now_us: int, event: world_events.TrafficCounted) -> None:
        self._crossing.append((event.cross_rack_bytes, event.price))

    def _started(self, _now_us: int, event: events.InstanceStarted) -> None:
        self._live[event.process] = None

    def _gone(self, _now_us: int, event: events.InstanceGone) -> None:
        self._live.pop(event.process, None)

    def _running(self, now_us: int, event: events.TaskRunning) -> None:
        runners = self._runners.get(event.task)
        if runners is None or event.member in runners:
            return
        runners[event.member] = event.process
        if len(runners) > 1:
            return
        self._up += 1
        since_us = self._down_since_us[event.task]
        if event.task in self._cold and since_us is not None:
            self._from_scratch_down_us += now_us - since_us
        self._cold.pop(event.task, None)
        self._gap(since_us, now_us)
        self._down_since_us[event.task] = None
        if self._complete_us is None and self._up == len(self._runners):
            self._complete_us = now_us

    def _suspended(self, now_us: int, event: events.TaskSuspended) -> None:
        runners = self._runners.get(event.task)
        if runners is None or event.member not in runners:
            return
        del runners[event.member]
        if not runners:
            self._up -= 1
            if self._complete_us is not None:
                self._down_since_us[event.task] = now_us

    def _gap(self, since_us: int | None, until_us: int) -> None:
        if since_us is not None and until_us > since_us:
            self._gaps_us.append(until_us - since_us)

    def _restoring(self, _now_us: int, event: events.TaskRestoring) -> None:
        if self._complete_us is not None and event.cause == NOTHING and event.lag != 0:
            self._from_scratch += 1
            self._cold[event.task] = None
        else:
            self._cold.pop(event.task, None)

    def _restored_active(self, _now_us: int, event: events.TaskRestored) -> None:
        if self._complete_us is not None:
            self._restored += event.bytes

    def _caught_up(self, _now_us: int, event: events.StandbyCaughtUp) -> None:
        if self._complete_us is not None:
            self._standby_restored += event.bytes

    def _closed(self, _now_us: int, event: events.TaskClosed) -> None:
        if self._complete_us is None:
            return
        if event.cause == ACTIVE:
            self._restored += event.bytes
        else:
            self._standby_restored += event.bytes

    def _tasks_placed(self, now_us: int, event: events.TasksPlaced) -> None:
        self._placed = now_us, event.cause

    def placed_by_broker(self, now_us: int) -> None:
        """The coordinator of a streams group has assigned: nobody asks for another assignment."""
        self._placed = now_us, STABLE

    def _follow_up(self, _now_us: int, event: events.FollowUpDue) -> None:
        self._probing += event.cause in PROBING
