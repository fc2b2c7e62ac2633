"""Programs that are built on this machine, once for each content of their sources, in the user's cache."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable
from pathlib import Path

from groupstorm.javaruntime import cache_folder


def built_once(name: str, content: bytes, build: Callable[[Path], None]) -> Path:
    """The folder that ``build`` has filled for this ``content``: the sources, and what else decides.

    A folder appears under its name only when it is complete: several processes may build at once. An error
    that ``build`` raises leaves nothing behind.
    """
    place = cache_folder() / f"{name}-{hashlib.sha256(content).hexdigest()[:16]}"
    if place.is_dir():
        return place
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent, prefix="building-") as folder:
        building = Path(folder, "built")
        building.mkdir()
        build(building)
        try:
            building.rename(place)
        except OSError:
            if not place.is_dir():  # else another process was faster: its folder has the same content
                raise
    return place
