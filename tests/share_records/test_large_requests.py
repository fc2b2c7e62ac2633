"""Requests about very many records: each record is looked at once."""

from __future__ import annotations

import pytest

from tests.share_records.scripts import last_state, of_kind, run

_COUNT = 100_000
_PRODUCE = {"op": "produce", "p": "foo-0", "batches": [[_COUNT]]}
_FETCH = {"op": "fetch", "as": "a", "wait": 0}


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_a_hundred_thousand_ranges_of_one_request() -> None:
    entries = [[offset, offset, "accept" if offset % 2 else "release"] for offset in range(_COUNT)]
    events = run(_PRODUCE, _FETCH, {"op": "ack", "as": "a", "acks": {"foo-0": entries}})
    assert of_kind(events, "ack")[0]["parts"] == [["foo-0", "NONE"]]
    share = last_state(events, "shares", "g/foo-0")
    assert share["complete"] == _COUNT // 2
    assert len(last_state(events, "coordinator", "g/foo-0")["batches"]) == _COUNT


def test_a_batch_of_a_hundred_thousand_records_stays_one_state() -> None:
    events = run(_PRODUCE, _FETCH, {"op": "ack", "as": "a", "acks": {"foo-0": "release"}})
    records = [0, _COUNT - 1, "AVAILABLE", 1, "", None, False]
    assert last_state(events, "shares", "g/foo-0")["batches"] == [[0, _COUNT - 1, "batch", [records]]]
