"""Where the commits and the owners of a ledger's history come from: the events of the emulator, or a broker
that is asked again and again."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod

from groupstorm.testing.broker import BrokerUnderTest
from groupstorm.testing.emulated import EmulatedBroker
from groupstorm.testing.groups import GroupUnderTest
from groupstorm.testing.ledger.history import Assigned, Commit, History, Moment, exactly
from groupstorm.trace.events import coordinator as events

#: The time that a broker is left alone between two questions.
POLL_S = 0.02


def now_us() -> int:
    """The clock of a history. In a simulation it is virtual: the module's function is called by its name."""
    return time.monotonic_ns() // 1000


class GroupSource(ABC):
    """Fills commits and assignments of one group into a history."""

    #: Whether `begin` and `end` wait for a thread.
    needs_thread: bool

    @abstractmethod
    def begin(self) -> None:
        """From now on every commit counts."""

    @abstractmethod
    def fill(self, history: History) -> None:
        """Add what has become known so far."""

    @abstractmethod
    def end(self) -> None:
        """Ask no more. May be called again."""


class EmulatorEvents(GroupSource):
    """Reads the coordinator's events: exact times, all assignments, the names of those who commit.

    Offsets of a transaction have their event when they are sent, whether the transaction is committed or
    aborted: if there were such, the present committed offsets count instead, at an unknown time.
    """

    needs_thread = False

    def __init__(self, broker: EmulatedBroker, group: GroupUnderTest) -> None:
        self._broker = broker
        self._group = group
        self._first = 0
        self._begun_us = 0

    def begin(self) -> None:
        self._first = len(self._broker.events)
        self._begun_us = now_us()

    def end(self) -> None:
        """The events are kept by the broker."""

    def fill(self, history: History) -> None:
        commits = self._read_events(history)
        if self._broker.is_transactional(self._group.id):
            within = Moment(self._begun_us, now_us())
            present = self._group.committed()
            commits = [Commit(within, partition, offset, "") for partition, offset in present.items()]
        history.commits += commits

    def _read_events(self, history: History) -> list[Commit]:
        """Add the assignments; return the commits."""
        zero_us = self._broker.started_us
        names: dict[str | None, str] = {}
        owned: dict[str, tuple[str, ...]] = {}
        commits: list[Commit] = []
        for index, (time_us, event) in enumerate(self._broker.events):
            if event.group != self._group.id:
                continue
            at = exactly(zero_us + time_us)
            if isinstance(event, events.MemberAdded | events.MemberReplaced):
                names[event.member_id] = event.member
            if index < self._first:
                continue
            if isinstance(event, events.OffsetsCommitted) and event.error is None:
                by = names.get(event.member_id, "")
                together = zip(event.partitions, event.positions, strict=True)
                commits += [Commit(at, partition, offset, by) for partition, offset in together]
            elif isinstance(event, events.SyncAnswered):
                history.assigned += [Assigned(at, one, event.member) for one in event.partitions or ()]
            elif isinstance(event, events.MemberReconciled):
                gained = set(event.partitions) - set(owned.get(event.member_id, ()))
                owned[event.member_id] = event.partitions
                history.assigned += [Assigned(at, one, event.member) for one in sorted(gained)]
        # an instance that has another name than its client keeps its assignments to itself
        history.followed = frozenset(names.values())
        return commits


class PolledGroup(GroupSource):
    """Asks a real broker, on a thread, which offsets are committed and who has which partition.

    A change lies between the beginning of the last answer without it and the end of the first answer with it.
    A commit that another one has replaced between two answers is not seen.
    """

    needs_thread = True

    def __init__(self, group: GroupUnderTest) -> None:
        self._group = group
        self._known = History(0)
        self._committed: dict[str, int] = {}
        self._owners: dict[str, tuple[str, ...]] = {}
        self._asked_us = 0
        self._ending = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._follow, name="ledger", daemon=True)
        self._problem: BaseException | None = None

    def begin(self) -> None:
        self._asked_us = now_us()
        self._committed = dict(self._group.committed())
        self._owners = dict(self._group.owners)
        self._thread.start()

    def end(self) -> None:
        self._ending.set()
        if self._thread.is_alive():
            self._thread.join()

    def fill(self, history: History) -> None:
        """Ask once more. Raises ConnectionError, and what asking the broker has raised."""
        if self._problem is not None:
            raise self._problem
        with self._lock:
            self._ask()
            history.commits += self._known.commits
            history.assigned += self._known.assigned

    def _follow(self) -> None:
        try:
            while not self._ending.wait(POLL_S):
                with self._lock:
                    self._try_to_ask()
        except Exception as problem:  # noqa: BLE001  # `fill` raises it on the thread of the test
            self._problem = problem

    def _try_to_ask(self) -> None:
        """A broker that does not answer for a while makes the times of its next answer uncertain."""
        try:
            self._ask()
        except ConnectionError:  # ConnectionLost
            return

    def _ask(self) -> None:
        asked_us = now_us()
        committed = dict(self._group.committed())
        owners = dict(self._group.owners)
        within = Moment(self._asked_us, now_us())
        for partition, offset in committed.items():
            if self._committed.get(partition) != offset:
                self._known.commits.append(Commit(within, partition, offset, ""))
        for partition, names in owners.items():
            for name in names:
                if name not in self._owners.get(partition, ()):
                    self._known.assigned.append(Assigned(within, partition, name))
        self._asked_us, self._committed, self._owners = asked_us, committed, owners


def source_of(broker: BrokerUnderTest, group: GroupUnderTest) -> GroupSource:
    """The best source that the broker has."""
    if isinstance(broker, EmulatedBroker):
        return EmulatorEvents(broker, group)
    return PolledGroup(group)
