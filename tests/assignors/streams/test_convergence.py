"""Kafka's own TaskAssignorConvergenceTest as properties: whatever happens to its clients, a group settles.

Clients come and go at random; after each change the group rebalances until no probing rebalance is needed,
every time with the state that the last assignment has left: what ran is current, what was a standby or a
warm-up has caught up. Then loads have to be alike and all standbys there.
"""

from __future__ import annotations

import math
import random
from uuid import UUID

import pytest

from groupstorm.assignors.streams.leader import TASK_ASSIGNORS
from groupstorm.assignors.streams.model import (
    Config,
    Decision,
    Strategy,
    StreamsClient,
    StreamsGroup,
    Task,
    TaskPartition,
)
from groupstorm.assignors.userdata.streams import TaskId
from tests.assignors.streams.groups import owners

END = 150_000
RACKS = ("r0", "r1", "r2")


class Harness:
    """A group over time."""

    def __init__(self, seed: str, *, stateful: int, stateless: int, clients: int) -> None:
        self.random = random.Random(seed)
        self.tasks = [self._task(0, number, True) for number in range(stateful)]
        self.tasks += [self._task(1, number, False) for number in range(stateless)]
        self.next_id = 1
        self.clients: dict[int, tuple[StreamsClient, set[int], set[int]]] = {}
        for _ in range(clients):
            self.add()

    def _task(self, group: int, number: int, stateful: bool) -> Task:
        def racks() -> frozenset[str]:
            return frozenset(self.random.sample(RACKS, 2))

        kept = (TaskPartition(f"log{group}", number, racks()),) if stateful else ()
        return Task(
            TaskId("", group, number), stateful, (TaskPartition(f"in{group}", number, racks()),), kept
        )

    def add(self) -> None:
        client = StreamsClient(UUID(int=self.next_id), 1, self.random.choice(RACKS), fresh_elsewhere=True)
        self.clients[self.next_id] = client, set(), set()
        self.next_id += 1

    def drop(self) -> None:
        if len(self.clients) > 1:
            del self.clients[self.random.choice(sorted(self.clients))]

    def group(self) -> StreamsGroup:
        states = []
        for client, running, following in self.clients.values():
            stateful = {task for task in running if self.tasks[task].stateful}
            lags = {**dict.fromkeys(following, 0), **dict.fromkeys(stateful, -2)}
            states.append(
                client._replace(prev_active=frozenset(running), prev_standby=frozenset(following), lags=lags)
            )
        ends = {number: END for number, task in enumerate(self.tasks) if task.stateful}
        return StreamsGroup(self.tasks, states, range(len(states)), ends)

    def rebalance(self, assignor: str, config: Config) -> Decision:
        decision = TASK_ASSIGNORS[assignor].assign(self.group(), config)
        placement = decision.placement
        assert len(owners(placement.active)) == len(self.tasks)
        for number, name in enumerate(list(self.clients)):
            assert not placement.active[number] & placement.standby[number]
            client = self.clients[name][0]
            self.clients[name] = client, set(placement.active[number]), set(placement.standby[number])
        return decision

    def settle(self, assignor: str, config: Config) -> Decision:
        rounds = len(self.tasks) // config.max_warmup_replicas + 2
        for _ in range(rounds * 2):
            decision = self.rebalance(assignor, config)
            if not decision.probing:
                return decision
        raise AssertionError(f"not settled after {rounds * 2} rebalances")


def check(harness: Harness, decision: Decision, config: Config, skew_max: int) -> None:
    placement = decision.placement
    counts = [placement.count(number) for number in placement.clients]
    assert max(counts) - min(counts) <= skew_max, counts
    wanted = min(config.num_standby_replicas, len(counts) - 1)
    for number, task in enumerate(harness.tasks):
        standbys = sum(number in held for held in placement.standby)
        assert standbys == (wanted if task.stateful else 0)


@pytest.mark.slow
@pytest.mark.parametrize("strategy", list(Strategy))
@pytest.mark.parametrize("replicas", [0, 1, 2])
def test_high_availability_settles_after_random_changes(strategy: Strategy, replicas: int) -> None:
    """Kafka tolerates a skew of 4 with balance_subtopology, of 1 otherwise; stateless tasks come on top."""
    for seed in range(6):
        harness = Harness(f"{strategy}{replicas}{seed}", stateful=11, stateless=6, clients=5)
        config = Config(
            acceptable_recovery_lag=100,
            max_warmup_replicas=harness.random.randint(1, 3),
            num_standby_replicas=replicas,
            strategy=strategy,
        )
        for _ in range(12):
            harness.random.choice((harness.add, harness.drop))()
            decision = harness.settle("ha", config)
            check(harness, decision, config, 4 if strategy is Strategy.BALANCE_SUBTOPOLOGY else 2)


@pytest.mark.parametrize("strategy", list(Strategy))
@pytest.mark.parametrize("assignor", ["legacy-sticky", "sticky"])
def test_the_sticky_assignors_keep_everything_assigned(assignor: str, strategy: Strategy) -> None:
    for seed in range(6):
        harness = Harness(f"{assignor}{strategy}{seed}", stateful=12, stateless=4, clients=4)
        config = Config(num_standby_replicas=1, strategy=strategy, traffic_cost=1, non_overlap_cost=10)
        for _ in range(12):
            harness.random.choice((harness.add, harness.drop))()
            decision = harness.rebalance(assignor, config)
            loads = [len(tasks) for tasks in decision.placement.active]
            assert max(loads) <= math.ceil(len(harness.tasks) / len(loads)) + 1


def test_a_group_that_has_settled_moves_nothing() -> None:
    harness = Harness("still", stateful=20, stateless=5, clients=6)
    config = Config(num_standby_replicas=1, strategy=Strategy.MIN_TRAFFIC)
    before = harness.settle("ha", config).placement
    after = harness.rebalance("ha", config).placement
    assert (before.active, before.standby) == (after.active, after.standby)


def test_the_drafts_trade_offs_over_time() -> None:
    """One more client: balance moves tasks without state at once, latency after their standbys caught up."""
    config = Config()
    harness = Harness("draft", stateful=8, stateless=0, clients=2)
    harness.rebalance("kip441-draft", config)
    harness.add()
    kept = harness.rebalance("kip441-draft", config)
    assert kept.imbalanced
    assert [len(tasks) for tasks in kept.placement.active] == [4, 4, 0]
    assert kept.placement.standby[2] == set(kept.imbalanced)
