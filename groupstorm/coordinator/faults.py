"""What goes wrong inside the coordinator itself, as against what a client did wrong.

Kafka throws IllegalStateException and the like there, logs it, leaves the group as the statement
before left it, and answers UNKNOWN_SERVER_ERROR. So does this coordinator, and it emits
`events.OperationFailed`.
"""

from __future__ import annotations


class CoordinatorFault(Exception):
    """An operation cannot go on; a sentence says why."""


class IllegalTransition(CoordinatorFault):
    """The transition table has no such row (IllegalStateException of ClassicGroup.transitionTo)."""
