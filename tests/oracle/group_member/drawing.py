"""Draws situations: scripts of a member of a consumer group."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tests.oracle.group_member.situation import (
    CALLBACK_BEGINS,
    CALLBACK_ENDS,
    CALLBACK_FAILS,
    COMMIT_ENDS,
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
    answer,
    close,
    commit_answer,
    coordinator,
    no_topic,
    refused,
    regex,
    subscribe,
    topic,
)

_TOPICS = "tuv"
_ERRORS = (
    *("FENCED_MEMBER_EPOCH", "UNKNOWN_MEMBER_ID") * 4,
    *("NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS") * 2,
    *("TOPIC_AUTHORIZATION_FAILED", "GROUP_AUTHORIZATION_FAILED", "GROUP_ID_NOT_FOUND"),
    *("UNRELEASED_INSTANCE_ID", "FENCED_INSTANCE_ID", "INVALID_REQUEST", "UNKNOWN_SERVER_ERROR"),
)
_COMMIT_ERRORS = (
    *("NONE", "DISCONNECT", "COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR", "REQUEST_TIMED_OUT"),
    *("STALE_MEMBER_EPOCH", "STALE_MEMBER_EPOCH", "UNKNOWN_MEMBER_ID", "UNKNOWN_TOPIC_OR_PARTITION"),
    *("GROUP_AUTHORIZATION_FAILED", "TOPIC_AUTHORIZATION_FAILED", "OFFSET_METADATA_TOO_LARGE"),
)
_PAUSES_MS = (1, 50, 99, 100, 200, 1_000, 2_500, 4_999, INTERVAL_MS, INTERVAL_MS, 12_000)
_INTERVALS_MS = (INTERVAL_MS,) * 6 + (1_000, 0)


def draw(number: int) -> Situation:
    """The script of that number: always the same."""
    random = Random(f"group member {number}")
    options: dict[str, str | int | bool] = {}
    if random.random() < 0.3:
        options["enable.auto.commit"] = False
    if random.random() < 0.3:
        options["group.instance.id"] = "i"
    if random.random() < 0.4:
        options["max.poll.interval.ms"] = random.choice((4_000, 12_000))
    if random.random() < 0.2:
        options["client.rack"] = "r"
    if random.random() < 0.2:
        options["group.remote.assignor"] = "range"
    if random.random() < 0.2:
        options["retry.backoff.ms"], options["retry.backoff.max.ms"] = random.choice(
            ((0, 0), (300, 500), (50, 50))
        )
    return Situation(str(number), tuple(_Script(random).steps()), options)


class _Script:
    """``epoch``: the one that the broker tells next, most of the time."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._epoch = 1
        self._closes = random.choice(("DEFAULT", "LEAVE_GROUP", "REMAIN_IN_GROUP"))
        self._by_regex = random.random() < 0.2
        self._wild = random.choice((0.02, 0.1, 0.3))

    def steps(self) -> list[Step]:
        random = self._random
        steps = [topic("t"), *([topic("u")] if random.random() < 0.7 else []), self._subscribe(), POLL, STEP]
        for _ in range(random.randrange(5, 40)):
            steps += [self._rare()] if random.random() < self._wild else self._usual()
        return steps

    def _usual(self) -> tuple[Step, ...]:
        """Draw what happens to every member: heartbeats and answers, reconciliations, or a part of them."""
        random = self._random
        draws: tuple[tuple[int, Callable[[], tuple[Step, ...]]], ...] = (
            (4, lambda: (STEP, self._answer())),
            (3, lambda: (advance(INTERVAL_MS), POLL, STEP, self._answer())),
            (1, lambda: (advance(INTERVAL_MS), STEP, refused(random.choice(_ERRORS[:14])))),
            (5, lambda: (POLL, COMMIT_ENDS, CALLBACK_BEGINS, CALLBACK_ENDS)),
            (2, lambda: (CALLBACK_BEGINS, CALLBACK_ENDS)),
            (1, lambda: (coordinator(True),)),
            *(
                (1, lambda each=each: (each,))
                for each in (STEP, POLL, COMMIT_ENDS, CALLBACK_BEGINS, CALLBACK_ENDS)
            ),
            (1, lambda: (advance(random.choice(_PAUSES_MS[:-1])),)),
        )
        return self._random.choices([each for _, each in draws], [weight for weight, _ in draws])[0]()

    def _rare(self) -> Step:
        random = self._random
        draws: tuple[tuple[int, Callable[[], Step]], ...] = (
            (8, lambda: refused(random.choice(_ERRORS))),
            (2, lambda: DISCONNECT),
            (6, lambda: commit_answer(random.choice(_COMMIT_ERRORS))),
            (1, lambda: UNSUPPORTED),
            (3, lambda: CALLBACK_FAILS),
            (3, lambda: advance(random.choice(_PAUSES_MS))),
            (3, lambda: topic(random.choice(_TOPICS))),
            (1, lambda: no_topic(random.choice(_TOPICS))),
            (5, lambda: coordinator(random.random() < 0.8)),
            (3, lambda: UNSUBSCRIBE),
            (4, self._subscribe),
            (1, lambda: close(self._closes)),
            (1, lambda: END),
        )
        return random.choices([each for _, each in draws], [weight for weight, _ in draws])[0]()

    def _subscribe(self) -> Step:
        if self._by_regex:
            return regex(self._random.choice(("t.*", "[tu]")))
        return subscribe(*self._random.choice(("t", "tu", "tuv")))

    def _answer(self) -> Step:
        random = self._random
        interval = random.choice(_INTERVALS_MS)
        if random.random() < 0.05:
            return answer(random.choice((-1, -2, 0)), interval)
        if random.random() < 0.3:
            self._epoch += 1
        if random.random() < 0.5:
            return answer(self._epoch, interval)
        topics = random.sample(_TOPICS, random.choice((1, 1, 2)))
        assigned = {name: tuple(random.sample(range(3), random.choice((1, 2)))) for name in topics}
        return answer(self._epoch, interval, **assigned)
