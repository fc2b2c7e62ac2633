"""Which recordings of real groups `whatif` repeats: the table of docs/whatif.md.

Each is imported from the logs of its broker and clients and replayed unchanged: by the logs alone, and
with the timeouts that its harness set.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from groupstorm.storms.runs.choices import AS_IT_WAS
from groupstorm.whatif.agreement import agreement, replay
from groupstorm.whatif.drafting import draft_of, scenario_text
from groupstorm.whatif.facts import Reading
from groupstorm.whatif.inference import (
    CONSUMER_HEARTBEAT,
    CONSUMER_SESSION,
    HEARTBEAT,
    POLL_INTERVAL,
    SESSION,
)
from groupstorm.whatif.reading import read_run
from tests.generated_pages import check_section
from tests.imports.real_logs import BOTH, Recording, imported, recorded, recordings
from tests.imports.recording.releases import (
    HEARTBEAT_INTERVAL_MS,
    LONG_SESSION_TIMEOUT_MS,
    MAX_POLL_INTERVAL_MS,
    SESSION_TIMEOUT_MS,
)
from tests.imports.recording.situation import DYNAMIC, STATIC

SEEDS: Final = range(3)
_CANNOT_BE = re.compile(r"its ([\w.]+) cannot be")


def known_settings(recording: Recording, group: str) -> dict[str, Any]:
    """Return the settings of the harness. Older recordings have static members with the short session."""
    saw = recorded(recording)[group]
    stopped_ms = max(one["time_ms"] for one in saw["actions"] if one["do"] == "stop")
    is_long = group == STATIC and saw["written"][-1]["time_ms"] - stopped_ms > SESSION_TIMEOUT_MS + 2_000
    poll_ms = MAX_POLL_INTERVAL_MS if group == DYNAMIC else LONG_SESSION_TIMEOUT_MS
    if recording.is_consumer_group:
        own = {CONSUMER_SESSION: LONG_SESSION_TIMEOUT_MS, CONSUMER_HEARTBEAT: HEARTBEAT_INTERVAL_MS}
    else:
        session_ms = LONG_SESSION_TIMEOUT_MS if is_long else SESSION_TIMEOUT_MS
        own = {SESSION: session_ms, HEARTBEAT: HEARTBEAT_INTERVAL_MS}
    return {**own, POLL_INTERVAL: poll_ms}


def outcome(reading: Reading, given: dict[str, Any], file: Path) -> str:
    """ "trusted", the settings that the refusal asks for, or what the replays do otherwise."""
    draft = draft_of(reading, "again", given)
    if draft.problems:
        asked = [_CANNOT_BE.search(problem) for problem in draft.problems]
        assert all(asked), draft.problems
        return "asks for " + ", ".join(sorted({found[1] for found in asked if found is not None}))
    file.write_text(scenario_text(draft, "a test", {}), "utf-8")
    found = agreement(reading, draft, [replay((str(file), AS_IT_WAS, seed)) for seed in SEEDS])
    apart = [line.what for line in found.lines if not line.agrees]
    return f"refused: {apart[0]}" if apart else "trusted"


def _counted(column: Sequence[str]) -> str:
    """Each outcome with how many recordings have it, the commonest first."""
    return "; ".join(f"{said} ({count})" for said, count in Counter(column).most_common())


@pytest.mark.slow
def test_the_table_of_recordings(tmp_path: Path) -> None:
    outcomes: dict[tuple[str, str], list[tuple[str, ...]]] = {}
    for recording in recordings():
        folder = tmp_path / recording.name
        imported(recording, BOTH, folder)
        for group in (DYNAMIC, STATIC):
            reading = read_run(folder, group)
            cells = tuple(
                outcome(reading, given, folder / "whatif.yaml")
                for given in ({}, known_settings(recording, group))
            )
            outcomes.setdefault((recording.clients, group.removeprefix("orders-")), []).append(cells)
    rows = ["| clients | group | by the logs alone | with --known timeouts |", "|---|---|---|---|"]
    for key in sorted(outcomes):
        cells = tuple(_counted(column) for column in zip(*outcomes[key], strict=True))
        rows.append(f"| {' | '.join((*key, *cells))} |")
    check_section("whatif.md", "recordings", "\n".join(rows))
