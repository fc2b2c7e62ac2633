"""A process with members of a Python library, logging to standard error: ``python -m ...worker LIBRARY``.

The commands and reports are those of the worker processes of `--with`.
"""

from __future__ import annotations

import logging
import sys

from groupstorm.storms.live.real_clients.workers import host

if __name__ == "__main__":
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s - %(name)s - %(levelname)s - %(message)s", stream=sys.stderr
    )
    host.main()
