"""Exceptions where Kafka throws inside the coordinator; an error of a client is no exception.

Kafka throws IllegalStateException and the like, logs it, leaves the group as the last statement left it, and
answers UNKNOWN_SERVER_ERROR. `failures` says how this coordinator goes on.
"""

from __future__ import annotations


class CoordinatorFault(Exception):
    """An operation cannot go on; the text says why."""


class IllegalTransition(CoordinatorFault):
    """The transition table has no such row (IllegalStateException of ClassicGroup.transitionTo)."""
