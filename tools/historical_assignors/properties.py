"""The properties of bug histories: those of `groupstorm check-assignor`, and one for KAFKA-16277."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from groupstorm.assignors.check.history import Change
from groupstorm.assignors.check.properties import (
    DETERMINISTIC,
    MEMBER_ORDER,
    OF_CHANGES,
    OF_ROUNDS,
    Subject,
)

EVERY_TOPIC = "every topic spread"

#: Asked of one change of a group: a sentence if the property is broken.
PropertyCheck = Callable[[Subject, Change], str | None]


def every_topic_spread(_: Subject, change: Change) -> str | None:
    """No member has two partitions of a topic more than another subscriber, once the group has settled."""
    for topic in change.rounds[-1].topics:
        having = {
            member: Counter(partition.topic for partition in change.after.get(member, ()))[topic]
            for member, subscription in change.rounds[-1].subscriptions.items()
            if topic in subscription.topics
        }
        most, least = max(having, key=having.__getitem__), min(having, key=having.__getitem__)
        if having[most] > having[least] + 1:
            return f"of {topic} {most} has {having[most]} partitions and {least} has {having[least]}"
    return None


def _of_every_round(question: Callable[..., str | None]) -> PropertyCheck:
    def ask(subject: Subject, change: Change) -> str | None:
        return next((broken for round_ in change.rounds if (broken := question(subject, round_))), None)

    return ask


#: Without the properties that ask the assignor a second question: a recording has no answer to that.
QUESTIONS: dict[str, PropertyCheck] = {
    **{name: _of_every_round(ask) for name, ask in OF_ROUNDS if name not in (DETERMINISTIC, MEMBER_ORDER)},
    **dict(OF_CHANGES),
    EVERY_TOPIC: every_topic_spread,
}
