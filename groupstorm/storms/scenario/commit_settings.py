"""Who commits the positions of a member, when, and where an owner begins without a commit."""

from __future__ import annotations

from typing import Final

COMMITS: Final = "commits"
COMMIT_INTERVAL: Final = "commit_interval_ms"

#: The values of `commits`.
BACKGROUND: Final = "background"
BATCH: Final = "batch"
RECORD: Final = "record"
INTERVAL: Final = "interval"
NEVER: Final = "never"

OFFSET_RESET: Final = "auto.offset.reset"
EARLIEST: Final = "earliest"
NONE: Final = "none"
