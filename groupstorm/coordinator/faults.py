"""The exceptions that end an operation of the coordinator.

`CoordinatorFault`: Kafka throws IllegalStateException and the like, logs it, leaves the group as the last
statement left it, and answers UNKNOWN_SERVER_ERROR. `failures` says how this coordinator goes on.
`Refused`: a check that lies deep in the handling refuses the request.
"""

from __future__ import annotations

from groupstorm.coordinator.errors import Error


class CoordinatorFault(Exception):
    """An operation cannot go on; the text says why."""


class IllegalTransition(CoordinatorFault):
    """The transition table has no such row (IllegalStateException of ClassicGroup.transitionTo)."""


class Refused(Exception):
    """A request, or a part of it, is answered with this error; nothing of it is done."""

    def __init__(self, error: Error, message: str) -> None:
        super().__init__(message)
        self.error = error


#: The characters that Java's ``String.trim`` takes away.
_BLANKS = "".join(map(chr, range(0x21)))


def refuse_blank(value: str | None, field: str) -> None:
    """`Refused` (INVALID_REQUEST) if the field holds nothing but blanks (Utils.throwIfEmptyString)."""
    if value is not None and not value.strip(_BLANKS):
        raise Refused(Error.INVALID_REQUEST, f"{field} can't be empty.")
