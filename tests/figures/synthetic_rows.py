"""The state of a random group, and its rows: who owns what, from which position, at which rate."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from groupstorm.trace.events import coordinator as events
from groupstorm.trace.events import member as member_events
from groupstorm.trace.rows import TracedEvent
from groupstorm.trace.schema import Source

TracedRow = tuple[int, Source, TracedEvent]

GROUP = "g"


@dataclass
class Member:
    name: str
    topics: tuple[str, ...]
    instance: str | None
    member_id: str = ""
    generation: int = -1
    running: bool = False
    joined: bool = False
    paused: bool = False
    #: partition -> (position, since when it is processed from there, records per 1,000 seconds)
    owned: dict[str, tuple[int, int, int]] = field(default_factory=dict)


class SyntheticRows:
    """The state of a random group, and the rows that change it; `step_us` bounds the time between two."""

    def __init__(
        self, seed: int, step_us: int, members: int, partitions: int, rates: tuple[int, int]
    ) -> None:
        self.random = Random(seed)
        self.step_us = step_us
        self.now_us = 0
        self.rows: list[TracedRow] = []
        self.cooperative = self.random.random() < 0.5
        self.careful = False
        self.state = "Empty"
        self.generation = 0
        self.ids = 0
        self.created = {f"t-{number}": 0 for number in range(partitions)}
        self.committed: dict[str, int] = dict.fromkeys(self.created, 0)
        #: Of logs and of owners, in records per 1,000 seconds.
        self.rates = (rates[0] * 1000, rates[1] * 1000)
        #: partition -> (the end of its log, since when it grows from there, records per 1,000 seconds)
        self.logs = dict.fromkeys(self.created, (0, 0, self.rates[0]))
        same = self.random.random() < 0.8
        self.members = [
            Member(
                f"c{number}",
                ("t",) if same or self.random.random() < 0.5 else ("t", "u"),
                f"i{number}" if self.random.random() < 0.3 else None,
            )
            for number in range(members)
        ]

    # -- writing rows ------------------------------------------------------------------------------

    def pass_time(self) -> None:
        if self.random.random() < 0.6:
            self.now_us += self.random.randint(0, self.step_us)

    def coordinator(self, event: TracedEvent) -> None:
        self.rows.append((self.now_us, Source.COORDINATOR, event))

    def member(self, event: TracedEvent) -> None:
        self.rows.append((self.now_us, Source.MEMBER, event))

    def world(self, event: TracedEvent) -> None:
        self.rows.append((self.now_us, Source.WORLD, event))

    def change_state(self, state: str, cause: str, member_id: str | None = None) -> None:
        chosen = (
            ("cooperative-sticky" if self.cooperative else "range")
            if state == "CompletingRebalance"
            else None
        )
        self.coordinator(
            events.GroupStateChanged(
                GROUP, self.state, state, self.generation, cause, member_id, chosen, None, len(self.members)
            )
        )
        self.state = state

    # -- ownership ----------------------------------------------------------------------------------

    def position(self, member: Member, partition: str) -> int:
        """Where the member stands now; seldom elsewhere than the model says."""
        position, since_us, rate = member.owned[partition]
        if member.paused:
            return position
        reached = position + rate * (self.now_us - since_us) // 10**9
        position = max(position, min(self.log_end(partition), reached))
        return position + (self.random.randint(0, 2) if self.random.random() < 0.1 else 0)

    def log_end(self, partition: str) -> int:
        position, since_us, rate = self.logs[partition]
        return position + rate * (self.now_us - since_us) // 10**9

    def positions(self, member: Member, partitions: list[str]) -> tuple[int, ...]:
        return tuple(self.position(member, partition) for partition in partitions)

    def give_up(self, member: Member, partitions: list[str], how: str) -> None:
        """One of the events that end intervals; a commit sometimes keeps the position."""
        positions = self.positions(member, partitions)
        for partition, position in zip(partitions, positions, strict=True):
            del member.owned[partition]
            if self.random.random() < 0.6:
                self.committed[partition] = max(self.committed[partition], position)
        committed = tuple(self.committed[partition] for partition in partitions)
        callback_us = self.random.randint(0, self.step_us)
        who = (
            GROUP,
            member.name,
            member.member_id,
            member.generation,
            tuple(partitions),
            positions,
            committed,
        )
        if how == "crashed":
            self.member(member_events.MemberCrashed(*who))
        elif how == "lost":
            self.member(member_events.PartitionsLost(*who, callback_us, "UNKNOWN_MEMBER_ID"))
        else:
            self.member(member_events.PartitionsRevoked(*who, callback_us, how))

    def take(self, member: Member, partitions: list[str]) -> None:
        added = [partition for partition in partitions if partition not in member.owned]
        listed = partitions if self.random.random() < 0.1 else added
        starts = []
        for partition in listed:
            start = self.committed[partition]
            if self.random.random() < 0.1:
                start += self.random.randint(0, 3)
            starts.append(start)
            if partition in added:
                member.owned[partition] = (start, self.now_us, self.rates[1])
        callback_us = self.random.randint(0, self.step_us)
        self.member(
            member_events.PartitionsAssigned(
                GROUP,
                member.name,
                member.member_id,
                member.generation,
                tuple(listed),
                tuple(starts),
                callback_us,
            )
        )
