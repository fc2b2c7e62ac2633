"""Third parties' assignors: a plain function, or any object with an ``assign``; no base class.

Every declaration has a default, so a function alone is an assignor:

    def weighted(topics, subscriptions):
        return {member: [(topic, partition), ...], ...}

Functions declare in attributes, as objects do (``weighted.protocols = ("cooperative",)``):
docs/custom-assignors.md lists them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from traceback import extract_tb
from typing import Any

from groupstorm.assignors.contract import (
    AssignmentRefused,
    AssignmentResult,
    RebalanceProtocol,
    TopicMetadata,
)
from groupstorm.assignors.promises import Promises
from groupstorm.assignors.userdata import Assignment, Subscription, TopicPartition
from groupstorm.problems import InputError

#: The kind of refusal of an invalid answer.
INVALID_ASSIGNMENT = "InvalidAssignment"

_INT32_MAX = (1 << 31) - 1


@dataclass(frozen=True)
class CustomAssignor:
    """A plug-in with the whole contract. A member without an entry in its answer gets nothing."""

    plug_in: object
    name: str
    protocols: tuple[RebalanceProtocol, ...]
    needs_equal_subscriptions: bool
    promises: Promises

    def user_data(self, owned: Sequence[TopicPartition] | None, generation: int) -> bytes | None:
        return self._told("user_data", owned, generation)

    def user_data_after(self, assignment: Assignment, generation: int) -> bytes | None:
        """The plug-in's user data from a whole assignment, or else from its partitions."""
        if not hasattr(self.plug_in, "user_data_after"):
            return self.user_data(assignment.partitions, generation)
        return self._told("user_data_after", assignment, generation)

    def _told(self, field: str, *of_assignment: object) -> bytes | None:
        ask = getattr(self.plug_in, field, None)
        try:
            return None if ask is None else self._bytes(field, self._called(ask, *of_assignment))
        except AssignmentRefused as refused:
            raise InputError(f"{field} of an assignor: {refused}") from refused

    def _called(self, call: Callable[..., object], *arguments: object) -> object:
        """Call the plug-in. Raises `AssignmentRefused` with the place if it throws."""
        try:
            return call(*arguments)
        except (Exception, SystemExit) as thrown:
            if isinstance(thrown, AssignmentRefused | SystemExit) and type(thrown) is not SystemExit:
                raise  # its own refusal, or a stop signal's exit
            frame = extract_tb(thrown.__traceback__)[-1]
            what = f"{self.name}: {thrown} ({Path(frame.filename).name}, line {frame.lineno})"
            raise AssignmentRefused(type(thrown).__name__, what) from thrown

    def assign(
        self, topics: Mapping[str, TopicMetadata], subscriptions: Mapping[str, Subscription]
    ) -> AssignmentResult:
        """The plug-in's answer. Raises `AssignmentRefused` if it is invalid, or if the plug-in throws."""
        assign: Any = getattr(self.plug_in, "assign", self.plug_in)
        answer = self._called(assign, dict(topics), dict(subscriptions))  # it may take members from them
        whole = answer if isinstance(answer, AssignmentResult) else None
        partitions = answer if whole is None else whole.partitions
        if not isinstance(partitions, Mapping):
            raise self._refused(f"the answer is {_shown(partitions)}, expected members with their partitions")
        for member in partitions:
            if member not in subscriptions:
                raise self._refused(f"the answer has a member {_shown(member)}, who is not in the group")
        read = {member: self._read(member, partitions.get(member, ())) for member in subscriptions}
        if whole is None:
            return AssignmentResult(read)
        return whole._replace(partitions=read, user_data=self._bytes("user_data", whole.user_data))

    def _read(self, member: str, listed: object) -> list[TopicPartition]:
        if isinstance(listed, str | bytes) or not isinstance(listed, Sequence | set | frozenset):
            raise self._refused(f"{member} is given {_shown(listed)}, expected a list of (topic, partition)")
        for pair in listed:
            if not _is_partition(pair):
                raise self._refused(f"{member} is given {_shown(pair)}, expected (topic, partition)")
        return [TopicPartition(*pair) for pair in listed]

    def _bytes(self, field: str, value: object) -> bytes | None:
        if value is None or isinstance(value, bytes):
            return value
        raise self._refused(f"{field} gave {_shown(value)}, expected bytes or None")

    def _refused(self, what: str) -> AssignmentRefused:
        return AssignmentRefused(INVALID_ASSIGNMENT, f"{self.name}: {what}")


def adapt(plug_in: object, place: str, default_name: str | None = None) -> CustomAssignor:
    """Make an assignor of a function, an object or a class; an `InputError` begins with ``place``."""
    if isinstance(plug_in, type):
        plug_in = _instance(plug_in, place)
    elif not callable(getattr(plug_in, "assign", plug_in)):
        raise InputError(
            f"{place}: {_shown(plug_in)}: expected a function of topics and subscriptions, "
            "or an object with one named assign: this has no assign"
        )
    named = getattr(plug_in, "__name__", type(plug_in).__name__)
    return CustomAssignor(
        plug_in,
        _name(plug_in, place, default_name or named),
        _protocols(plug_in, place),
        _declared(plug_in, place, "needs_equal_subscriptions", bool, default=False),
        _declared(plug_in, place, "promises", Promises, default=Promises()),
    )


def _instance(made_by: type, place: str) -> object:
    if not callable(getattr(made_by, "assign", None)):
        raise InputError(f"{place}: expected an assignor, this class has no assign")
    try:
        return made_by()
    except Exception as problem:  # the user's own code may raise anything; the text says what it was
        what = f"{place}: expected a class to make without arguments: {type(problem).__name__}"
        raise InputError(f"{what}: {problem}") from problem


def _name(plug_in: object, place: str, default: str) -> str:
    name: str = _declared(plug_in, place, "name", str, default=default)
    if not name or len(name.encode("utf-8", "replace")) > 0x7FFF:
        raise InputError(f"{place}: name: {_shown(name)}: expected a text of 1 to 32767 bytes, for JoinGroup")
    return name


def _protocols(plug_in: object, place: str) -> tuple[RebalanceProtocol, ...]:
    written = getattr(plug_in, "protocols", (RebalanceProtocol.EAGER,))
    listed = (written,) if isinstance(written, str) else written
    if isinstance(listed, Sequence) and listed and all(name in list(RebalanceProtocol) for name in listed):
        return tuple(RebalanceProtocol(name) for name in listed)
    raise InputError(
        f"{place}: protocols: {_shown(written)}: expected one or both of "
        f"{', '.join(repr(str(protocol)) for protocol in RebalanceProtocol)}"
    )


def _declared(plug_in: object, place: str, field: str, kind: type, default: Any) -> Any:
    value = getattr(plug_in, field, default)
    if not isinstance(value, kind):
        raise InputError(f"{place}: {field}: {_shown(value)}: expected {_KINDS[kind]}")
    return value


_KINDS: Mapping[type, str] = {
    bool: "True or False",
    str: "a text",
    Promises: "a groupstorm.assignors.promises.Promises",
}


def _is_partition(pair: object) -> bool:
    """A topic and a number that fits the wire's int32."""
    return (
        isinstance(pair, Sequence)
        and len(pair) == 2
        and isinstance(pair[0], str)
        and isinstance(pair[1], int)
        and not isinstance(pair[1], bool)
        and 0 <= pair[1] <= _INT32_MAX
    )


def _shown(value: object) -> str:
    """A value in an error's one line."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else text[:57] + "..."
