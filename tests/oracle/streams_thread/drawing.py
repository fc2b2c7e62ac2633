"""Draws situations: scripts of a thread's member of a streams group."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.oracle.group_member.drawing import ERRORS, INTERVALS_MS, Draws, Script, draw_options
from tests.oracle.group_member.situation import (
    CALLBACK_BEGINS,
    CALLBACK_ENDS,
    POLL,
    STEP,
    Situation,
    Step,
    subscribe,
)
from tests.oracle.streams_thread.playing import TASKS

_ERRORS = (
    *ERRORS,
    *("GROUP_MAX_SIZE_REACHED", "STREAMS_INVALID_TOPOLOGY", "STREAMS_INVALID_TOPOLOGY_EPOCH"),
    *("STREAMS_TOPOLOGY_FENCED", "UNSUPPORTED_VERSION"),
)
_OFFSETS = (0, 10, 90, 100, (1 << 63) - 1)


def draw(number: int) -> Situation:
    """The script of that number: always the same."""
    random = Random(f"streams thread {number}")
    options = draw_options(random)
    errors = (*_ERRORS, "FENCED_INSTANCE_ID") if "group.instance.id" in options else _ERRORS
    return Situation(str(number), tuple(_Script(random, errors).steps()), options)


class _Script(Script):
    reconciles = (STEP, CALLBACK_BEGINS, CALLBACK_ENDS, CALLBACK_BEGINS, CALLBACK_ENDS)

    def steps(self) -> list[Step]:
        """A thread subscribes once, leaves once, and does not poll any more then."""
        steps = self.draw_steps([subscribe("t", "u", "v"), POLL, STEP])
        leaves = [at for at, step in enumerate(steps) if step[0] in ("unsubscribe", "close")]
        gone = ("poll", "unsubscribe", "close")
        return [step for at, step in enumerate(steps) if at <= min(leaves, default=at) or step[0] not in gone]

    def more_usual(self) -> Draws[tuple[Step, ...]]:
        return ((2, lambda: (self._progress(),)),)

    def _progress(self) -> Step:
        """The state on the thread's host grows, or the logs of its tasks do."""
        random = self.random
        tasks = random.sample([f"{name}_{number}" for name in "01" for number in range(TASKS)], 2)
        return random.choice(("offsets", "end_offsets")), {one: random.choice(_OFFSETS) for one in tasks}

    def answer(self) -> Step:
        random = self.random
        fields: dict[str, Any] = {
            "epoch": self.epoch,
            "interval": random.choice(INTERVALS_MS),
            "offset_interval": random.choice((0, 5_000, 60_000)),
            "recovery_lag": 10,
        }
        if random.random() < 0.05:
            return "answer", {**fields, "epoch": random.choice((-1, -2, 0))}
        if random.random() < 0.3:
            self.epoch += 1
            fields["epoch"] = self.epoch
        if random.random() < 0.2:
            fields["status"] = random.sample(range(7), random.choice((1, 2)))
        if random.random() < 0.1:
            fields["endpoint_epoch"] = random.choice((1, 2))
        if random.random() < 0.5:
            tasks = [(name, number) for name in "01" for number in range(TASKS)]
            random.shuffle(tasks)
            kinds = random.choice((("active",), ("active", "standby"), ("active", "standby", "warmup")))
            fields |= {kind: {} for kind in ("active", "standby", "warmup")}
            for name, number in tasks[: random.randrange(5)]:
                fields[random.choice(kinds)].setdefault(name, []).append(number)
        return "answer", fields
