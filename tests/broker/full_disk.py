"""A disk that becomes full: a small tmpfs in a mount namespace of its own."""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path

import pytest

from tests.processes import run_process

#: Mounts a tmpfs of SIZE at FOLDER and becomes COMMAND; only this process sees the mount.
_MOUNT = 'mount -t tmpfs -o size="$1" tmpfs "$2" && shift 2 && exec "$@"'


def on_small_disk(folder: Path, size: str, *command: str) -> list[str]:
    """The command with a disk of ``size`` (as mount takes it, whole pages) at ``folder``.

    Skips the test on a system that does not let users make mount namespaces.
    """
    if not _can_mount():
        pytest.skip("needs user namespaces (unshare --user --map-root-user --mount)")
    return [*_UNSHARE, "sh", "-c", _MOUNT, "sh", size, str(folder), *command]


_UNSHARE = ("unshare", "--user", "--map-root-user", "--mount")


@cache
def _can_mount() -> bool:
    if shutil.which("unshare") is None:
        return False
    attempt = [*_UNSHARE, "mount", "-t", "tmpfs", "tmpfs", "/tmp"]
    return run_process(attempt, capture_output=True, check=False).returncode == 0
