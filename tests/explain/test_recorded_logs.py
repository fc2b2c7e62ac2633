"""Recorded logs of real brokers and clients: the patterns of what the harness did to the groups."""

from __future__ import annotations

from pathlib import Path

import pytest

from groupstorm.explain.explanation import explain
from tests.explain.explaining import names
from tests.imports.real_logs import BOTH, Recording, imported, recordings


@pytest.mark.parametrize("recording", recordings(), ids=lambda one: one.name)
def test_the_patterns_of_a_recording(recording: Recording, tmp_path: Path) -> None:
    """app-2 does not poll for longer than max.poll.interval.ms; the static members are closed and not
    started again. On a busy machine the one that is restarted may be back too late."""
    imported(recording, BOTH, tmp_path / "out")
    dynamic, static = explain(tmp_path / "out")
    (too_slow,) = [one for one in dynamic.findings if one.pattern.name == "max-poll-interval"]
    assert too_slow.match.members == ("app-2",)
    assert names(static)[0] in ("static-orphan", "static-session-too-short")
    assert set(static.findings[0].match.members) <= {"web-0", "web-1", "web-2"}
    library = recording.clients.removesuffix("-consumer-group")
    assert {dynamic.history.settings.libraries[name] for name in ("app-0", "app-1", "app-2")} == {library}
