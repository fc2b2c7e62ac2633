"""Our member of a streams group does what Kafka's classes (4.4.0, JDK 17) did in the same script."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pytest

from tests.needs import needed
from tests.oracle.group_member.recordings import Recording
from tests.oracle.group_member.situation import (
    CALLBACK_BEGINS,
    CALLBACK_ENDS,
    INTERVAL_MS,
    POLL,
    STEP,
    Situation,
    advance,
    subscribe,
)
from tests.oracle.streams_thread.command import KEPT, ask, difference_of, read_golden
from tests.oracle.streams_thread.drawing import draw
from tests.oracle.streams_thread.playing import play
from tests.soaking import sizes


@pytest.fixture(scope="module")
def golden() -> Mapping[str, Recording]:
    return read_golden()


def test_our_member_does_what_kafkas_does(golden: Mapping[str, Recording]) -> None:
    found = [difference_of(draw(int(number)), recording) for number, recording in golden.items()]
    assert [str(one) for one in found if one is not None] == []


def test_the_recordings_meet_every_state_callback_and_field(golden: Mapping[str, Recording]) -> None:
    assert list(golden) == [str(number) for number in range(KEPT)]
    steps = [step for recording in golden.values() for step in recording]
    states = Counter(step["state"] for step in steps if "state" in step)
    assert set(states) == {
        "UNSUBSCRIBED",
        "JOINING",
        "RECONCILING",
        "ACKNOWLEDGING",
        "STABLE",
        "FENCED",
        "PREPARE_LEAVING",
        "LEAVING",
        "FATAL",
        "STALE",
    }
    seen = [one for step in steps for one in step.get("seen", ())]
    methods = {one["callback"]["method"] for one in seen if "callback" in one}
    assert methods == {"onTasksAssigned", "onTasksRevoked", "onAllTasksLost"}
    told = {field for one in seen for field, value in one.get("sent", {}).items() if value not in (None, [])}
    assert told >= {"topology", "active", "standby", "warmup", "offsets", "end_offsets", "instance", "rack"}


@pytest.mark.parametrize(("lag", "told"), [(11, None), (10, {"0_0": 90}), (9, {"0_0": 90})])
def test_a_warm_up_task_that_has_caught_up_is_told_before_the_interval_is_over(
    lag: int, told: dict[str, int] | None
) -> None:
    """Kafka's classes did so in this script: the interval is a minute, acceptable.recovery.lag 10."""
    fields = {"epoch": 1, "interval": INTERVAL_MS, "offset_interval": 60_000, "recovery_lag": 10}
    warm_up = {"active": {}, "standby": {}, "warmup": {"0": [0]}}
    taken = (STEP, CALLBACK_BEGINS, CALLBACK_ENDS, STEP)
    progress = (("offsets", {"0_0": 90}), ("end_offsets", {"0_0": 90 + lag}))
    steps = (
        *(subscribe("t", "u", "v"), POLL, STEP, ("answer", {**fields, **warm_up}), *taken),
        *(("answer", fields), *progress, advance(INTERVAL_MS), POLL, STEP),
    )
    *_, last = play(Situation("warm-up", steps))
    assert last["seen"][0]["sent"]["offsets"] == told


def test_a_difference_is_found_where_it_is(golden: Mapping[str, Recording]) -> None:
    recording = [dict(step) for step in golden["0"]]
    recording[2]["seen"] = []
    found = difference_of(draw(0), recording)
    assert found is not None
    assert found.at == 2
    assert str(found).startswith("0: subscribe ['t', 'u', 'v'], poll, step\n")


@pytest.mark.slow
@pytest.mark.parametrize("scripts", sizes(500, 10_000, within_minutes=30))
def test_drawn_scripts_do_not_differ(scripts: int) -> None:
    drawn = map(draw, range(KEPT, KEPT + scripts))
    with needed():
        differing = [str(found) for one in ask(drawn) if (found := difference_of(*one))]
    assert differing == []
