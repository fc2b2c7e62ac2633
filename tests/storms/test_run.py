from __future__ import annotations

from pathlib import Path

import pytest

from groupstorm.storms.runs.run import run
from groupstorm.storms.scenario.files import load


class Interrupted(KeyboardInterrupt):
    pass


def test_a_run_that_is_broken_off_leaves_nothing(tmp_path: Path) -> None:
    def break_off(now_us: int, _phase: str) -> None:
        if now_us > 5_000_000:
            raise Interrupted

    with pytest.raises(Interrupted):
        run(load("cold-start").resolve(None, 1, {"members": 3}), tmp_path / "x", progress=break_off)
    assert list(tmp_path.iterdir()) == []
