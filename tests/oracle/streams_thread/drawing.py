"""Draws situations: scripts of a thread's member of a streams group."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from tests.oracle.group_member.situation import (
    CALLBACK_BEGINS,
    CALLBACK_ENDS,
    CALLBACK_FAILS,
    DISCONNECT,
    END,
    INTERVAL_MS,
    POLL,
    STEP,
    UNSUBSCRIBE,
    UNSUPPORTED,
    Situation,
    Step,
    advance,
    close,
    coordinator,
    refused,
    subscribe,
)
from tests.oracle.streams_thread.playing import TASKS

_ERRORS = (
    *("FENCED_MEMBER_EPOCH", "UNKNOWN_MEMBER_ID") * 4,
    *("NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS") * 2,
    *("TOPIC_AUTHORIZATION_FAILED", "GROUP_AUTHORIZATION_FAILED", "GROUP_ID_NOT_FOUND"),
    *("UNRELEASED_INSTANCE_ID", "INVALID_REQUEST", "UNKNOWN_SERVER_ERROR"),
    *("GROUP_MAX_SIZE_REACHED", "STREAMS_INVALID_TOPOLOGY", "STREAMS_INVALID_TOPOLOGY_EPOCH"),
    *("STREAMS_TOPOLOGY_FENCED", "UNSUPPORTED_VERSION"),
)
_PAUSES_MS = (1, 50, 99, 100, 200, 1_000, 2_500, 4_999, INTERVAL_MS, INTERVAL_MS, 12_000)
_INTERVALS_MS = (INTERVAL_MS,) * 6 + (1_000, 0)
_OFFSETS = (0, 10, 90, 100, (1 << 63) - 1)


def draw(number: int) -> Situation:
    """The script of that number: always the same."""
    random = Random(f"streams thread {number}")
    options: dict[str, str | int | bool] = {}
    if random.random() < 0.3:
        options["group.instance.id"] = "i"
    if random.random() < 0.4:
        options["max.poll.interval.ms"] = random.choice((4_000, 12_000))
    if random.random() < 0.2:
        options["client.rack"] = "r"
    if random.random() < 0.2:
        options["retry.backoff.ms"], options["retry.backoff.max.ms"] = random.choice(
            ((0, 0), (300, 500), (50, 50))
        )
    errors = (*_ERRORS, "FENCED_INSTANCE_ID") if "group.instance.id" in options else _ERRORS
    return Situation(str(number), tuple(_Script(random, errors).steps()), options)


class _Script:
    """``epoch``: the one that the broker tells next, most of the time."""

    def __init__(self, random: Random, errors: tuple[str, ...]) -> None:
        self._random = random
        self._errors = errors
        self._epoch = 1
        self._closes = random.choice(("DEFAULT", "LEAVE_GROUP", "REMAIN_IN_GROUP"))
        self._wild = random.choice((0.02, 0.1, 0.3))

    def steps(self) -> list[Step]:
        """A thread subscribes once, leaves once, and does not poll any more then."""
        random = self._random
        steps = [subscribe("t", "u", "v"), POLL, STEP]
        for _ in range(random.randrange(5, 40)):
            steps += [self._rare()] if random.random() < self._wild else self._usual()
        leaves = [at for at, step in enumerate(steps) if step[0] in ("unsubscribe", "close")]
        gone = ("poll", "unsubscribe", "close")
        return [step for at, step in enumerate(steps) if at <= min(leaves, default=at) or step[0] not in gone]

    def _usual(self) -> tuple[Step, ...]:
        """Draw what happens to every thread: heartbeats and answers, reconciliations, or a part of them."""
        random = self._random
        draws: tuple[tuple[int, Callable[[], tuple[Step, ...]]], ...] = (
            (4, lambda: (STEP, self._answer())),
            (3, lambda: (advance(INTERVAL_MS), POLL, STEP, self._answer())),
            (1, lambda: (advance(INTERVAL_MS), STEP, refused(random.choice(_ERRORS[:14])))),
            (5, lambda: (STEP, CALLBACK_BEGINS, CALLBACK_ENDS, CALLBACK_BEGINS, CALLBACK_ENDS)),
            (2, lambda: (CALLBACK_BEGINS, CALLBACK_ENDS)),
            (2, lambda: (self._progress(),)),
            (1, lambda: (coordinator(True),)),
            *((1, lambda each=each: (each,)) for each in (STEP, POLL, CALLBACK_BEGINS, CALLBACK_ENDS)),
            (1, lambda: (advance(random.choice(_PAUSES_MS[:-1])),)),
        )
        return random.choices([each for _, each in draws], [weight for weight, _ in draws])[0]()

    def _rare(self) -> Step:
        random = self._random
        draws: tuple[tuple[int, Callable[[], Step]], ...] = (
            (8, lambda: refused(random.choice(self._errors))),
            (2, lambda: DISCONNECT),
            (1, lambda: UNSUPPORTED),
            (3, lambda: CALLBACK_FAILS),
            (3, lambda: advance(random.choice(_PAUSES_MS))),
            (5, lambda: coordinator(random.random() < 0.8)),
            (3, lambda: UNSUBSCRIBE),
            (1, lambda: close(self._closes)),
            (1, lambda: END),
        )
        return random.choices([each for _, each in draws], [weight for weight, _ in draws])[0]()

    def _progress(self) -> Step:
        """The state on the thread's host grows, or the logs of its tasks do."""
        random = self._random
        tasks = random.sample([f"{name}_{number}" for name in "01" for number in range(TASKS)], 2)
        return random.choice(("offsets", "end_offsets")), {one: random.choice(_OFFSETS) for one in tasks}

    def _answer(self) -> Step:
        random = self._random
        fields: dict[str, Any] = {
            "epoch": self._epoch,
            "interval": random.choice(_INTERVALS_MS),
            "offset_interval": random.choice((0, 5_000, 60_000)),
            "recovery_lag": 10,
        }
        if random.random() < 0.05:
            return "answer", {**fields, "epoch": random.choice((-1, -2, 0))}
        if random.random() < 0.3:
            self._epoch += 1
            fields["epoch"] = self._epoch
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
