"""Invariants that are watched in every storm; one that breaks fails the run.

From the group protocol itself: two members of one generation never own one partition, generations
increase, the states follow one another, whoever waits is answered, nothing stays un-owned, the
group comes to rest; and, where members join their topics, no join is torn apart.
"""

from __future__ import annotations

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.coordinator import events
from groupstorm.coordinator.states import GroupState
from groupstorm.storms.stage import Stage

HELD = "held"

INVARIANTS = (
    "one_owner_per_generation",
    "generations_increase",
    "states_follow",
    "parked_requests_answered",
    "every_partition_owned_at_end",
    "group_settles",
)

#: Watched where members join their topics (`joins`).
CO_PARTITIONED = "co_partitioned_at_end"


class Checkers:
    """Collects the first violation of each invariant as a sentence."""

    def __init__(self, joins: bool = False) -> None:
        self.verdicts: dict[str, str] = dict.fromkeys(INVARIANTS, HELD)
        if joins:
            self.verdicts[CO_PARTITIONED] = HELD
        self._generation = 0
        self._state = GroupState.EMPTY.value

    def violated(self, invariant: str, sentence: str) -> None:
        if self.verdicts[invariant] == HELD:
            self.verdicts[invariant] = sentence

    @property
    def violations(self) -> dict[str, str]:
        return {name: verdict for name, verdict in self.verdicts.items() if verdict != HELD}

    def see(self, event: events.GroupStateChanged) -> None:
        """Watch the group go from state to state."""
        if event.previous_state != self._state:
            self.violated(
                "states_follow",
                f"the group went from {event.previous_state} to {event.state}, but was {self._state}",
            )
        self._state = event.state
        if event.previous_state == GroupState.PREPARING_REBALANCE.value:
            if event.generation <= self._generation:
                self.violated(
                    "generations_increase",
                    f"generation {event.generation} came after generation {self._generation}",
                )
            self._generation = event.generation

    def taken(self, world: Stage, partitions: tuple[TopicPartition, ...], generation: int) -> None:
        """A member has taken partitions: nobody else of its generation may hold them."""
        for partition in partitions:
            holders = world.records.holders[partition]
            if len(holders) > 1:
                names = sorted(n for work in holders if world.generation_of(n := work.owner) == generation)
                if len(names) > 1:
                    self.violated(
                        "one_owner_per_generation",
                        f"{partition} is owned by {' and '.join(names)} in generation {generation}",
                    )

    def finish(self, world: Stage) -> None:
        """What must be true at the end of a run."""
        waiting = world.unanswered
        if waiting:
            names = ", ".join(sorted(set(waiting)))
            self.violated("parked_requests_answered", f"still parked at the end: requests of {names}")
        if not world.settled:
            self.violated("group_settles", "the group had not settled when the scenario ended")
        owned = {tp for consumer in world.consumers.values() for tp in consumer.work.partitions}
        missing = [partition for partition in world.partitions if partition not in owned]
        if missing and any(consumer.started for consumer in world.consumers.values()):
            self.violated(
                "every_partition_owned_at_end",
                f"{len(missing)} partitions have no owner at the end, {missing[0]} among them",
            )
        if CO_PARTITIONED in self.verdicts:
            self._look_for_torn_joins(world)

    def _look_for_torn_joins(self, world: Stage) -> None:
        owner: dict[int, tuple[str, TopicPartition]] = {}
        torn: dict[int, str] = {}
        for consumer in world.consumers.values():
            for partition in consumer.work.partitions:
                other, first = owner.setdefault(partition.partition, (consumer.name, partition))
                if other != consumer.name:
                    torn[partition.partition] = f"{first} is with {other}, {partition} with {consumer.name}"
        if torn:
            self.violated(CO_PARTITIONED, f"{len(torn)} joins are torn apart: {torn[min(torn)]}")
