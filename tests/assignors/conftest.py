"""Hypothesis without a stop-watch: on a busy machine a single example may take a quarter of a second."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("no-deadline", deadline=None)
settings.load_profile("no-deadline")
