"""Random histories: mostly tiny ones, for which brute force finds the optimum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

from groupstorm.assignors.check.history import History, HistoryStep, StepKind
from groupstorm.assignors.check.random_choices import RandomChoices

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
    draws = RandomChoices(seed, case)
    size = _weighted(draws, _SIZES)
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
        do = _weighted(draws, _STEPS)
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


def _weighted(draws: RandomChoices, choices: Sequence[tuple[int, T]]) -> T:
    """One of the choices, each as often as its weight says; the weights sum up to a hundred."""
    drawn = draws.below(100)
    for weight, choice in choices:
        drawn -= weight
        if drawn < 0:
            return choice
    raise ValueError("the weights do not sum up to a hundred")
