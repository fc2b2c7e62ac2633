"""Cases as data: requests, the answers that they must have, and the times that these must take.

A case is played on every broker (`tests.conformance.raw.playing`); the answers of all of them have to be
those that it expects, and equal to each other in every field.

Clients have short names (``a``, ``b``). Each has a connection and remembers its member id, its generation,
its member epoch and the partitions that it was assigned.
Requests refer to them as `groupstorm script` does: member ``$`` is the sender's own, ``$a`` client a's;
generation ``$-1`` is one below the sender's own. ``{group}``, ``{topic}`` and ``{topic_id}`` stand for the
case's own.
Expected answers and recorded ones name member ids by their client: ``{a}``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from groupstorm.coordinator.errors import Error
from tests.conformance.backends import QUICK, Configuration

#: Nothing is expected to take so long.
TIMEOUT_MS = 20_000


class Request(NamedTuple):
    """One request: fields by kio's names, structures as mappings; those left out have Kafka's defaults."""

    api: str
    version: int
    fields: Mapping[str, Any]


class MemberOf(NamedTuple):
    """A member id: "$" the sender's own, "$a" client a's, else literally."""

    text: str


class GenerationOf(NamedTuple):
    """A generation: a number, "$" the sender's own, "$a" client a's, "$-1" or "$a+1" near it."""

    value: str | int


class MemberEpochOf(NamedTuple):
    """A member epoch, as `GenerationOf` a generation."""

    value: str | int


class OwnMemberId(NamedTuple):
    """The id that a member of a consumer group draws itself: the sender's short name."""


class OwnedBy(NamedTuple):
    """The partitions that a member of a consumer group says it owns, by `client`: those that it was assigned
    last; "" is the sender."""

    client: str = ""


class Producer(NamedTuple):
    """A field of the sender's transactional producer: ``producer_id`` or ``producer_epoch``."""

    field: str


@dataclass(frozen=True)
class Timed:
    """The time from a mark to an answer: measured, held against Kafka's rule and against other brokers.

    ``mark``: a step's ``mark``, set when a request was sent or an answer received. ``expected_ms``: what
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
class Receive:
    """The answer to what ``who`` has sent. ``heartbeats_of``: members that send heartbeats meanwhile.

    ``expect``: some of its fields (see `tests.conformance.raw.normal`); the rest is compared between brokers.
    """

    who: str
    expect: Mapping[str, Any]
    mark: str = ""
    over: str = ""
    timed: Timed | None = None
    heartbeats_of: Sequence[str] = ()


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
    heartbeats_of: Sequence[str] = ()


@dataclass(frozen=True)
class SendHeartbeats:
    """These members send heartbeats for so long: time passes, and they keep their sessions."""

    who: Sequence[str]
    for_ms: int
    mark: str = ""


Step: TypeAlias = Send | Receive | Again | Parked | Until | SendHeartbeats
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
        """Return the times that are measured in it."""
        return [step.timed for step in self.flat if isinstance(step, Receive | Until) and step.timed]

    @property
    def is_about_time(self) -> bool:
        """Whether a machine that is too busy can make it fail."""
        return bool(self.times) or any(isinstance(step, SendHeartbeats) for step in self.flat)


def _flattened(steps: Steps) -> list[Step]:
    flat: list[Step] = []
    for step in steps:
        if isinstance(step, Send | Receive | Again | Parked | Until | SendHeartbeats):
            flat.append(step)
        else:
            flat.extend(_flattened(step))
    return flat


def ask(
    who: str, request: Request, expect: Mapping[str, Any] | Error, *, mark: str = "", over: str = ""
) -> Steps:
    """A request and its answer; ``mark`` is set when the answer is received."""
    return (
        Send(who, request, over=over),
        Receive(who, error(expect) if isinstance(expect, Error) else expect, mark=mark, over=over),
    )


def case(name: str, about: str, *steps: Step | Steps) -> Case:
    return Case(name, about, steps)


def late(
    who: str, expect: Mapping[str, Any], what: str, mark: str, expected_ms: int, beats: str = ""
) -> Receive:
    """An answer that is timed from ``mark`` on, while the members ``beats`` send heartbeats."""
    return Receive(who, expect, timed=Timed(what, mark, expected_ms), heartbeats_of=tuple(beats))


def until_late(state: str, members: int, what: str, mark: str, expected_ms: int, beats: str = "") -> Until:
    """A state that is timed from ``mark`` on, while the members ``beats`` send heartbeats."""
    return Until(state, members, timed=Timed(what, mark, expected_ms), heartbeats_of=tuple(beats))


def error(code: Error) -> Mapping[str, Any]:
    return {"error_code": code.name}


OK = error(Error.NONE)
