"""KIP-441's draft, a policy of its own beside the shipped one (`highavailability`).

The draft's page is the difference between two versions of the KIP. Its new algorithm, in its own numbers:

1. Stateless tasks, by TaskId, go to the previous owner if it is below its share, else to the client with the
   largest remaining capacity.
2. Active stateful tasks, by TaskId, go to the client with the smallest gap of those that had the task, if
   that client is below its share (of several equally near ones, to one that is below). If no client had the
   task, it goes to the largest remaining capacity. If the client with the smallest gap is full, `TradeOff`
   decides. LATENCY keeps the task there and marks it as imbalanced; with no standby replicas configured, the
   client that would be next gets a standby. BALANCE goes on with the second smallest gap, and at last to the
   largest remaining capacity.
3. Standbys, by TaskId, are placed one replica after the other in the same way, without the clients that have
   the task. More standbys than remaining clients are an error.
4. An error code tells every client with a standby of an imbalanced task. The client watches its standbys, and
   asks for another rebalance after it has caught up with all of them. The assignment may name the standbys
   to watch.

The draft leaves some points open. Here a client's share is the average per thread times its threads, and a
client with less than that, rounded up, "does not exceed" it. Remaining capacity is the share minus the
tasks of the kind that is being placed. Ties go to the fewest tasks of the same sub-topology, then by
ProcessId. A running active task has the smallest gap of all, and a client that does not know its gap has
the largest.

To the letter, LATENCY never ends: a standby follows its running task and is never nearer than it, so the
task stays and its watchers ask again at once. With ``near_zero_gap`` all gaps "close to zero", of which
item 4 speaks, count as equal, a running active task's too, and the standby's client can take the task over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from groupstorm.assignors.contract import AssignmentRefused
from groupstorm.assignors.streams.model import Config, Decision, Placement, StreamsGroup, TradeOff
from groupstorm.assignors.userdata.streams import LATEST_OFFSET, UNKNOWN_OFFSET_SUM

_LARGEST_GAP = 1 << 64


def kip441_draft(group: StreamsGroup, config: Config) -> Decision:
    """The assignment; ``imbalanced`` names the tasks for which members will ask for another rebalance."""
    return _Draft(group, config).decide()


def watched_standbys(decision: Decision, client: int) -> list[int]:
    """The standbys of a client that could take over an imbalanced task: its watch list."""
    imbalanced = decision.imbalanced or ()
    return sorted(decision.placement.standby[client].intersection(imbalanced))


def wants_rebalance(gaps: Mapping[int, int], watched: Iterable[int], near_zero: int) -> bool:
    """Whether a member with the imbalance error has caught up with all standbys that it watches.

    ``gaps``: records behind; ``near_zero``: the largest gap that counts as close to zero.
    """
    watching = list(watched)
    return bool(watching) and all(gaps[task] <= near_zero for task in watching)


class _Shares:
    """The clients' shares of tasks of one kind, and their remaining capacities."""

    def __init__(self, group: StreamsGroup, tasks: int) -> None:
        self._group = group
        self._tasks = tasks
        self._threads = sum(client.capacity for client in group.clients)
        self._taken = [0] * len(group.clients)
        self._of_group: dict[tuple[int, str, int], int] = {}

    def first_below(self, clients: Iterable[int]) -> int | None:
        """The first of these clients that has less than its share, rounded up."""
        return next((client for client in clients if self.remaining(client) > 0), None)

    def remaining(self, client: int) -> int:
        """The share minus the tasks, times all threads so that it is a whole number."""
        return self._tasks * self._group.clients[client].capacity - self._taken[client] * self._threads

    def alike(self, client: int, task: int) -> int:
        """The client's tasks of the task's sub-topology."""
        return self._of_group.get(self._key(client, task), 0)

    def take(self, client: int, task: int) -> None:
        self._taken[client] += 1
        key = self._key(client, task)
        self._of_group[key] = self._of_group.get(key, 0) + 1

    def _key(self, client: int, task: int) -> tuple[int, str, int]:
        name = self._group.tasks[task].id
        return client, name.topology, name.subtopology

    def roomiest(self, task: int, valid: Callable[[int], bool]) -> int | None:
        return min(
            (client for client in range(len(self._group.clients)) if valid(client)),
            key=lambda client: (-self.remaining(client), self.alike(client, task), client),
            default=None,
        )


