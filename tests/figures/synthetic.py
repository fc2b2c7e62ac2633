"""Random traces that are valid rows of the schema, for holding figures against each other.

`trace(seed)` plays a small group: members start, rebalance (eager or cooperative, sometimes in vain),
crash, pause past their session as zombies, come back, and partitions are created; records run on the model
of `docs/figures.md`, now and then with positions of their own. Many things happen in one instant, and some
rows are odd on purpose (a second assignment of what is owned, the end of what is not).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from groupstorm.clients import events as member_events
from groupstorm.coordinator import events
from groupstorm.storms import events as world_events
from groupstorm.storms.figures.records import RecordModel
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
    #: partition -> (position, since when, it is processed from there)
    owned: dict[str, tuple[int, int]] = field(default_factory=dict)


class SyntheticGroup:
    """Emits rows; `step_us` bounds the time between two of them."""

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
        self.model = RecordModel(*rates)
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
        position, since_us = member.owned[partition]
        if member.paused:
            return position
        position = self.model.position(position, since_us, self.now_us)
        return position + (self.random.randint(0, 2) if self.random.random() < 0.1 else 0)

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
                member.owned[partition] = (start, self.now_us)
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

    # -- what can happen ---------------------------------------------------------------------------

    def start(self, member: Member) -> None:
        member.running, member.paused = True, False
        self.member(member_events.MemberStarted(GROUP, member.name, member.instance, member.topics))
        self.member(member_events.RejoinRequested(GROUP, member.name, "", -1, "first-join"))
        self.pass_time()
        self.ids += 1
        before, member.member_id = member.member_id, f"{member.name}-{self.ids}"
        if member.joined and member.instance is not None:
            self.coordinator(
                events.MemberReplaced(
                    GROUP, member.name, member.member_id, before, member.instance, self.generation
                )
            )
            if self.state == "Stable" and self.random.random() < 0.7:
                self.come_back(member)
            return
        self.coordinator(
            events.MemberAdded(
                GROUP, member.name, member.member_id, member.instance, self.generation, "new-member"
            )
        )
        member.joined = True
        self.prepare(member, "new-member")

    def come_back(self, member: Member) -> None:
        """A static member in a Stable group: answered at once, in the generation that there is."""
        member.generation = self.generation
        who = (GROUP, member.name, member.member_id, self.generation)
        self.coordinator(events.JoinAnswered(*who, None))
        self.pass_time()
        free = [partition for partition in self.created if self.random.random() < 0.2]
        self.coordinator(events.SyncAnswered(*who, None, tuple(free)))
        self.pass_time()
        self.take(member, free)

    def prepare(self, member: Member, cause: str) -> None:
        if self.state != "PreparingRebalance":
            self.change_state("PreparingRebalance", cause, member.member_id)

    def rebalance(self) -> None:
        joined = [m for m in self.members if m.running and m.joined and not m.paused]
        if not joined:
            return
        starter = self.random.choice(joined)
        cause = self.random.choice(("member-updated", "leader-rejoined", "session-expired"))
        self.coordinator(events.MemberUpdated(GROUP, starter.name, starter.member_id, self.generation))
        self.prepare(starter, cause)
        self.random.shuffle(joined)
        for member in joined:
            if self.random.random() < 0.9:
                self.join_again(member)
        self.generation += 1
        self.change_state("CompletingRebalance", "all-joined")
        for member in joined:
            self.coordinator(events.JoinAnswered(GROUP, member.name, member.member_id, self.generation, None))
        self.pass_time()
        if not self.careful and self.random.random() < 0.1:
            return  # the leader never brings its plan
        self.change_state("Stable", "assigned")
        self.share_out(joined)

    def join_again(self, member: Member) -> None:
        if self.random.random() < 0.8:
            self.member(
                member_events.RejoinRequested(
                    GROUP, member.name, member.member_id, self.generation, "group-rebalancing"
                )
            )
        if not self.cooperative and member.owned:
            self.give_up(member, list(member.owned), "rebalance")
        self.pass_time()
        self.coordinator(events.JoinParked(GROUP, member.name, member.member_id, self.generation))
        if self.cooperative and self.random.random() < 0.3:
            self.coordinator(events.MemberUpdated(GROUP, member.name, member.member_id, self.generation))

    def share_out(self, joined: list[Member]) -> None:
        plan: dict[str, list[str]] = {member.name: [] for member in joined}
        for partition in self.created:
            keeper = next((m for m in joined if partition in m.owned), None)
            chosen = keeper if keeper and self.random.random() < 0.7 else self.random.choice(joined)
            if self.careful or self.random.random() < 0.95:
                plan[chosen.name].append(partition)
        for member in joined:
            partitions = tuple(plan[member.name])
            error = "REBALANCE_IN_PROGRESS" if not self.careful and self.random.random() < 0.05 else None
            self.coordinator(
                events.SyncAnswered(
                    GROUP,
                    member.name,
                    member.member_id,
                    self.generation,
                    error,
                    None if error else partitions,
                )
            )
            self.pass_time()
            if error is None and (self.careful or self.random.random() < 0.95):
                member.generation = self.generation
                gone = [partition for partition in member.owned if partition not in partitions]
                if gone:
                    self.give_up(member, gone, "assignment")
                    self.pass_time()
                self.take(member, list(partitions))

    def crash(self) -> None:
        running = [m for m in self.members if m.running]
        if running:
            member = self.random.choice(running)
            self.give_up(member, list(member.owned), "crashed")
            member.running = member.paused = False

    def close(self) -> None:
        running = [m for m in self.members if m.running and not m.paused]
        if not running:
            return
        member = self.random.choice(running)
        if member.owned:
            self.give_up(member, list(member.owned), "close")
        self.pass_time()
        self.member(member_events.MemberClosed(GROUP, member.name, member.member_id, "left"))
        member.running = False
        self.remove(member, "left")

    def fail(self) -> None:
        running = [m for m in self.members if m.running and not m.paused]
        if running:
            member = self.random.choice(running)
            self.give_up(member, list(member.owned), "lost")
            self.member(
                member_events.MemberFailed(GROUP, member.name, member.member_id, "FENCED_INSTANCE_ID")
            )
            member.running = False

    def remove(self, member: Member, cause: str) -> None:
        if member.joined:
            self.coordinator(
                events.MemberRemoved(
                    GROUP, member.name, member.member_id, member.instance, self.generation, cause
                )
            )
            member.joined = False
            self.prepare(member, cause)

    def expire(self) -> None:
        """A silent member's session ends; if it is only paused it becomes a zombie that owns on."""
        silent = [m for m in self.members if m.joined and (m.paused or not m.running)]
        if silent:
            self.remove(self.random.choice(silent), "session-expired")

    def pause(self) -> None:
        running = [m for m in self.members if m.running and not m.paused]
        if running:
            member = self.random.choice(running)
            held = list(member.owned)
            positions = self.positions(member, held)
            for partition, position in zip(held, positions, strict=True):
                member.owned[partition] = (position, self.now_us)
            member.paused = True
            odd = ("t-0",) if "t-0" not in held and self.random.random() < 0.2 else ()
            self.member(
                member_events.MemberPaused(
                    GROUP,
                    member.name,
                    member.member_id,
                    (*held, *odd),
                    (*positions, *(0 for _ in odd)),
                    1,
                    "pause",
                )
            )

    def resume(self) -> None:
        paused = [m for m in self.members if m.paused]
        if not paused:
            return
        member = self.random.choice(paused)
        member.paused = False
        held = list(member.owned)
        for partition in held:
            member.owned[partition] = (member.owned[partition][0], self.now_us)
        positions = tuple(member.owned[partition][0] for partition in held)
        self.member(member_events.MemberResumed(GROUP, member.name, member.member_id, tuple(held), positions))
        if not member.joined and self.random.random() < 0.7:
            self.pass_time()
            self.give_up(member, held, "lost")
            self.start(member)

    def create(self) -> None:
        names = tuple(f"t-{len(self.created) + number}" for number in range(self.random.randint(1, 2)))
        for name in names:
            self.created[name] = self.now_us
            self.committed[name] = 0
        self.world(world_events.PartitionsCreated(GROUP, ("t",), names))

    def calm_down(self) -> None:
        """Everybody is back, shares everything and works on for a while: lag recovers."""
        while any(member.paused for member in self.members):
            self.resume()
        for member in self.members:
            if not member.running:
                self.start(member)
        self.careful = True
        self.rebalance()
        self.now_us += 10 * self.step_us

    def start_one(self) -> None:
        absent = [m for m in self.members if not m.running]
        if absent:
            self.start(self.random.choice(absent))


