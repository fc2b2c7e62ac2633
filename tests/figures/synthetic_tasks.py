"""Random traces of Kafka Streams applications, for holding figures against each other.

`streams_trace(seed)`: threads of a few instances run tasks, suspend them, restore, catch up, ask for
rebalances; now and then two threads run one task, a row comes twice, or speaks of what does not exist.
"""

from __future__ import annotations

from random import Random

from groupstorm.trace.events import coordinator as coordinator_events
from groupstorm.trace.events import member as member_events
from groupstorm.trace.events import scenario as world_events
from groupstorm.trace.events import streams as events
from groupstorm.trace.rows import TracedEvent
from groupstorm.trace.schema import Source

TracedRow = tuple[int, Source, TracedEvent]

GROUP = "g"
TASKS = ("0_0", "0_1", "0_2", "1_0", "1_1", "named__2_0")
UNKNOWN = "9_9"
OUTCOMES = ("stable", "probing", "follow-up", "imbalanced")
FOLLOW_UPS = ("probing", "watching", "tasks-change-owner")


class SyntheticApplication:
    """Writes rows while a seed decides what happens; ``running``: (task, thread) pairs."""

    def __init__(self, seed: int, step_us: int = 30) -> None:
        self.random = Random(f"streams:{seed}")
        self.step_us = step_us
        self.now_us = 0
        self.rows: list[TracedRow] = []
        self.running: set[tuple[str, str]] = set()
        self.threads = {f"i{i}-t{t}": f"i{i}" for i in range(3) for t in range(self.random.randint(1, 2))}

    def tell(self, event: TracedEvent, source: Source = Source.MEMBER) -> None:
        if self.random.random() < 0.6:
            self.now_us += self.random.randint(0, self.step_us)
        self.rows.append((self.now_us, source, event))

    def who(self) -> tuple[str, str, str]:
        thread = self.random.choice(list(self.threads))
        return GROUP, thread, self.threads[thread]

    def task(self) -> str:
        return UNKNOWN if self.random.random() < 0.05 else self.random.choice(TASKS)

    # -- what can happen ---------------------------------------------------------------------------

    def run(self, task: str | None = None) -> None:
        """A task that nobody runs; seldom another."""
        group, thread, process = self.who()
        task = task or self.task()
        taken = any(one == task for one, _ in self.running)
        if taken and self.random.random() < 0.8:
            return
        self.running.add((task, thread))
        self.tell(events.TaskRunning(group, thread, process, task, self.random.randint(0, 9)))

    def run_all(self) -> None:
        for task in TASKS:
            self.run(task)

    def suspend(self) -> None:
        if self.running and self.random.random() < 0.9:
            task, thread = self.random.choice(sorted(self.running))
            self.running.discard((task, thread))
            self.tell(events.TaskSuspended(GROUP, thread, self.threads[thread], task, "revoked"))
        else:
            self.tell(events.TaskSuspended(*self.who(), self.task(), "lost"))

    def restore(self) -> None:
        read = self.random.randint(0, 10**15)
        cause = self.random.choice(("nothing", "checkpoint", "standby"))
        self.tell(events.TaskRestoring(*self.who(), self.task(), self.random.choice((0, 5)), read, cause))
        self.tell(events.TaskRestored(*self.who(), self.task(), read, 7))

    def close(self) -> None:
        kind = self.random.choice(("active", "standby"))
        self.tell(events.TaskClosed(*self.who(), self.task(), self.random.randint(0, 1000), kind))

    def catch_up(self) -> None:
        self.tell(events.StandbyCaughtUp(*self.who(), self.task(), self.random.randint(0, 1000), 7))

    def place(self) -> None:
        group, thread, _ = self.who()
        self.tell(events.TasksPlaced(group, thread, 1, 2, self.random.choice(OUTCOMES)))

    def ask(self) -> None:
        group, thread, _ = self.who()
        self.tell(events.FollowUpDue(group, thread, self.random.choice(FOLLOW_UPS)))

    def come(self) -> None:
        process = self.random.choice(sorted(set(self.threads.values())))
        self.tell(events.InstanceStarted(GROUP, process, None, 1, 11))

    def go(self) -> None:
        process = self.random.choice(sorted(set(self.threads.values())))
        self.tell(events.InstanceGone(GROUP, process, "crashed"))

    def change(self) -> None:
        """A member comes, which is a change; the group settles before the first one."""
        self.tell(
            coordinator_events.MemberAdded(GROUP, "m", "m-1", None, 1, "new-member"), Source.COORDINATOR
        )

    def settle(self) -> None:
        for state, before in (
            ("CompletingRebalance", "PreparingRebalance"),
            ("Stable", "CompletingRebalance"),
        ):
            self.tell(
                coordinator_events.GroupStateChanged(
                    GROUP, before, state, 1, "assigned", None, "stream", None, 0
                ),
                Source.COORDINATOR,
            )


def streams_trace(seed: int, actions: int = 60) -> list[TracedRow]:
    """The rows of one random application; some never run all their tasks, some have none."""
    application = SyntheticApplication(seed)
    start = world_events.ScenarioStarted(GROUP, "{}", (), 0, 1)
    application.tell(start, Source.WORLD)
    application.tell(member_events.MemberStarted(GROUP, "m", None, ("t",)))
    if seed % 7:
        application.tell(world_events.TasksCreated(GROUP, TASKS), Source.WORLD)
    if seed % 5:
        application.come()
        application.settle()
    happenings = [
        application.run,
        application.suspend,
        application.suspend,
        application.restore,
        application.close,
        application.catch_up,
        application.place,
        application.ask,
        application.come,
        application.go,
        application.change,
    ]
    for number in range(actions):
        if seed % 4 and number in (10, 30, 50):
            application.run_all()
        application.random.choice(happenings)()
    for cause in ("input", "standby") if seed % 3 else ():
        crossing = application.random.randint(0, 10**15)
        counted = world_events.TrafficCounted(GROUP, cause, crossing + 1, crossing, 20_000)
        application.tell(counted, Source.WORLD)
    application.tell(world_events.ScenarioEnded(GROUP), Source.WORLD)
    return application.rows
