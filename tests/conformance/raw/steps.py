"""Cases as data: what is sent by whom, what has to be heard, and how long it may have taken.

A case is played on every broker (`tests.conformance.raw.playing`); the answers of all of them have to be
those that it expects, and equal to each other in every field.

Clients have short names (``a``, ``b``): each has a connection and remembers the member id and the
generation that it was given. In the fields of a request ``{a}`` stands for a's member id, ``{me}`` for the
sender's, ``{group}``, ``{topic}`` and ``{topic_id}`` for the case's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from groupstorm.coordinator.errors import Error
from tests.conformance.backends import QUICK, Configuration

#: Nothing is expected to take so long.
PATIENCE_MS = 20_000


class Request(NamedTuple):
    """One request: fields by kio's names, structures as mappings; those left out have Kafka's defaults."""

    api: str
    version: int
    fields: Mapping[str, Any]


class GenerationOf(NamedTuple):
    """The generation that this client was last given, or one that is so much higher or lower."""

    who: str = "me"
    plus: int = 0


class Producer(NamedTuple):
    """What the transactional producer of the sender was given: ``producer_id`` or ``producer_epoch``."""

    field: str


@dataclass(frozen=True)
class Timed:
    """The time from a mark to an answer: measured, held against Kafka's rule and against other brokers.

    ``mark``: a step's ``mark``, set when a request was sent or an answer heard. ``expected_ms``: what
    Kafka's rule says.
    """

    what: str
    mark: str
    expected_ms: int


@dataclass(frozen=True)
class Send:
    """A request whose answer is not waited for; ``over``: another connection of the same client."""

    who: str
    request: Request
    mark: str = ""
    over: str = ""


@dataclass(frozen=True)
class Hear:
    """The answer to what ``who`` has sent. ``beating``: members that send heartbeats meanwhile.

    ``expect``: some of its fields (see `tests.conformance.raw.normal`); the rest is compared between brokers.
    """

    who: str
    expect: Mapping[str, Any]
    mark: str = ""
    over: str = ""
    timed: Timed | None = None
    beating: Sequence[str] = ()


@dataclass(frozen=True)
class Again:
    """A request that is sent again and again until its answer is the expected one: that one is compared."""

    who: str
    request: Request
    expect: Mapping[str, Any]


@dataclass(frozen=True)
class Parked:
    """The answer to what ``who`` has sent has not come yet."""

    who: str
    over: str = ""


@dataclass(frozen=True)
class Until:
    """Wait until the group is described so: ``members`` counts them."""

    state: str
    members: int
    mark: str = ""
    timed: Timed | None = None
    beating: Sequence[str] = ()


@dataclass(frozen=True)
class Beat:
    """These members send heartbeats for so long: time passes, and they keep their sessions."""

    who: Sequence[str]
    for_ms: int
    mark: str = ""


Step: TypeAlias = Send | Hear | Again | Parked | Until | Beat
#: Steps may be nested, so that a function can stand for several.
Steps: TypeAlias = "Sequence[Step | Steps]"


@dataclass(frozen=True)
class Case:
    """``name`` is unique; ``about`` says the rule in a line, with its source."""

    name: str
    about: str
    steps: Steps
    configuration: Configuration = QUICK
    flat: tuple[Step, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "flat", tuple(_flattened(self.steps)))

    @property
    def times(self) -> Sequence[Timed]:
        """What is measured in it."""
        return [step.timed for step in self.flat if isinstance(step, Hear | Until) and step.timed]

    @property
    def is_about_time(self) -> bool:
        """Whether a machine that is too busy can make it fail."""
        return bool(self.times) or any(isinstance(step, Beat) for step in self.flat)


def _flattened(steps: Steps) -> list[Step]:
    flat: list[Step] = []
    for step in steps:
        if isinstance(step, Send | Hear | Again | Parked | Until | Beat):
            flat.append(step)
        else:
            flat.extend(_flattened(step))
    return flat


def ask(
    who: str, request: Request, expect: Mapping[str, Any] | Error, *, mark: str = "", over: str = ""
) -> Steps:
    """A request and its answer; ``mark`` is set when the answer is heard."""
    return (
        Send(who, request, over=over),
        Hear(who, error(expect) if isinstance(expect, Error) else expect, mark=mark, over=over),
    )


def error(code: Error) -> Mapping[str, Any]:
    return {"error_code": code.name}


OK = error(Error.NONE)