def trace(
    seed: int,
    *,
    actions: int = 40,
    step_us: int = 20,
    members: int = 4,
    partitions: int = 6,
    rates: tuple[int, int] = (200_000, 700_000),
    member_rows: bool = True,
) -> list[TracedRow]:
    """The rows of one random group; without ``member_rows`` only what its coordinator saw."""
    group = SyntheticGroup(seed, step_us, members, partitions, rates)
    group.world(world_events.ScenarioStarted(GROUP, "{}", tuple(group.created), *rates))
    for member in group.members[: max(1, members - 1)]:
        group.start(member)
        group.pass_time()
    group.rebalance()
    happenings = [group.crash, group.close, group.fail, group.pause, group.resume, group.expire, group.create]
    for _ in range(actions):
        if group.random.random() < 0.6:
            group.random.choice((group.rebalance, group.start_one, group.resume))()
        else:
            group.random.choice(happenings)()
        group.pass_time()
    if seed % 3:
        group.calm_down()
    if not member_rows:
        return [row for row in group.rows if row[1] is Source.COORDINATOR]
    for api, error, count in (("JoinGroup", None, 3), ("OffsetCommit", "ILLEGAL_GENERATION", seed % 5 + 1)):
        group.world(world_events.RequestsCounted(GROUP, api, error, count))
    group.world(world_events.InvariantChecked(GROUP, "one-owner", "held"))
    group.pass_time()
    group.world(world_events.ScenarioEnded(GROUP))
    return group.rows
