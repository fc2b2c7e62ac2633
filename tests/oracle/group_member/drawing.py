"""Draws situations: scripts of a member of a consumer group."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from random import Random
from typing import TypeVar

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
    assigned_nothing,
    close,
    commit_answer,
    coordinator,
    no_topic,
    refused,
    regex,
    subscribe,
    topic,
)

#: The scripts that are kept with Kafka's answers: the first ones, and those that notice every mutation of
#: `groupstorm/clients/consumer_group` that 9,000 scripts notice.
KEPT = (
    *range(20),
    *(21, 45, 57, 72, 89, 106, 143, 152, 160, 216, 243, 313, 345, 387, 398, 407, 472, 502, 507, 538, 551),
    *(574, 592, 678, 754, 829, 892, 927, 1028, 1032, 1134, 1142, 1233, 1245, 1251, 1437, 1440, 2531, 7759),
)

_TOPICS = "tuv"
_USUAL_ERRORS = (
    *("FENCED_MEMBER_EPOCH", "UNKNOWN_MEMBER_ID") * 4,
    *("NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS") * 2,
)
#: The errors that a heartbeat may be answered with, in a group of either kind.
ERRORS = (
    *_USUAL_ERRORS,
    *("TOPIC_AUTHORIZATION_FAILED", "GROUP_AUTHORIZATION_FAILED", "GROUP_ID_NOT_FOUND"),
    *("UNRELEASED_INSTANCE_ID", "INVALID_REQUEST", "UNKNOWN_SERVER_ERROR"),
)
_COMMIT_ERRORS = (
    *("NONE", "DISCONNECT", "COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR", "REQUEST_TIMED_OUT"),
    *("STALE_MEMBER_EPOCH", "STALE_MEMBER_EPOCH", "UNKNOWN_MEMBER_ID", "UNKNOWN_TOPIC_OR_PARTITION"),
    *("GROUP_AUTHORIZATION_FAILED", "TOPIC_AUTHORIZATION_FAILED", "OFFSET_METADATA_TOO_LARGE"),
)
_PAUSES_MS = (1, 50, 99, 100, 200, 1_000, 2_500, 4_999, INTERVAL_MS, INTERVAL_MS, 12_000)
INTERVALS_MS = (INTERVAL_MS,) * 6 + (1_000, 0)

_Drawn = TypeVar("_Drawn")
#: Weights, and what draws.
Draws = Sequence[tuple[int, Callable[[], _Drawn]]]


def draw(number: int) -> Situation:
    """The script of that number: always the same."""
    random = Random(f"group member {number}")
    options = draw_options(random)
    if random.random() < 0.3:
        options["enable.auto.commit"] = False
    if random.random() < 0.2:
        options["group.remote.assignor"] = "range"
    return Situation(str(number), tuple(_Script(random).steps()), options)


def draw_options(random: Random) -> dict[str, str | int | bool]:
    """The options of a member of either kind."""
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
    return options


class Script(ABC):
    """The script of a member of either kind. ``epoch``: the one that the broker tells next, most of the
    time."""

    #: The steps of a reconciliation.
    reconciles: tuple[Step, ...]

    def __init__(self, random: Random, errors: tuple[str, ...]) -> None:
        self.random = random
        self.epoch = 1
        self._errors = errors
        self._closes = random.choice(("DEFAULT", "LEAVE_GROUP", "REMAIN_IN_GROUP"))
        self._wild = random.choice((0.02, 0.1, 0.3))

    @abstractmethod
    def answer(self) -> Step:
        """The answer to a heartbeat, without an error."""

    def more_usual(self) -> Draws[tuple[Step, ...]]:
        """Steps that happen to every member of this kind alone."""
        return ()

    def more_rare(self) -> Draws[Step]:
        """Steps that happen to few members, of this kind alone."""
        return ()

    def draw_steps(self, begin: Sequence[Step]) -> list[Step]:
        steps = [*begin]
        for _ in range(self.random.randrange(5, 40)):
            steps += [self._rare()] if self.random.random() < self._wild else self._usual()
        return steps

    def _usual(self) -> tuple[Step, ...]:
        """Draw what happens to every member: heartbeats and answers, reconciliations, or a part of them."""
        random = self.random
        singles = [STEP, POLL, CALLBACK_BEGINS, CALLBACK_ENDS]
        return self._pick(
            (
                (4, lambda: (STEP, self.answer())),
                (3, lambda: (advance(INTERVAL_MS), POLL, STEP, self.answer())),
                (1, lambda: (advance(INTERVAL_MS), STEP, refused(random.choice(_USUAL_ERRORS)))),
                (5, lambda: self.reconciles),
                (2, lambda: (CALLBACK_BEGINS, CALLBACK_ENDS)),
                *self.more_usual(),
                (1, lambda: (coordinator(True),)),
                *((1, lambda each=each: (each,)) for each in singles),
                (1, lambda: (advance(random.choice(_PAUSES_MS[:-1])),)),
            )
        )

    def _rare(self) -> Step:
        random = self.random
        return self._pick(
            (
                (8, lambda: refused(random.choice(self._errors))),
                (2, lambda: DISCONNECT),
                (1, lambda: UNSUPPORTED),
                (3, lambda: CALLBACK_FAILS),
                (3, lambda: advance(random.choice(_PAUSES_MS))),
                (5, lambda: coordinator(random.random() < 0.8)),
                (3, lambda: UNSUBSCRIBE),
                (1, lambda: close(self._closes)),
                (1, lambda: END),
                *self.more_rare(),
            )
        )

    def _pick(self, draws: Draws[_Drawn]) -> _Drawn:
        return self.random.choices([each for _, each in draws], [weight for weight, _ in draws])[0]()


class _Script(Script):
    reconciles = (POLL, COMMIT_ENDS, CALLBACK_BEGINS, CALLBACK_ENDS)

    def __init__(self, random: Random) -> None:
        super().__init__(random, (*ERRORS, "FENCED_INSTANCE_ID"))
        self._by_regex = random.random() < 0.2

    def steps(self) -> list[Step]:
        topics = [topic("t"), *([topic("u")] if self.random.random() < 0.7 else [])]
        return self.draw_steps([*topics, self._subscribe(), POLL, STEP])

    def more_usual(self) -> Draws[tuple[Step, ...]]:
        return ((1, lambda: (COMMIT_ENDS,)), (2, self._troubled_commit))

    def more_rare(self) -> Draws[Step]:
        random = self.random
        return (
            (6, lambda: commit_answer(random.choice(_COMMIT_ERRORS))),
            (3, lambda: topic(random.choice(_TOPICS))),
            (1, lambda: no_topic(random.choice(_TOPICS))),
            (4, self._subscribe),
        )

    def _troubled_commit(self) -> tuple[Step, ...]:
        """A commit before a revocation that is refused, perhaps again and again."""
        random = self.random
        steps: list[Step] = [POLL, STEP]
        if random.random() < 0.2:
            steps += (advance(INTERVAL_MS), POLL, STEP, refused("FENCED_MEMBER_EPOCH"))
        for _ in range(random.randrange(1, 4)):
            again = (coordinator(True), advance(random.choice(_PAUSES_MS)), STEP)
            steps += (commit_answer(random.choice(_COMMIT_ERRORS)), *again)
        return tuple(steps)

    def _subscribe(self) -> Step:
        if self._by_regex:
            return regex(self.random.choice(("t.*", "[tu]")))
        return subscribe(*self.random.choice(("t", "tu", "tuv")))

    def answer(self) -> Step:
        random = self.random
        interval = random.choice(INTERVALS_MS)
        if random.random() < 0.05:
            return answer(random.choice((-1, -2, 0)), interval)
        if random.random() < 0.3:
            self.epoch += 1
        if random.random() < 0.5:
            return answer(self.epoch, interval)
        topics = random.sample(_TOPICS, random.choice((0, 1, 1, 1, 2)))
        if not topics:
            return assigned_nothing(self.epoch)
        assigned = {name: tuple(random.sample(range(3), random.choice((1, 2)))) for name in topics}
        return answer(self.epoch, interval, **assigned)
