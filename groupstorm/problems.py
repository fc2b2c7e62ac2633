"""Errors that are the user's to mend: one line for people, an exit code, no traceback."""

from __future__ import annotations


class InputError(ValueError):
    """Input that cannot be understood (exit 2).

    The message is one line that names the place (file, line, field), the value and what was expected.
    """


class CheckFailed(Exception):
    """A check that was asked for failed (exit 1): an invariant, a `--require`, a replay that differs."""
