"""A request that the coordinator refuses, as an exception: the checks lie deep in the handling."""

from __future__ import annotations

from groupstorm.coordinator.errors import Error


class Refused(Exception):
    """The request is answered with this error; nothing of it is written."""

    def __init__(self, error: Error, message: str) -> None:
        super().__init__(message)
        self.error = error
