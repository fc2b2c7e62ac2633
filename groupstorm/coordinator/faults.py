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
