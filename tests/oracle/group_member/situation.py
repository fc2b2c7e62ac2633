"""The parts of a situation: a member's options, and the steps of a script in virtual time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

#: One step: its name, and a value if it takes one. `playing.take` says what each does.
Step = tuple[Any, ...]


class Situation(NamedTuple):
    """``options`` by Kafka's names."""

    name: str
    steps: tuple[Step, ...]
    options: Mapping[str, str | int | bool] = {}

    def __str__(self) -> str:
        return self.name


# -- the steps, by their names ------------------------------------------------------------------------

POLL: Step = ("poll",)
STEP: Step = ("step",)
UNSUBSCRIBE: Step = ("unsubscribe",)
END: Step = ("end",)
DISCONNECT: Step = ("disconnect",)
UNSUPPORTED: Step = ("unsupported",)
#: A step of the network thread, and an answer without error to the commit under way.
COMMIT_ENDS: Step = ("commit_ends",)
CALLBACK_BEGINS: Step = ("callback_begins",)
CALLBACK_ENDS: Step = ("callback_ends",)
CALLBACK_FAILS: Step = ("callback_fails",)


def advance(ms: int) -> Step:
    return ("advance", ms)


def subscribe(*topics: str) -> Step:
    return ("subscribe", list(topics))


def regex(pattern: str) -> Step:
    return ("subscribe_regex", pattern)


def topic(name: str) -> Step:
    """The client learns a topic's id. A name is one letter."""
    return ("topic", name)


def no_topic(name: str) -> Step:
    return ("no_topic", name)


def close(operation: str = "DEFAULT") -> Step:
    return ("close", operation)


def coordinator(known: bool) -> Step:
    return ("coordinator", known)


#: The interval that the broker tells.
INTERVAL_MS = 5_000


def answer(epoch: int, interval: int = INTERVAL_MS, **assignment: tuple[int, ...]) -> Step:
    """An answer without an assignment."""
    fields: dict[str, Any] = {"epoch": epoch, "interval": interval}
    if assignment:
        fields["assignment"] = {name: list(numbers) for name, numbers in assignment.items()}
    return ("answer", fields)


def assigned_nothing(epoch: int) -> Step:
    return ("answer", {"epoch": epoch, "interval": INTERVAL_MS, "assignment": {}})


def commit_answer(error: str) -> Step:
    """To the commit under way. DISCONNECT: its connection is lost."""
    return ("commit_answer", error)


def refused(error: str) -> Step:
    return ("answer", {"error": error})
