"""Errors of a simulation: what a service must not do inside it, and what a test learns of it."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType


class SimulationError(Exception):
    """Something in the simulation cannot go on."""


class NotSimulated(SimulationError):
    """Code has left the simulation: it sleeps, uses a socket or a thread. The message names the place."""


class Stuck(SimulationError):
    """Nothing will ever happen again, and the test still waits."""


class InstanceFailed(SimulationError):
    """An instance of a service has ended with an error, its cause."""


def not_simulated(what: str, remedy: str) -> NotSimulated:
    """The error for a call that leaves the simulation; it names the caller outside of the libraries."""
    return NotSimulated(f"{_caller()}: {what} inside of a simulation: {remedy}")


def _caller() -> str:
    """file:line of the innermost frame that is neither ours nor Python's own."""
    frame: FrameType | None = sys._getframe(1)
    innermost = None
    while frame is not None:
        path = frame.f_code.co_filename
        if not _is_ours(path):
            innermost = innermost or frame
            if not _is_standard(path):
                return f"{path}:{frame.f_lineno}"
        frame = frame.f_back
    return "?" if innermost is None else f"{innermost.f_code.co_filename}:{innermost.f_lineno}"


_OURS = str(Path(__file__).parent)
_STANDARD = str(Path(sys.modules["os"].__file__ or "").parent)


def _is_ours(path: str) -> bool:
    return path.startswith(_OURS)


def _is_standard(path: str) -> bool:
    return path.startswith(("<", _STANDARD)) and "site-packages" not in path
