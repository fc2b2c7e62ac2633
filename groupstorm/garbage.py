"""Python's search for garbage in cycles, where there is next to none."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_OBJECTS_PER_COLLECTION = 1_000_000


@contextmanager
def few_collections() -> Iterator[None]:
    """For a pass over a log or a trace: it holds many objects, and next to none in cycles. To look for those
    takes a seventh of an import's time, and a quarter of an analysis's."""
    before = gc.get_threshold()
    gc.set_threshold(_OBJECTS_PER_COLLECTION, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
