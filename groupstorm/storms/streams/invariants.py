"""Invariants of Kafka Streams applications, beside those of every group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from uuid import UUID

from groupstorm.assignors.streams.leader import Rebalance
from groupstorm.assignors.userdata.streams import AssignorError, StreamsTask
from groupstorm.assignors.userdata.streams_assignment import NO_REBALANCE_MS
from groupstorm.clients.streams.topology import Topology
from groupstorm.storms.checks.invariants import InvariantChecks
from groupstorm.storms.checks.verdicts import HELD

ONE_ACTIVE = "one_active_per_task"
APART = "no_standby_beside_its_active"
ALL_RUN = "every_task_runs_at_end"
FOLLOW_UPS = "requested_rebalances_happen"

STREAMS_INVARIANTS = (ONE_ACTIVE, APART, ALL_RUN, FOLLOW_UPS)


def outcome(found: Rebalance) -> str:
    """The kind of assignment that a leader has made: the ``cause`` of `events.TasksPlaced`."""
    infos = [own.info for own in found.assignments.values()]
    errors = {info.error_code for info in infos} - {AssignorError.NONE, AssignorError.IMBALANCED_ASSIGNMENT}
    if errors:
        return AssignorError(min(errors)).name
    if found.stable:
        return "stable"
    if any(info.next_rebalance_ms == 0 for info in infos):
        return "follow-up"
    if any(info.error_code == AssignorError.IMBALANCED_ASSIGNMENT for info in infos):
        return "imbalanced"
    return "probing" if any(info.next_rebalance_ms < NO_REBALANCE_MS for info in infos) else "version-probing"


class StreamsInvariantChecks:
    """Adds its verdicts to those of ``checks``."""

    def __init__(self, checks: InvariantChecks, topology: Topology) -> None:
        self._checks = checks
        self._topology = topology
        self._running: dict[int, list[str]] = {}
        self._asked: Counter[str] = Counter()
        checks.verdicts.update(dict.fromkeys(STREAMS_INVARIANTS, HELD))

    def task_runs(self, task: int, thread: str) -> None:
        running = self._running.setdefault(task, [])
        running.append(thread)
        if len(running) > 1:
            name = self._topology.names[task]
            self._checks.violated(ONE_ACTIVE, f"{name} runs on {' and on '.join(sorted(running))}")

    def task_stops(self, task: int, thread: str) -> None:
        self._running[task].remove(thread)

    def assigned(self, found: Rebalance) -> None:
        """A leader has decided."""
        self._asked.clear()
        processes = found.processes
        active: dict[StreamsTask, UUID] = {}
        for member, own in found.assignments.items():
            if own.info.active:
                active.update(dict.fromkeys(own.info.active, processes[member]))
        for member, own in found.assignments.items():
            for task in own.info.standby:
                if active.get(task) == processes[member]:
                    name = f"{task.subtopology}_{task.partition}"
                    self._checks.violated(APART, f"{name} is active and standby on one instance")

    def held_at_end(self, active: Iterable[int], standby: Iterable[int]) -> None:
        """The tasks of one instance when the run is over, whoever has placed them."""
        for task in sorted({*active} & {*standby}):
            name = self._topology.names[task]
            self._checks.violated(APART, f"{name} is active and standby on one instance")

    def asked(self, thread: str) -> None:
        """A thread asks for a rebalance."""
        self._asked[thread] += 1

    def gone(self, thread: str) -> None:
        self._asked.pop(thread, None)

    def finish(self, alive: bool) -> None:
        """``alive``: whether an instance is left to run tasks."""
        idle = [name for task, name in enumerate(self._topology.names) if not self._running.get(task)]
        if idle and alive:
            self._checks.violated(ALL_RUN, f"{len(idle)} tasks do not run at the end, {idle[0]} among them")
        if self._asked:
            names = ", ".join(sorted(self._asked))
            self._checks.violated(FOLLOW_UPS, f"no rebalance came that was asked for by {names}")
