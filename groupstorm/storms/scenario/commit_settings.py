"""Who commits the positions of a member, when, and where an owner begins without a commit."""

from __future__ import annotations

from typing import Final

from groupstorm.storms.scenario.setting_types import Setting

COMMITS: Final = "commits"
COMMIT_INTERVAL: Final = "commit_interval_ms"

#: The values of `commits`.
BACKGROUND: Final = "background"
BATCH: Final = "batch"
RECORD: Final = "record"
INTERVAL: Final = "interval"
NEVER: Final = "never"

OFFSET_RESET: Final = "auto.offset.reset"
LATEST: Final = "latest"
EARLIEST: Final = "earliest"
NONE: Final = "none"

COMMIT_SETTINGS: tuple[Setting, ...] = (
    Setting(
        OFFSET_RESET,
        "choice",
        LATEST,
        "where an owner begins a partition without a committed offset: latest (the end of the log), earliest "
        "(its beginning), none (the consumer dies of NoOffsetForPartitionException)",
        allowed=(LATEST, EARLIEST, NONE),
        in_files=False,
    ),
    Setting(
        COMMITS,
        "choice",
        BACKGROUND,
        "who commits: background (the client; with enable.auto.commit=false the same as batch), or the "
        "application by hand (commitSync): batch (after each batch), record (after each record), interval "
        "(every commit_interval_ms), never",
        allowed=(BACKGROUND, BATCH, RECORD, INTERVAL, NEVER),
        in_files=False,
    ),
    Setting(
        COMMIT_INTERVAL,
        "integer",
        5_000,
        "commits=interval: between two commits by hand",
        1,
        in_files=False,
    ),
)
