"""`groupstorm`, but a broker writes checkpoints of its journal, and the journal anew, every few steps."""

from __future__ import annotations

from groupstorm.broker import data_directory
from groupstorm.cli.app import main

data_directory._CHECKPOINT_AFTER_BYTES = 20_000
data_directory._COMPACT_AFTER_BYTES = 100_000

if __name__ == "__main__":
    main()
