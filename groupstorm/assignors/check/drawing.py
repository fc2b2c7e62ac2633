"""Random histories: mostly tiny ones, where the optimum can be found by trying everything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

from groupstorm.assignors.check.draws import Draws
from groupstorm.assignors.check.history import Do, History, Step

T = TypeVar("T")


class Size(NamedTuple):
    """The most of everything that a history may have."""

    members: int
    topics: int
    partitions: int
    steps: int


#: How often each size comes, of a hundred.
_SIZES = ((70, Size(4, 2, 5, 7)), (25, Size(8, 3, 12, 8)), (5, Size(30, 5, 40, 6)))

#: How often each kind of step comes, of a hundred; joins make up the beginning of every history.
_STEPS = (
    (25, Do.JOIN),
    (25, Do.LEAVE),
    (15, Do.RESIZE),
    (15, Do.SUBSCRIBE),
    (10, Do.MISS),
    (10, Do.RETURN),
)

#: Where Kafka's hash order decides, it does so by the members' ids: short ones, and ids as clients have them.
_ID_STYLES = ("m{}", "consumer-group-{}-7b1e", "{}a", "worker-{}")


def draw_history(seed: int, case: int, equal_subscriptions: bool) -> History:
    """The ``case``-th history of a seed; ``equal_subscriptions``: of members that all subscribe alike."""
    draws = Draws(seed, case)
    size = _weighted(draws, _SIZES)
    names = [f"t{number}" for number in range(draws.between(1, size.topics))]
    topics = {name: draws.between(1, size.partitions) for name in names}
    everybody = tuple(draws.some_of(names)) if equal_subscriptions else ()
    style = draws.one_of(_ID_STYLES)
    steps: list[Step] = []
    joined = draws.between(1, size.members)
    for number in range(joined):
        steps.append(Step(Do.JOIN, style.format(number), everybody or tuple(draws.some_of(names))))
    for _ in range(draws.between(1, size.steps)):
        do = _weighted(draws, _STEPS)
        subscribed = everybody or tuple(draws.some_of(names))
        member = style.format(draws.below(joined))
        if do is Do.JOIN:
            member = style.format(joined)
            joined += 1
            steps.append(Step(do, member, subscribed))
        elif do is Do.RESIZE:
            steps.append(Step(do, topics=(draws.one_of(names),), partitions=draws.below(size.partitions + 1)))
        elif do is Do.SUBSCRIBE and equal_subscriptions:
            everybody = tuple(draws.some_of(names))
            steps.append(Step(do, topics=everybody))
        elif do is Do.SUBSCRIBE:
            steps.append(Step(do, member, subscribed))
        else:
            steps.append(Step(do, member))
    return History(topics, tuple(steps))


def _weighted(draws: Draws, choices: Sequence[tuple[int, T]]) -> T:
    """One of the choices, each as often as its weight says; the weights make up a hundred."""
    drawn = draws.below(100)
    for weight, choice in choices:
        drawn -= weight
        if drawn < 0:
            return choice
    raise ValueError("the weights do not make up a hundred")
