"""How often Python looks for objects that refer to each other and to which nothing else does."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

#: During a run (`gc.set_threshold`).
_THRESHOLDS: Final = (10_000_000, 50, 1000)

#: How many objects runs may leave behind: about 50 MB.
_LEFT_BEHIND_MAX: Final = 300_000


class ObjectCycles:
    """A storm makes millions of objects that live long or die without cycles: look for cycles rarely.

    What a run leaves behind is full of cycles, and Python looks at old objects so rarely that a process with
    many small runs would keep all of it: the next run begins with a look at everything if that is much.
    """

    def __init__(self) -> None:
        self._left_behind = 0

    @contextmanager
    def rarely_looked_for(self) -> Iterator[None]:
        """In the block: the block is a run."""
        if self._left_behind > _LEFT_BEHIND_MAX:
            gc.collect()
            self._left_behind = 0
        before = gc.get_threshold()
        gc.freeze()
        gc.set_threshold(*_THRESHOLDS)
        try:
            yield
        finally:
            young, looked, _ = gc.get_count()
            self._left_behind += young + looked * _THRESHOLDS[0]
            gc.set_threshold(*before)
            gc.unfreeze()


#: Of this process.
OBJECT_CYCLES: Final = ObjectCycles()
