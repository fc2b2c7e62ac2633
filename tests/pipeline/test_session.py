"""A JVM that PySpark starts never outlives a command that is stopped."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest

java_gateway = pytest.importorskip(
    "pyspark.java_gateway", reason="needs PySpark: pip install 'groupstorm[spark]'"
)


class Stopped(Exception):
    pass


@contextmanager
def raising_on_termination() -> Iterator[None]:
    def stop(_number: int, _frame: FrameType | None) -> None:
        raise Stopped

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_signal_in_the_middle_of_the_start_kills_the_process_that_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from groupstorm.pipeline.session import _no_jvm_left

    started: list[subprocess.Popen[bytes]] = []

    def start(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        started.append(subprocess.Popen(*arguments, **options))
        os.kill(os.getpid(), signal.SIGTERM)  # the process lives, nobody has been told of it
        return started[-1]

    monkeypatch.setattr(java_gateway, "Popen", start)
    with raising_on_termination(), pytest.raises(Stopped), _no_jvm_left():
        java_gateway.Popen(["sleep", "600"])
    left = [process for process in started if process.returncode is None]
    for process in left:
        process.kill()
    assert not left
    assert java_gateway.Popen is start, "as it was before the block"


def test_a_process_that_starts_is_killed_if_the_block_fails_and_else_goes_on() -> None:
    from groupstorm.pipeline.session import _no_jvm_left

    started: list[subprocess.Popen[bytes]] = []

    def start(fails: bool) -> None:
        with _no_jvm_left():
            started.append(java_gateway.Popen(["sleep", "600"]))
            assert started[-1].poll() is None
            if fails:
                raise Stopped

    start(fails=False)
    assert started[0].poll() is None
    started[0].kill()
    started[0].wait()
    with pytest.raises(Stopped):
        start(fails=True)
    assert started[1].returncode == -signal.SIGKILL
