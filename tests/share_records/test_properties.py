"""Properties of every script: one owner at a time, the delivery limit, only done records before the start."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.share_records.scripts import Event, acquired, of_kind, run

_LOCK_MS = 15_000
_LIMIT = 3
_GROUP = {
    "share.auto.offset.reset": "earliest",
    "share.record.lock.duration.ms": _LOCK_MS,
    "share.delivery.count.limit": _LIMIT,
}
_CLIENTS = st.sampled_from(["a", "b", "c"])
_TYPES = st.sampled_from(["accept", "release", "reject", "gap"])


def _steps() -> st.SearchStrategy[list[Event]]:
    """Scripts in which the leader and the log stay, and every client acknowledges what it holds alone."""
    acks = st.builds(
        lambda held, kinds: {"foo-0": {"held": held, "cycle": kinds}},
        st.integers(0, 3),
        st.lists(_TYPES, min_size=1, max_size=3),
    )
    fetch = st.fixed_dictionaries(
        {"op": st.just("fetch"), "as": _CLIENTS, "wait": st.sampled_from([0, 400])},
        optional={
            "max_records": st.integers(1, 12),
            "mode": st.sampled_from(["batch_optimized", "record_limit"]),
            "batch_size": st.integers(1, 8),
            "acks": acks,
        },
    )
    acknowledge = st.builds(
        lambda client, entries: {"op": "ack", "as": client, "acks": entries}, _CLIENTS, acks
    )
    produce = st.builds(
        lambda sizes: {"op": "produce", "p": "foo-0", "batches": [[size] for size in sizes]},
        st.lists(st.integers(1, 9), min_size=1, max_size=3),
    )
    advance = st.builds(lambda ms: {"op": "advance", "ms": ms}, st.sampled_from([1, 400, 7_000, _LOCK_MS]))
    writes = st.builds(
        lambda mode: {"op": "persister", "write": mode, "release": True},
        st.sampled_from(["ok", "hold", "INVALID_REQUEST"]),
    )
    leave = st.builds(lambda client: {"op": "disconnect", "as": client}, _CLIENTS)
    kinds = [fetch, fetch, fetch, acknowledge, acknowledge, produce, advance, writes, leave]
    return st.lists(st.one_of(kinds), min_size=5, max_size=30)


def _share(event: Event) -> Event | None:
    """The state of the share partition, if the event shows it."""
    found: Event | None = event.get("shares", {}).get("g/foo-0")
    return found


def _records(share: Event) -> dict[int, tuple[str, int]]:
    """State and delivery count by offset."""
    return {
        offset: (state, count)
        for _, _, _, ranges in share["batches"]
        for first, last, state, count, *_ in ranges
        for offset in range(first, last + 1)
    }


def _run(steps: list[Event]) -> list[Event]:
    """The events of a script. A member that never leaves keeps the group's records in memory."""
    return run({"op": "fetch", "as": "z", "wait": 0}, *steps, groups={"g": _GROUP})


@given(_steps())
def test_a_record_goes_to_a_second_member_only_after_the_first_has_lost_it(steps: list[Event]) -> None:
    events = _run(steps)
    # a release, an acknowledgement, the end of a lock or of a session is written; an acquisition is not
    lost = [
        (event["t"], first, last)
        for event in of_kind(events, "write")
        for first, last, _, _ in event["batches"]
    ]
    given_ms: dict[int, int] = {}
    for event in of_kind(events, "fetch"):
        for first, last, _ in acquired(event):
            for offset in range(first, last + 1):
                if offset in given_ms:
                    since = range(given_ms[offset], event["t"] + 1)
                    assert any(at in since and first <= offset <= last for at, first, last in lost)
                given_ms[offset] = event["t"]


@given(_steps())
def test_no_record_is_delivered_more_often_than_the_limit(steps: list[Event]) -> None:
    events = _run(steps)
    given_ = [one for event in of_kind(events, "fetch") for one in acquired(event)]
    assert all(1 <= count <= _LIMIT for _, _, count in given_)
    for share in filter(None, map(_share, of_kind(events, "state"))):
        assert all(count <= _LIMIT for _, count in _records(share).values())


@given(_steps())
def test_each_delivery_of_a_record_is_counted(steps: list[Event]) -> None:
    deliveries: dict[int, int] = {}
    for event in of_kind(_run(steps), "fetch"):
        for first, last, count in acquired(event):
            for offset in range(first, last + 1):
                assert count > deliveries.get(offset, 0)
                deliveries[offset] = count


@given(_steps())
def test_the_start_passes_only_records_that_are_done(steps: list[Event]) -> None:
    events = [event for event in _run(steps) if event["kind"] in ("state", "write")]
    done: set[int] = set()
    for event in events:
        if event["kind"] == "write":
            for first, last, state, _ in event["batches"]:
                if state in ("ACKNOWLEDGED", "ARCHIVED"):
                    done.update(range(first, last + 1))
        elif (share := _share(event)) is not None:
            assert done >= set(range(share["start"]))
            records = _records(share).items()
            finished = [offset for offset, (state, _) in records if state in ("ACKNOWLEDGED", "ARCHIVED")]
            assert share["complete"] == sum(offset >= share["start"] for offset in finished)
