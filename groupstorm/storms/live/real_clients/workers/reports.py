"""Reports of a worker process: JSON lines with the time of CLOCK_MONOTONIC."""

from __future__ import annotations

import json
import os
import threading
import time
from typing import Any

_writing = threading.Lock()

#: The pipe to the parent. What a library prints goes to standard error instead.
_reports = os.fdopen(os.dup(1), "w", encoding="utf-8")
os.dup2(2, 1)


def report(event: str, member: str, **about: Any) -> None:
    """Write one event that happens now. ``t``: nanoseconds of CLOCK_MONOTONIC, the same in all processes."""
    line = json.dumps({"t": time.monotonic_ns(), "event": event, "member": member, **about})
    with _writing:
        _reports.write(line + "\n")
        _reports.flush()
