"""Rows by hand and of storms, and pictures of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from groupstorm.watch.feed import WatchedRow, read_line
from groupstorm.watch.rolling import Rolling
from groupstorm.watch.watching import Picture
from tests.explain.explaining import added, removed, round_of, state, trace_of

SECOND = 1_000_000
SPAN_US = 60 * SECOND


def given(s: float, member_id: str, *partitions: str) -> dict[str, Any]:
    row = {"s": s, "event": "sync_answered", "member": member_id[0], "member_id": member_id, "generation": 1}
    return row | {"partitions": partitions}


#: Two members own a partition each from 3.1 s on; b goes at 20 s, and its partition is nobody's until 21 s.
GROUP = [
    state(0, "Empty", "PreparingRebalance", 0, "new-member", member_id="a-1"),
    added(0, "a", "a-1"),
    added(0.1, "b", "b-1"),
    state(3, "PreparingRebalance", "CompletingRebalance", 1, "initial-delay"),
    given(3.1, "a-1", "t-0"),
    given(3.1, "b-1", "t-1"),
    {"s": 3.1, "event": "partitions_created", "source": "world", "partitions": ["t-0", "t-1"],
     "topics": ["t"]},
    state(3.1, "CompletingRebalance", "Stable", 1, "assigned"),
    removed(20, "b", "b-1", "left"),
    *round_of(20, 2, "left", "b-1", 0.99),
    given(21, "a-1", "t-0", "t-1"),
]  # fmt: skip


def by_hand(*rows: Mapping[str, Any]) -> list[WatchedRow]:
    """Rows as `explaining.trace_of` takes them."""
    with TemporaryDirectory() as folder:
        file = trace_of(Path(folder), rows)
        return [row for line in file.read_text("utf-8").splitlines() if (row := read_line(line)) is not None]


def rows_of(trace: Path, source: str = "") -> list[WatchedRow]:
    """All rows, or those of one source, as if they were all."""
    lines = (trace / "trace.jsonl").read_text("utf-8").splitlines()
    rows = [row for line in lines if (row := read_line(line)) is not None]
    return [one for one in rows if one.row["source"].startswith(source)]


def generation_row(seq: int, time_us: int | None = None) -> WatchedRow:
    """A group becomes Stable, ``seq`` seconds after the trace began."""
    return state_row(seq, "CompletingRebalance", "Stable", "", time_us)


def state_row(seq: int, before: str, after: str, member_id: str, time_us: int | None = None) -> WatchedRow:
    row = {
        "seq": seq,
        "time_us": seq * SECOND if time_us is None else time_us,
        "source": "coordinator",
        "event": "group_state_changed",
        "group": "g",
        "previous_state": before,
        "state": after,
        "generation": seq,
        "cause": "new-member",
        "count": 1,
    }
    found = read_line(json.dumps(row | ({"member_id": member_id} if member_id else {})))
    assert found is not None
    return found


def picture_of(rolling: Rolling, end_us: int, span_us: int = 60 * SECOND, **more: Any) -> Picture:
    known: dict[str, Any] = {"quiet_seconds": 1.5, "changes": [], "active": frozenset()}
    spans = {span_us: rolling.pictures(span_us, end_us)}
    return Picture(
        kept_from_us=rolling.carried.from_us,
        end_us=end_us,
        missing=rolling.missing,
        too_late=rolling.too_late,
        spans=spans,
        sums=rolling.sums(end_us),
        **(known | more),
    )
