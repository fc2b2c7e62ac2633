"""A temporary folder that goes with an object, at the latest when Python ends."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from pathlib import Path

from groupstorm.problems import writing


class TemporaryFolder:
    """Unlike tempfile's, it is not closed: whoever reads its files keeps it. Raises OutputError."""

    def __init__(self, prefix: str) -> None:
        with writing(tempfile.gettempdir()):
            self.path = Path(tempfile.mkdtemp(prefix=prefix))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)