class _Draft:
    def __init__(self, group: StreamsGroup, config: Config) -> None:
        self._group = group
        self._config = config
        self._placement = Placement(group)
        self._imbalanced: list[int] = []
        self._had: dict[int, list[int]] = {}
        for number, client in enumerate(group.clients):
            for task in client.prev_active | client.prev_standby:
                self._had.setdefault(task, []).append(number)

    def decide(self) -> Decision:
        group = self._group
        shares = _Shares(group, len(group.stateless))
        for task in group.stateless:
            owners = [c for c in self._had.get(task, ()) if task in group.clients[c].prev_active]
            self._run(shares, task, shares.first_below(owners))
        shares = _Shares(group, len(group.stateful))
        for task in group.stateful:
            self._place_active(shares, task)
        shares = _Shares(group, len(group.stateful) * self._config.num_standby_replicas)
        for task in group.stateful:
            for replica in range(self._config.num_standby_replicas):
                self._place_standby(shares, task, replica)
        imbalanced = tuple(sorted(self._imbalanced))
        return Decision(self._placement, probing=bool(imbalanced), imbalanced=imbalanced)

    def _place_active(self, shares: _Shares, task: int) -> None:
        candidates = self._by_gap(shares, task)
        gaps = [self._gap(client, task) for client in candidates]
        below = shares.first_below(candidates[: gaps.count(min(gaps, default=0))])
        if below is None and candidates and self._config.trade_off is TradeOff.BALANCE:
            below = shares.first_below(candidates)
        elif below is None and candidates:
            self._run(shares, task, candidates[0])
            self._note_imbalance(shares, task)
            return
        self._run(shares, task, below)

    def _note_imbalance(self, shares: _Shares, task: int) -> None:
        successor = shares.roomiest(task, self._without(task))
        if successor is None:
            return  # no client could take it over
        self._imbalanced.append(task)
        if self._config.num_standby_replicas == 0:
            self._placement.standby[successor].add(task)

    def _run(self, shares: _Shares, task: int, client: int | None) -> None:
        """Run the task on this client, None: on the one with the largest remaining capacity."""
        if client is None:
            client = shares.roomiest(task, lambda client: True)
        assert client is not None  # a group has clients
        self._placement.active[client].add(task)
        shares.take(client, task)

    def _without(self, task: int) -> Callable[[int], bool]:
        return lambda client: not self._placement.has(client, task)

    def _by_gap(self, shares: _Shares, task: int) -> list[int]:
        """The clients that had the task, the smallest gap first."""
        return sorted(
            self._had.get(task, ()),
            key=lambda client: (self._gap(client, task), shares.alike(client, task), client),
        )

    def _gap(self, client: int, task: int) -> int:
        lag = self._group.lag(client, task)
        near = self._config.near_zero_gap
        if near is not None and (lag == LATEST_OFFSET or 0 <= lag <= near):
            return 0
        return _LARGEST_GAP if lag == UNKNOWN_OFFSET_SUM else lag

    def _place_standby(self, shares: _Shares, task: int, replica: int) -> None:
        client = shares.first_below(filter(self._without(task), self._by_gap(shares, task)))
        if client is None:
            client = shares.roomiest(task, self._without(task))
        if client is None:
            wanted, clients = self._config.num_standby_replicas, len(self._group.clients)
            raise AssignmentRefused(
                "TaskAssignmentException",
                f"{wanted} standby replicas of task {self._group.tasks[task].id} on {clients} clients: "
                f"there is none left for number {replica + 1}",
            )
        self._placement.standby[client].add(task)
        shares.take(client, task)
