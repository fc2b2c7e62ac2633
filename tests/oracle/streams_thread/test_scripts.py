"""Our member of a streams group does what Kafka's classes (4.4.0, JDK 17) did in the same script."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pytest

from tests.oracle.build import OracleUnavailable
from tests.oracle.group_member.recordings import Recording
from tests.oracle.streams_thread.command import KEPT, ask, difference_of, read_golden
from tests.oracle.streams_thread.drawing import draw
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
    try:
        differing = [str(found) for one in ask(drawn) if (found := difference_of(*one))]
    except OracleUnavailable as problem:
        pytest.skip(str(problem))
    assert differing == []
