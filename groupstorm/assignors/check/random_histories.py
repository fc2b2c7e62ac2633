"""Random histories: mostly tiny ones, for which brute force finds the optimum.

The same seed gives the same histories on any machine, in any process.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import NamedTuple, TypeVar

from groupstorm.assignors.check.history import History, HistoryStep, StepKind

T = TypeVar("T")


class Size(NamedTuple):
    members: int
    topics: int
    partitions: int
    steps: int


#: Percentage of each size.
_SIZES = ((70, Size(4, 2, 5, 7)), (25, Size(8, 3, 12, 8)), (5, Size(30, 5, 40, 6)))

#: Percentage of each kind of step; every history begins with joins.
_STEPS = (
    (25, StepKind.JOIN),
    (25, StepKind.LEAVE),
    (15, StepKind.RESIZE),
    (15, StepKind.SUBSCRIBE),
    (10, StepKind.MISS),
    (10, StepKind.RETURN),
)

#: Kafka's hash order depends on the members' ids: short ones, and ids as clients have them.
_ID_STYLES = ("m{}", "consumer-group-{}-7b1e", "{}a", "worker-{}")


def draw_history(seed: int, case: int, equal_subscriptions: bool) -> History:
    """The ``case``-th history of a seed; ``equal_subscriptions``: all members subscribe alike."""
    draws = _Draws(seed, case)
    size = draws.weighted(_SIZES)
    names = [f"t{number}" for number in range(draws.between(1, size.topics))]
    topics = {name: draws.between(1, size.partitions) for name in names}
    everybody = tuple(draws.some_of(names)) if equal_subscriptions else ()
    style = draws.one_of(_ID_STYLES)
    steps: list[HistoryStep] = []
    joined = draws.between(1, size.members)
    for number in range(joined):
        steps.append(
            HistoryStep(StepKind.JOIN, style.format(number), everybody or tuple(draws.some_of(names)))
        )
    for _ in range(draws.between(1, size.steps)):
        do = draws.weighted(_STEPS)
        subscribed = everybody or tuple(draws.some_of(names))
        member = style.format(draws.below(joined))
        if do is StepKind.JOIN:
            member = style.format(joined)
            joined += 1
            steps.append(HistoryStep(do, member, subscribed))
        elif do is StepKind.RESIZE:
            steps.append(
                HistoryStep(do, topics=(draws.one_of(names),), partitions=draws.below(size.partitions + 1))
            )
        elif do is StepKind.SUBSCRIBE and equal_subscriptions:
            everybody = tuple(draws.some_of(names))
            steps.append(HistoryStep(do, topics=everybody))
        elif do is StepKind.SUBSCRIBE:
            steps.append(HistoryStep(do, member, subscribed))
        else:
            steps.append(HistoryStep(do, member))
    return History(topics, tuple(steps))


class _Draws:
    def __init__(self, seed: int, case: int) -> None:
        self._name = f"{seed}/{case}"
        self._drawn = 0

    def below(self, limit: int) -> int:
        """A number from 0 to ``limit`` - 1."""
        self._drawn += 1
        digest = blake2b(f"{self._name}/{self._drawn}".encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big") * limit >> 64

    def between(self, least: int, most: int) -> int:
        return least + self.below(most - least + 1)

    def one_of(self, choices: Sequence[T]) -> T:
        return choices[self.below(len(choices))]

    def some_of(self, choices: Sequence[T]) -> list[T]:
        """At least one of the choices, in their order."""
        sure = self.below(len(choices))
        return [choice for place, choice in enumerate(choices) if place == sure or self.below(2)]

    def weighted(self, choices: Sequence[tuple[int, T]]) -> T:
        """One of the choices, each as often as its weight says; the weights sum up to a hundred."""
        drawn = self.below(100)
        for weight, choice in choices:
            drawn -= weight
            if drawn < 0:
                return choice
        raise ValueError("the weights do not sum up to a hundred")
