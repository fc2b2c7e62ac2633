"""Random traces that are valid rows of the schema, for holding figures against each other.

`trace(seed)` plays a small group: members start, rebalance (eager or cooperative, sometimes in vain),
crash, pause past their session as zombies, come back, and partitions are created; records run on the model
of `docs/figures.md`, now and then with positions of their own, and with rates that change. Many things
happen in one instant, and some rows are odd on purpose (a second assignment of what is owned, the end of
what is not).
"""

from __future__ import annotations

from groupstorm.trace.events import coordinator as events
from groupstorm.trace.events import member as member_events
from groupstorm.trace.events import scenario as world_events
from groupstorm.trace.schema import Source
from tests.figures.synthetic_rows import GROUP, Member, SyntheticRows, TracedRow


class SyntheticGroup(SyntheticRows):
    """A group to which anything can happen."""

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
                member.owned[partition] = (position, self.now_us, member.owned[partition][2])
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
            position, _, rate = member.owned[partition]
            member.owned[partition] = (position, self.now_us, rate)
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
            self.logs[name] = (0, 0, self.rates[0])
        self.world(world_events.PartitionsCreated(GROUP, ("t",), names))

    def change_logs(self) -> None:
        """Some logs grow at another rate, now and then from another end; so do, mostly, new ones."""
        chosen = [name for name, at_us in self.created.items() if at_us == self.now_us and self.now_us]
        chosen = chosen if self.random.random() < 0.7 else []
        chosen += [name for name in self.created if name not in chosen and self.random.random() < 0.4]
        ends = {name: self.log_end(name) + self.random.choice((0, 0, 0, 3, -1)) for name in chosen}
        for name in chosen:
            if self.created[name] == self.now_us:
                ends[name] = self.random.choice((0, 2))
            rate = self.random.choice((0, 1, 1, 2, 5, 9)) * self.rates[0] // 2
            self.logs[name] = (ends[name], self.now_us, rate)
        rates = tuple(self.logs[name][2] for name in chosen)
        self.world(world_events.RecordRatesChanged(GROUP, tuple(chosen), tuple(ends.values()), rates))

    def change_processing(self) -> None:
        """A member goes on at other rates; it may be paused, and the row may name what it does not own."""
        running = [m for m in self.members if m.owned]
        if not running:
            return
        member = self.random.choice(running)
        chosen = [name for name in member.owned if self.random.random() < 0.8]
        positions = self.positions(member, chosen)
        rates = tuple(self.random.choice((0, 1, 2, 3, 6)) * self.rates[1] // 3 for _ in chosen)
        if not member.paused:
            for name, position, rate in zip(chosen, positions, rates, strict=True):
                member.owned[name] = (position, self.now_us, rate)
        odd = ("t-0",) if "t-0" not in member.owned and self.random.random() < 0.2 else ()
        self.member(
            member_events.ProcessingRatesChanged(
                GROUP, member.name, member.member_id, (*chosen, *odd), (*positions, *(7 for _ in odd)),
                (*rates, *(1 for _ in odd)),
            )
        )  # fmt: skip

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
    rates_change: bool = False,
) -> list[TracedRow]:
    """The rows of one random group; without ``member_rows`` only what its coordinator saw.

    ``rates``: records per second that a partition gets, and that an owner processes of it.
    """
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
        if rates_change:
            if group.random.random() < 0.4:
                group.change_logs()
                group.pass_time()
            if group.random.random() < 0.4:
                group.change_processing()
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
